//! Errors that come and go, together with power cuts, against a plain model.
//!
//! Safety: a read gives the right bytes or an error, and what is durable stays so. Liveness: every request is answered in bounded
//! virtual time; with whole devices writes succeed, and all zones are in service again, unless a flush of written data failed.

use onefold_testkit::for_each_seed;
use onefold_units::convert::{index64, narrow};
use onefold_units::{Nanos, Rng};
use onefold_zoned::{
    DeviceZones, Failure, Geometry, IoFailed, IoKind, JournalMode, Options, Request,
};

use crate::crash::{recover, small_copies};
use crate::disk::BLOCK;
use crate::oracle::{Oracle, stamp, stamped};
use crate::rig::{MS, Rig, SECOND, ZONE, formatted, large_cache, one_device, two_devices};
use crate::verify::verify;
use crate::weather::Weather;

/// Longest time until a request is answered.
const PATIENCE: u64 = 60 * SECOND;

#[derive(Clone)]
enum What {
    Change {
        op: u64,
        lba: u64,
        blocks: u32,
        fua: bool,
    },
    Flush {
        reports: usize,
    },
    /// With what each block may have been, when it was given.
    Read {
        lba: u64,
        last: u64,
        allowed: Vec<Vec<u64>>,
    },
}

/// A request that is not answered.
#[derive(Clone)]
struct Given {
    tag: u64,
    at: Nanos,
    what: What,
}

/// What a campaign came to.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    answered: u64,
    refused: u64,
    failed: u64,
    failed_zones: u64,
    frozen: u64,
    full: u64,
}

struct World {
    rig: Rig,
    oracle: Oracle,
    given: Vec<Given>,
    rng: Rng,
    seen: Seen,
}

impl World {
    fn new(mut rig: Rig, oracle: Oracle, mut rng: Rng, flushes_fail: bool) -> Self {
        rig.weather = Weather::new(Rng::new(rng.next_u64()), flushes_fail);
        Self { rig, oracle, given: Vec::new(), rng, seen: Seen::default() }
    }

    fn give(&mut self) {
        let zone = u64::from(ZONE);
        let chunks = self.rig.blocks() / zone;
        let few = self.rng.below(3) > 0;
        let chunk = self.rng.below(if few { chunks.min(4) } else { chunks });
        let offset = if self.rng.below(4) == 0 { 0 } else { self.rng.below(zone) };
        let lba = chunk * zone + offset;
        let most = [1, 4, 20][index64(self.rng.below(3))];
        let blocks = narrow((1 + self.rng.below(most)).min(self.rig.blocks() - lba));
        let (what, request) = match self.rng.below(20) {
            0..11 => {
                let fua = self.rng.below(12) == 0;
                let op = self.change(lba, blocks, true);
                let data = stamped(op, lba, blocks);
                let request = Request::Write { lba, blocks, fua, data };
                (What::Change { op, lba, blocks, fua }, request)
            }
            11..13 => {
                let op = self.change(lba, blocks, false);
                (What::Change { op, lba, blocks, fua: false }, Request::Discard { lba, blocks })
            }
            13..14 => (What::Flush { reports: self.oracle.reports() }, Request::Flush),
            _ => (self.reads(lba, blocks), Request::Read { lba, blocks }),
        };
        let tag = self.rig.submit(request);
        self.given.push(Given { tag, at: self.rig.now, what });
    }

    fn reads(&self, lba: u64, blocks: u32) -> What {
        let last = self.oracle.ops;
        let allowed = |lba| self.oracle.allowed(lba, last);
        What::Read { lba, last, allowed: (lba..lba + u64::from(blocks)).map(allowed).collect() }
    }

    fn change(&mut self, lba: u64, blocks: u32, writes: bool) -> u64 {
        let op = self.oracle.change(lba, blocks, writes);
        self.oracle.unsure.insert(op);
        op
    }

    /// Requests that are over say what they may, in the order in which they were given.
    fn hear(&mut self) {
        for given in std::mem::take(&mut self.given) {
            let Some(done) = self.rig.dones.remove(&given.tag) else {
                let waited = self.rig.now.saturating_sub(given.at).get();
                assert!(waited <= PATIENCE, "a request waits for {} ms", waited / MS);
                self.given.push(given);
                continue;
            };
            self.seen.answered += 1;
            self.seen.refused += u64::from(done.result.is_err());
            self.seen.full += u64::from(done.result == Err(Failure::Device(IoFailed::NoSpace)));
            match given.what {
                _ if done.result.is_err() => {}
                What::Change { op, lba, blocks, fua } => {
                    self.oracle.unsure.remove(&op);
                    self.oracle.report(op, lba, blocks);
                    if fua {
                        self.oracle.promise_one(op, lba, blocks);
                    }
                }
                What::Flush { reports } => self.oracle.promise(reports),
                What::Read { lba, last, allowed } => {
                    let blocks = done.data.chunks(BLOCK).zip(allowed);
                    for (lba, (block, then)) in (lba..).zip(blocks) {
                        let (found, now) = (stamp(block, lba), self.oracle.allowed(lba, last));
                        // Something newer is durable already.
                        let allowed = if now.is_empty() { then } else { now };
                        assert!(allowed.contains(&found), "{lba}: {found}, not one of {allowed:?}");
                    }
                }
            }
        }
    }

    fn end_one(&mut self) {
        let under_way = &self.rig.under_way;
        let at = self.rig.index(self.rng.below(1 << 20));
        let io = under_way[at].io;
        let earlier = |other: &onefold_zoned::Io| {
            other.device == io.device
                && other.at / u64::from(ZONE) == io.at / u64::from(ZONE)
                && matches!(other.kind, IoKind::Write | IoKind::Reset)
        };
        let first = under_way.iter().position(|other| earlier(&other.io));
        self.rig.complete(if io.kind == IoKind::Write { first.unwrap_or(at) } else { at });
    }

    fn step(&mut self) {
        if self.rng.below(40) == 0 {
            self.rig.weather.change();
        }
        match self.rng.below(10) {
            0..4 if self.rig.volume.requests_under_way() < 12 => self.give(),
            _ if self.rig.under_way() > 0 => self.end_one(),
            _ => self.tick(),
        }
        self.hear();
    }

    /// Devices are quiet: time passes.
    fn tick(&mut self) {
        let due = self.rig.volume.poll_timeout();
        if let Some(due) = due {
            self.rig.now = self.rig.now.max(due);
            self.rig.volume.handle_timeout(self.rig.now);
            self.rig.collect();
        }
        assert!(due.is_some() || self.given.is_empty() || self.rig.under_way() > 0, "it hangs");
    }

    /// Nothing is asked any more until everything is answered.
    fn drain(&mut self) {
        self.hear();
        while !self.given.is_empty() {
            match self.rig.under_way() {
                0 => self.tick(),
                _ => self.end_one(),
            }
            self.hear();
        }
    }

    /// Devices are whole from now on.
    fn heal(&mut self) {
        self.rig.weather.clear();
        self.drain();
        self.rig.advance(400 * SECOND);
        self.read_all();
        if self.rig.volume.is_frozen() {
            self.seen.frozen += 1;
            return;
        }
        for chunk in 0..self.rig.blocks() / u64::from(ZONE) {
            let (lba, blocks) = (chunk * u64::from(ZONE) + self.rng.below(16), 1);
            let op = self.change(lba, blocks, true);
            let data = stamped(op, lba, blocks);
            let tag = self.rig.submit(Request::Write { lba, blocks, fua: false, data });
            let what = What::Change { op, lba, blocks, fua: false };
            self.given.push(Given { tag, at: self.rig.now, what });
            let refused = self.seen.refused;
            self.drain();
            assert_eq!(self.seen.refused, refused, "a write with whole devices");
        }
        self.rig.advance(400 * SECOND);
        self.rig.flush_now();
        self.oracle.promise(self.oracle.reports());
        self.read_all();
        // Reclaim may just have given one back, which the next flush of metadata frees.
        if self.is_a_zone_away() {
            self.rig.advance(400 * SECOND);
        }
        assert!(!self.is_a_zone_away(), "zones that do not come back");
        let geometry = self.rig.volume.geometry().clone();
        if self.rig.volume.is_clean() {
            verify(&mut self.rig.disks, &geometry).unwrap();
        }
    }

    fn is_a_zone_away(&self) -> bool {
        let used = self.rig.volume.zones_by_use();
        used.iter().any(|((_, name), _)| ["held", "out_of_service"].contains(name))
    }

    /// No block is lost, and none is another's.
    fn read_all(&mut self) {
        for lba in (0..self.rig.blocks()).step_by(16) {
            let tag = self.rig.submit(Request::Read { lba, blocks: ZONE });
            let what = self.reads(lba, ZONE);
            self.given.push(Given { tag, at: self.rig.now, what });
            let refused = self.seen.refused;
            self.drain();
            assert_eq!(self.seen.refused, refused, "a read of block {lba} with whole devices");
        }
    }
}

fn campaign(seed: u64, devices: &[DeviceZones], options: &Options, flushes_fail: bool) -> Seen {
    let mut rng = Rng::new(seed);
    let (disks, geometry): (_, Geometry) = formatted(ZONE, devices);
    let (rig, _) = Rig::mount(disks, &geometry, options.clone());
    let oracle = Oracle::new(rig.blocks());
    let mut world = World::new(rig, oracle, Rng::fork(seed, 1), flushes_fail);
    let mut sum = Seen::default();
    for _ in 0..3 {
        for _ in 0..rng.below(700) {
            world.step();
        }
        match rng.below(3) {
            0 => {}
            1 => world.drain(),
            _ => world.heal(),
        }
        sum.answered += world.seen.answered;
        sum.refused += world.seen.refused;
        sum.full += world.seen.full;
        sum.frozen += world.seen.frozen;
        sum.failed += world.rig.weather.failed;
        sum.failed_zones += world.rig.volume.stats().failed_zones;
        if rng.below(3) > 0 || world.rig.volume.is_frozen() {
            let mut oracle = world.oracle.clone();
            let disks = world.rig.disks.cut(&mut rng);
            let rig = recover(disks, &geometry, options, &mut oracle).unwrap();
            oracle.unsure.clear();
            world = World::new(rig, oracle, Rng::fork(seed, rng.next_u64()), flushes_fail);
        } else {
            world.seen = Seen::default();
            world.rig.weather.failed = 0;
        }
    }
    sum
}

#[test]
fn errors_that_come_and_go_cost_nothing_else_on_two_devices() {
    for_each_seed(("onefold-zoned", "zoned", "else_on_two_devices"), 150, |seed| {
        campaign(seed, &two_devices(), &small_copies(), false);
    });
}

#[test]
fn errors_that_come_and_go_cost_nothing_else_on_one_device() {
    for_each_seed(("onefold-zoned", "zoned", "else_on_one_device"), 100, |seed| {
        campaign(seed, &one_device(), &small_copies(), false);
    });
}

#[test]
fn errors_that_come_and_go_cost_nothing_else_with_a_journal() {
    let range = |range: std::ops::Range<u64>| std::iter::once(range).collect::<Vec<_>>();
    let appended = Options {
        journal: JournalMode::Set,
        journal_ranges: range(20..70),
        journal_hot: range(20..22),
        ..small_copies()
    };
    let resting =
        Options { journal_ranges: range(16..32), journal_hot: Vec::new(), ..appended.clone() };
    let pinned = Options { journal: JournalMode::One, ..resting.clone() };
    for_each_seed(("onefold-zoned", "zoned", "else_with_a_journal"), 100, |seed| match seed % 3 {
        0 => {
            campaign(seed, &two_devices(), &appended, false);
        }
        1 => {
            campaign(seed, &large_cache(), &resting, false);
        }
        _ => {
            campaign(seed, &two_devices(), &pinned, false);
        }
    });
}

/// A failed flush of written data ends all changes: what was flushed before survives, and reads go on.
#[test]
fn failed_flushes_end_changes_and_lose_nothing() {
    for_each_seed(("onefold-zoned", "zoned", "failed_flushes_end"), 100, |seed| {
        campaign(seed, &two_devices(), &small_copies(), true);
    });
}

/// The campaign comes to what it is meant for.
#[test]
fn the_campaign_fails_and_heals() {
    let run = |seed| campaign(seed, &two_devices(), &small_copies(), seed % 4 == 0);
    let all: Vec<Seen> = (5000..5040).map(run).collect();
    let sum = |of: fn(&Seen) -> u64| all.iter().map(of).sum::<u64>();
    assert!(sum(|seen| seen.answered) > 10_000);
    assert!(sum(|seen| seen.refused) > 300, "{all:?}");
    assert!(sum(|seen| seen.failed) > 3_000);
    assert!(sum(|seen| seen.failed_zones) > 30);
    assert!(sum(|seen| seen.full) > 10);
    assert!(sum(|seen| seen.frozen) > 0);
}
