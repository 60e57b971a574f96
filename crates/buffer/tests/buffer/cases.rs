//! One small case per rule of the request interface.

use crate::common::build::{build, every_policy, try_build};
use crate::common::text::text;
use crate::common::unmapped::Unmapped;
use onefold_buffer::{Actions, BufferError, Policy, Req};
use onefold_units::{Lpn, Op};

/// A buffer, and its answers as one line of text per request.
struct Buffer {
    policy: Box<dyn Policy + Send>,
    out: Actions,
}

impl Buffer {
    fn new(slots: u32, entry: u32, k: u32, volatile: bool) -> Self {
        Self { policy: build("lru", slots, entry, k, volatile), out: Actions::new() }
    }

    fn ask(&mut self, r: &Req) -> String {
        self.policy.request(r, &Unmapped, &mut self.out);
        self.policy.check().unwrap();
        self.text()
    }

    fn read(&mut self, lpn: u32, n: u32) -> String {
        self.ask(&Req::new(Op::Read, Lpn::new(lpn), n))
    }

    fn write(&mut self, lpn: u32, n: u32) -> String {
        self.ask(&Req::new(Op::Write, Lpn::new(lpn), n))
    }

    fn flush(&mut self) -> String {
        self.ask(&Req::new(Op::Flush, Lpn::new(0), 0))
    }

    fn cut(&mut self, op: Op, lpn: u32, head: u8, tail: u8) -> String {
        self.ask(&Req { head, tail, ..Req::new(op, Lpn::new(lpn), 1) })
    }

    fn text(&self) -> String {
        text(&self.out)
    }
}

#[test]
fn a_write_back_lru() {
    let mut b = Buffer::new(3, 4096, 1, true);
    assert_eq!(b.read(1, 1), "fill 1 0xff");
    assert_eq!(b.write(2, 2), "store 2, store 3");
    assert_eq!(b.read(1, 1), "hit 1");
    assert_eq!(b.write(4, 1), "program 2, store 4");
    assert_eq!(b.read(5, 1), "program 3, fill 5 0xff");
    assert_eq!(b.write(6, 1), "drop 1, store 6");
    let total = b.policy.stats().total();
    assert_eq!((total.reads.hits, total.reads.pages, total.writes.hits), (1, 3, 0));
    assert_eq!((total.flash_reads, total.pages_programmed, total.dirty), (2, 2, 2));
}

#[test]
fn a_dirty_victim_takes_along_dirty_entries_only() {
    let mut b = Buffer::new(8, 4096, 4, true);
    b.write(0, 1);
    b.read(1, 2);
    b.write(3, 5);
    assert_eq!(b.write(8, 1), "program 0+3+4+5, store 8");
    assert_eq!(b.write(9, 3), "store 9, store 10, store 11");
    // The clean victim leaves alone although dirty entries follow.
    assert_eq!(b.read(20, 2), "drop 1, fill 20 0xff, drop 2, fill 21 0xff");
    assert_eq!(b.write(30, 1), "program 6+7+8+9, store 30");
    assert_eq!(b.flush(), "program 10+11+30");
    assert_eq!(b.policy.stats().total().short_programs, 1);
}

#[test]
fn the_search_for_companions_is_bounded() {
    for (clean, expected) in [(62, "program 0+100, store 200"), (63, "program 0, store 200")] {
        let mut b = Buffer::new(clean + 2, 4096, 4, true);
        b.write(0, 1);
        b.read(1, clean);
        b.write(100, 1);
        assert_eq!(b.write(200, 1), expected, "{clean} clean entries between");
    }
}

#[test]
fn flush_keeps_entries_and_their_order() {
    let mut b = Buffer::new(4, 4096, 1, true);
    b.write(1, 3);
    b.write(2, 1);
    assert_eq!(b.flush(), "program 1, program 3, program 2");
    assert_eq!(b.flush(), "");
    assert_eq!(b.read(2, 1), "hit 2");
    b.write(7, 1);
    assert_eq!(b.flush(), "program 7");
    assert_eq!(b.read(8, 1), "drop 1, fill 8 0xff");
    assert_eq!(b.policy.stats().total().flushes, 3);
}

#[test]
fn fua_is_programmed_before_completion_and_stays() {
    let mut b = Buffer::new(8, 4096, 4, true);
    b.write(9, 1);
    let fua = Req { fua: true, ..Req::new(Op::Write, Lpn::new(0), 5) };
    assert_eq!(
        b.ask(&fua),
        "store 0, store 1, store 2, store 3, store 4, program 0+1+2+3, program 4"
    );
    assert_eq!(b.read(4, 1), "hit 4");
    assert_eq!(b.policy.stats().total().dirty, 1);
}

#[test]
fn power_loss_protection_makes_flush_and_fua_free_but_counted() {
    let mut b = Buffer::new(8, 4096, 1, false);
    let fua = Req { fua: true, ..Req::new(Op::Write, Lpn::new(0), 1) };
    assert_eq!(b.ask(&fua), "store 0");
    assert_eq!(b.flush(), "");
    let total = b.policy.stats().total();
    assert_eq!((total.fua_writes, total.flushes, total.pages_programmed), (1, 1, 0));
    b.policy.drain(&mut b.out);
    assert_eq!(b.text(), "program 0");
}

#[test]
fn trim_discards_without_writing_and_counts_no_access() {
    let mut b = Buffer::new(8, 4096, 1, true);
    b.write(2, 2);
    b.read(5, 1);
    assert_eq!(b.ask(&Req::new(Op::Trim, Lpn::new(0), 8)), "drop 2, drop 3, drop 5");
    let total = b.policy.stats().total();
    assert_eq!((total.trim_requests, total.trim_pages, total.trim_discards), (1, 8, 2));
    assert_eq!((total.pages_programmed, total.accesses().pages), (0, 3));
    assert_eq!(b.read(2, 1), "fill 2 0xff");
}

/// A TRIM is a hint: a page of which it covers a part keeps its bytes.
#[test]
fn trim_leaves_cut_entries_alone() {
    let mut b = Buffer::new(8, 4096, 1, true);
    b.write(0, 4);
    let trim = Req { head: 1, tail: 7, ..Req::new(Op::Trim, Lpn::new(0), 4) };
    assert_eq!(b.ask(&trim), "drop 1, drop 2");
    assert_eq!(b.cut(Op::Trim, 0, 3, 3), "");
    assert_eq!(b.ask(&trim.whole_entries()), "drop 0, drop 3");
}

#[test]
fn ranges_end_with_the_address_space() {
    let mut b = Buffer::new(8, 4096, 1, true);
    assert_eq!(b.write(u32::MAX, 5), "store 4294967295");
    assert_eq!(b.write(0, 0), "");
    // Larger than the buffer, so it takes the walk over the slots; the order is still ascending.
    b.write(5, 1);
    b.write(3, 1);
    assert_eq!(b.ask(&Req::new(Op::Trim, Lpn::new(4), u32::MAX)), "drop 5, drop 4294967295");
    assert_eq!(b.ask(&Req::new(Op::Trim, Lpn::new(0), u32::MAX)), "drop 3");
    assert_eq!(b.policy.stats().total().trim_pages, u64::from(u32::MAX) * 2 - 3);
}

/// Found by fuzzing: VBBMS took the first pages for the missing ones of the last block, which the end of
/// the address space cuts off where blocks are no power of two.
#[test]
fn the_ends_of_the_address_space_are_no_neighbours() {
    for spec in every_policy() {
        let policy = build(spec, 256, 4096, 1, true);
        let mut b = Buffer { policy, out: Actions::new() };
        for (lpn, n) in [(u32::MAX - 4, 4), (0, 4), (u32::MAX, 1), (1, 1)] {
            b.write(lpn, n);
        }
        b.read(0, 5);
    }
}

#[test]
fn sectors_of_4_kib_entries() {
    let mut b = Buffer::new(2, 4096, 1, true);
    assert_eq!(b.policy.part_bytes(), 512);
    // Sectors 2 and 3.
    assert_eq!(b.cut(Op::Write, 1, 2, 4), "store 1");
    assert_eq!(b.cut(Op::Read, 1, 3, 4), "hit 1");
    assert_eq!(b.cut(Op::Read, 1, 3, 3), "fill 1 0xf3");
    assert_eq!(b.cut(Op::Read, 1, 7, 0), "hit 1");
    // A read loads all of a page, whatever part of it is asked for.
    assert_eq!(b.cut(Op::Read, 2, 0, 7), "fill 2 0xff");
    assert_eq!(b.read(2, 1), "hit 2");
    let reads = b.policy.stats().total().reads;
    assert_eq!((reads.hits, reads.pages, reads.bytes_hit), (3, 5, 512 + 512 + 4096));
}

#[test]
fn a_partial_dirty_page_is_completed_before_it_is_programmed() {
    let mut b = Buffer::new(1, 4096, 1, true);
    b.cut(Op::Write, 1, 0, 7);
    assert_eq!(b.write(2, 1), "pad 1 0xfe, program 1, store 2");
    b.cut(Op::Write, 3, 7, 0);
    assert_eq!(b.flush(), "pad 3 0x7f, program 3");
    assert_eq!(b.read(3, 1), "hit 3");
    let fua = Req { fua: true, head: 4, ..Req::new(Op::Write, Lpn::new(4), 1) };
    assert_eq!(b.ask(&fua), "drop 3, store 4, pad 4 0xf, program 4");
    // Two halves make a whole: nothing to pad.
    b.cut(Op::Write, 5, 0, 4);
    b.cut(Op::Write, 5, 4, 0);
    assert_eq!(b.flush(), "program 5");
    assert_eq!(b.policy.stats().total().pad_reads, 3);
}

/// Entries of 64 KiB have parts of 4 KiB; a write inside one part loads the rest first, because a
/// mask cannot say which sectors of a part are there.
#[test]
fn large_entries_have_coarse_parts() {
    let mut b = Buffer::new(1, 65_536, 1, true);
    assert_eq!(b.policy.part_bytes(), 4096);
    assert_eq!(b.cut(Op::Write, 1, 8, 112), "store 1");
    assert_eq!(b.cut(Op::Write, 1, 9, 118), "store 1");
    assert_eq!(b.cut(Op::Write, 1, 0, 127), "pad 1 0xfffd, store 1");
    assert_eq!(b.flush(), "program 1");
    assert_eq!(b.policy.stats().total().pad_reads, 1);
}

#[test]
fn a_buffer_below_one_flash_page_is_refused() {
    let refused = try_build("lru", 3, 4096, 4, true).err();
    assert_eq!(refused, Some(BufferError::TooSmall { bytes: 12_288, least: 16_384 }));
    assert!(try_build("lru", 3, 4096, 1, true).is_ok());
}
