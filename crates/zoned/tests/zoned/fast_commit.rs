//! Fast commits (zoned.md, sections 5 and 11): beside the ring a journal has an area that begins anew after each full commit, so that
//! its first blocks are written much more often than its last ones. What of it is still valid in the oldest zone of its stream
//! moves to the head.

use onefold_testkit::for_each_seed;
use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};
use onefold_zoned::{DeviceZones, JournalMode, Options, Sent, Stream};

use crate::rig::Rig;

/// 10 cache zones and 39 sequential ones for data, 11 of them reserved: a set of at most eight.
fn devices() -> Vec<DeviceZones> {
    vec![
        DeviceZones { conventional: 12, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 40 },
    ]
}

/// A journal in pieces that lie in a chunk each, more of them than half of the cache: header, ring, fast-commit area.
struct Journal {
    blocks: Vec<u64>,
    fast: u64,
}

impl Journal {
    fn new(zone: u64, blocks: u64, fast: u64) -> Self {
        let pieces = 6;
        let of = |piece: u64| {
            let (first, end) = (piece * blocks / pieces, (piece + 1) * blocks / pieces);
            let start = (1 + 2 * piece) * zone + 3 * piece;
            start..start + (end - first)
        };
        Self { blocks: (0..pieces).flat_map(of).collect(), fast }
    }

    fn ring(&self) -> &[u64] {
        &self.blocks[1..self.blocks.len() - index64(self.fast)]
    }

    fn area(&self) -> &[u64] {
        &self.blocks[self.blocks.len() - index64(self.fast)..]
    }

    fn options(&self) -> Options {
        let apart = |blocks: &[u64]| {
            let runs = blocks.chunk_by(|one, next| one + 1 == *next);
            runs.map(|run| run[0]..run[run.len() - 1] + 1).collect()
        };
        let mut hot: Vec<_> = apart(self.area());
        hot.insert(0, self.blocks[0]..self.blocks[0] + 1);
        Options {
            journal: JournalMode::Set,
            journal_ranges: apart(&self.blocks),
            journal_hot: hot,
            ..Options::default()
        }
    }
}

/// The journal as jbd2 writes it, for so many laps. Gives the zones that header and fast commits filled, and the blocks copied.
fn load(rng: &mut Rng, zone: u32, journal: &Journal, laps: u64) -> (u64, u64) {
    let mut rig = Rig::with_zones(zone, &devices(), journal.options());
    let (mut op, mut at, mut hot) = (0, 0, 0);
    let (fast_per_full, most) = (rng.below(2 * journal.fast + 2), 1 + rng.below(12));
    let (headers, random) = (1 + rng.below(20), rng.below(4) == 0);
    let (log, area) = (journal.ring(), journal.area());
    while at < laps * u64_from(log.len()) {
        // A full commit; its blocks go one after the other.
        for _ in 0..=rng.below(most) {
            op += 1;
            rig.write_now(log[index64(at % u64_from(log.len()))], op, 1);
            at += 1;
        }
        if rng.below(headers) == 0 {
            op += 1;
            hot += 1;
            rig.write_now(journal.blocks[0], op, 1);
        }
        rig.flush_now();
        for fast in 0..rng.below(fast_per_full + 1).min(journal.fast) {
            let fast = if random { rng.below(journal.fast) } else { fast };
            op += 1;
            hot += 1;
            rig.write_now(area[index64(fast)], op, 1);
        }
        if rng.below(4) == 0 {
            let data = u64::from(zone) * 16 + rng.below(u64::from(zone) * 3);
            rig.write_now(data, op, 1);
        }
        assert!(rig.volume.set_zones(Stream::Hot) <= 3);
    }
    rig.settle();
    let stats = rig.volume.stats();
    assert_eq!(stats.journal_outside, 0, "it is appended");
    let copied = stats.sent(Sent::JournalCopied);
    assert_eq!(rig.sent(1, Sent::JournalAppended), at + hot);
    ((hot + copied).div_ceil(zone.into()), copied)
}

/// Spec 11: at most the area and the header for each zone that they fill, none of the ring.
fn bar(zone: u32, blocks: u64, fast: u64, rng: &mut Rng, laps: u64) -> (u64, u64) {
    let journal = Journal::new(zone.into(), blocks, fast);
    let (zones, copied) = load(rng, zone, &journal, laps);
    assert!(
        copied <= (fast + 1) * zones,
        "{copied} of {blocks} blocks, {fast} fast, in {zones} zones"
    );
    if fast == 0 {
        assert_eq!(copied, 0, "{blocks} blocks");
    }
    (zones, copied)
}

#[test]
fn fast_commits_are_copied_at_most_once_per_zone() {
    for_each_seed(("onefold-zoned", "zoned", "fast_commits_are_copied"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let zone = 64;
        let blocks = 32 + rng.below(7 * 32 + 1);
        let fast = [0, 1 + rng.below(15), 1 + rng.below(blocks / 2)][index64(rng.below(3))].min(63);
        let laps = 6 + rng.below(6);
        bar(zone, blocks, fast, &mut rng, laps);
    });
}

/// The default of jbd2, 256 blocks, in zones of 4 MiB; the journal is half a zone to four.
#[test]
fn a_fast_commit_area_of_the_default_size() {
    for halves in [1, 2, 8] {
        let (zones, copied) = bar(1024, 512 * halves, 256, &mut Rng::new(halves), 3);
        assert!(zones > 0, "{copied}");
    }
}
