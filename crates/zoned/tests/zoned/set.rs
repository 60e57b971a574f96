//! Z9: the journal zone set in conventional zones (zoned.md, section 5): larger than a zone, straddling, moved, gone.

use std::ops::Range;

use onefold_zoned::{Action, JournalMode, Options, Sent, ZoneKind};

use crate::rig::{Rig, SECOND, two_devices};

fn options(range: Option<Range<u64>>) -> Options {
    let journal_ranges = range.into_iter().collect();
    Options { journal: JournalMode::Set, journal_ranges, ..Options::default() }
}

fn pinned(rig: &Rig) -> Vec<u32> {
    rig.volume.pinned().iter().copied().collect()
}

/// 40 blocks in three of six cache zones, which are chunks of 16 blocks: neither its start nor its end is that of a chunk.
#[test]
fn every_chunk_of_a_journal_that_straddles_is_pinned() {
    let mut rig = Rig::new(&two_devices(), options(Some(24..60)));
    rig.write_now(0, 9, 1);
    rig.write_now(24, 1, 36);
    assert_eq!(pinned(&rig), [1, 2, 3]);
    let zones = [1, 2, 3].map(|chunk| rig.data(chunk));
    for lap in 2..6 {
        rig.advance(30 * SECOND);
        rig.write_now(24, lap, 36);
    }
    assert!(rig.is_sequential(0), "reclaim ran meanwhile");
    assert_eq!([1, 2, 3].map(|chunk| rig.data(chunk)), zones);
    assert_eq!([0, 1].map(|device| rig.sent(device, Sent::JournalCopied)), [0, 0]);
    let stats = rig.volume.stats();
    assert_eq!((rig.volume.journal_zones(), stats.journal_outside), (3, 0));
    assert_eq!((stats.journal_merges, stats.journal_demotions), (0, 0));
    assert_eq!(rig.read_now(23, 3), [0, 5, 5]);
}

/// mkfs wrote one chunk of the journal, and reclaim moved it away: it comes back once, with the first journal write to it.
#[test]
fn a_chunk_in_a_sequential_zone_is_merged_once() {
    let mut rig = Rig::new(&two_devices(), options(None));
    rig.write_now(40, 1, 4);
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(2));
    assert_eq!(rig.read_now(40, 1), [1], "the zoned device is not idle");
    rig.write_now(24, 2, 1);
    rig.set_journal(Some(24..60));
    assert_eq!(pinned(&rig), [1], "the chunk in the cache is pinned at once");
    for op in 3..8 {
        rig.write_now(41, op, 2);
        rig.advance(15 * SECOND);
    }
    assert_eq!(pinned(&rig), [1, 2]);
    assert!(!rig.is_sequential(2));
    assert_eq!(rig.volume.stats().journal_merges, 1);
    assert_eq!(rig.volume.stats().reclaims(Action::SeqData).completed, 1);
    assert_eq!(rig.read_now(40, 4), [1, 7, 7, 1]);
}

#[test]
fn a_journal_that_moves_takes_its_pins_along() {
    let mut rig = Rig::new(&two_devices(), options(Some(24..40)));
    rig.write_now(24, 1, 16);
    rig.write_now(100, 2, 4);
    assert_eq!(pinned(&rig), [1, 2]);
    rig.set_journal([36..40, 100..108]);
    assert_eq!(pinned(&rig), [2, 6]);
    assert_eq!(rig.volume.stats().journal_demotions, 1);
    rig.advance(30 * SECOND);
    assert_eq!([1, 2, 6].map(|chunk| rig.is_sequential(chunk)), [true, false, false]);
    rig.set_journal(None);
    assert_eq!((pinned(&rig), rig.volume.stats().journal_demotions), (vec![], 2));
    rig.advance(30 * SECOND);
    assert_eq!([1, 2, 6].map(|chunk| rig.is_sequential(chunk)), [true; 3]);
    rig.write_now(36, 3, 4);
    assert_eq!(rig.volume.stats().journal_outside, 0, "it is no journal any more");
    assert_eq!(rig.read_now(35, 2), [1, 3]);
}

/// A pinned zone that lost all its blocks keeps its zone; when it is no longer pinned it goes.
#[test]
fn a_chunk_without_blocks_is_given_away_when_the_journal_is_gone() {
    let mut rig = Rig::new(&two_devices(), options(Some(24..40)));
    rig.write_now(24, 1, 16);
    rig.discard_now(16, 32);
    assert_eq!(rig.volume.journal_zones(), 2);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 4);
    rig.set_journal(None);
    rig.advance(30 * SECOND);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 6);
}

/// Half of the cache is left to everything else: three of six zones and no more.
#[test]
fn the_set_leaves_half_of_the_cache() {
    let rig_of = |end| Rig::new(&two_devices(), options(Some(16..end)));
    let mut rig = rig_of(64);
    rig.write_now(16, 1, 48);
    assert_eq!(pinned(&rig), [1, 2, 3]);
    let mut rig = rig_of(65);
    rig.write_now(16, 1, 49);
    assert!(pinned(&rig).is_empty());
}
