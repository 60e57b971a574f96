//! Z7: power cuts at random points against a plain model (invariants I1 to I5, I7).

use onefold_testkit::for_each_seed;
use onefold_units::convert::{index64, narrow};
use onefold_units::{Nanos, Rng};
use onefold_zoned::{
    Action, DeviceZones, Geometry, IoKind, JournalMode, Options, Request, Sent, Stats, WaitReason,
};

use crate::disk::{BLOCK, Disks};
use crate::oracle::{Oracle, stamp, stamped};
use crate::rig::{Rig, ZONE, few_zones, formatted, large_cache, one_device, two_devices};
use crate::verify::verify;

/// What a request under way means to the model.
#[derive(Clone, Copy)]
enum Given {
    Change { op: u64, lba: u64, blocks: u32, fua: bool },
    Flush { reports: usize },
}

pub(crate) struct World {
    pub(crate) rig: Rig,
    pub(crate) oracle: Oracle,
    given: Vec<(u64, Given)>,
    /// The journal is found somewhere else now and then.
    pub(crate) journal_moves: bool,
    /// Half of the requests are to a journal of one chunk, now and then.
    favours: Option<bool>,
    /// Tag of a read, and what it has to find.
    reads: Vec<(u64, u64, Vec<u64>)>,
    rng: Rng,
}

impl World {
    pub(crate) fn new(rig: Rig, oracle: Oracle, rng: Rng) -> Self {
        let is_chunk = rig.volume.journal() == resting().journal_ranges;
        let journal_moves = rig.volume.journal_mode() == JournalMode::Set && !is_chunk;
        let (favours, given, reads) = (is_chunk.then_some(true), Vec::new(), Vec::new());
        Self { rig, oracle, given, journal_moves, favours, reads, rng }
    }

    /// A range, in few chunks, often at the start of one.
    fn range(&mut self) -> (u64, u32) {
        let zone = u64::from(self.rig.zone_blocks());
        let chunks = self.rig.blocks() / zone;
        let few = self.rng.below(3) > 0;
        let mut chunk = self.rng.below(if few { chunks.min(5) } else { chunks });
        if self.favours == Some(true) && self.rng.below(2) == 0 {
            chunk = 1;
        }
        let offset = if self.rng.below(4) == 0 { 0 } else { self.rng.below(zone) };
        let lba = chunk * zone + offset;
        let most = [1, 4, 20][index64(self.rng.below(3))];
        let blocks = (1 + self.rng.below(most)).min(self.rig.blocks() - lba);
        (lba, narrow(blocks))
    }

    fn give(&mut self) {
        let (lba, blocks) = self.range();
        match self.rng.below(20) {
            0..11 => {
                let fua = self.rng.below(12) == 0;
                let op = self.oracle.change(lba, blocks, true);
                let data = stamped(op, lba, blocks);
                let tag = self.rig.submit(Request::Write { lba, blocks, fua, data });
                self.given.push((tag, Given::Change { op, lba, blocks, fua }));
            }
            11..13 => {
                let op = self.oracle.change(lba, blocks, false);
                let tag = self.rig.submit(Request::Discard { lba, blocks });
                self.given.push((tag, Given::Change { op, lba, blocks, fua: false }));
            }
            13..14 => {
                let reports = self.oracle.reports();
                let tag = self.rig.submit(Request::Flush);
                self.given.push((tag, Given::Flush { reports }));
            }
            _ => {
                let expected =
                    (lba..lba + u64::from(blocks)).map(|lba| self.oracle.now(lba)).collect();
                let tag = self.rig.submit(Request::Read { lba, blocks });
                self.reads.push((tag, lba, expected));
            }
        }
    }

    /// Requests that are over say what they have to.
    fn hear(&mut self) {
        for (tag, given) in std::mem::take(&mut self.given) {
            let Some(done) = self.rig.dones.remove(&tag) else {
                self.given.push((tag, given));
                continue;
            };
            assert_eq!(done.result, Ok(()));
            match given {
                Given::Change { op, lba, blocks, fua } => {
                    self.oracle.report(op, lba, blocks);
                    if fua {
                        // I3: FUA makes this write durable; the model is told of it alone.
                        self.oracle.promise_one(op, lba, blocks);
                    }
                }
                Given::Flush { reports } => self.oracle.promise(reports),
            }
        }
        for (tag, lba, expected) in std::mem::take(&mut self.reads) {
            let Some(done) = self.rig.dones.remove(&tag) else {
                self.reads.push((tag, lba, expected));
                continue;
            };
            assert_eq!(done.result, Ok(()));
            let found: Vec<u64> =
                (lba..).zip(done.data.chunks(BLOCK)).map(|(lba, b)| stamp(b, lba)).collect();
            assert_eq!(found, expected, "a read at block {lba} (I4)");
        }
    }

    /// One request to a device ends; those to a sequential zone do so in order.
    fn end_one(&mut self) {
        let under_way = &self.rig.under_way;
        let at = self.rig.index(self.rng.below(1 << 20));
        let io = under_way[at].io;
        let zone = u64::from(self.rig.zone_blocks());
        let earlier = |other: &onefold_zoned::Io| {
            other.device == io.device
                && other.at / zone == io.at / zone
                && matches!(other.kind, IoKind::Write | IoKind::Reset)
        };
        let first = under_way.iter().position(|other| earlier(&other.io));
        self.rig.complete(if io.kind == IoKind::Write { first.unwrap_or(at) } else { at });
    }

    /// All is over, and the volume is closed in good order.
    pub(crate) fn finish(&mut self) {
        self.rig.advance(30_000_000_000);
        self.hear();
        let flush = self.rig.submit(Request::Flush);
        self.rig.settle();
        assert_eq!(self.rig.result(flush), Some(Ok(())));
        self.oracle.promise(self.oracle.reports());
        self.rig.volume.close(self.rig.now);
        self.rig.settle();
        assert!(self.rig.volume.is_closed());
    }

    /// The journal is found, moves or goes.
    fn move_journal(&mut self) {
        let Options { journal_ranges, journal_hot, .. } = journal_options(&mut self.rng);
        self.rig.volume.set_journal(self.rig.now, journal_ranges, journal_hot);
        self.rig.collect();
    }

    pub(crate) fn step(&mut self) {
        if self.journal_moves && self.rng.below(250) == 0 {
            self.move_journal();
        }
        if let Some(favours) = self.favours.as_mut().filter(|_| self.rng.below(64) == 0) {
            *favours = !*favours;
        }
        match self.rng.below(10) {
            0..4 if self.rig.volume.requests_under_way() < 12 => self.give(),
            _ if self.rig.under_way() > 0 => self.end_one(),
            9 => {
                if let Some(due) = self.rig.volume.poll_timeout() {
                    self.rig.now = self.rig.now.max(due);
                    self.rig.volume.handle_timeout(self.rig.now);
                    self.rig.collect();
                }
            }
            _ => {
                self.rig.now += Nanos::new(self.rng.below(200_000_000));
                self.give();
            }
        }
        self.hear();
    }
}

/// Everything after a power cut is as the model allows, and as the tools of the kernel want it.
pub(crate) fn recover(
    disks: Disks,
    geometry: &Geometry,
    options: &Options,
    oracle: &mut Oracle,
) -> Result<Rig, String> {
    let (mut rig, recovery) =
        Rig::try_mount(disks, geometry, options.clone()).map_err(|error| error.to_string())?;
    if recovery.lost_blocks > 0 {
        return Err(format!("{recovery:?}"));
    }
    rig.settle();
    verify(&mut rig.disks, geometry)?;
    let zone = rig.zone_blocks();
    for chunk in 0..oracle.blocks() / u64::from(zone) {
        let lba = chunk * u64::from(zone);
        for (lba, found) in (lba..).zip(rig.read_now(lba, zone)) {
            oracle.recovered(lba, found)?;
        }
    }
    Ok(rig)
}

fn campaign(
    seed: u64,
    devices: &[DeviceZones],
    options: &Options,
    dropping: Option<usize>,
) -> Result<Vec<Stats>, String> {
    let mut rng = Rng::new(seed);
    let (mut disks, geometry) = formatted(ZONE, devices);
    if let Some(device) = dropping {
        disks.0[device].drops_flushes = true;
    }
    let (rig, _) = Rig::mount(disks, &geometry, options.clone());
    let mut oracle = Oracle::new(rig.blocks());
    let mut world = World::new(rig, oracle.clone(), Rng::fork(seed, 1));
    let mut counted = Vec::new();
    for _ in 0..4 {
        for _ in 0..rng.below(900) {
            world.step();
        }
        oracle = world.oracle.clone();
        counted.push(world.rig.volume.stats().clone());
        let disks = world.rig.disks.cut(&mut rng);
        let rig = recover(disks, &geometry, options, &mut oracle)?;
        world = World::new(rig, oracle.clone(), Rng::fork(seed, rng.next_u64()));
    }
    Ok(counted)
}

pub(crate) fn small_copies() -> Options {
    Options { copy_blocks: 3, ..Options::default() }
}

#[test]
fn what_was_flushed_survives_power_cuts_on_two_devices() {
    for_each_seed(("onefold-zoned", "zoned", "two_devices"), 150, |seed| {
        campaign(seed, &two_devices(), &small_copies(), None).unwrap();
    });
}

/// The campaign comes to everything that it is meant to cut.
#[test]
fn the_campaign_reclaims_aborts_and_waits() {
    let run = |seed| campaign(seed, &two_devices(), &small_copies(), None).unwrap();
    let seen: Vec<Stats> = (1000..1040).flat_map(run).collect();
    let sum = |count: fn(&Stats) -> u64| seen.iter().map(count).sum::<u64>();
    assert!(sum(|stats| stats.reclaims(Action::RndData).completed) > 100);
    assert!(sum(|stats| stats.reclaims(Action::RndData).aborted) > 10);
    assert!(sum(|stats| stats.reclaims(Action::SeqData).completed) > 10);
    assert!(sum(|stats| stats.reclaims(Action::SeqData).aborted) > 1);
    assert!(sum(|stats| stats.reclaims(Action::Buf).completed) > 10);
    assert!(sum(|stats| stats.waits(WaitReason::Reclaim).count) > 100);
    assert!(sum(|stats| stats.waits(WaitReason::FreeZone).count) > 100);
}

#[test]
fn what_was_flushed_survives_power_cuts_on_one_device() {
    for_each_seed(("onefold-zoned", "zoned", "one_device"), 150, |seed| {
        campaign(seed, &one_device(), &small_copies(), None).unwrap();
    });
}

#[test]
fn what_was_flushed_survives_power_cuts_with_a_pinned_journal() {
    let options = Options {
        journal: JournalMode::One,
        journal_ranges: std::iter::once(20..60).collect(),
        ..small_copies()
    };
    for_each_seed(("onefold-zoned", "zoned", "pinned_journal"), 80, |seed| {
        campaign(seed, &two_devices(), &options, None).unwrap();
    });
}

/// Three of six cache zones are the journal's, which is larger than a zone and straddles.
#[test]
fn what_was_flushed_survives_power_cuts_with_pinned_chunks() {
    let options = Options {
        journal: JournalMode::Set,
        journal_ranges: std::iter::once(20..60).collect(),
        journal_hot: std::iter::once(20..21).collect(),
        ..small_copies()
    };
    for_each_seed(("onefold-zoned", "zoned", "pinned_chunks"), 80, |seed| {
        campaign(seed, &few_zones(), &options, None).unwrap();
    });
}

/// A journal of a chunk that rests in the cache and leaves it again.
fn resting() -> Options {
    let journal_ranges = std::iter::once(16..32).collect();
    Options { journal: JournalMode::Set, journal_ranges, ..small_copies() }
}

#[test]
fn what_was_flushed_survives_power_cuts_with_a_journal_that_rests() {
    for_each_seed(("onefold-zoned", "zoned", "a_journal_that_rests"), 120, |seed| {
        campaign(seed, &large_cache(), &resting(), None).unwrap();
    });
}

/// A journal that fits half of the cache, one that does not, one that may rest, or none, of a volume that is opened with a mode.
fn journal_options(rng: &mut Rng) -> Options {
    let journals = [(20..60, 1), (16..80, 1), (24..77, 5), (0..50, 0), (16..32, 0), (0..0, 0)];
    let (journal, hot) = journals[index64(rng.below(6))].clone();
    let mode = [JournalMode::Set, JournalMode::Set, JournalMode::Set, JournalMode::One];
    let journal_hot = journal.start..(journal.start + hot).min(journal.end);
    let keep = |range: std::ops::Range<u64>| (!range.is_empty()).then_some(range);
    Options {
        journal: mode[index64(rng.below(4))],
        journal_ranges: keep(journal).into_iter().collect(),
        journal_hot: keep(journal_hot).into_iter().collect(),
        ..small_copies()
    }
}

/// A journal that is appended to sequential zones, with a fast-commit area.
fn appended() -> Options {
    Options {
        journal: JournalMode::Set,
        journal_ranges: std::iter::once(20..70).collect(),
        journal_hot: std::iter::once(20..22).collect(),
        ..small_copies()
    }
}

#[test]
fn what_was_flushed_survives_power_cuts_with_an_appended_journal() {
    for_each_seed(("onefold-zoned", "zoned", "appended_journal"), 120, |seed| {
        campaign(seed, &two_devices(), &appended(), None).unwrap();
    });
}

/// Three chunks are more than half of four conventional zones.
#[test]
fn what_was_flushed_survives_power_cuts_with_an_appended_journal_on_one_device() {
    let options = Options { journal_ranges: std::iter::once(16..56).collect(), ..appended() };
    let options = Options { journal_hot: std::iter::once(16..17).collect(), ..options };
    for_each_seed(("onefold-zoned", "zoned", "appended_journal_on_one"), 80, |seed| {
        campaign(seed, &one_device(), &options, None).unwrap();
    });
}

/// The power fails after every step of a history, and what is there then is opened with another mode, perhaps.
#[test]
fn what_was_flushed_survives_a_power_cut_at_every_request() {
    for_each_seed(("onefold-zoned", "zoned", "every_request"), 3, |seed| {
        let mut rng = Rng::new(seed);
        let (disks, geometry) = formatted(ZONE, &two_devices());
        let (rig, _) = Rig::mount(disks, &geometry, appended());
        let oracle = Oracle::new(rig.blocks());
        let mut world = World::new(rig, oracle, Rng::fork(seed, 1));
        for _ in 0..500 {
            world.step();
            let disks = world.rig.disks.cut(&mut rng);
            let options = journal_options(&mut rng);
            recover(disks, &geometry, &options, &mut world.oracle.clone()).unwrap();
        }
    });
}

/// From one power cut to the next the journal is appended, pinned, gone or not asked about.
#[test]
fn what_was_flushed_survives_power_cuts_with_a_journal_that_moves() {
    for_each_seed(("onefold-zoned", "zoned", "a_journal_that_moves"), 120, |seed| {
        let mut rng = Rng::new(seed);
        let devices = [two_devices, few_zones, large_cache][index64(seed % 3)];
        let (disks, geometry) = formatted(ZONE, &devices());
        let (rig, _) = Rig::mount(disks, &geometry, journal_options(&mut rng));
        let oracle = Oracle::new(rig.blocks());
        let mut world = World::new(rig, oracle, Rng::fork(seed, 1));
        for _ in 0..5 {
            for _ in 0..rng.below(900) {
                world.step();
            }
            let mut oracle = world.oracle.clone();
            let disks = world.rig.disks.cut(&mut rng);
            let options = journal_options(&mut rng);
            let rig = recover(disks, &geometry, &options, &mut oracle).unwrap();
            world = World::new(rig, oracle, Rng::fork(seed, rng.next_u64()));
        }
    });
}

/// The campaigns with an appended journal come to what they are meant to cut.
#[test]
fn the_campaign_appends_moves_and_gives_back() {
    let run = |seed| campaign(seed, &two_devices(), &appended(), None).unwrap();
    let seen: Vec<Stats> = (2000..2030).flat_map(run).collect();
    let sum = |cause: Sent| seen.iter().map(|stats| stats.sent(cause)).sum::<u64>();
    assert!(sum(Sent::JournalAppended) > 1000, "{}", sum(Sent::JournalAppended));
    assert!(sum(Sent::JournalCopied) > 100, "{}", sum(Sent::JournalCopied));
    assert!(sum(Sent::JournalReturned) > 100, "{}", sum(Sent::JournalReturned));
    assert!(seen.iter().map(|stats| stats.journal_demotions).sum::<u64>() > 10);
}

/// So do those with one that rests.
#[test]
fn the_campaign_rests_and_leaves() {
    let run = |seed| campaign(seed, &large_cache(), &resting(), None).unwrap();
    let seen: Vec<Stats> = (3000..3030).flat_map(run).collect();
    let both = |stats: &&Stats| {
        [Sent::Journal, Sent::JournalAppended].iter().all(|cause| stats.sent(*cause) > 20)
    };
    assert!(seen.iter().filter(both).count() > 20);
}

/// Z6: the kernel target never flushes its zoned device, and frees zones before the metadata that says so is durable.
#[test]
fn the_order_of_the_kernel_loses_acknowledged_data() {
    let options = Options { kernel_flush: true, ..small_copies() };
    let lost = (0..60).filter(|seed| campaign(*seed, &two_devices(), &options, None).is_err());
    assert!(lost.count() > 0);
}

/// A device that drops flushes is found out, whichever it is: the campaign can fail.
#[test]
fn dropped_flushes_lose_acknowledged_data() {
    for device in 0..2 {
        let run = |seed: &u64| campaign(*seed, &two_devices(), &small_copies(), Some(device));
        let lost = (0..60).filter(|seed| run(seed).is_err());
        assert!(lost.count() > 0, "device {device}");
    }
}
