//! S3-FIFO.

use super::lists::{evict, keep_newest, one_stream, renew, take};
use super::nested::Nested;
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g1, assert_g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Ratio, Stream};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Oldest page first in each queue.
pub(super) struct S3Fifo {
    small: Vec<u32>,
    main: Vec<u32>,
    ghosts: Vec<u32>,
    counts: BTreeMap<u32, u32>,
    limit: usize,
}

impl S3Fifo {
    /// Whether the small queue had a page to evict.
    fn evict_small(&mut self, pages: &mut Pages) -> bool {
        while let Some(oldest) = self.small.first().copied() {
            if self.counts[&oldest] < 2 {
                self.ghosts.extend(evict(&mut self.small, pages));
                keep_newest(&mut self.ghosts, pages.slots - self.limit);
                return true;
            }
            self.counts.insert(oldest, 0);
            take(&mut self.small, oldest);
            self.main.push(oldest);
        }
        false
    }

    fn evict_main(&mut self, pages: &mut Pages) {
        while let Some(count) = self.counts[&self.main[0]].checked_sub(1) {
            self.counts.insert(self.main[0], count);
            self.main.rotate_left(1);
        }
        evict(&mut self.main, pages);
    }
}

impl Order for S3Fifo {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let own = spec.name() == "s3-fifo";
        let small = if own { spec.value("small").ratio() } else { Ratio::new(1, 10) };
        let limit = small.of(case.slots);
        Self {
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
            counts: BTreeMap::new(),
            limit: usize::try_from(limit).unwrap(),
        }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        let count = self.counts[&lpn] + 1;
        self.counts.insert(lpn, count.min(3));
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        self.make_room_and_insert(lpn, write, pages)
    }

    fn forget(&mut self, lpn: u32) {
        for list in [&mut self.small, &mut self.main, &mut self.ghosts] {
            take(list, lpn);
        }
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        one_stream(&[&self.small, &self.main])
    }
}

impl Nested for S3Fifo {
    fn evict(&mut self, pages: &mut Pages) {
        let from_small = self.small.len() >= self.limit || self.main.is_empty();
        if !from_small || !self.evict_small(pages) {
            self.evict_main(pages);
        }
    }

    fn take_ghost(&mut self, lpn: u32) -> bool {
        take(&mut self.ghosts, lpn)
    }

    fn insert(&mut self, lpn: u32, known: bool, _: bool, _: &mut Pages) {
        self.counts.insert(lpn, 0);
        renew(if known { &mut self.main } else { &mut self.small }, lpn);
    }

    fn join(&mut self, lpn: u32) {
        self.counts.insert(lpn, 0);
        self.main.push(lpn);
    }
}

#[test]
fn golden_counts() {
    assert_g1("s3-fifo", 1_000, 0.401_731);
    assert_g1("s3-fifo", 10_000, 0.222_160);
    assert_g2("s3-fifo", [[11_443, 25_721, 229_515], [21_275, 39_620, 211_555]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s3_fifo_equals_the_naive_model(case in case(), spec in prop::sample::select(vec!["s3-fifo", "s3-fifo:small=1/3", "s3-fifo:small=0", "s3-fifo:small=1"])) {
        agrees::<S3Fifo>(spec, &case);
    }
}
