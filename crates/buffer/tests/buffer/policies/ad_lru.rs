//! AD-LRU.

use super::lists::Lists;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use onefold_units::convert::index;
use proptest::prelude::*;
use std::collections::BTreeSet;

const COLD: usize = 0;
const HOT: usize = 1;

/// The list of the victim is looked through every time.
struct AdLru {
    lists: Lists<2>,
    flags: BTreeSet<u32>,
    cold: usize,
}

impl AdLru {
    fn evict(&mut self, pages: &mut Pages) {
        let [cold, hot] = &self.lists.0;
        let list = if cold.len() > self.cold || hot.is_empty() { COLD } else { HOT };
        let clean = self.lists.0[list].iter().position(|page| !pages.is_dirty(*page));
        if clean.is_none() {
            while self.flags.insert(self.lists.0[list][0]) {
                self.lists.0[list].rotate_left(1);
            }
        }
        self.lists.evict(list, clean.unwrap_or(0), pages);
    }

    fn enter(&mut self, list: usize, lpn: u32) {
        self.lists.move_to(list, lpn);
        self.flags.remove(&lpn);
    }
}

impl Order for AdLru {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let cold = index(spec.value("cold").ratio().of(case.slots));
        Self { lists: Lists::new(), flags: BTreeSet::new(), cold }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.enter(HOT, lpn);
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if pages.is_full() {
            self.evict(pages);
        }
        self.enter(COLD, lpn);
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
fn g2_counts() {
    assert_eq!(cells(&g2("ad-lru", 512, 1)), [10_684, 25_232, 228_402]);
    assert_eq!(cells(&g2("ad-lru", 2048, 1)), [19_638, 38_323, 202_391]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ad_lru_equals_the_naive_model(
        case in case(),
        spec in prop::sample::select(vec!["ad-lru", "ad-lru:cold=0.5", "ad-lru:cold=1"]),
    ) {
        agrees::<AdLru>(spec, &case);
    }
}
