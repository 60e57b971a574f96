//! ARC.

use super::lists::{evict, one_stream, renew, take};
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g1, assert_g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;

/// The lists of the paper, oldest page first, and its real-valued p.
#[derive(Default)]
struct Arc {
    t1: Vec<u32>,
    t2: Vec<u32>,
    b1: Vec<u32>,
    b2: Vec<u32>,
    p: f64,
}

fn size(list: &[u32]) -> f64 {
    f64::from(u32::try_from(list.len()).unwrap())
}

impl Arc {
    fn replace(&mut self, in_b2: bool, pages: &mut Pages) {
        if !pages.is_full() {
            return;
        }
        let t1 = size(&self.t1);
        let over = if in_b2 { t1 >= self.p } else { t1 > self.p };
        if t1 > 0.0 && (over || self.t2.is_empty()) {
            self.b1.extend(evict(&mut self.t1, pages));
        } else {
            self.b2.extend(evict(&mut self.t2, pages));
        }
    }

    fn known(&mut self, lpn: u32, in_b2: bool, pages: &mut Pages) {
        let (b1, b2) = (size(&self.b1), size(&self.b2));
        if in_b2 {
            self.p = f64::max(0.0, self.p - f64::max(1.0, b1 / b2));
        } else {
            self.p = f64::min(size(&vec![0; pages.slots]), self.p + f64::max(1.0, b2 / b1));
        }
        self.replace(in_b2, pages);
        take(&mut self.b1, lpn);
        take(&mut self.b2, lpn);
        self.t2.push(lpn);
    }

    fn unknown(&mut self, lpn: u32, pages: &mut Pages) {
        let c = pages.slots;
        let l1 = self.t1.len() + self.b1.len();
        if l1 == c && self.t1.len() == c {
            evict(&mut self.t1, pages);
        } else {
            if l1 == c {
                self.b1.remove(0);
            } else if l1 + self.t2.len() + self.b2.len() == 2 * c {
                self.b2.remove(0);
            }
            self.replace(false, pages);
        }
        self.t1.push(lpn);
    }
}

impl Order for Arc {
    fn new(_: &Case, _: &PolicySpec) -> Self {
        Self::default()
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        take(&mut self.t1, lpn);
        renew(&mut self.t2, lpn);
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        let in_b2 = self.b2.contains(&lpn);
        if in_b2 || self.b1.contains(&lpn) {
            self.known(lpn, in_b2, pages);
        } else {
            self.unknown(lpn, pages);
        }
        let (l1, l2) = (self.t1.len() + self.b1.len(), self.t2.len() + self.b2.len());
        assert!(l1 <= pages.slots && l1 + l2 <= 2 * pages.slots, "the directory is 2 C");
        true
    }

    fn forget(&mut self, lpn: u32) {
        for list in [&mut self.t1, &mut self.t2, &mut self.b1, &mut self.b2] {
            take(list, lpn);
        }
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        one_stream(&[&self.t1, &self.t2])
    }
}

#[test]
fn golden_counts() {
    assert_g1("arc", 1_000, 0.405_512);
    assert_g1("arc", 10_000, 0.224_892);
    assert_g2("arc", [[10_927, 24_098, 231_139], [21_042, 38_290, 212_915]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arc_equals_the_naive_model(case in case()) {
        agrees::<Arc>("arc", &case);
    }
}
