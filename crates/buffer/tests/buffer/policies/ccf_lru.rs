//! CCF-LRU.

use super::lists::Lists;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;
use std::collections::BTreeSet;

const CCL: usize = 0;
const ML: usize = 1;

struct CcfLru {
    lists: Lists<2>,
    cold: BTreeSet<u32>,
}

impl CcfLru {
    fn evict(&mut self, pages: &mut Pages) {
        if !self.lists.0[CCL].is_empty() {
            return self.lists.evict(CCL, 0, pages);
        }
        while !self.lists.0[ML].is_empty() {
            let oldest = self.lists.0[ML][0];
            if !self.cold.insert(oldest) {
                return self.lists.evict(ML, 0, pages);
            }
            self.lists.move_to(if pages.is_dirty(oldest) { ML } else { CCL }, oldest);
        }
        self.lists.evict(CCL, 0, pages);
    }
}

impl Order for CcfLru {
    fn new(_: &Case, _: &PolicySpec) -> Self {
        Self { lists: Lists::new(), cold: BTreeSet::new() }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.lists.move_to(ML, lpn);
        self.cold.remove(&lpn);
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        if pages.is_full() {
            self.evict(pages);
        }
        self.lists.move_to(if write { ML } else { CCL }, lpn);
        self.cold.remove(&lpn);
        if !write {
            self.cold.insert(lpn);
        }
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
    assert_eq!(cells(&g2("ccf-lru", 512, 1)), [6_810, 12_233, 236_963]);
    assert_eq!(cells(&g2("ccf-lru", 2048, 1)), [18_789, 22_806, 205_206]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ccf_lru_equals_the_naive_model(case in case()) {
        agrees::<CcfLru>("ccf-lru", &case);
    }
}
