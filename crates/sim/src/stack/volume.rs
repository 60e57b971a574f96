//! A volume of any mode as a layer.

use std::cell::OnceCell;
use std::collections::VecDeque;

use onefold_config::Volume as Config;
use onefold_nand::Delay;
use onefold_units::{Lba, Nanos};
use onefold_volume::{
    Acknowledge, Engine, Io, IoFailed, IoId, IoKind, REQUEST_BLOCKS_MAX, Range, ReadPlan, ReadRun,
    Refusal, Relocation, Stream, Volume, ZoneStatus,
};

use super::layer::{
    Asked, Caps, Done, Filling, Layer, Lower, LowerId, Output, Refused, Taken, Why,
};
use super::slots::Slots;
use crate::request::Work;

/// Tag of requests whose end nobody waits for.
const NOBODY: u64 = u64::MAX;

/// Writes under way while the volume is filled without time, so that a batch waits for others and
/// not for itself.
const FILL_IN_FLIGHT: usize = 2;

/// A read from above that waits for the place below.
struct Read {
    plan: ReadPlan,
    tag: u64,
}

/// A volume between a load and the place below.
pub(crate) struct VolumeLayer {
    pub(crate) config: Config,
    pub(crate) engine: Box<dyn Engine>,
    /// All requests wait for the place below.
    waits: bool,
    /// Reads under way.
    reads: Slots<Read>,
    /// Reads that were not given out yet.
    new_reads: VecDeque<usize>,
    /// Plans to be used again.
    spare: Vec<ReadPlan>,
    /// The engine was let go on, and was not asked for everything that follows yet.
    pumped: bool,
    /// When it was let go on last.
    at: Nanos,
    /// What those met whose end it told then.
    delay: Delay,
    /// Log segments were short then, and for how long they were before, in ns.
    short: bool,
    short_ns: u64,
    done: VecDeque<Done>,
    /// When the engine has something to do by itself; empty if it was not asked since it may have
    /// changed.
    due: OnceCell<Option<Nanos>>,
}

impl VolumeLayer {
    pub(crate) fn new(config: &Config, engine: Box<dyn Engine>) -> Self {
        Self {
            config: config.clone(),
            engine,
            waits: config.options.acknowledge == Acknowledge::Complete,
            reads: Slots::default(),
            new_reads: VecDeque::new(),
            spare: Vec::new(),
            pumped: false,
            at: Nanos::ZERO,
            delay: Delay::None,
            short: false,
            short_ns: 0,
            done: VecDeque::new(),
            due: OnceCell::new(),
        }
    }

    fn pump(&mut self, now: Nanos, delay: Delay) {
        self.short_ns = self.short_ns(now);
        (self.at, self.delay, self.pumped, self.due) = (now, delay, true, OnceCell::new());
        self.engine.pump(now);
    }

    /// What the engine says when it has nothing more to ask for.
    fn rest(&mut self) {
        self.pumped = false;
        while let Some(onefold_volume::Done { tag, result }) = self.engine.poll_done() {
            let result = result.map_err(|_| Why::VolumeFailed);
            self.done.push_back(Done { tag, delay: self.delay, result });
        }
        self.short = self.engine.as_log().is_some_and(Volume::is_short);
    }

    /// Begins a read. Blocks that are in memory or map nothing are there at once.
    fn read(&mut self, tag: u64, range: Range) -> Result<Taken, Refusal> {
        let mut plan = self.spare.pop().unwrap_or_default();
        if let Err(refusal) = self.engine.read(range, None, &mut plan) {
            self.spare.push(plan);
            return Err(refusal);
        }
        if plan.runs().is_empty() {
            self.spare.push(plan);
            return Ok(Taken { blocks: range.blocks, later: false });
        }
        self.new_reads.push_back(self.reads.insert(Read { plan, tag }));
        Ok(Taken { blocks: range.blocks, later: true })
    }

    fn end_read(&mut self, number: usize, delay: Delay, failed: bool) {
        let Some(Read { plan, tag }) = self.reads.remove(number) else { return };
        self.engine.end_read(&plan);
        self.spare.push(plan);
        let result = if failed { Err(Why::VolumeFailed) } else { Ok(()) };
        self.done.push_back(Done { tag, delay, result });
    }

    fn asked(&self, io: Io) -> Asked {
        let range = Range { lba: Lba::new(io.at.raw().into()), blocks: io.blocks.into() };
        match io.kind {
            IoKind::Read => Asked::Read(range),
            IoKind::Write => {
                let stream = self.engine.as_log().and_then(|log| log.stream(io.id));
                Asked::Write(range, stream.map_or(0, Stream::code).into())
            }
            IoKind::Flush => Asked::Flush,
            IoKind::Trim => Asked::Trim(range),
            IoKind::Remap => Asked::Remap,
            IoKind::Reset => Asked::Reset(io.zone()),
            IoKind::Finish => Asked::Finish(io.zone()),
            IoKind::Report => Asked::Report(io.zone()),
        }
    }
}

/// Numbers of the layer: of its engine, and of reads from above.
enum Id {
    Io(IoId),
    Read(usize),
}

impl From<Id> for LowerId {
    fn from(id: Id) -> Self {
        match id {
            Id::Io(id) => Self(u64::from(id.number()) << 1),
            Id::Read(number) => Self(onefold_units::convert::u64_from(number) << 1 | 1),
        }
    }
}

impl From<LowerId> for Id {
    fn from(LowerId(id): LowerId) -> Self {
        if id & 1 == 0 {
            Self::Io(IoId::new(onefold_units::convert::narrow(id >> 1)))
        } else {
            Self::Read(onefold_units::convert::index64(id >> 1))
        }
    }
}

impl Layer for VolumeLayer {
    fn caps(&self) -> Caps {
        Caps {
            read_max: REQUEST_BLOCKS_MAX,
            write_max: self.engine.write_blocks_max(),
            whole_blocks: false,
            reads_again: true,
            ends_by_delay: true,
            filling: Filling { in_flight: FILL_IN_FLIGHT, by_units: true },
            ..Caps::of_blocks(self.engine.logical_blocks())
        }
    }

    fn submit(&mut self, _now: Nanos, tag: u64, work: Work, fua: bool) -> Result<Taken, Refused> {
        self.due = OnceCell::new();
        let waiter = |waits: bool| if waits { tag } else { NOBODY };
        let later = self.waits || fua;
        let taken = match work {
            Work::Read(range) => self.read(tag, range),
            Work::Write(range) => {
                let written = self.engine.write(waiter(later), range, None, fua);
                written.map(|()| Taken { blocks: range.blocks, later })
            }
            Work::Trim(range) => {
                let later = self.waits;
                let trimmed = self.engine.trim(waiter(later), range);
                trimmed.map(|blocks| Taken { blocks, later })
            }
            Work::Flush => self.engine.flush(tag).map(|()| Taken { blocks: 1, later: true }),
        };
        taken.map_err(|refusal| match refusal {
            Refusal::Busy => Refused::Busy,
            refusal => Refused::Never(Why::Volume(refusal)),
        })
    }

    fn turn(&mut self, now: Nanos) {
        self.pump(now, Delay::None);
    }

    /// What was due when the engine was let go on last waits for a request below.
    fn due(&self) -> Option<Nanos> {
        let due = self.due.get_or_init(|| self.engine.poll_timeout());
        due.filter(|at| *at > self.at)
    }

    fn expire(&mut self, now: Nanos) {
        self.pump(now, Delay::None);
    }

    fn poll(&mut self) -> Option<Output> {
        let lower = |id: Id, what| Some(Output::Lower(Lower { id: id.into(), port: 0, what }));
        if let Some(number) = self.new_reads.pop_front() {
            let tag = self.reads.get(number).map_or(NOBODY, |read| read.tag);
            return lower(Id::Read(number), Asked::Extents { tag });
        }
        if self.pumped {
            if let Some(io) = self.engine.poll_io() {
                return lower(Id::Io(io.id), self.asked(io));
            }
            self.rest();
        }
        self.done.pop_front().map(Output::Done)
    }

    /// The end of a read from above lets nothing go on.
    fn completed(&mut self, now: Nanos, id: LowerId, delay: Delay, failed: bool) {
        match id.into() {
            Id::Read(number) => self.end_read(number, delay, failed),
            Id::Io(id) => {
                let result = if failed { Err(IoFailed::Error) } else { Ok(()) };
                self.engine.completed(now, id, result);
                self.pump(now, delay);
            }
        }
    }

    fn buffer(&self, id: LowerId) -> &[u8] {
        match id.into() {
            Id::Io(id) => self.engine.buffer(id),
            Id::Read(_) => &[],
        }
    }

    fn buffer_mut(&mut self, id: LowerId) -> &mut [u8] {
        match id.into() {
            Id::Io(id) => self.engine.buffer_mut(id),
            Id::Read(_) => &mut [],
        }
    }

    fn extents(&self, id: LowerId) -> &[ReadRun] {
        match id.into() {
            Id::Read(number) => self.reads.get(number).map_or(&[], |read| read.plan.runs()),
            Id::Io(_) => &[],
        }
    }

    fn moves(&self, id: LowerId) -> Vec<Relocation> {
        match id.into() {
            Id::Io(id) => self.engine.relocations(id),
            Id::Read(_) => Vec::new(),
        }
    }

    fn zone_told(&mut self, id: LowerId, status: ZoneStatus) {
        if let Id::Io(id) = id.into() {
            self.engine.zone_reported(id, status);
        }
    }

    /// Finding where blocks lie takes time as well.
    fn busy_ns(&self, blocks: Option<Range>) -> u64 {
        let (cpu, search) = (self.config.cpu.get(), self.config.cpu_search.get());
        match blocks {
            Some(range) if search > 0 => cpu + self.engine.searches(range) * search,
            _ => cpu,
        }
    }

    /// Log segments were short.
    fn short_ns(&self, now: Nanos) -> u64 {
        self.short_ns + if self.short { now.get() - self.at.get() } else { 0 }
    }

    fn finish(&mut self) {
        self.pumped = true;
    }

    fn begin(&mut self, now: Nanos) {
        self.at = now;
    }
}
