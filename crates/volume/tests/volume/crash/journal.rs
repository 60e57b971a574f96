//! Journals in log segments of their own: what that saves, and that nothing but the place of blocks depends on it.

use std::collections::VecDeque;

use onefold_journal::{Class, Confidence, Origin, Range, System};
use onefold_testkit::for_each_seed;
use onefold_units::convert::{low32, u64_from};
use onefold_units::{Lba, Rng};
use onefold_volume::{
    Geometry, JournalStreams, Layout, Options, SegmentInfo, Stats, Stream, Volume,
};

use super::random::random_run;
use super::zoned::full_volume_lives_on;
use crate::harness::ops::random_journal;
use crate::harness::rig::{Op, Rig};
use crate::harness::setup::{OPTIONS, Setup, pick};
use crate::harness::zones::ZoneSetup;

/// What a detector says of a journal: `hot` blocks from `first` on, and a ring of `blocks` behind them.
fn ranges(first: u64, hot: u64, blocks: u64) -> Vec<Range> {
    let range = |first, blocks, class| Range {
        first: Lba::new(first),
        end: Lba::new(first + blocks),
        class,
        confidence: Confidence::User,
        origin: Origin { system: System::User, at: 0, why: "a test" },
    };
    let all = [range(first, hot, Class::JournalHot), range(first + hot, blocks, Class::JournalLog)];
    all.into_iter().filter(|range| range.blocks() > 0).collect()
}

/// Says what a detector would.
pub(crate) fn set_journal(volume: &mut Volume, first: u64, hot: u64, blocks: u64) {
    volume.set_journal(&ranges(first, hot, blocks));
}

/// Classes of writes are hints: whatever they are, and whenever they change, a recovery finds what it has to.
#[test]
fn random_cuts_with_journals() {
    for_each_seed(("onefold-volume", "volume", "random_cuts_with_journals"), 80, |seed| {
        let mut rng = Rng::new(seed);
        let mut setup =
            if seed % 2 == 0 { Setup::random(&mut rng) } else { Setup::random_zoned(&mut rng) };
        setup.options.journal = pick(
            &mut rng,
            &[JournalStreams::Apart, JournalStreams::Apart, JournalStreams::Together],
        );
        if let Some(zones) = &mut setup.zones {
            zones.limit = pick(&mut rng, &[Some(4), Some(5), Some(6), Some(7), None]);
        }
        random_run(seed, setup, rng);
    });
}

/// A host with a journal, and all that a test wants to know of it.
struct Host {
    first: u64,
    hot: u64,
    journal: u64,
    /// Where the next block of the ring goes.
    at: u64,
    /// Blocks of the last lap, with those of the log that they took at most.
    lap: VecDeque<(u64, u64)>,
}

impl Host {
    fn new(first: u64, hot: u64, journal: u64) -> Self {
        Self { first, hot, journal, at: 0, lap: VecDeque::new() }
    }

    fn tell(&self, rig: &mut Rig) {
        let Self { first, hot, journal: blocks, .. } = *self;
        assert!(rig.run(Op::Journal { first, hot, blocks }));
    }

    /// Writes blocks of the ring, and waits until they are durable.
    fn commit(&mut self, rig: &mut Rig, blocks: u64) {
        let mut left = blocks;
        while left > 0 {
            let some = left.min(self.journal - self.at);
            let lba = self.first + self.hot + self.at;
            assert!(rig.run(Op::Write { lba, blocks: some, fua: some == left }));
            (self.at, left) = ((self.at + some) % self.journal, left - some);
            let headers = 2 + some / u64::from(rig.setup.options.batch_blocks - 1);
            self.lap.push_back((some, some + headers));
        }
        let written =
            |lap: &VecDeque<(u64, u64)>| lap.iter().map(|(blocks, _)| blocks).sum::<u64>();
        while written(&self.lap) - self.lap.front().map_or(0, |first| first.0) >= self.journal {
            self.lap.pop_front();
        }
        (0..10).for_each(|_| rig.step());
    }

    /// ceil(J(1+h)/Z)+1. At the end of a zone a batch is cut in two, and what is too small for another one is padded.
    fn zones_max(&self, zone: u64) -> u64 {
        let taken: u64 = self.lap.iter().map(|(_, taken)| taken).sum();
        (taken + taken / zone * 3).div_ceil(zone) + 1
    }
}

fn stats(rig: &Rig) -> Stats {
    *rig.volume.stats()
}

/// Log segments of a stream that hold something or take something.
fn in_use(rig: &Rig, stream: Stream) -> Vec<SegmentInfo> {
    let log = rig.volume.as_log().expect("a volume of mode log");
    let used = |info: &SegmentInfo| {
        info.stream == stream.code()
            && (info.state == "open" || info.state == "closed" && info.live > 0)
    };
    log.segment_infos().filter(used).collect()
}

/// A volume on zones on which the cleaner is always at work, with room for a journal of so many blocks.
fn setup(zone: u32, journal: u64, limit: Option<u32>) -> Setup {
    let zones = ZoneSetup { size: 256, capacity: zone, limit, conventional: 0 };
    // The set is a quarter of them at most, and may be half headers.
    let count = 40 + 8 * journal.div_ceil(u64::from(zone));
    let options = Options {
        journal: JournalStreams::Apart,
        checkpoint_blocks: 600,
        clean_below: Some(low32(count / 2)),
        ..OPTIONS
    };
    let mut setup = Setup::of(0, 1, options).on_zones(4 + count, zones);
    let layout = Layout::new(Geometry::of(&setup.label())).expect("a layout");
    setup.logical_blocks = layout.logical_max() * 8 / 10 - 2 * journal;
    setup
}

/// Overwrites some data at random, beside the journal.
fn write_data(rig: &mut Rig, rng: &mut Rng, host: &Host) {
    let end = rig.oracle.blocks();
    let journal = host.first..host.first + host.hot + host.journal;
    for _ in 0..rng.below(4) {
        let blocks = 1 + rng.below(8);
        let lba = rng.below(end - 8);
        if lba + blocks <= journal.start || lba >= journal.end {
            assert!(rig.run(Op::Write { lba, blocks, fua: false }));
        }
        rig.step();
    }
}

fn fill(rig: &mut Rig) {
    let blocks = rig.oracle.blocks();
    for lba in (0..blocks).step_by(100) {
        assert!(rig.run(Op::Write { lba, blocks: 100.min(blocks - lba), fua: false }));
    }
}

/// Z10. No block of a ring is ever copied, and it takes no more zones than it has to, however large it is, wherever it lies,
/// and however often its header is written. With a fast-commit area it is the same for the ring, and of the rest at most that
/// area is copied for each zone.
#[test]
fn rings_are_never_copied() {
    for_each_seed(("onefold-volume", "volume", "rings_are_never_copied"), 24, |seed| {
        let mut rng = Rng::new(seed);
        let zone = pick(&mut rng, &[64, 128, 192]);
        let journal = u64::from(zone) / 2 + rng.below(u64::from(zone) * 7 / 2);
        let fast = pick(&mut rng, &[0, 0, 20]);
        let limit = if fast == 0 { pick(&mut rng, &[Some(5), Some(7), None]) } else { None };
        let mut setup = setup(zone, journal, limit);
        if seed % 4 == 3 {
            // Log segments that are no zones.
            let options = Options { clean_below: Some(60), ..setup.options };
            setup = Setup::of(64 * 160, 6500, options);
        }
        let zone = u64::from(setup.zones.map_or(64, |zones| zones.capacity));
        let mut rig = Rig::new(setup, seed);
        fill(&mut rig);
        let first = rng.below(rig.oracle.blocks() - journal - 1 - fast);
        let mut host = Host::new(first, 1 + fast, journal);
        host.tell(&mut rig);
        let (often, most) = (pick(&mut rng, &[1, 4, 50]), 1 + rng.below(30).min(journal - 1));
        let (mut laps, mut hot_zones, mut before) = (0, 0, None);
        while laps < 8 * journal {
            let blocks = 1 + rng.below(most);
            host.commit(&mut rig, blocks);
            laps += blocks;
            if rng.below(often) == 0 {
                assert!(rig.run(Op::Write { lba: first, blocks: 1, fua: true }));
            }
            if fast > 0 && rng.below(3) == 0 {
                let blocks = 1 + rng.below(fast);
                assert!(rig.run(Op::Write { lba: first + 1, blocks, fua: true }));
            }
            write_data(&mut rig, &mut rng, &host);
            let together = limit == Some(5);
            let used = u64_from(in_use(&rig, Stream::JournalLog).len());
            // Its header is in between if there is one stream for both.
            let max = host.zones_max(zone) + u64::from(together) * 2;
            assert!(
                laps < journal || used <= max,
                "{used} zones for {journal} blocks of {zone}, {max}"
            );
            let heads: Vec<_> = in_use(&rig, Stream::JournalHot);
            let open = heads.iter().find(|info| info.state == "open").map(|info| info.epoch);
            hot_zones += u64::from(open.is_some() && open != before);
            before = open.or(before);
            if fast == 0 {
                assert!(heads.len() <= 1, "{heads:?}");
            }
        }
        assert!(rig.settle());
        let stats = stats(&rig);
        assert!(stats.cleaned_segments > 0, "{stats:?}");
        // In a stream for both, a header that was not rewritten for a lap is moved once in it.
        let stale = if limit == Some(5) { laps / journal } else { 0 };
        let copied = stats.journal_copied;
        assert!(copied <= hot_zones * fast + stale, "{stats:?}, {hot_zones}, {setup:?}");
        assert_eq!(stats.journal_demotions, 0, "{stats:?}, {setup:?}");
        let journal = stats.sent(onefold_volume::Sent::Journal) + stats.absorbed;
        assert!(journal >= laps, "{stats:?}");
        rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    });
}

/// After an opening the zones of a journal are known, in good order or not.
#[test]
fn a_set_is_known_after_an_opening() {
    for clean in [false, true] {
        let (journal, mut rng) = (150, Rng::new(7));
        let mut rig = Rig::new(setup(64, journal, None), 7);
        fill(&mut rig);
        let mut host = Host::new(1000, 1, journal);
        host.tell(&mut rig);
        for _ in 0..60 {
            host.commit(&mut rig, 7);
            write_data(&mut rig, &mut rng, &host);
        }
        assert!(rig.run(Op::Flush) && rig.settle());
        rig = if clean { rig.close_and_reopen() } else { rig.cut_and_reopen(0) }.expect("it opens");
        assert!(in_use(&rig, Stream::JournalLog).len() >= 3, "they are told from others");
        host.tell(&mut rig);
        let log = rig.volume.as_log().expect("a volume of mode log");
        assert!(log.journal_segments() >= 3, "{}", log.journal_segments());
        for _ in 0..200 {
            host.commit(&mut rig, 7);
            write_data(&mut rig, &mut rng, &host);
        }
        let stats = stats(&rig);
        assert!(stats.cleaned_segments > 0);
        assert_eq!((stats.journal_copied, stats.journal_demotions), (0, 0), "{stats:?}");
    }
}

/// A journal that is gone, or elsewhere, leaves ordinary zones: what is live there is moved like all else, and counted.
#[test]
fn a_journal_that_moves_or_vanishes_leaves_ordinary_zones() {
    for moves in [false, true] {
        let (journal, mut rng) = (400, Rng::new(3));
        let mut rig = Rig::new(setup(64, journal, None), 3);
        fill(&mut rig);
        let mut host = Host::new(1000, 1, journal);
        host.tell(&mut rig);
        for _ in 0..80 {
            host.commit(&mut rig, 9);
        }
        let log = rig.volume.as_log().expect("a volume of mode log");
        assert!(log.journal_segments() >= 6, "{}", log.journal_segments());
        let mut host = if moves { Host::new(2000, 1, journal) } else { Host::new(0, 0, 0) };
        host.tell(&mut rig);
        let log = rig.volume.as_log().expect("a volume of mode log");
        assert!(log.journal_segments() <= 2, "{}", log.journal_segments());
        assert_eq!(stats(&rig).journal_demotions, 1);
        for _ in 0..800 {
            write_data(&mut rig, &mut rng, &host);
            if moves {
                host.commit(&mut rig, 9);
            }
        }
        let stats = stats(&rig);
        assert!(stats.journal_copied > 100 && stats.journal_copied < 1000, "{stats:?}");
        rig.assert_counts();
    }
}

/// A ring that is never written to its end leaves blocks behind, which do not keep zones for ever.
#[test]
fn what_a_ring_leaves_behind_is_moved() {
    let (journal, mut rng) = (400, Rng::new(5));
    let mut rig = Rig::new(setup(64, journal, None), 5);
    fill(&mut rig);
    let mut host = Host::new(1000, 1, journal);
    host.tell(&mut rig);
    for _ in 0..400 {
        // It is mounted again and again, and begins anew.
        host.at = if host.at > 100 + rng.below(300) { 0 } else { host.at };
        host.commit(&mut rig, 9);
        write_data(&mut rig, &mut rng, &host);
    }
    let stats = stats(&rig);
    assert!(stats.journal_copied > 0, "{stats:?}");
    let used = in_use(&rig, Stream::JournalLog).len();
    assert!(used < 16, "{used} zones");
}

/// A journal of more than a quarter of the zones is data.
#[test]
fn a_journal_that_is_too_large_is_data() {
    let mut rig = Rig::new(setup(64, 100, None), 1);
    let mut host = Host::new(100, 1, 1500);
    host.tell(&mut rig);
    for _ in 0..400 {
        host.commit(&mut rig, 9);
        let (log, all) = (rig.volume.as_log().expect("mode log"), rig.setup.zones);
        assert!(log.journal_segments() * 4 <= log.layout().usable_segments(), "{all:?}");
    }
    assert!(stats(&rig).journal_demotions > 0);
}

/// Z11. Full volumes go on, whatever has the class of a journal.
#[test]
fn full_volumes_with_journals_live_on() {
    for_each_seed(("onefold-volume", "volume", "full_volumes_with_journals_live_on"), 24, |seed| {
        let options = Options { journal: JournalStreams::Apart, ..OPTIONS };
        full_volume_lives_on(seed, 7, options, |rng, blocks| Some(random_journal(rng, blocks)));
    });
}

/// With fewer zones that may be written at once streams share them, and with four there is no set.
#[test]
fn few_active_zones_are_shared() {
    for (limit, streams) in [(4, [0, 0]), (5, [1, 0]), (6, [1, 1]), (7, [1, 1])] {
        let mut rig = Rig::new(setup(64, 100, Some(limit)), 1);
        let mut host = Host::new(100, 1, 100);
        host.tell(&mut rig);
        host.commit(&mut rig, 9);
        assert!(rig.run(Op::Write { lba: 100, blocks: 1, fua: true }));
        let of = |stream| in_use(&rig, stream).len();
        assert_eq!([of(Stream::JournalLog), of(Stream::JournalHot)], streams, "{limit}");
    }
}
