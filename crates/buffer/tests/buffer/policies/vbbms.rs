//! VBBMS: two regions of virtual blocks.

use crate::common::build::{build, try_build};
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use crate::common::unmapped::Unmapped;
use onefold_buffer::{Action, Actions, BufferError, FtlView, PolicySpec, Req, Stream};
use onefold_units::{Lpn, Op};
use proptest::prelude::*;

/// One region: blocks in victim order, each with its pages in the order they came; and blocks in
/// the order they were created, for FLUSH.
struct Region {
    limit: usize,
    block: u32,
    queue: Vec<Vec<u32>>,
    created: Vec<u32>,
}

impl Region {
    fn new(limit: usize, block: u32) -> Self {
        Self { limit, block, queue: Vec::new(), created: Vec::new() }
    }

    fn at(&self, lpn: u32) -> Option<usize> {
        self.queue.iter().position(|pages| pages[0] / self.block == lpn / self.block)
    }

    fn contains(&self, lpn: u32) -> bool {
        self.queue.iter().flatten().any(|page| *page == lpn)
    }

    fn room(&mut self, pages: &mut Pages) {
        while self.queue.iter().flatten().count() >= self.limit {
            let mut victim = self.queue.remove(0);
            self.created.retain(|block| *block != victim[0] / self.block);
            victim.sort_unstable();
            pages.evict_group(&victim, Stream::Other);
        }
    }

    fn insert(&mut self, lpn: u32) {
        if let Some(at) = self.at(lpn) {
            self.queue[at].push(lpn);
        } else {
            self.queue.push(vec![lpn]);
            self.created.push(lpn / self.block);
        }
    }

    fn refresh(&mut self, lpn: u32) {
        let at = self.at(lpn).unwrap();
        let block = self.queue.remove(at);
        self.queue.push(block);
    }

    fn forget(&mut self, lpn: u32) {
        for pages in &mut self.queue {
            pages.retain(|page| *page != lpn);
        }
        self.queue.retain(|pages| !pages.is_empty());
        if self.at(lpn).is_none() {
            self.created.retain(|block| *block != lpn / self.block);
        }
    }

    fn flush_order(&self) -> (Stream, Vec<u32>) {
        let pages = |block: &u32| self.queue[self.at(block * self.block).unwrap()].clone();
        (Stream::Other, self.created.iter().flat_map(pages).collect())
    }
}

struct Vbbms {
    random: Region,
    sequential: Region,
    longest: u32,
    long: bool,
}

impl Order for Vbbms {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let count = |key| spec.value(key).count();
        let share = spec.value("random").ratio().of(case.slots);
        let random = share.max(1).min(case.slots - 1);
        let pages = |n: u32| usize::try_from(n).unwrap();
        Self {
            random: Region::new(pages(random), count("random_block")),
            sequential: Region::new(pages(case.slots - random), count("sequential_block")),
            longest: count("longest"),
            long: false,
        }
    }

    fn begin(&mut self, r: &Req, _: &dyn FtlView, _: &Pages) {
        self.long = r.n > self.longest;
    }

    fn hit(&mut self, lpn: u32, _: bool, pages: &mut Pages) {
        if self.sequential.contains(lpn) {
            self.sequential.forget(lpn);
            self.random.room(pages);
            self.random.insert(lpn);
        }
        self.random.refresh(lpn);
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if self.long {
            self.sequential.room(pages);
            self.sequential.insert(lpn);
        } else {
            self.random.room(pages);
            self.random.insert(lpn);
            self.random.refresh(lpn);
        }
        true
    }

    fn forget(&mut self, lpn: u32) {
        self.random.forget(lpn);
        self.sequential.forget(lpn);
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        vec![self.random.flush_order(), self.sequential.flush_order()]
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn vbbms_equals_the_naive_model(case in case(), choice in 0..3_usize) {
        let spec = [
            "vbbms",
            "vbbms:random=1/4,random_block=3,sequential_block=5,longest=2",
            "vbbms:random=1,random_block=1,sequential_block=40",
        ][choice];
        agrees::<Vbbms>(spec, &case);
    }
}

#[test]
fn g2_counts() {
    assert_eq!(cells(&g2("vbbms", 512, 1)), [10_326, 22_067, 232_357]);
    assert_eq!(cells(&g2("vbbms", 2048, 1)), [20_041, 36_966, 207_433]);
}

/// A share of nothing or of everything leaves one entry to the other region.
#[test]
fn each_region_has_an_entry() {
    assert!(matches!(
        try_build("vbbms", 1, 4096, 1, true).err(),
        Some(BufferError::Tables { least: 8192, .. })
    ));
    for (share, random, sequential) in [("0", 1, 3), ("1", 3, 1), ("1/2", 2, 2)] {
        let mut policy = build(&format!("vbbms:random={share}"), 4, 4096, 1, true);
        let mut out = Actions::new();
        let mut drops = |n: u32, first: u32| {
            let mut drops = 0;
            for at in 0..5 {
                let r = Req::new(Op::Read, Lpn::new(first + 16 * at), n);
                policy.request(&r, &Unmapped, &mut out);
                let dropped = |step: &&Action| matches!(step, Action::Drop { .. });
                drops += out.as_slice().iter().filter(dropped).count();
            }
            drops
        };
        assert_eq!(drops(1, 0), 5 - random, "{share}");
        // Five requests of two pages each, in blocks of their own.
        assert!(drops(2, 1000) >= 10 - sequential, "{share}");
    }
}
