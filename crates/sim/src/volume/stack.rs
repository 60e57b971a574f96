//! A volume on a device, and what both have under way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use onefold_config::Volume as VolumeConfig;
use onefold_format::volume::{DeviceRole, VolumeDevice, VolumeLabel, VolumeName};
use onefold_journal::{Detector, Setting};
use onefold_modes::{format, open};
use onefold_nand::{Delay, NullMedia};
use onefold_ssd::zns::ZnsStats;
use onefold_ssd::{HostStats, Ssd};
use onefold_units::{Lba, Nanos, Op};
use onefold_volume::{
    Acknowledge, Done, Engine, IoFailed, IoId, REQUEST_BLOCKS_MAX, Range, ReadPlan, Refusal, Stats,
    Volume,
};

use super::below::{Answer, Below};
use super::device::Device;
use crate::SimError;
use crate::drive::Counters;
use crate::events::{Ended, Layers, Refused, Taken};
use crate::precondition::Target;
use crate::request::{Request, Steps, Work, steps_of};
use crate::series::Windowed;
use crate::tenant::pages_of;

const BLOCK: u64 = 4096;

/// Tag of requests whose end nobody waits for.
const NOBODY: u64 = u64::MAX;

/// Writes under way while the volume is filled without time, so that a batch waits for others and not for itself.
const FILL_IN_FLIGHT: usize = 2;

/// Time of the volume per block that is written before the run, as if that went at 1 GB/s: trims of log segments and
/// background flushes go by time.
const FILL_NS_PER_BLOCK: u64 = 4096;

/// A command on the device that has to be told to somebody when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flight {
    /// Of the volume.
    Io(IoId),
    /// A read of the load, by the number of its plan.
    Read(usize),
}

/// What a volume and its device count.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) volume: Stats,
    /// Of blocks and of zones, each at zero if there are none.
    pub(super) device: Counters,
    pub(super) zns: ZnsStats,
}

/// A volume on a device.
pub(super) struct Stack {
    pub(super) volume: Box<dyn Engine>,
    pub(super) below: Below,
    /// CPU time of the host for a request, and for each place that it looks at.
    cpu: u64,
    cpu_search: u64,
    /// All requests wait for the device.
    waits: bool,
    /// By time, then in the order of submission.
    flights: BinaryHeap<Reverse<(Answer, u64, Flight)>>,
    submitted: u64,
    /// Plans of reads under way with their tags, and plans to be used again.
    reads: Vec<Option<(ReadPlan, u64)>>,
    spare: Vec<ReadPlan>,
    /// Time of the volume when the run began.
    base: u64,
    /// When the volume was last given the chance to do something.
    pumped: u64,
    /// Whether log segments were short since then, and for how long they were before.
    short: bool,
    short_ns: u64,
    ended: VecDeque<Ended<()>>,
}

impl Stack {
    /// An empty volume on a fresh device.
    pub(super) fn new(config: &VolumeConfig, mut device: Device) -> Result<Self, SimError> {
        device.set_timed(false);
        let mut below = Below::new(device, config.offset_blocks);
        format(&mut below, &label(config))
            .map_err(|source| SimError::VolumeMount { what: "made", source })?;
        Self::open(config, below)
    }

    /// The volume that is on a device.
    pub(super) fn open(config: &VolumeConfig, mut below: Below) -> Result<Self, SimError> {
        let blocks = config.geometry.backing_blocks;
        let (mut volume, _) = open(&mut below, blocks, config.options)
            .map_err(|source| SimError::VolumeMount { what: "opened", source })?;
        if let (Some(volume), Some(journal)) = (volume.as_log_mut(), &config.journal) {
            // What the user of a real volume may say as well.
            let given = Setting::Ranges(vec![(journal.start * BLOCK, journal.end * BLOCK)]);
            let blocks = config.geometry.logical_blocks;
            volume.set_journal(Detector::new(blocks, given, Nanos::ZERO).ranges());
        }
        Ok(Self {
            volume,
            below,
            cpu: config.cpu.get(),
            cpu_search: config.cpu_search.get(),
            waits: config.options.acknowledge == Acknowledge::Complete,
            flights: BinaryHeap::new(),
            submitted: 0,
            reads: Vec::new(),
            spare: Vec::new(),
            base: 0,
            pumped: 0,
            short: false,
            short_ns: 0,
            ended: VecDeque::new(),
        })
    }

    /// Lets everything under way end, and begins the time of the run.
    pub(super) fn begin(&mut self, timed: bool) {
        while self.land(0) {}
        self.ended.clear();
        self.below.device.set_timed(timed);
        self.pumped = 0;
    }

    /// Ends the first flight, if there is any.
    fn land(&mut self, now: u64) -> bool {
        let Some(Reverse((answer, _, flight))) = self.flights.pop() else { return false };
        match flight {
            Flight::Io(id) => {
                let result = if answer.failed { Err(IoFailed::Error) } else { Ok(()) };
                self.volume.completed(Nanos::new(self.base + now), id, result);
                self.go_on(now, answer.delay);
            }
            Flight::Read(number) => {
                if let Some((plan, tag)) = self.reads[number].take() {
                    self.volume.end_read(&plan);
                    self.spare.push(plan);
                    self.ended.push_back(Ended { tag, delay: answer.delay, result: Ok(()) });
                }
            }
        }
        true
    }

    /// Lets the volume do what it can, and submits what it asks for. Requests that end with it met `delay`.
    pub(super) fn go_on(&mut self, now: u64, delay: Delay) {
        self.short_ns = self.short_ns(now);
        self.pumped = now;
        self.volume.pump(Nanos::new(self.base + now));
        while let Some(io) = self.volume.poll_io() {
            let answer = self.below.execute(now, &mut *self.volume, io);
            self.fly(answer, Flight::Io(io.id));
        }
        while let Some(Done { tag, result }) = self.volume.poll_done() {
            let result = result.map_err(|_| ());
            self.ended.push_back(Ended { tag, delay, result });
        }
        self.short = self.volume.as_log().is_some_and(Volume::is_short);
    }

    fn fly(&mut self, answer: Answer, flight: Flight) {
        self.submitted += 1;
        self.flights.push(Reverse((answer, self.submitted, flight)));
    }

    /// Reads blocks for the load. Those that are in memory or map nothing are there at once.
    fn read(
        &mut self,
        now: u64,
        tag: u64,
        request: &Request,
        range: Range,
    ) -> Result<Taken, Refused> {
        let mut plan = self.spare.pop().unwrap_or_default();
        if let Err(refusal) = self.volume.read(range, None, &mut plan) {
            self.spare.push(plan);
            return Err(refused(request, refusal));
        }
        let mut last: Option<Answer> = None;
        for run in plan.runs() {
            let (at, blocks) = (run.at.raw().into(), run.blocks.into());
            let answer = self.below.submit(now, (Op::Read, 0), at, blocks);
            let answer = answer.map_err(|source| {
                let what = "read of the volume".to_owned();
                Refused::Never(source.of_request(request.number, what))
            })?;
            last = Some(last.map_or(answer, |last| Answer {
                at: last.at.max(answer.at),
                delay: last.delay.max(answer.delay),
                failed: false,
            }));
        }
        let Some(answer) = last else {
            self.spare.push(plan);
            return Ok(Taken { blocks: range.blocks, later: false });
        };
        let number = self.reads.iter().position(Option::is_none).unwrap_or_else(|| {
            self.reads.push(None);
            self.reads.len() - 1
        });
        self.reads[number] = Some((plan, tag));
        self.fly(answer, Flight::Read(number));
        Ok(Taken { blocks: range.blocks, later: true })
    }

    /// What the device was asked for.
    pub(super) fn device_host(&self) -> &HostStats {
        self.below.device.host_stats()
    }
}

impl Layers for Stack {
    type Counters = Counted;
    type Failure = ();

    fn counters(&self) -> Counted {
        let (device, zns) = self.below.device.counters();
        Counted { volume: *self.volume.stats(), device, zns }
    }

    fn device(&self) -> &impl Windowed {
        &self.below.device
    }

    fn blocks_max(&self) -> (u32, u32) {
        (REQUEST_BLOCKS_MAX, self.volume.write_blocks_max())
    }

    fn steps(&self, _request: u64, op: Op, offset: u64, len: u64) -> Result<Steps, SimError> {
        Ok(steps_of(op, offset, len))
    }

    /// Finding where blocks lie takes time as well.
    fn busy_ns(&self, op: Op, offset: u64, len: u64) -> u64 {
        if self.cpu_search == 0 || !matches!(op, Op::Read | Op::Write) {
            return self.cpu;
        }
        let first = offset / BLOCK;
        let range = Range { lba: Lba::new(first), blocks: pages_of(offset, len) };
        self.cpu + self.volume.searches(range) * self.cpu_search
    }

    fn submit(
        &mut self,
        now: u64,
        tag: u64,
        request: &Request,
        work: Work,
    ) -> Result<Taken, Refused> {
        let later = self.waits || request.fua;
        let waiter = |waits: bool| if waits { tag } else { NOBODY };
        let taken = match work {
            Work::Read(range) => return self.read(now, tag, request, range),
            Work::Write(range) => {
                let written = self.volume.write(waiter(later), range, None, request.fua);
                written.map(|()| Taken { blocks: range.blocks, later })
            }
            Work::Trim(range) => {
                let later = self.waits;
                let trimmed = self.volume.trim(waiter(later), range);
                trimmed.map(|blocks| Taken { blocks, later })
            }
            Work::Flush => self.volume.flush(tag).map(|()| Taken { blocks: 1, later: true }),
        };
        taken.map_err(|refusal| refused(request, refusal))
    }

    fn turn(&mut self, now: u64) {
        self.go_on(now, Delay::None);
    }

    #[inline]
    fn next_event(&self) -> Option<u64> {
        let flight = self.flights.peek().map(|Reverse((answer, ..))| answer.at);
        let timeout = self.volume.poll_timeout().map(|at| at.get().saturating_sub(self.base));
        // What was due when it was last looked at waits for a flight.
        let timeout = timeout.filter(|at| *at > self.pumped);
        flight.into_iter().chain(timeout).min()
    }

    fn advance(&mut self, now: u64) {
        if self.flights.peek().is_some_and(|Reverse((answer, ..))| answer.at <= now) {
            self.land(now);
        } else {
            self.go_on(now, Delay::None);
        }
    }

    fn poll_ended(&mut self) -> Option<Ended<()>> {
        self.ended.pop_front()
    }

    fn error((): (), _request: u64, _what: &'static str) -> SimError {
        SimError::VolumeFailed
    }

    /// Log segments were short.
    fn short_ns(&self, now: u64) -> u64 {
        self.short_ns + if self.short { now - self.pumped } else { 0 }
    }
}

fn refused(request: &Request, refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Busy => Refused::Busy,
        refusal => Refused::Never(SimError::Volume { what: request.op.name(), refusal }),
    }
}

/// Filling and overwriting through the volume, without time.
impl Target for Stack {
    fn units(&self) -> u64 {
        self.volume.logical_blocks() / self.blocks_per_unit()
    }

    fn pages_per_unit(&self) -> u64 {
        self.blocks_per_unit()
    }

    fn write(&mut self, unit: u64) -> Result<(), SimError> {
        let blocks = self.blocks_per_unit();
        let range = Range { lba: Lba::new(unit * blocks), blocks };
        self.base += FILL_NS_PER_BLOCK * blocks;
        while let Err(refusal) = self.volume.write(NOBODY, range, None, false) {
            if refusal != Refusal::Busy {
                return Err(SimError::Volume { what: "preconditioning write", refusal });
            }
            self.go_on(0, Delay::None);
            if !self.land(0) {
                return Err(SimError::VolumeStuck);
            }
        }
        self.go_on(0, Delay::None);
        while self.flights.len() > FILL_IN_FLIGHT {
            self.land(0);
        }
        self.ended.clear();
        Ok(())
    }

    fn programs(&self) -> u64 {
        self.below.device.programs().total()
    }

    fn set_timed(&mut self, timed: bool) {
        self.below.device.set_timed(timed);
    }

    fn remapping(&mut self) -> Option<&mut Ssd<NullMedia>> {
        self.below.device.blocks_mut()
    }
}

impl Stack {
    fn blocks_per_unit(&self) -> u64 {
        self.below.device.pages_per_unit()
    }
}

fn label(config: &VolumeConfig) -> VolumeLabel {
    let geometry = &config.geometry;
    VolumeLabel {
        uuid: [7; 16],
        generation: 1,
        name: VolumeName::default(),
        mode: config.mode,
        compat: 0,
        ro_compat: 0,
        incompat: 0,
        unit_blocks: geometry.unit_blocks,
        segment_blocks: geometry.segment_blocks,
        logical_blocks: geometry.logical_blocks,
        op_basis_points: 0,
        devices: vec![VolumeDevice {
            uuid: [8; 16],
            role: DeviceRole::Data,
            blocks: geometry.backing_blocks,
            zone_blocks: geometry.zone_blocks.into(),
        }],
    }
}
