//! BPLRU: blocks by their last write, padded.

use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::g2;
use crate::common::streams::{Case, case};
use crate::common::text::text;
use crate::common::unmapped::Unmapped;
use onefold_buffer::{
    Actions, BufferConfig, Charge, Policy, PolicySpec, Req, Sizes, Stream, new_policy,
};
use onefold_units::{Lpn, Op};
use proptest::prelude::*;

struct Block {
    /// In the order they came.
    pages: Vec<u32>,
    /// Offset that continues the sequence, `None` if it is broken.
    next: Option<u32>,
}

/// Blocks in victim order.
struct Bplru {
    block: u32,
    queue: Vec<Block>,
    /// Blocks in the order they were created, for FLUSH.
    created: Vec<u32>,
}

impl Bplru {
    fn at(&self, lpn: u32) -> Option<usize> {
        self.queue.iter().position(|block| block.pages[0] / self.block == lpn / self.block)
    }

    fn written(&mut self, lpn: u32) {
        let at = self.at(lpn).unwrap();
        let mut block = self.queue.remove(at);
        block.next = block.next.filter(|next| *next == lpn % self.block).map(|next| next + 1);
        if block.next == Some(self.block) {
            self.queue.insert(0, block);
        } else {
            self.queue.push(block);
        }
    }

    fn evict(&mut self, pages: &mut Pages) {
        let mut victim = self.queue.remove(0).pages;
        let number = victim[0] / self.block;
        self.created.retain(|block| *block != number);
        victim.sort_unstable();
        if victim.iter().any(|lpn| pages.is_dirty(*lpn)) {
            let all: Vec<u32> = (number * self.block..(number + 1) * self.block).collect();
            pages.evict_padded(&all);
        } else {
            pages.evict_group(&victim, Stream::Other);
        }
    }
}

impl Order for Bplru {
    fn new(_: &Case, spec: &PolicySpec) -> Self {
        Self { block: spec.value("block").count(), queue: Vec::new(), created: Vec::new() }
    }

    fn hit(&mut self, lpn: u32, write: bool, _: &mut Pages) {
        if write {
            self.written(lpn);
        }
    }

    fn admit(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        if !write {
            return false;
        }
        if pages.is_full() {
            self.evict(pages);
        }
        if let Some(at) = self.at(lpn) {
            self.queue[at].pages.push(lpn);
        } else {
            self.queue.push(Block { pages: vec![lpn], next: Some(0) });
            self.created.push(lpn / self.block);
        }
        self.written(lpn);
        true
    }

    fn forget(&mut self, lpn: u32) {
        let Some(at) = self.at(lpn) else { return };
        let block = &mut self.queue[at];
        if !block.pages.contains(&lpn) {
            return;
        }
        block.pages.retain(|page| *page != lpn);
        block.next = None;
        if block.pages.is_empty() {
            self.queue.remove(at);
            self.created.retain(|block| *block != lpn / self.block);
        }
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        let pages = |block: &u32| self.queue[self.at(block * self.block).unwrap()].pages.clone();
        vec![(Stream::Other, self.created.iter().flat_map(pages).collect())]
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bplru_equals_the_naive_model(case in case(), choice in 0..4_usize) {
        agrees::<Bplru>(["bplru", "bplru:block=1", "bplru:block=3", "bplru:block=8"][choice], &case);
    }
}

/// The table counts all pages programmed.
#[test]
fn g2_counts() {
    for (slots, hits, programmed, padded) in
        [(512, [9_647, 23_761], 882_112, 651_522), (2048, [18_003, 43_613], 400_640, 193_629)]
    {
        let total = g2("bplru", slots, 1);
        assert_eq!([total.reads.hits, total.writes.hits], hits);
        assert_eq!((total.all_programmed(), total.pad_reads), (programmed, padded));
        assert_eq!(total.pages_padded, total.pad_reads, "no entry was clean");
        assert_eq!(total.programs, programmed);
    }
}

fn small(bytes: u64, charge: Charge, k: u32) -> Box<dyn Policy + Send> {
    let policy = PolicySpec::parse("bplru:block=4").unwrap();
    let config = BufferConfig { policy, bytes, charge, volatile: true };
    let sizes = Sizes { flash_page_bytes: k * 4096, ..Sizes::of_one_die(4096, 10 * 4096) };
    new_policy(&config, &sizes).unwrap()
}

fn ask(policy: &mut Box<dyn Policy + Send>, op: Op, lpn: u32, n: u32) -> String {
    let mut out = Actions::new();
    policy.request(&Req::new(op, Lpn::new(lpn), n), &Unmapped, &mut out);
    policy.check().unwrap();
    text(&out)
}

/// Three pages of a block can be missing, so three slots follow those of the entries; `full` pays
/// for them.
#[test]
fn slots_for_missing_pages() {
    assert_eq!(small(8 * 4096, Charge::Paper, 1).slots(), 8 + 3);
    assert_eq!(small(8 * 4096, Charge::Full, 1).slots(), 8);
}

#[test]
fn blocks_end_with_the_device() {
    let mut policy = small(2 * 4096, Charge::None, 1);
    assert_eq!(ask(&mut policy, Op::Write, 9, 1), "store 9");
    ask(&mut policy, Op::Write, 0, 1);
    assert_eq!(ask(&mut policy, Op::Write, 4, 1), "pad 8 0xff, program 8, program 9, store 4");
    assert_eq!(
        ask(&mut policy, Op::Write, 5, 1),
        "pad 1 0xff, pad 2 0xff, pad 3 0xff, program 0, program 1, program 2, program 3, store 5"
    );
}

/// What a FLUSH programmed needs no read, and nothing at all if the whole block is clean.
#[test]
fn clean_entries() {
    let mut policy = small(4 * 4096, Charge::None, 4);
    ask(&mut policy, Op::Write, 0, 2);
    ask(&mut policy, Op::Write, 5, 2);
    assert_eq!(ask(&mut policy, Op::Flush, 0, 0), "program 0+1+5+6");
    assert_eq!(ask(&mut policy, Op::Read, 1, 2), "hit 1, bypass 2");
    assert_eq!(ask(&mut policy, Op::Write, 6, 1), "store 6");
    assert_eq!(ask(&mut policy, Op::Write, 8, 1), "drop 0, drop 1, store 8");
    ask(&mut policy, Op::Write, 9, 1);
    assert_eq!(
        ask(&mut policy, Op::Write, 0, 1),
        "pad 4 0xff, pad 7 0xff, program 4+5+6+7, store 0"
    );
    let total = policy.stats().total();
    assert_eq!((total.pages_programmed, total.pages_padded, total.pad_reads), (5, 3, 2));
    assert_eq!((total.programs, total.short_programs), (2, 0));
}

/// A block written in sequence goes first; a TRIM or a gap in between makes it an ordinary one.
#[test]
fn complete_sequences_go_first() {
    let victim = |interrupt: fn(&mut Box<dyn Policy + Send>)| {
        let mut policy = small(5 * 4096, Charge::None, 4);
        ask(&mut policy, Op::Write, 0, 1);
        ask(&mut policy, Op::Write, 4, 2);
        interrupt(&mut policy);
        ask(&mut policy, Op::Write, 6, 2);
        let text = ask(&mut policy, Op::Write, 8, 1);
        text.split_once("program ").map(|(_, programs)| programs.to_owned())
    };
    assert_eq!(victim(|_| ()).unwrap(), "4+5+6+7, store 8");
    let trimmed = victim(|policy| {
        ask(policy, Op::Trim, 5, 1);
        ask(policy, Op::Write, 5, 1);
    });
    assert_eq!(trimmed.unwrap(), "0+1+2+3, store 8");
    let again = victim(|policy| {
        ask(policy, Op::Write, 4, 1);
    });
    assert_eq!(again.unwrap(), "0+1+2+3, store 8");
}
