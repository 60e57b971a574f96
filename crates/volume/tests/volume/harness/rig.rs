//! A volume on a backing that answers in any order, beside the oracle.

use std::collections::BTreeMap;

use onefold_format::checksum;
use onefold_format::volume::VolumeName;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Location, Nanos, Rng, ZoneState};
use onefold_volume::{
    Backing, Done, Engine, Io, IoFailed, IoKind, MemberId, MemberInfo, Miscount, MountError, Range,
    ReadPlan, Recovery, Refusal, Relocation, Resize, ResizeError, SnapshotError, Volume,
};

use super::disk::{Disk, Fate};
use super::family::{FamilyChange, Found};
use super::image::Image;
use super::oracle::Oracle;
use super::roots::Roots;
use super::setup::{HOST, Setup, UUID};
use super::stamp::{self, BLOCK, read_stamp, stamped};
use super::weather::Weather;
use crate::engine::{self, set_journal};

/// Steps that a request may have to wait.
pub(crate) const PATIENCE: u32 = 20_000;

/// What the host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Write {
        lba: u64,
        blocks: u64,
        fua: bool,
    },
    Trim {
        lba: u64,
        blocks: u64,
    },
    Read {
        lba: u64,
        blocks: u64,
    },
    Flush,
    Checkpoint,
    Clean,
    Resize(Resize),
    /// Makes a snapshot, if one more fits.
    Snapshot,
    /// Deletes the oldest snapshot.
    Delete,
    /// The volume is told of a journal: `hot` blocks from `first` on, and a ring of `blocks` behind them. None of either: there
    /// is none any more.
    Journal {
        first: u64,
        hot: u64,
        blocks: u64,
    },
}

/// In which order the backing answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    InTurn,
    Random,
}

/// A request to the backing that was not answered.
struct Flying {
    io: Io,
    /// The write, trim or remap.
    change: Option<u64>,
    /// What a flush covers.
    covered: Vec<u64>,
    /// Of what is written: it must not change meanwhile.
    sum: u32,
    /// What a remap is about.
    sources: Vec<Relocation>,
    /// A zone does not take it.
    refused: bool,
}

impl Flying {
    /// Whether it changes blocks of a range.
    fn changes(&self, at: Location, blocks: u32) -> bool {
        changes(&self.io) && overlap(&self.io, at, blocks)
    }
}

fn changes(io: &Io) -> bool {
    matches!(io.kind, IoKind::Write | IoKind::Trim | IoKind::Remap | IoKind::Reset)
}

fn overlap(io: &Io, at: Location, blocks: u32) -> bool {
    io.at.raw() < at.raw() + blocks && at.raw() < io.at.raw() + io.blocks
}

/// A read of the host whose blocks were not read from the backing yet.
struct Reading {
    lba: u64,
    plan: ReadPlan,
    buffer: Vec<u8>,
    expected: Vec<u64>,
}

pub(crate) struct Rig {
    pub(crate) setup: Setup,
    pub(crate) volume: Box<dyn Engine>,
    /// What the host uses.
    member: MemberId,
    pub(crate) disk: Disk,
    pub(crate) oracle: Oracle,
    pub(crate) rng: Rng,
    pub(crate) order: Order,
    now: Nanos,
    flying: Vec<Flying>,
    reading: Vec<Reading>,
    /// See [`Self::wants`].
    wanted: Option<Nanos>,
    /// Requests to the backing that are answered before power fails.
    pub(crate) fuse: Option<u64>,
    /// Requests that opening it took.
    pub(crate) opening: u64,
    /// Requests to the backing since then.
    pub(crate) requests: u64,
    /// The request that fails, and how a write does.
    pub(crate) fail: Option<(u64, Fate)>,
    /// How often it fails when it is sent again, and what is left of that.
    pub(crate) fail_again: u32,
    bad: Option<(IoKind, Location, u32)>,
    /// How requests fail beside that.
    pub(crate) weather: Weather,
    /// The last one that failed.
    pub(crate) failed: Option<Io>,
    /// Writes to sequential zones that failed, by the block behind them: what is sent of them once more is the same.
    torn: BTreeMap<u64, (Io, Vec<u32>)>,
    /// Times that a zone could not be finished in bad weather.
    unfinished: u32,
    /// A resize is under way.
    pub(crate) resizing: bool,
    /// The operation that is what it discards.
    discards: Option<u64>,
    /// Zones went offline: what was there is an error to read.
    losses: bool,
    /// Writes of roots take long: other requests are answered first.
    pub(crate) late_roots: bool,
    /// Of a volume of mode `log`.
    roots: Option<Roots>,
}

pub(crate) fn open(
    disk: &mut Disk,
    setup: &Setup,
) -> Result<(Box<dyn Engine>, Recovery), MountError> {
    engine::open(disk, setup.file_blocks, setup.options)
}

impl Rig {
    /// A new volume.
    pub(crate) fn new(setup: Setup, seed: u64) -> Self {
        let oracle = Oracle::new(UUID, setup.logical_blocks);
        Self::open(setup, setup.format(), oracle, seed).expect("a new volume opens")
    }

    /// Opens the volume on a backing and checks that it holds what it has to.
    pub(crate) fn open(
        setup: Setup,
        mut disk: Disk,
        mut oracle: Oracle,
        seed: u64,
    ) -> Result<Self, String> {
        stamp::with_noise(setup.compress.is_some());
        let (mut volume, recovery) = open(&mut disk, &setup).map_err(|error| format!("{error}"))?;
        let opening = disk.requests;
        let (member, size) = host_of(&setup, &*volume);
        let blocks = oracle.blocks().min(size);
        let found = read_all(&mut *volume, &mut disk, member, 0..blocks)?;
        let family = read_family(&mut *volume, &mut disk, None)?;
        oracle.check_family(&family)?;
        oracle.check(recovery.seq, &found)?;
        oracle.recovered_family(family.into_iter().map(|(info, _)| info));
        oracle.recovered(recovery.seq);
        let roots = volume.as_log().map(|volume| Roots::of(volume, &disk));
        assert_fixed(&*volume);
        Ok(Self {
            setup,
            volume,
            member,
            disk,
            oracle,
            rng: Rng::new(seed),
            order: Order::Random,
            now: Nanos::new(1),
            flying: Vec::new(),
            reading: Vec::new(),
            fuse: None,
            wanted: None,
            opening,
            requests: 0,
            fail: None,
            fail_again: 0,
            bad: None,
            weather: Weather::CALM,
            failed: None,
            torn: BTreeMap::new(),
            unfinished: 0,
            resizing: false,
            discards: None,
            losses: false,
            late_roots: false,
            roots,
        })
    }

    /// Blocks of what the host uses.
    pub(crate) fn blocks(&self) -> u64 {
        host_of(&self.setup, &*self.volume).1
    }

    /// Whether there is power.
    pub(crate) fn has_power(&self) -> bool {
        self.fuse != Some(0)
    }

    /// Carries out an operation, as far as taking it. `false` if power fails before. An error is final.
    pub(crate) fn try_run(&mut self, op: Op) -> Result<bool, Refusal> {
        let taken = self.take(op);
        self.pump();
        taken
    }

    fn take(&mut self, op: Op) -> Result<bool, Refusal> {
        match op {
            Op::Write { lba, blocks, fua } => self.write(lba, blocks, fua),
            Op::Trim { lba, blocks } => self.trim(lba, blocks),
            Op::Read { lba, blocks } => self.read(lba, blocks),
            Op::Flush => {
                let tag = self.oracle.next_op();
                let taken = self.retry(|volume| volume.flush(tag))?.is_some();
                if taken {
                    self.oracle.flushes();
                }
                Ok(taken)
            }
            Op::Checkpoint => {
                self.volume.want_checkpoint();
                Ok(true)
            }
            Op::Clean => {
                self.volume.want_cleaning();
                Ok(true)
            }
            // The modes of the papers have none.
            Op::Snapshot | Op::Delete | Op::Resize(_) if self.volume.as_log().is_none() => Ok(true),
            Op::Journal { first, hot, blocks } => {
                let volume = self.volume.as_log_mut().expect("a volume of mode log");
                set_journal(volume, first, hot, blocks);
                Ok(true)
            }
            Op::Snapshot => Ok(self.snapshot()),
            Op::Delete => Ok(self.delete()),
            Op::Resize(to) => Ok(self.resize(to)),
        }
    }

    /// Begins a resize when it can. `false` if power fails before.
    fn resize(&mut self, to: Resize) -> bool {
        let to = match to {
            Resize::Logical { blocks, discard, .. } => {
                Resize::Logical { member: self.member, blocks, discard }
            }
            backing @ Resize::Backing { .. } => backing,
        };
        for _ in 0..PATIENCE {
            if !self.has_power() {
                return false;
            }
            let old = self.blocks();
            let volume = self.volume.as_log_mut().expect("a volume of mode log");
            match volume.resize(to) {
                Err(ResizeError::Busy | ResizeError::Members) if volume.stalled().is_some() => {
                    return true;
                }
                Err(ResizeError::Busy | ResizeError::Members) => self.step(),
                Err(error) => {
                    assert!(self.failed.is_some(), "{to:?}: {error}, {:?}", self.setup);
                    return true;
                }
                Ok(()) => {
                    self.resizing = true;
                    if let Resize::Logical { blocks, discard: true, .. } = to
                        && blocks < old
                    {
                        self.discards = Some(self.oracle.next_op());
                        self.oracle.trimmed(blocks, old - blocks);
                    }
                    return true;
                }
            }
        }
        panic!("{to:?} is refused for ever, {:?}", self.setup);
    }

    fn snapshot(&mut self) -> bool {
        let tag = self.oracle.next_op();
        let name = format!("s{tag}");
        let given = VolumeName::new(&name).expect("a short name");
        let member = self.member;
        let make = |volume: &mut Volume| volume.make_snapshot(tag, member, &given);
        self.change(make, FamilyChange::Make(name, 0))
    }

    fn delete(&mut self) -> bool {
        let Some(info) = snapshots(&*self.volume).into_iter().next() else { return true };
        let tag = self.oracle.next_op();
        self.change(|volume| volume.delete_member(tag, info.id), FamilyChange::Delete(info.id))
    }

    /// Changes the family, if that can be done at all. `false` if power fails before.
    fn change(
        &mut self,
        mut what: impl FnMut(&mut Volume) -> Result<(), SnapshotError>,
        mut change: FamilyChange,
    ) -> bool {
        for _ in 0..PATIENCE {
            if !self.has_power() {
                return false;
            }
            let volume = self.volume.as_log_mut().expect("a volume of mode log");
            match what(volume) {
                Ok(()) => {
                    if let FamilyChange::Make(_, blocks) = &mut change {
                        *blocks = self.blocks();
                    }
                    self.oracle.changes(change);
                    return true;
                }
                Err(SnapshotError::Busy) if self.volume.stalled().is_some() => return true,
                Err(SnapshotError::Busy) => self.step(),
                Err(_) => return true,
            }
        }
        panic!("the family is busy for ever, {:?}", self.setup);
    }

    /// The same where nothing fails but power, and snapshots or a thin device take what space there is.
    pub(crate) fn run(&mut self, op: Op) -> bool {
        let taken = self.try_run(op);
        let fills = self.volume.as_log().filter(|volume| volume.can_fill());
        let short = fills.map(Volume::faulty).is_some_and(|faulty| faulty.held + faulty.failed > 0);
        match taken {
            Err(Refusal::NoSpace) if fills.is_some() => return true,
            // What is missing may be in log segments that could not be emptied.
            Err(Refusal::Backing(_)) if short => return true,
            _ => {}
        }
        taken.unwrap_or_else(|refusal| panic!("{op:?} is refused: {refusal:?}, {:?}", self.setup))
    }

    /// Writes as much at once as the volume takes.
    fn write(&mut self, lba: u64, blocks: u64, fua: bool) -> Result<bool, Refusal> {
        let (mut at, most) = (lba, u64::from(self.volume.write_blocks_max()));
        while at < lba + blocks {
            let tag = self.oracle.next_op();
            let range = Range { lba: Lba::new(at), blocks: most.min(lba + blocks - at) };
            let data = stamped(tag, at, range.blocks);
            let member = self.member;
            let write = |volume: &mut dyn Engine| match volume.as_log_mut() {
                Some(log) => log.write_to(member, tag, range, Some(&data), fua),
                None => volume.write(tag, range, Some(&data), fua),
            };
            let Some(()) = self.retry(write)? else { return Ok(false) };
            self.oracle.wrote(at, range.blocks, fua);
            at += range.blocks;
        }
        Ok(true)
    }

    fn trim(&mut self, lba: u64, blocks: u64) -> Result<bool, Refusal> {
        let mut at = lba;
        while at < lba + blocks {
            let tag = self.oracle.next_op();
            let range = Range { lba: Lba::new(at), blocks: lba + blocks - at };
            let member = self.member;
            let trim = |volume: &mut dyn Engine| match volume.as_log_mut() {
                Some(log) => log.trim_of(member, tag, range),
                None => volume.trim(tag, range),
            };
            let Some(taken) = self.retry(trim)? else { return Ok(false) };
            self.oracle.trimmed(at, taken);
            at += taken;
        }
        Ok(true)
    }

    /// Begins a read: what it finds is checked when its blocks are read, some time later.
    fn read(&mut self, lba: u64, blocks: u64) -> Result<bool, Refusal> {
        let mut plan = ReadPlan::default();
        let mut buffer = vec![0xAA; index64(blocks) * BLOCK];
        let range = Range { lba: Lba::new(lba), blocks };
        let member = self.member;
        let read = |volume: &mut dyn Engine| match volume.as_log_mut() {
            Some(log) => log.read_from(member, range, Some(&mut buffer), &mut plan),
            None => volume.read(range, Some(&mut buffer), &mut plan),
        };
        let taken = self.retry(read)?;
        if taken.is_some() {
            let expected = (lba..lba + blocks).map(|lba| self.oracle.now(lba)).collect();
            self.reading.push(Reading { lba, plan, buffer, expected });
        }
        Ok(taken.is_some())
    }

    fn retry<T>(
        &mut self,
        mut what: impl FnMut(&mut dyn Engine) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        for _ in 0..PATIENCE {
            if !self.has_power() {
                return Ok(None);
            }
            match what(&mut *self.volume) {
                Ok(taken) => return Ok(Some(taken)),
                Err(Refusal::Busy) => self.step(),
                Err(refusal) => return Err(refusal),
            }
        }
        panic!(
            "busy for ever: {} {} free, {:?}, {:?}",
            self.tell(),
            self.volume.free_blocks(),
            self.volume.stats(),
            self.setup
        );
    }

    /// A zone goes offline, whatever lies there.
    pub(crate) fn lose_zone(&mut self, zone: u32) {
        self.disk.fail_zone(zone, ZoneState::Offline);
        self.losses = true;
        // What roots lead to may have been there.
        self.roots = None;
    }

    /// Takes what the volume asks for and reports.
    pub(crate) fn pump(&mut self) {
        self.turn();
        let wants = self.wants();
        assert!(wants.is_none() || wants != self.wanted, "called at {:?} in vain", self.now);
        self.wanted = wants;
        assert!(!self.is_forgotten(), "nothing lets a checkpoint go on, {:?}", self.setup);
    }

    /// Whether a checkpoint waits, and nothing will ever have the volume called again.
    fn is_forgotten(&self) -> bool {
        let rests = self.flying.is_empty() && self.reading.is_empty();
        let stays = self.volume.poll_timeout().is_none() && self.volume.frozen().is_none();
        rests && stays && self.volume.is_settling()
    }

    fn turn(&mut self) {
        self.volume.pump(self.now);
        while let Some(io) = self.volume.poll_io() {
            self.submit(io);
        }
        while let Some(done) = self.volume.poll_done() {
            self.oracle.done(done);
        }
        if let Some(volume) = self.volume.as_log_mut()
            && let Some(result) = volume.poll_resized()
        {
            assert!(result.is_ok() || self.failed.is_some(), "{result:?}, {:?}", self.setup);
            let result = result.map_err(|_| IoFailed::Error);
            self.resizing = false;
            if let Some(tag) = self.discards.take() {
                self.oracle.done(Done { tag, result });
            }
            // What is behind a smaller end belongs to somebody else.
            self.disk.scribble(volume.layout().geometry().backing_blocks);
        }
    }

    /// When it wanted to be called, if that is over and nothing is under way that it could wait for.
    fn wants(&self) -> Option<Nanos> {
        let idle = self.flying.is_empty() && self.reading.is_empty();
        self.volume.poll_timeout().filter(|due| idle && *due <= self.now)
    }

    fn submit(&mut self, io: Io) {
        self.assert_alone(&io);
        let at = u64::from(io.at.raw());
        assert!(at + u64::from(io.blocks) <= self.setup.file_blocks, "{io:?} leaves the backing");
        let refused = self.refuses(&io) || io.kind == IoKind::Write && self.exceeds(at);
        let mut flying =
            Flying { io, change: None, covered: Vec::new(), sum: 0, sources: Vec::new(), refused };
        match io.kind {
            // Its zone failed; that is told when it is answered.
            _ if refused => {}
            IoKind::Read | IoKind::Report => {}
            IoKind::Write => {
                let bytes = &self.volume.buffer(io.id)[..index64(io.blocks.into()) * BLOCK];
                self.oracle.sent(at, bytes, &self.disk);
                flying.sum = checksum(bytes);
                self.assert_same(&io, bytes);
                let change = self.disk.begin_write(at, bytes);
                if let Some(roots) = &mut self.roots {
                    roots.sent(at, bytes, change, &self.disk);
                }
                flying.change = Some(change);
            }
            IoKind::Flush => flying.covered = self.disk.begin_flush(),
            IoKind::Trim => flying.change = Some(self.disk.begin_trim(at, io.blocks.into())),
            IoKind::Reset => {
                self.torn.retain(|_, (torn, _)| !overlap(&io, torn.at, torn.blocks));
                flying.change = Some(self.disk.begin_reset(io.zone().raw()));
            }
            IoKind::Finish => flying.change = Some(self.disk.begin_finish(io.zone().raw())),
            IoKind::Remap => {
                flying.sources = self.volume.relocations(io.id);
                flying.change = Some(self.disk.begin_remap(&flying.sources));
            }
        }
        self.assert_sources(&flying);
        self.flying.push(flying);
    }

    /// Requests of which one changes blocks of another have no order.
    fn assert_alone(&self, io: &Io) {
        for other in
            self.flying.iter().map(|flying| &flying.io).filter(|other| other.kind != IoKind::Flush)
        {
            let alone = !overlap(io, other.at, other.blocks) || !(changes(io) || changes(other));
            assert!(alone, "{io:?} and {other:?} are under way together");
        }
        for run in self.reading.iter().flat_map(|reading| reading.plan.runs()) {
            assert!(
                !changes(io) || !overlap(io, run.at, run.blocks),
                "{io:?} while the host reads {run:?}"
            );
        }
    }

    /// What is remapped stays as it is meanwhile.
    fn assert_sources(&self, new: &Flying) {
        for other in &self.flying {
            for (one, two) in [(new, other), (other, new)] {
                let changed = |from: &Relocation| one.changes(from.from, from.blocks);
                let (source, by) = (two.sources.iter().find(|from| changed(from)), &one.io);
                assert!(source.is_none(), "{by:?} while {source:?} is remapped");
            }
        }
    }

    /// One thing happens: the backing answers a request, a read of the host ends, or time passes.
    pub(crate) fn step(&mut self) {
        if !self.has_power() {
            return;
        }
        let things = self.flying.len() + self.reading.len();
        let at = match self.order {
            Order::InTurn => 0,
            Order::Random => index64(self.rng.below(u64_from(things))),
        };
        let at = if self.is_late(at) && self.rng.below(8) > 0 {
            // Where nothing else is under way time passes.
            (0..things).find(|other| !self.is_late(*other)).unwrap_or(things)
        } else {
            at
        };
        if let Some(at) = at.checked_sub(self.flying.len()).filter(|at| *at < self.reading.len()) {
            self.end_read(at);
        } else if at < self.flying.len() {
            self.answer(at);
        } else {
            let soon = self.now + Nanos::new(1_000);
            self.now = self.volume.poll_timeout().unwrap_or(soon).max(soon);
        }
        self.now += Nanos::new(self.rng.below(100_000));
        self.pump();
    }

    /// Whether a request is the write of a root, where these take long.
    fn is_late(&self, at: usize) -> bool {
        let roots = self.volume.as_log().filter(|_| self.late_roots);
        let io = self.flying.get(at).map(|flying| &flying.io);
        let is_root = |(volume, io): (&Volume, &Io)| {
            io.kind == IoKind::Write && volume.layout().roots().contains(&io.at.raw().into())
        };
        roots.zip(io).is_some_and(is_root)
    }

    fn answer(&mut self, at: usize) {
        let flying = self.flying.remove(at);
        self.requests += 1;
        if let Some(fuse) = &mut self.fuse {
            *fuse -= 1;
        }
        let id = flying.io.id;
        let refused = flying.refused.then_some((Fate::Lost, IoFailed::Error));
        let failure = refused.or_else(|| self.failure(&flying.io));
        if flying.io.kind == IoKind::Write && flying.change.is_some() {
            let bytes = &self.volume.buffer(id)[..index64(flying.io.blocks.into()) * BLOCK];
            assert_eq!(checksum(bytes), flying.sum, "bytes changed while they were written");
        }
        let result = match failure {
            None => {
                self.execute(&flying);
                Ok(())
            }
            Some((fate, why)) => {
                if let Some(change) = flying.change {
                    self.disk.fail(change, fate, &mut self.rng);
                }
                self.unfinished +=
                    u32::from(flying.io.kind == IoKind::Finish && self.weather.others > 0);
                if flying.io.kind == IoKind::Write && flying.change.is_some() {
                    self.note_torn(&flying.io);
                }
                Err(why)
            }
        };
        self.volume.completed(self.now, id, result);
    }

    /// Whether a write makes one zone too many active, because one could not be finished.
    fn exceeds(&self, at: u64) -> bool {
        self.unfinished > 0 && self.disk.exceeds(at)
    }

    /// A write to a sequential zone failed: whatever a part of it did, it may be sent again from some block on.
    fn note_torn(&mut self, io: &Io) {
        if self.disk.is_sequential(io.at.raw().into()) {
            let end = u64::from(io.at.raw() + io.blocks);
            let blocks = self.volume.buffer(io.id).chunks(BLOCK).take(index64(io.blocks.into()));
            self.torn.insert(end, (*io, blocks.map(checksum).collect()));
        }
    }

    /// A write that failed in a zone is sent again with the same bytes, from the write pointer on.
    fn assert_same(&self, io: &Io, bytes: &[u8]) {
        let end = u64::from(io.at.raw() + io.blocks);
        let Some((old, sums)) = self.torn.get(&end).filter(|(old, _)| old.id == io.id) else {
            return;
        };
        let rest = sums.iter().skip(index64((io.at.raw() - old.at.raw()).into()));
        assert!(
            rest.copied().eq(bytes.chunks(BLOCK).map(checksum)),
            "{io:?} changed since {old:?}"
        );
    }

    /// Whether a zone refuses a request, because it failed. What it is like it says nevertheless.
    fn refuses(&self, io: &Io) -> bool {
        let asks = matches!(io.kind, IoKind::Flush | IoKind::Report);
        !asks && self.disk.refuses(io.at.raw().into(), io.kind == IoKind::Read)
    }

    /// How a request fails, if it does.
    fn failure(&mut self, io: &Io) -> Option<(Fate, IoFailed)> {
        if let Some((_, fate)) = self.fail.filter(|(request, _)| *request == self.requests) {
            self.failed = Some(*io);
            self.bad = Some((io.kind, io.at, self.fail_again));
            return Some((fate, IoFailed::Error));
        }
        if self.refuses(io) {
            return Some((Fate::Lost, IoFailed::Error));
        }
        if let Some((kind, at, times)) = &mut self.bad
            && (*kind, *at) == (io.kind, io.at)
            && *times > 0
        {
            *times -= 1;
            return Some((Fate::Lost, IoFailed::Error));
        }
        if let Some(failure) = self.weather.failure(io, &mut self.rng) {
            self.failed = Some(*io);
            return Some(failure);
        }
        let one_in = self.setup.refused_remaps;
        if io.kind != IoKind::Remap || one_in == 0 || self.rng.below(one_in) > 0 {
            return None;
        }
        let fate = [Fate::Lost, Fate::Torn, Fate::Whole][index64(self.rng.below(3))];
        Some((fate, IoFailed::Error))
    }

    fn execute(&mut self, flying: &Flying) {
        match (flying.io.kind, flying.change) {
            (IoKind::Read, _) => {
                let at = u64::from(flying.io.at.raw());
                let bytes = self.volume.buffer_mut(flying.io.id);
                for (at, bytes) in (at..).zip(bytes.chunks_mut(BLOCK)) {
                    bytes.copy_from_slice(&self.disk.get(at)[..]);
                }
            }
            (IoKind::Flush, _) => {
                self.disk.end_flush(&flying.covered);
                if let Some(roots) = &mut self.roots {
                    roots.flushed(&flying.covered);
                }
            }
            (IoKind::Report, _) => {
                let status = self.disk.zone(flying.io.zone()).expect("a zone");
                self.volume.zone_reported(flying.io.id, status);
            }
            (_, Some(change)) => self.disk.complete(change),
            (_, None) => unreachable!("each has a change"),
        }
    }

    fn end_read(&mut self, at: usize) {
        let mut reading = self.reading.swap_remove(at);
        fetch(&self.disk, &reading.plan, &mut reading.buffer);
        let damaged = reading.plan.complete(&mut reading.buffer);
        self.volume.end_read(&reading.plan);
        // What could not be written is an error, never something else.
        assert!(
            damaged.is_empty() || self.oracle.failed > 0 || self.losses,
            "blocks {damaged:?} from {} are damaged",
            reading.lba
        );
        for ((n, expected), block) in (0..).zip(&reading.expected).zip(reading.buffer.chunks(BLOCK))
        {
            let lba = reading.lba + u64::from(n);
            let found = read_stamp(block, lba);
            let good = found == Some(*expected) || damaged.contains(&n);
            assert!(
                good,
                "block {lba} reads as operation {found:?} instead of {expected} (I4), {:?}",
                self.setup
            );
        }
    }

    /// What is known of failures, for messages.
    pub(crate) fn tell(&self) -> String {
        let flying: Vec<_> = self.flying.iter().map(|flying| (flying.io, flying.refused)).collect();
        let faulty = self.volume.as_log().map(Volume::faulty);
        format!(
            "at {:?}: {flying:?} under way, {faulty:?}, unfinished {}",
            self.now, self.unfinished
        )
    }

    /// So much time passes.
    pub(crate) fn pass(&mut self, time: Nanos) {
        let end = self.now + time;
        for _ in 0..50 * PATIENCE {
            let rests = self.flying.is_empty() && self.reading.is_empty();
            let next = self.volume.poll_timeout().filter(|due| *due < end);
            if self.now >= end || !self.has_power() {
                return;
            }
            if rests && next.is_none() {
                self.now = end;
                self.pump();
                return;
            }
            self.step();
        }
        let flying: Vec<_> = self.flying.iter().map(|flying| flying.io).collect();
        let due = self.volume.poll_timeout();
        panic!(
            "things happen for ever at {:?} of {end:?}, {due:?}, {flying:?}, {:?}, {:?}",
            self.now,
            self.volume.stats(),
            self.setup
        );
    }

    /// Goes on until nothing is under way and every request was reported done. `false` if power fails before.
    pub(crate) fn settle(&mut self) -> bool {
        for _ in 0..PATIENCE {
            if !self.has_power() {
                return false;
            }
            self.pump();
            if self.is_settled() {
                return true;
            }
            self.step();
        }
        panic!("never idle: {:?}, {:?}", self.volume.stats(), self.setup);
    }

    /// Whether nothing is under way and every request was reported done.
    pub(crate) fn is_settled(&self) -> bool {
        let freeing = self.volume.as_log().is_some_and(Volume::is_freeing);
        let busy = (self.volume.is_settling() || freeing) && self.volume.frozen().is_none();
        let quiet = self.oracle.is_quiet() && self.reading.is_empty() && !self.resizing;
        quiet && self.volume.is_idle() && !busy
    }

    /// What a power cut leaves now.
    pub(crate) fn random_cut(&mut self) -> Image {
        self.disk.random_cut(&mut self.rng)
    }

    /// Power fails now and comes back; `recovery_cuts` times it fails again while the volume is opened.
    pub(crate) fn cut_and_reopen(mut self, recovery_cuts: u32) -> Result<Self, String> {
        let mut disk = Disk::new(self.random_cut());
        disk.trimmed = self.disk.trimmed;
        let mut oracle = self.oracle;
        for _ in 0..recovery_cuts {
            // Without a cut it comes to the same.
            let whole = Self::open(self.setup, disk.clone(), oracle, 0)?;
            oracle = whole.oracle;
            disk.fuse = Some(self.rng.below(whole.opening));
            // It may be through but for a trim.
            let _ = open(&mut disk, &self.setup);
            let trimmed = disk.trimmed;
            disk = Disk::new(disk.random_cut(&mut self.rng));
            disk.trimmed = trimmed;
        }
        Self::open(self.setup, disk, oracle, self.rng.next_u64())
    }

    /// Its server is killed: what was under way happens or does not, and what was is in the cache of the backing. It is opened
    /// again, and power fails meanwhile or soon after.
    pub(crate) fn kill_and_cut(mut self) -> Result<Self, String> {
        for flying in std::mem::take(&mut self.flying) {
            match flying.change {
                Some(change) if self.rng.below(2) == 0 => self.disk.complete(change),
                Some(change) => self.disk.fail(change, Fate::Lost, &mut self.rng),
                None => {}
            }
        }
        // Without a cut it comes to this, and the first thing that an opening does makes it durable.
        (self.disk.requests, self.disk.first_flush) = (0, None);
        let whole = Self::open(self.setup, self.disk.clone(), self.oracle, 0)?;
        let durable = whole.disk.first_flush.expect("an opening flushes");
        self.disk.fuse = Some(durable + self.rng.below(1 + whole.opening - durable));
        let _ = open(&mut self.disk, &self.setup);
        let disk = Disk::new(self.disk.random_cut(&mut self.rng));
        Self::open(self.setup, disk, whole.oracle, self.rng.next_u64())
    }

    /// Closes the volume and opens it again.
    pub(crate) fn close_and_reopen(mut self) -> Result<Self, String> {
        self.settle();
        self.volume.close();
        self.settle();
        let mut disk = Disk::new(self.disk.cut(&mut self.rng, |_, _| Fate::Lost));
        disk.trimmed = self.disk.trimmed;
        Self::open(self.setup, disk, self.oracle, self.rng.next_u64())
    }

    /// Live blocks are counted as what maps have.
    pub(crate) fn assert_counts(&mut self) {
        let Some(wrong) = self.miscounts() else { return };
        assert!(wrong.is_empty(), "live counts are wrong: {wrong:?}, {:?}", self.setup);
        if self.failed.is_none() {
            let stats = self.volume.stats();
            assert_eq!(stats.damaged_segments, 0, "nothing is damaged: {:?}", self.setup);
        }
    }

    /// Log segments of which the live blocks are not counted right. The map is read as a whole for that, if it may be in memory.
    pub(crate) fn miscounts(&mut self) -> Option<Vec<Miscount>> {
        if self.setup.options.map_pages != usize::MAX || !self.settle() {
            return None;
        }
        let (member, blocks) = (self.member, self.blocks());
        let (volume, disk) = (&mut *self.volume, &mut self.disk);
        let found = read_all(volume, disk, member, 0..blocks);
        found.expect("everything can be read");
        let family = read_family(volume, disk, None).expect("readable");
        self.oracle.check_family(&family).unwrap_or_else(|what| panic!("{what}"));
        self.settle();
        self.volume.as_log().and_then(Volume::recount)
    }
}

pub(crate) fn fetch(disk: &Disk, plan: &ReadPlan, buffer: &mut [u8]) {
    for run in plan.runs() {
        let blocks = u64::from(run.block)..u64::from(run.block + run.blocks);
        for (at, block) in (u64::from(run.at.raw())..).zip(blocks) {
            let block = index64(block) * BLOCK;
            buffer[block..block + BLOCK].copy_from_slice(&disk.get(at)[..]);
        }
    }
}

/// Log segments with labels and roots hold nothing else.
pub(crate) fn assert_fixed(volume: &dyn Engine) {
    let Some(volume) = volume.as_log() else { return };
    let fixed = volume.segment_infos().filter(|info| info.state == "fixed");
    let fixed: Vec<u32> = fixed.map(|info| info.segment.raw()).collect();
    let mut expected = volume.layout().fixed().to_vec();
    expected.sort_unstable();
    assert_eq!(fixed, expected, "log segments with labels and roots");
}

/// What the host uses, and its blocks.
pub(crate) fn host_of(setup: &Setup, volume: &dyn Engine) -> (MemberId, u64) {
    let clone = volume.as_log().filter(|_| setup.cloned).and_then(|volume| volume.member(HOST));
    clone.map_or_else(|| (MemberId::DEVICE, volume.logical_blocks()), |info| (info.id, info.blocks))
}

/// The snapshots of a volume, oldest first.
pub(crate) fn snapshots(volume: &dyn Engine) -> Vec<MemberInfo> {
    let members = volume.as_log().into_iter().flat_map(Volume::members);
    members.filter(|info| !info.writable && !info.deleted).collect()
}

/// What the snapshots hold, in some ranges or as a whole.
pub(crate) fn read_family(
    volume: &mut dyn Engine,
    disk: &mut Disk,
    look: Option<&[std::ops::Range<u64>]>,
) -> Result<Vec<Found>, String> {
    let mut all = Vec::new();
    for info in snapshots(volume) {
        let whole = 0..info.blocks;
        let mut found = vec![None; index64(info.blocks)];
        for range in look.unwrap_or_else(|| std::slice::from_ref(&whole)) {
            let part = read_all(volume, disk, info.id, range.clone())?;
            found[index64(range.start)..index64(range.end)].copy_from_slice(&part);
        }
        all.push((info, found));
    }
    Ok(all)
}

/// What each block of a range of a member holds. An error where that is none that was written.
pub(crate) fn read_all(
    volume: &mut dyn Engine,
    disk: &mut Disk,
    member: MemberId,
    range: std::ops::Range<u64>,
) -> Result<Vec<Option<u64>>, String> {
    let mut found = Vec::new();
    let mut buffer = vec![0; 64 * BLOCK];
    for lba in range.clone().step_by(64) {
        let blocks = 64.min(range.end - lba);
        let bytes = &mut buffer[..index64(blocks) * BLOCK];
        let mut plan = ReadPlan::default();
        let range = Range { lba: Lba::new(lba), blocks };
        let mut read = Err(Refusal::Busy);
        for _ in 0..100 {
            read = match volume.as_log_mut() {
                Some(volume) => volume.read_from(member, range, Some(&mut *bytes), &mut plan),
                None => volume.read(range, Some(&mut *bytes), &mut plan),
            };
            if read != Err(Refusal::Busy) {
                break;
            }
            onefold_volume::drive(volume, disk, Nanos::new(1));
        }
        read.map_err(|refusal| format!("a read of block {lba} is refused: {refusal:?}"))?;
        fetch(disk, &plan, bytes);
        // What is damaged holds what nobody wrote.
        let _ = plan.complete(bytes);
        volume.end_read(&plan);
        for (lba, block) in (lba..).zip(bytes.chunks(BLOCK)) {
            let op = read_stamp(block, lba)
                .ok_or_else(|| format!("block {lba} holds what nobody wrote"))?;
            found.push(Some(op));
        }
    }
    Ok(found)
}
