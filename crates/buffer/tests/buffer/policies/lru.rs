//! Least recently used. Its golden counts are in `golden.rs`, with those of stack distances.

use super::nested::Nested;
use crate::common::model::{Order, Pages, agrees};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;

/// Oldest page first.
pub(super) struct Lru(Vec<u32>);

impl Order for Lru {
    fn new(_: &Case, _: &PolicySpec) -> Self {
        Self(Vec::new())
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.forget(lpn);
        self.0.push(lpn);
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        self.make_room_and_insert(lpn, write, pages)
    }

    fn forget(&mut self, lpn: u32) {
        self.0.retain(|page| *page != lpn);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        vec![(Stream::Other, self.0.clone())]
    }
}

impl Nested for Lru {
    fn evict(&mut self, pages: &mut Pages) {
        for gone in pages.evict(&self.0, Stream::Other) {
            self.forget(gone);
        }
    }

    fn insert(&mut self, lpn: u32, _: bool, _: bool, _: &mut Pages) {
        self.0.push(lpn);
    }

    fn join(&mut self, lpn: u32) {
        self.0.push(lpn);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lru_equals_the_naive_model(case in case()) {
        agrees::<Lru>("lru", &case);
    }
}
