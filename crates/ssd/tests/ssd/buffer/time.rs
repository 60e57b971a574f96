//! What the buffer costs and hides, to the nanosecond.
//!
//! A page moves to or from DRAM in 1 us, a program takes 10.24 + 200 us, a read 40 + 10.24 us.

use onefold_buffer::{LRU, PolicySpec};
use onefold_ftl::Layout;
use onefold_nand::{Media, NullMedia};
use onefold_ssd::{Command, Ssd, Writeback};
use onefold_testkit::CutMedia;
use onefold_units::Op;

use super::common::{Rig, config, geometry};

const PAGE: u64 = 4096;
const DRAM: u64 = 1_000;
const PROGRAM: u64 = 210_240;
const READ: u64 = 50_240;

/// A buffer of four pages, full of dirty ones.
fn full(writeback: Writeback) -> Rig<NullMedia> {
    let mut config = config(PolicySpec::new(&LRU), geometry(4096, 4096), 4);
    config.writeback = writeback;
    let mut rig = Rig::new(Ssd::new(config, NullMedia).unwrap());
    for page in 0..4 {
        assert_eq!(rig.latency(Op::Write, page * PAGE, PAGE), DRAM);
    }
    rig
}

fn wb_hits<M: Media>(rig: &Rig<M>) -> u64 {
    rig.ssd.buffer_stats().unwrap().total().wb_hits
}

#[test]
fn pages_move_one_after_the_other() {
    let mut rig = full(Writeback::Sync);
    assert_eq!(rig.latency(Op::Read, 0, 4 * PAGE), 4 * DRAM);
    assert_eq!(rig.latency(Op::Write, 512, 3 * PAGE), 4 * DRAM, "parts of four pages");
}

#[test]
fn admission_waits_for_the_victim() {
    let mut rig = full(Writeback::Sync);
    assert_eq!(rig.latency(Op::Write, 9 * PAGE, PAGE), PROGRAM + DRAM);
}

/// Two slots: two victims go at once, the third waits for the first.
#[test]
fn admission_waits_for_a_slot_of_the_pool() {
    let mut rig = full(Writeback::Async { slots: 2 });
    for page in 10..12 {
        assert_eq!(rig.latency(Op::Write, page * PAGE, PAGE), DRAM);
    }
    assert_eq!(rig.latency(Op::Write, 12 * PAGE, PAGE), PROGRAM + DRAM);
    rig.now += 10 * PROGRAM;
    assert_eq!(rig.latency(Op::Write, 13 * PAGE, PAGE), DRAM, "all programs have ended");
}

#[test]
fn victims_serve_reads_until_their_programs_end() {
    let mut rig = full(Writeback::Async { slots: 8 });
    rig.latency(Op::Write, 10 * PAGE, PAGE);
    rig.now += PROGRAM - 1;
    assert_eq!(rig.latency(Op::Read, 0, PAGE), DRAM);
    let stats = rig.ssd.buffer_stats().unwrap().total();
    assert_eq!((stats.wb_hits, stats.reads.hits, stats.flash_reads), (1, 1, 0));
    assert_eq!((stats.reads.full_hits, stats.reads.bytes_hit), (1, PAGE));
    // That read took a place, too: page 1 is the victim now, and its program ends later.
    rig.now += 5;
    assert_eq!(rig.latency(Op::Read, PAGE, PAGE), DRAM);
    assert_eq!(wb_hits(&rig), 2);
    rig.now += 10 * PROGRAM;
    rig.latency(Op::Flush, 0, 0);
    rig.now += 10 * PROGRAM;
    assert_eq!(rig.latency(Op::Read, 2 * PAGE, PAGE), READ + DRAM);
    assert_eq!(wb_hits(&rig), 2);
}

/// A flush waits for victims that are under way, and FUA for its own page only.
#[test]
fn flush_and_fua_wait_for_what_they_promise() {
    let mut rig = full(Writeback::Async { slots: 8 });
    for page in 10..14 {
        rig.latency(Op::Write, page * PAGE, PAGE);
    }
    rig.now += 1;
    // Two dies have two programs each under way; four more follow.
    let flushed = rig.latency(Op::Flush, 0, 0);
    assert!(flushed > 3 * PROGRAM, "{flushed}");
    rig.now += 10 * PROGRAM;
    let fua = Command { fua: true, ..Command::new(Op::Write, 10 * PAGE, PAGE) };
    assert_eq!(rig.time(&fua), PROGRAM);
}

/// What stays in the buffer needs no place outside it.
#[test]
fn a_flush_takes_no_slots() {
    let mut rig = full(Writeback::Async { slots: 1 });
    rig.latency(Op::Flush, 0, 0);
    for page in 10..15 {
        assert_eq!(rig.latency(Op::Write, page * PAGE, PAGE), DRAM, "page {page}");
    }
    assert!(rig.latency(Op::Write, 15 * PAGE, PAGE) > PROGRAM, "the slot is taken now");
}

/// A victim is under way while its page is written with FUA and dropped, clean: the victim is old.
#[test]
fn an_older_victim_does_not_come_back() {
    let mut config = config(PolicySpec::new(&LRU), geometry(4096, 4096), 4);
    config.writeback = Writeback::Async { slots: 8 };
    let layout = Layout::new(&config.geometry, &config.ftl).unwrap();
    let media = CutMedia::powered(&config.geometry, layout.nvram_bytes());
    let mut rig = Rig::new(Ssd::new(config, media).unwrap());
    rig.write(0, &[1; 4096], false).unwrap();
    for page in 1..5 {
        rig.write(page * PAGE, &[9; 4096], false).unwrap();
    }
    assert_eq!(rig.read(0, 1).unwrap(), [1]);
    assert_eq!(wb_hits(&rig), 1, "the victim is under way");
    rig.write(0, &[2; 4096], true).unwrap();
    for page in 5..9 {
        rig.read(page * PAGE, PAGE).unwrap();
    }
    assert_eq!(rig.read(0, 1).unwrap(), [2]);
}
