//! LIRS.

use super::lists::{evict, keep_newest, one_stream, renew, take};
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::{assert_g2, g1_misses};
use crate::common::streams::{Case, case};
use onefold_buffer::{PolicySpec, Stream};
use proptest::prelude::*;

/// The stack S and the queue Q of the paper, oldest page first.
struct Lirs {
    stack: Vec<u32>,
    queue: Vec<u32>,
    lir: Vec<u32>,
    /// Pages that left the buffer while they were in the stack, by when they did.
    gone: Vec<u32>,
    lir_most: usize,
}

impl Lirs {
    /// The oldest page of the stack is LIR, and there are not too many of them.
    fn restore(&mut self) {
        self.prune();
        if self.lir.len() > self.lir_most {
            let bottom = self.stack.remove(0);
            assert!(take(&mut self.lir, bottom));
            self.queue.push(bottom);
            self.prune();
        }
    }

    fn prune(&mut self) {
        while self.stack.first().is_some_and(|bottom| !self.lir.contains(bottom)) {
            self.stack.remove(0);
        }
    }

    fn evict(&mut self, pages: &mut Pages) {
        for lpn in evict(&mut self.queue, pages) {
            if self.stack.contains(&lpn) {
                self.gone.push(lpn);
            }
        }
        let dropped = self.gone.len().saturating_sub(pages.slots);
        for lpn in &self.gone[..dropped] {
            take(&mut self.stack, *lpn);
        }
        keep_newest(&mut self.gone, pages.slots);
    }
}

impl Order for Lirs {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let hir = spec.value("hir").ratio().of(case.slots).max(1);
        let lir_most = usize::try_from(case.slots - hir).unwrap();
        let [stack, queue, lir, gone] = [const { Vec::new() }; 4];
        Self { stack, queue, lir, gone, lir_most }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        let in_stack = self.stack.contains(&lpn);
        renew(&mut self.stack, lpn);
        if in_stack {
            take(&mut self.queue, lpn);
            renew(&mut self.lir, lpn);
        } else {
            renew(&mut self.queue, lpn);
        }
        self.restore();
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        if pages.is_full() {
            self.evict(pages);
        }
        take(&mut self.gone, lpn);
        let in_stack = take(&mut self.stack, lpn);
        self.stack.push(lpn);
        let lir = in_stack || self.lir.len() < self.lir_most;
        if lir { &mut self.lir } else { &mut self.queue }.push(lpn);
        self.restore();
        true
    }

    fn forget(&mut self, lpn: u32) {
        for list in [&mut self.stack, &mut self.queue, &mut self.lir, &mut self.gone] {
            take(list, lpn);
        }
        self.prune();
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        one_stream(&[&self.lir, &self.queue])
    }
}

#[test]
fn golden_counts() {
    for (slots, golden, peer) in [(1_000, 0.405_019, 0.405_070), (10_000, 0.225_092, 0.225_163)] {
        let found = g1_misses("lirs", slots);
        // The peer is libCacheSim 0.3.5.
        assert!((found - peer).abs() < 1e-4, "{slots} entries: {found}, not {peer}");
        assert!((found - golden).abs() < 5e-7, "{slots} entries: {found}, not {golden}");
    }
    assert_g2("lirs", [[10_614, 23_200, 232_154], [20_010, 35_731, 216_866]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lirs_equals_the_naive_model(case in case(), spec in prop::sample::select(vec!["lirs", "lirs:hir=1/4", "lirs:hir=1"])) {
        agrees::<Lirs>(spec, &case);
    }
}
