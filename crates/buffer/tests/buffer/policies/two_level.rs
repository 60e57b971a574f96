//! Two-level LRU.

use super::lists::Lists;
use super::nested::Nested;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g1, cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Ratio, Stream};
use onefold_units::convert::index;
use proptest::prelude::*;

const CANDIDATES: usize = 0;
const HOT: usize = 1;

pub(super) struct TwoLevel {
    lists: Lists<2>,
    hot: usize,
}

impl Order for TwoLevel {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let own = spec.name() == "2l";
        let hot = if own { spec.value("hot").ratio() } else { Ratio::new(1, 3) };
        Self { lists: Lists::new(), hot: index(hot.of(case.slots)) }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.join(lpn);
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        self.insert(lpn, false, write, pages);
        true
    }

    fn forget(&mut self, lpn: u32) {
        self.lists.forget(lpn);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        self.lists.flush_order()
    }
}

impl Nested for TwoLevel {
    fn evict(&mut self, pages: &mut Pages) {
        let victims = if self.lists.0[CANDIDATES].is_empty() { HOT } else { CANDIDATES };
        self.lists.evict(victims, 0, pages);
    }

    fn join(&mut self, lpn: u32) {
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

    fn insert(&mut self, lpn: u32, _: bool, _: bool, pages: &mut Pages) {
        if self.lists.0[CANDIDATES].len() == pages.slots - self.hot {
            self.lists.evict(CANDIDATES, 0, pages);
        }
        self.lists.move_to(CANDIDATES, lpn);
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
