//! FAB: the largest block leaves.

use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;

/// Blocks in victim order, each with its pages in the order they came.
struct Fab {
    block: u32,
    queue: Vec<Vec<u32>>,
    /// Blocks in the order they were created, for FLUSH.
    created: Vec<u32>,
}

impl Fab {
    fn at(&self, lpn: u32) -> Option<usize> {
        self.queue.iter().position(|pages| pages[0] / self.block == lpn / self.block)
    }

    /// The newest among the blocks of its size.
    fn put_as_newest(&mut self, block: Vec<u32>) {
        let at = self.queue.iter().position(|other| other.len() < block.len());
        self.queue.insert(at.unwrap_or(self.queue.len()), block);
    }

    /// The oldest among the blocks of its size.
    fn put_as_oldest(&mut self, block: Vec<u32>) {
        let at = self.queue.iter().position(|other| other.len() <= block.len());
        self.queue.insert(at.unwrap_or(self.queue.len()), block);
    }
}

impl Order for Fab {
    fn new(_: &Case, spec: &PolicySpec) -> Self {
        Self { block: spec.value("block").count(), queue: Vec::new(), created: Vec::new() }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        let at = self.at(lpn).unwrap();
        let block = self.queue.remove(at);
        self.put_as_newest(block);
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if pages.is_full() {
            let mut victim = self.queue.remove(0);
            self.created.retain(|block| *block != victim[0] / self.block);
            victim.sort_unstable();
            pages.evict_group(&victim, Stream::Other);
        }
        if let Some(at) = self.at(lpn) {
            let mut block = self.queue.remove(at);
            block.push(lpn);
            self.put_as_newest(block);
        } else {
            self.put_as_newest(vec![lpn]);
            self.created.push(lpn / self.block);
        }
        true
    }

    fn forget(&mut self, lpn: u32) {
        let Some(at) = self.at(lpn).filter(|at| self.queue[*at].contains(&lpn)) else { return };
        let mut block = self.queue.remove(at);
        block.retain(|page| *page != lpn);
        if block.is_empty() {
            self.created.retain(|block| *block != lpn / self.block);
        } else {
            self.put_as_oldest(block);
        }
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        let pages = |block: &u32| self.queue[self.at(block * self.block).unwrap()].clone();
        vec![(Stream::Other, self.created.iter().flat_map(pages).collect())]
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fab_equals_the_naive_model(case in case(), choice in 0..4_usize) {
        agrees::<Fab>(["fab", "fab:block=1", "fab:block=3", "fab:block=8"][choice], &case);
    }
}

#[test]
fn g2_counts() {
    assert_eq!(cells(&g2("fab", 512, 1)), [3_024, 5_332, 250_762]);
    assert_eq!(cells(&g2("fab", 2048, 1)), [12_326, 15_903, 239_311]);
}
