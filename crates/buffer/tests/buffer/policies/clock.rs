//! CLOCK.

use super::lists::Lists;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g1, cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The hand is at the oldest page.
struct Clock {
    lists: Lists<1>,
    accessed: BTreeSet<u32>,
}

impl Order for Clock {
    fn new(_: &Case, _: &PolicySpec) -> Self {
        Self { lists: Lists::new(), accessed: BTreeSet::new() }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.accessed.insert(lpn);
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if pages.is_full() {
            while self.accessed.remove(&self.lists.0[0][0]) {
                self.lists.0[0].rotate_left(1);
            }
            self.lists.evict(0, 0, pages);
        }
        self.lists.move_to(0, lpn);
        self.accessed.remove(&lpn);
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
    assert_g1("clock", 1_000, 0.482_348);
    assert_g1("clock", 10_000, 0.257_323);
}

#[test]
fn g2_counts() {
    assert_eq!(cells(&g2("clock", 512, 1)), [7_318, 12_721, 240_329]);
    assert_eq!(cells(&g2("clock", 2048, 1)), [19_192, 23_726, 214_817]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clock_equals_the_naive_model(case in case()) {
        agrees::<Clock>("clock", &case);
    }
}
