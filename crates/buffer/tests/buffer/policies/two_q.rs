//! 2Q.

use super::lists::{evict, keep_newest, one_stream, renew, take};
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g1, assert_g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;

/// Oldest page first in each list.
struct TwoQ {
    a1in: Vec<u32>,
    a1out: Vec<u32>,
    am: Vec<u32>,
    kin: usize,
    kout: usize,
}

impl Order for TwoQ {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let share = |name| usize::try_from(spec.value(name).ratio().of(case.slots)).unwrap();
        let (kin, kout) = (share("in"), share("out"));
        Self { a1in: Vec::new(), a1out: Vec::new(), am: Vec::new(), kin, kout }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        if self.am.contains(&lpn) {
            renew(&mut self.am, lpn);
        }
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        let known = take(&mut self.a1out, lpn);
        if pages.is_full() {
            if self.a1in.len() > self.kin || self.am.is_empty() {
                self.a1out.extend(evict(&mut self.a1in, pages));
                keep_newest(&mut self.a1out, self.kout);
            } else {
                evict(&mut self.am, pages);
            }
        }
        if known { &mut self.am } else { &mut self.a1in }.push(lpn);
        true
    }

    fn forget(&mut self, lpn: u32) {
        for list in [&mut self.a1in, &mut self.a1out, &mut self.am] {
            take(list, lpn);
        }
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        one_stream(&[&self.a1in, &self.am])
    }
}

#[test]
fn golden_counts() {
    assert_g1("2q", 1_000, 0.417_861);
    assert_g1("2q", 10_000, 0.234_962);
    assert_g2("2q", [[10_836, 23_546, 230_893], [21_264, 37_222, 209_593]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_q_equals_the_naive_model(case in case(), spec in prop::sample::select(vec!["2q", "2q:in=0,out=1", "2q:in=1,out=0"])) {
        agrees::<TwoQ>(spec, &case);
    }
}
