//! The run of a load through a zoned volume: arrivals, completions and deadlines in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onefold_config::ZonedVolume;
use onefold_nand::{Delay, NullMedia};
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsMedia, ZnsStats};
use onefold_ssd::{HostStats, Ssd};
use onefold_trace::workload::Request as Asked;
use onefold_units::convert::{index64, narrow, u64_from};
use onefold_units::{Nanos, Op};
use onefold_zoned::{
    Done, Identity, Io, IoFailed, IoId, REQUESTS_MAX, Request, Stats, Volume, format, mount,
};

use super::below::{Below, told};
use super::outcome;
use super::queue::Queue;
use crate::SimError;
use crate::control::{Control, INTERRUPT_EVERY};
use crate::cpu::thread_cpu_s;
use crate::engine::{Gathered, Setup};
use crate::result::RunResult;
use crate::series::Recorder;
use crate::volume::{Arrival, Load, next_arrival};

const BLOCK: u64 = 4096;

/// Blocks of a write that fills the volume before the run.
const FILL_BLOCKS: u64 = 256;

/// Time of the volume per block that is written before the run, as if that went at 1 GB/s.
const FILL_NS_PER_BLOCK: u64 = 4096;

/// A request of the load under way.
#[derive(Clone, Copy, Debug)]
struct Active {
    load: usize,
    op: Op,
    number: u64,
    issued: u64,
}

/// A command on a device, ordered by the time it ends, then by submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    at: u64,
    number: u64,
    id: IoId,
    delay: Delay,
    failed: bool,
    /// Another request waits for it to end.
    queued: bool,
}

/// A run through a zoned volume, and what it leaves behind.
pub(super) struct Runner {
    pub(super) volume: Volume,
    pub(super) below: Below,
    pub(super) loads: Vec<Load>,
    pub(super) series: Recorder,
    pub(super) measured: Measured,
    pub(super) partial: bool,
    pub(super) cpu_s: f64,
    pub(super) filled_cpu_s: f64,
    pub(super) gathered: Gathered,
    pub(super) executed: u64,
    queue: Queue,
    flights: BinaryHeap<Reverse<Flight>>,
    submitted: u64,
    active: Vec<Option<Active>>,
    free: Vec<usize>,
    /// Time of the volume when the run began.
    base: u64,
    /// Time of the last event: what had to wait for a request to end arrives then.
    clock: u64,
    issued: u64,
    warmup: u64,
    /// What the load met last.
    delay: Delay,
}

/// What is counted in the measured part, and what counters said at its beginning.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) volume: Stats,
    pub(super) regular: onefold_ftl::FtlStats,
    pub(super) zns: ZnsStats,
    /// What each device was asked for.
    pub(super) received: Vec<HostStats>,
    pub(super) host: HostStats,
    pub(super) at: u64,
}

/// Runs a setup with a zoned volume between its load and its devices.
pub(crate) fn simulate(
    setup: &Setup,
    config: &ZonedVolume,
    zns: &ZnsConfig,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(setup, config.logical_bytes, control)?;
    let regular = match &config.regular {
        Some(regular) => Some(Ssd::new(regular.ssd(setup.seed)?, NullMedia)?),
        None => None,
    };
    let mut below = Below::new(regular, Zns::new(*zns, ZnsMedia::NULL)?);
    let device_uuids = vec![[8; 16]; config.geometry.devices()];
    let identity = Identity { label: [0; 32], uuid: [7; 16], device_uuids };
    let failed = |what| move |source| SimError::ZonedMount { what, source };
    format(&mut below, &config.geometry, &identity).map_err(failed("made"))?;
    let options = config.options.clone();
    let opened = mount(&mut below, &config.geometry, options, Nanos::ZERO);
    let (volume, _) = opened.map_err(failed("opened"))?;
    let run = setup.config.run();
    let mut runner = Runner {
        volume,
        below,
        loads: tenants.into_iter().map(Load::new).collect(),
        series: Recorder::new(run.window),
        measured: Measured::default(),
        partial: false,
        cpu_s: 0.0,
        filled_cpu_s: 0.0,
        gathered,
        executed: 0,
        queue: Queue::default(),
        flights: BinaryHeap::new(),
        submitted: 0,
        active: Vec::new(),
        free: Vec::new(),
        base: 0,
        clock: 0,
        issued: 0,
        warmup: run.warmup,
        delay: Delay::None,
    };
    let begin = thread_cpu_s();
    runner.fill(setup.config.precondition().fill, control)?;
    runner.filled_cpu_s = thread_cpu_s() - begin;
    runner.below.set_timed();
    runner.queue.limit(config.regular_depth);
    let begin = thread_cpu_s();
    runner.run(control)?;
    runner.cpu_s = thread_cpu_s() - begin;
    outcome::result(setup, config, runner)
}

impl Runner {
    fn run(&mut self, control: &Control<'_>) -> Result<(), SimError> {
        if self.warmup == 0 {
            self.begin_measuring(0);
        }
        let mut look = INTERRUPT_EVERY;
        loop {
            let under_way = self.active.len() - self.free.len();
            let (arrival, more) =
                if self.partial { (None, false) } else { next_arrival(&mut self.loads)? };
            // The volume takes no more: what comes then waits for a request to end.
            let arrival = arrival.filter(|_| under_way < REQUESTS_MAX);
            let event = self.next_event();
            match (arrival, event) {
                (Some(arrival), event) if event.is_none_or(|event| arrival.issued <= event) => {
                    self.arrive(&arrival)?;
                }
                _ if !more && under_way == 0 => {
                    self.queue.limit(None);
                    self.submit_queued(self.clock);
                    return Ok(());
                }
                (_, Some(event)) => self.advance(event)?,
                (_, None) => return Err(SimError::VolumeStuck),
            }
            if self.issued >= look {
                look += INTERRUPT_EVERY;
                if let Some(progress) = control.progress {
                    progress(self.issued);
                }
                if control.is_interrupted() {
                    self.partial = true;
                }
            }
        }
    }

    /// When something happens by itself next.
    fn next_event(&self) -> Option<u64> {
        let flight = self.flights.peek().map(|Reverse(flight)| flight.at);
        let timeout = self.volume.poll_timeout().map(|at| at.get().saturating_sub(self.base));
        flight.into_iter().chain(timeout).min()
    }

    /// Does what happens at `now`, the time of the next event.
    fn advance(&mut self, now: u64) -> Result<(), SimError> {
        self.clock = self.clock.max(now);
        match self.flights.peek() {
            Some(Reverse(flight)) if flight.at <= now => self.land(now),
            _ => {
                self.volume.handle_timeout(Nanos::new(self.base + now));
                self.follow(now)
            }
        }
    }

    /// Ends the first flight.
    fn land(&mut self, now: u64) -> Result<(), SimError> {
        let Some(Reverse(Flight { id, delay, failed, queued, .. })) = self.flights.pop() else {
            return Ok(());
        };
        if queued {
            self.queue.ended();
        }
        let result = if failed { Err(IoFailed::Error) } else { Ok(()) };
        self.delay = delay;
        self.volume.completed(Nanos::new(self.base + now), id, result);
        self.follow(now)
    }

    /// Submits what the volume asks for, and notes what ended.
    fn follow(&mut self, now: u64) -> Result<(), SimError> {
        while let Some(io) = self.volume.poll_io() {
            if let Some(io) = self.queue.push(io) {
                self.execute(now, &io, false);
            }
        }
        self.submit_queued(now);
        while let Some(Done { tag, result, .. }) = self.volume.poll_done() {
            let active = self.active.get_mut(index64(tag)).and_then(Option::take);
            let (number, what) =
                active.map_or((0, "preconditioning write"), |one| (one.number, one.op.name()));
            result.map_err(|failure| SimError::ZonedVolume { request: number, what, failure })?;
            let Some(active) = active else { continue };
            self.free.push(index64(tag));
            self.executed += 1;
            let load = &mut self.loads[active.load];
            load.ended(active.issued, now);
            if active.number >= self.warmup {
                load.tenant.metrics.record(active.op, self.delay, now - active.issued);
            }
        }
        Ok(())
    }

    /// Has a device do what the volume asks for.
    fn execute(&mut self, now: u64, io: &Io, queued: bool) {
        let time = Nanos::new(now);
        let (at, delay, failed) = told(self.below.execute(time, io), time);
        self.submitted += 1;
        let (at, number, id) = (at.get(), self.submitted, io.id);
        self.flights.push(Reverse(Flight { at, number, id, delay, failed, queued }));
    }

    fn submit_queued(&mut self, now: u64) {
        while let Some(io) = self.queue.pop() {
            self.execute(now, &io, true);
        }
    }

    /// Takes a request to the volume.
    fn arrive(&mut self, arrival: &Arrival) -> Result<(), SimError> {
        let Arrival { load, asked, issued } = arrival;
        let now = &self.clock.max(*issued);
        let offset = asked.offset + self.loads[*load].tenant.base;
        let number = self.issued;
        let len = u64::from(asked.len);
        if !(offset | len).is_multiple_of(BLOCK) {
            let what = format!("{} of {len} B at byte {offset}", asked.op.name());
            return Err(SimError::ZoneAlignment { request: number, what });
        }
        self.loads[*load].began(*issued, *now);
        self.issued += 1;
        if number >= self.warmup {
            self.measured.host.count(asked.op, len / BLOCK);
            if self.loads.len() > 1 {
                self.loads[*load].tenant.host.count(asked.op, len / BLOCK);
            }
        }
        let active = Active { load: *load, op: asked.op, number, issued: *issued };
        self.delay = Delay::None;
        self.ask(*now, active, request(asked, offset))?;
        if self.issued == self.warmup {
            self.begin_measuring(*now);
        } else if self.issued.saturating_sub(self.warmup) == self.series.next() {
            let metrics: Vec<_> = self.loads.iter().map(|load| &load.tenant.metrics).collect();
            self.series.take(*now, &self.below, &self.measured.host, &metrics);
        }
        Ok(())
    }

    fn ask(&mut self, now: u64, active: Active, request: Request) -> Result<(), SimError> {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() - 1
        });
        self.active[tag] = Some(active);
        let taken = self.volume.submit(Nanos::new(self.base + now), u64_from(tag), request);
        taken.map_err(|refusal| SimError::ZonedRefused {
            request: active.number,
            what: active.op.name(),
            refusal,
        })?;
        self.follow(now)
    }

    /// Writes a share of the volume from its first block on, without time.
    fn fill(&mut self, share: f64, control: &Control<'_>) -> Result<(), SimError> {
        let blocks = onefold_units::convert::float(self.volume.blocks());
        let end = onefold_units::convert::floor_u64(share * blocks + 0.5);
        let mut tag = 1 << 32;
        for lba in (0..end).step_by(index64(FILL_BLOCKS)) {
            control.go_on()?;
            let blocks = narrow(FILL_BLOCKS.min(end - lba));
            let request = Request::Write { lba, blocks, fua: false, data: Vec::new() };
            tag += 1;
            self.base += FILL_NS_PER_BLOCK * u64::from(blocks);
            let taken = self.volume.submit(Nanos::new(self.base), tag, request);
            let what = "preconditioning write";
            taken.map_err(|refusal| SimError::ZonedRefused { request: 0, what, refusal })?;
            self.follow(0)?;
            while self.volume.requests_under_way() > 0 || !self.flights.is_empty() {
                if self.flights.is_empty() {
                    let due = self.volume.poll_timeout().ok_or(SimError::VolumeStuck)?;
                    self.base = self.base.max(due.get());
                    self.advance(0)?;
                }
                self.land(0)?;
            }
        }
        Ok(())
    }

    /// From a time of the volume to one of the measured part.
    pub(super) fn since_start(&self, at: Nanos) -> u64 {
        at.get().saturating_sub(self.base + self.measured.at)
    }

    fn begin_measuring(&mut self, now: u64) {
        let host = HostStats::default();
        self.measured = Measured {
            volume: self.volume.stats().clone(),
            regular: self.below.regular_stats(),
            zns: self.below.zns.stats(),
            received: self.below.received(),
            host,
            at: now,
        };
        self.series.begin(now, &self.below, &host);
    }
}

/// A request of the load in the words of the volume. Differs from the kernel target only in name: write-zeroes are discards there
/// as well.
fn request(asked: &Asked, offset: u64) -> Request {
    let (lba, blocks) = (offset / BLOCK, asked.len / narrow(BLOCK));
    match asked.op {
        Op::Read => Request::Read { lba, blocks },
        Op::Write => Request::Write { lba, blocks, fua: asked.fua, data: Vec::new() },
        Op::Trim | Op::WriteZeroes => Request::Discard { lba, blocks },
        Op::Flush => Request::Flush,
    }
}
