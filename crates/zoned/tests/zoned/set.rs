//! Z9: the journal zone set in conventional zones (zoned.md, section 5), where there are no sequential ones for it: larger than a
//! zone, straddling, moved, gone.

use std::ops::Range;

use onefold_zoned::{Action, JournalMode, Options, Sent, ZoneKind};

use crate::rig::{Rig, SECOND, few_zones};

fn options(range: Option<Range<u64>>) -> Options {
    let journal_ranges: Vec<_> = range.into_iter().collect();
    let journal_hot = headers(&journal_ranges);
    Options { journal: JournalMode::Set, journal_ranges, journal_hot, ..Options::default() }
}

fn headers(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    ranges.iter().map(|range| range.start..range.start + 1).collect()
}

fn find(rig: &mut Rig, ranges: impl IntoIterator<Item = Range<u64>>) {
    let ranges: Vec<_> = ranges.into_iter().collect();
    let headers = headers(&ranges);
    rig.volume.set_journal(rig.now, ranges, headers);
    rig.settle();
}

fn pinned(rig: &Rig) -> Vec<u32> {
    rig.volume.pinned().iter().copied().collect()
}

/// 40 blocks in three of six cache zones, which are chunks of 16 blocks: neither its start nor its end is that of a chunk.
#[test]
fn every_chunk_of_a_journal_that_straddles_is_pinned() {
    let mut rig = Rig::new(&few_zones(), options(Some(24..60)));
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
    let mut rig = Rig::new(&few_zones(), options(None));
    rig.write_now(40, 1, 4);
    rig.advance(30 * SECOND);
    assert!(rig.is_sequential(2));
    assert_eq!(rig.read_now(40, 1), [1], "the zoned device is not idle");
    rig.write_now(24, 2, 1);
    find(&mut rig, Some(24..60));
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
    let mut rig = Rig::new(&few_zones(), options(Some(24..60)));
    rig.write_now(24, 1, 36);
    rig.write_now(64, 2, 4);
    assert_eq!(pinned(&rig), [1, 2, 3]);
    find(&mut rig, [56..60, 64..92]);
    assert_eq!(pinned(&rig), [3, 4]);
    assert_eq!(rig.volume.stats().journal_demotions, 1);
    rig.advance(30 * SECOND);
    assert_eq!([1, 3, 4].map(|chunk| rig.is_sequential(chunk)), [true, false, false]);
    find(&mut rig, None);
    assert_eq!((pinned(&rig), rig.volume.stats().journal_demotions), (vec![], 2));
    rig.advance(30 * SECOND);
    assert_eq!([1, 3, 4].map(|chunk| rig.is_sequential(chunk)), [true; 3]);
    rig.write_now(56, 3, 4);
    assert_eq!(rig.volume.stats().journal_outside, 0, "it is no journal any more");
    assert_eq!(rig.read_now(55, 2), [1, 3]);
}

/// A pinned zone that lost all its blocks keeps its zone; when it is no longer pinned it goes.
#[test]
fn a_chunk_without_blocks_is_given_away_when_the_journal_is_gone() {
    let mut rig = Rig::new(&few_zones(), options(Some(24..60)));
    rig.write_now(24, 1, 36);
    rig.discard_now(16, 48);
    assert_eq!(rig.volume.journal_zones(), 3);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 3);
    find(&mut rig, None);
    rig.advance(30 * SECOND);
    assert_eq!(rig.volume.free_zones(ZoneKind::Cache), 6);
}

/// Half of the cache is left to everything else: three of six zones and no more.
#[test]
fn the_set_leaves_half_of_the_cache() {
    let rig_of = |end| Rig::new(&few_zones(), options(Some(16..end)));
    let mut rig = rig_of(64);
    rig.write_now(16, 1, 48);
    assert_eq!(pinned(&rig), [1, 2, 3]);
    let mut rig = rig_of(65);
    rig.write_now(16, 1, 49);
    assert!(pinned(&rig).is_empty());
}
