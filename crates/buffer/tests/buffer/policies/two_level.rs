//! Two-level LRU.

use super::lists::Lists;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g1, cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use onefold_units::convert::index;
use proptest::prelude::*;

const CANDIDATES: usize = 0;
const HOT: usize = 1;

struct TwoLevel {
    lists: Lists<2>,
    hot: usize,
}

impl Order for TwoLevel {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        Self { lists: Lists::new(), hot: index(spec.value("hot").ratio().of(case.slots)) }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        if self.hot == 0 {
            self.lists.move_to(CANDIDATES, lpn);
            return;
        }
        if !self.lists.0[HOT].contains(&lpn) && self.lists.0[HOT].len() == self.hot {
            let demoted = self.lists.0[HOT][0];
            self.lists.move_to(CANDIDATES, demoted);
        }
        self.lists.move_to(HOT, lpn);
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if self.lists.0[CANDIDATES].len() == pages.slots - self.hot {
            self.lists.evict(CANDIDATES, 0, pages);
        }
        self.lists.move_to(CANDIDATES, lpn);
        true
    }

    fn forget(&mut self, lpn: u32) {
        self.lists.forget(lpn);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        self.lists.flush_order()
    }
}

#[test]
fn g1_miss_ratios() {
    assert_g1("2l", 1_000, 0.457_127);
    assert_g1("2l", 10_000, 0.250_007);
}

#[test]
fn g2_counts() {
    assert_eq!(cells(&g2("2l", 512, 1)), [9_506, 18_790, 233_922]);
    assert_eq!(cells(&g2("2l", 2048, 1)), [20_346, 30_200, 210_168]);
}

/// A buffer of hot entries only could admit nothing: one entry always stays outside.
#[test]
fn extreme_shares() {
    assert_eq!(cells(&g2("2l:hot=0", 512, 1)), cells(&g2("lru", 512, 1)));
    assert_eq!(cells(&g2("2l:hot=1", 512, 1)), cells(&g2("2l:hot=511/512", 512, 1)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_level_equals_the_naive_model(
        case in case(),
        spec in prop::sample::select(vec!["2l", "2l", "2l:hot=0", "2l:hot=90%"]),
    ) {
        agrees::<TwoLevel>(spec, &case);
    }
}
