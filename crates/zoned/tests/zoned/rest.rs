//! A journal that has sequential zones and rests in the cache.

use std::ops::Range;

use onefold_testkit::{budget, for_each_seed};
use onefold_units::{Nanos, Rng};
use onefold_zoned::{IoKind, JournalMode, Options, Request, Sent, WaitReason, ZoneKind};

use crate::rig::{Rig, SECOND, Underway, large_cache};

/// The blocks of chunk 1: one of ten zones of the cache.
const JOURNAL: Range<u64> = 16..32;

fn options(journal: Option<Range<u64>>) -> Options {
    let journal_ranges = journal.into_iter().collect();
    Options { journal: JournalMode::Set, journal_ranges, ..Options::default() }
}

fn rig() -> Rig {
    Rig::new(&large_cache(), options(Some(JOURNAL)))
}

fn is_pinned(rig: &Rig) -> bool {
    rig.volume.pinned().contains(&1)
}

/// Blocks of the journal: written to its chunk, appended, and copied for whatever reason.
fn sent(rig: &Rig) -> [u64; 3] {
    let stats = rig.volume.stats();
    let copied = stats.sent(Sent::JournalCopied) + stats.sent(Sent::JournalReturned);
    [stats.sent(Sent::Journal), stats.sent(Sent::JournalAppended), copied]
}

/// A write to each of fourteen chunks at once, for which the cache has no zones.
fn cache_gives_out(rig: &mut Rig, op: u64) {
    for chunk in 2..16 {
        rig.write(16 * chunk, op, 1);
    }
    rig.settle();
}

#[test]
fn a_journal_that_is_much_of_what_is_written_rests_in_the_cache() {
    let mut rig = rig();
    for lap in 1..9 {
        for block in JOURNAL.step_by(4) {
            rig.write_now(block, lap, 4);
            rig.write_now(64, lap, 4);
        }
    }
    assert_eq!(sent(&rig), [8 * 16, 0, 0]);
    assert!(is_pinned(&rig) && !rig.is_sequential(1));
    rig.advance(60 * SECOND);
    assert!(!rig.is_sequential(1) && rig.is_sequential(4), "reclaim leaves it alone");
    assert_eq!(rig.read_now(JOURNAL.start, 16), [8; 16]);
}

/// Such a ring would keep its zone of the cache for long.
#[test]
fn a_journal_that_is_little_of_what_is_written_is_appended() {
    let mut rig = rig();
    rig.write_now(64, 1, 16);
    for op in 1..40 {
        rig.write_now(JOURNAL.start + op % 16, op, 1);
        rig.write_now(64, op, 3);
    }
    let [in_chunk, appended, copied] = sent(&rig);
    assert_eq!((in_chunk, appended, copied), (0, 39, 0));
    assert!(!is_pinned(&rig) && rig.data(1).is_none());
}

#[test]
fn more_than_a_tenth_of_the_cache_is_not_rested_in() {
    let mut rig = Rig::new(&large_cache(), options(Some(16..33)));
    rig.write_now(16, 1, 17);
    assert_eq!(sent(&rig), [0, 17, 0]);
}

/// What lies in its chunk when the cache gives out stays there, and no block of it is copied, until the ring has come around.
#[test]
fn it_leaves_when_the_cache_gives_out_without_a_copy() {
    let mut rig = rig();
    rig.write_now(JOURNAL.start, 1, 16);
    cache_gives_out(&mut rig, 2);
    for block in JOURNAL {
        assert!(is_pinned(&rig), "block {block}");
        rig.advance(11 * SECOND);
        assert!(!rig.is_sequential(1), "block {block}");
        // As much of other data keeps the cache full.
        cache_gives_out(&mut rig, 3);
        rig.write_now(block, 4, 1);
    }
    assert_eq!(sent(&rig), [16, 16, 0]);
    assert!(!is_pinned(&rig) && rig.data(1).is_none(), "its zone is the cache's again");
    assert_eq!(rig.read_now(JOURNAL.start, 16), [4; 16]);
}

#[test]
fn it_rests_again_when_half_of_the_cache_is_free() {
    let mut rig = rig();
    rig.write_now(JOURNAL.start, 1, 16);
    cache_gives_out(&mut rig, 2);
    rig.write_now(JOURNAL.start, 3, 16);
    assert_eq!(sent(&rig), [16, 16, 0]);
    rig.advance(150 * SECOND);
    assert!(rig.volume.free_zones(ZoneKind::Cache) >= 5);
    rig.write_now(JOURNAL.start, 4, 16);
    assert_eq!(sent(&rig), [32, 16, 0]);
    assert!(is_pinned(&rig));
    assert_eq!(rig.volume.appended_blocks(), 0, "what was appended is overwritten");
    assert_eq!(rig.read_now(JOURNAL.start, 16), [4; 16]);
}

/// mkfs wrote the journal before it was found. Its chunk is in the cache and stays there, or was moved and stays there.
#[test]
fn blocks_from_before_are_not_copied() {
    for moved in [false, true] {
        let mut rig = Rig::new(&large_cache(), options(None));
        rig.write_now(JOURNAL.start, 1, 16);
        if moved {
            rig.advance(30 * SECOND);
        }
        rig.set_journal(Some(JOURNAL));
        assert_eq!((rig.is_sequential(1), is_pinned(&rig)), (moved, !moved));
        rig.write_now(64, 2, 16);
        rig.write_now(80, 2, 16);
        let copied = sent(&rig)[2];
        for block in JOURNAL {
            rig.write_now(64, 3, 3);
            rig.write_now(block, 3, 1);
            rig.advance(11 * SECOND);
        }
        assert_eq!(sent(&rig)[1..], [16, copied]);
        assert!(!is_pinned(&rig) && rig.data(1).is_none());
        assert_eq!(rig.volume.stats().journal_merges, 0);
    }
}

/// Writing to its buffer would make reclaim bring the rest back.
#[test]
fn a_chunk_in_a_sequential_zone_is_not_rested_in() {
    let mut rig = Rig::new(&large_cache(), options(None));
    rig.write_now(JOURNAL.start, 1, 16);
    rig.advance(30 * SECOND);
    rig.set_journal(Some(JOURNAL));
    rig.write_now(JOURNAL.start, 2, 15);
    assert_eq!(sent(&rig)[..2], [0, 15]);
    assert!(rig.is_sequential(1) && !is_pinned(&rig));
    assert_eq!(rig.read_now(JOURNAL.start, 16), [vec![2; 15], vec![1]].concat());
}

#[test]
fn it_does_not_wait_for_a_zone() {
    let mut rig = Rig::new(&large_cache(), options(None));
    for chunk in 2..12 {
        rig.write(16 * chunk, 1, 1);
    }
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 0);
    rig.volume.set_journal(rig.now, std::iter::once(JOURNAL).collect(), Vec::new());
    rig.write(JOURNAL.start, 2, 5);
    rig.settle();
    assert_eq!(sent(&rig), [0, 5, 0]);
    assert_eq!(rig.volume.stats().waits(WaitReason::FreeZone).count, 0);
}

#[test]
fn it_does_not_wait_for_a_reclaim_of_its_chunk() {
    let mut rig = Rig::new(&large_cache(), options(None));
    rig.write_now(JOURNAL.start, 1, 16);
    rig.now += Nanos::new(11 * SECOND);
    rig.volume.handle_timeout(rig.now);
    rig.collect();
    // Metadata is flushed, too, and that keeps all requests waiting.
    let is_flush = |one: &Underway| one.io.kind != IoKind::Read;
    while let Some(at) = rig.under_way.iter().position(is_flush) {
        rig.complete(at);
    }
    assert!(rig.volume.moves().any(|one| one.chunk == 1), "it is being copied");
    rig.volume.set_journal(rig.now, std::iter::once(JOURNAL).collect(), Vec::new());
    rig.write(JOURNAL.start, 2, 1);
    rig.settle();
    assert_eq!(sent(&rig)[..2], [0, 1]);
    assert_eq!(rig.volume.stats().waits(WaitReason::Reclaim).count, 0);
}

/// A write of the journal was on its way to its chunk when the last block there was appended, or
/// the journal was found again. Nothing was valid in the chunk at that moment, so it was pinned no
/// more, and reclaim copied what the write had written.
#[test]
fn a_write_on_its_way_keeps_its_chunk_pinned() {
    for found_again in [false, true] {
        let mut rig = rig();
        rig.write_now(JOURNAL.start, 1, 1);
        rig.write(JOURNAL.start + 6, 1, 2);
        // Other data is most of what is written, so the journal does not rest any longer.
        rig.write(64, 2, 16);
        rig.write(JOURNAL.start, 2, 1);
        while rig.under_way() > 1 {
            rig.complete(1);
        }
        assert_eq!(sent(&rig), [3, 1, 0]);
        if found_again {
            rig.volume.set_journal(rig.now, std::iter::once(16..31).collect(), Vec::new());
        }
        rig.settle();
        rig.advance(60 * SECOND);
        assert!(is_pinned(&rig) && !rig.is_sequential(1), "found again: {found_again}");
        assert_eq!(sent(&rig), [3, 1, 0]);
        assert_eq!(rig.read_now(JOURNAL.start, 8), [2, 0, 0, 0, 0, 0, 1, 1]);
    }
}

/// Writes that failed, or were taken back, leave nothing that would keep the chunk.
#[test]
fn a_chunk_without_journal_is_pinned_no_longer() {
    let mut rig = rig();
    rig.write_now(JOURNAL.start, 1, 4);
    assert!(is_pinned(&rig));
    rig.discard_now(JOURNAL.start, 4);
    assert!(!is_pinned(&rig) && rig.data(1).is_none());
}

/// Z10 with a ring that goes from one place to the other: nothing of it is copied.
#[test]
fn rings_that_come_and_go_are_never_copied() {
    let mut both = 0;
    for_each_seed(("onefold-zoned", "zoned", "rings_that_come_and_go"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let mut rig = rig();
        let (mut at, mut share) = (JOURNAL.start, 1);
        for op in 1..900 {
            if rng.below(60) == 0 {
                share = 1 + rng.below(9);
            }
            if rng.below(share) == 0 {
                let blocks = (1 + rng.below(3)).min(JOURNAL.end - at);
                rig.write(at, op, u32::try_from(blocks).unwrap());
                at = if at + blocks == JOURNAL.end { JOURNAL.start } else { at + blocks };
            } else {
                rig.write(16 * (2 + rng.below(14)) + rng.below(16), op, 1);
            }
            match rng.below(40) {
                0 => _ = rig.submit(Request::Flush),
                1 => rig.advance(rng.below(40) * SECOND),
                _ => {}
            }
            while rig.volume.requests_under_way() > 3 && rig.under_way() > 0 {
                rig.complete(0);
            }
        }
        rig.settle();
        let [in_chunk, appended, copied] = sent(&rig);
        assert_eq!((copied, rig.volume.stats().journal_outside), (0, 0), "seed {seed}");
        both += u64::from(in_chunk > 50 && appended > 50);
    });
    assert!(budget(60) < 60 || both > 10, "only {both} rings were in both places");
}
