//! LRU-WSR.

use super::lists::Lists;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;
use std::collections::BTreeSet;

struct LruWsr {
    lists: Lists<1>,
    cold: BTreeSet<u32>,
}

impl LruWsr {
    fn touch(&mut self, lpn: u32) {
        self.lists.move_to(0, lpn);
        self.cold.remove(&lpn);
    }
}

impl Order for LruWsr {
    fn new(_: &Case, _: &PolicySpec) -> Self {
        Self { lists: Lists::new(), cold: BTreeSet::new() }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.touch(lpn);
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if pages.is_full() {
            loop {
                let oldest = self.lists.0[0][0];
                if !pages.is_dirty(oldest) || self.cold.contains(&oldest) {
                    break;
                }
                self.cold.insert(oldest);
                self.lists.move_to(0, oldest);
            }
            self.lists.evict(0, 0, pages);
        }
        self.touch(lpn);
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
    assert_eq!(cells(&g2("lru-wsr", 512, 1)), [6_966, 12_259, 239_632]);
    assert_eq!(cells(&g2("lru-wsr", 2048, 1)), [18_825, 22_842, 210_930]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lru_wsr_equals_the_naive_model(case in case()) {
        agrees::<LruWsr>("lru-wsr", &case);
    }
}
