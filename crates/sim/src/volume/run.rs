//! The run of a load through a volume: arrivals, completions and deadlines in order of time.

use std::collections::VecDeque;

use onefold_config::Volume as VolumeConfig;
use onefold_format::volume::VolumeLabel;
use onefold_nand::Delay;
use onefold_ssd::HostStats;
use onefold_ssd::zns::ZnsStats;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Op};
use onefold_volume::{Acknowledge, Geometry, Range, Refusal};

use super::Stalls;
use super::below::Below;
use super::device::Device;
use super::finish::{Rest, finish};
use super::load::{self, Arrival, Load};
use super::request::{Request, Work};
use super::stack::{NOBODY, ReadRefused, Stack};
use crate::SimError;
use crate::control::{Control, INTERRUPT_EVERY};
use crate::cpu::thread_cpu_s;
use crate::engine::{Baseline, Gathered, Setup};
use crate::precondition::{Preconditioned, precondition};
use crate::result::RunResult;
use crate::series::Recorder;
use crate::tenant::Tenant;

/// Runs a setup with a volume between its load and the device.
pub(crate) fn simulate(
    setup: &Setup,
    config: &VolumeConfig,
    device: Device,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(setup, config.logical_bytes(), control)?;
    let mut stack = Stack::new(config, device)?;
    let preconditioned =
        precondition(&mut stack, &setup.config.precondition(), setup.seed, control)?;
    run(setup, config, stack, (tenants, gathered, preconditioned), control)
}

/// Runs a setup on the volume with this label, which is on a device that was used before.
pub(crate) fn simulate_on(
    setup: &Setup,
    label: &VolumeLabel,
    mut below: Below,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let (described, config) = setup.config.with_volume(label.mode, Geometry::of(label))?;
    let setup = Setup { config: described, ..setup.clone() };
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(&setup, config.logical_bytes(), control)?;
    below.device.set_timed(false);
    let stack = Stack::open(&config, below)?;
    run(&setup, &config, stack, (tenants, gathered, Preconditioned::default()), control)
}

/// Runs the tenants on a volume.
fn run(
    setup: &Setup,
    config: &VolumeConfig,
    mut stack: Stack,
    (tenants, gathered, preconditioned): (Vec<Tenant>, Gathered, Preconditioned),
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let run = setup.config.run();
    stack.begin(run.timed);
    let loads = tenants.into_iter().map(Load::new).collect();
    let mut runner = Runner {
        stack,
        config: config.clone(),
        loads,
        series: Recorder::new(run.window),
        active: Vec::new(),
        free: Vec::new(),
        waiting: VecDeque::new(),
        cpu_until: 0,
        issued: 0,
        executed: 0,
        warmup: run.warmup,
        measured: Measured::default(),
        partial: false,
    };
    let begin = thread_cpu_s();
    runner.run(control)?;
    let cpu_s = thread_cpu_s() - begin;
    finish(setup, runner, Rest { preconditioned, cpu_s, gathered })
}

/// What is counted in the measured part, and what counters said at its beginning.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) baseline: Baseline,
    /// Of zones.
    pub(super) zns: ZnsStats,
    pub(super) volume: onefold_volume::Stats,
    pub(super) host: HostStats,
    pub(super) stalls: Stalls,
}

pub(super) struct Runner {
    pub(super) stack: Stack,
    pub(super) config: VolumeConfig,
    pub(super) loads: Vec<Load>,
    pub(super) series: Recorder,
    /// Requests under way; the place is the tag that the volume knows them by.
    pub(super) active: Vec<Option<Request>>,
    pub(super) free: Vec<usize>,
    /// Requests that the volume refused, in their order.
    pub(super) waiting: VecDeque<usize>,
    /// Until when the host's CPU works for requests before.
    pub(super) cpu_until: u64,
    pub(super) issued: u64,
    pub(super) executed: u64,
    pub(super) warmup: u64,
    pub(super) measured: Measured,
    pub(super) partial: bool,
}

impl Runner {
    fn run(&mut self, control: &Control<'_>) -> Result<(), SimError> {
        if self.warmup == 0 {
            self.begin_measuring(0);
        }
        let mut look = INTERRUPT_EVERY;
        loop {
            // After an interrupt only what is under way ends.
            let (arrival, more) = if self.partial { (None, false) } else { self.next_arrival()? };
            let event = self.stack.next_event();
            match (arrival, event) {
                (Some((arrival, now)), event) if event.is_none_or(|event| now <= event) => {
                    self.arrive(&arrival, now)?;
                }
                _ if !more && self.free.len() == self.active.len() => return Ok(()),
                (_, Some(event)) => {
                    self.stack.advance(event);
                    self.settle(event)?;
                    self.retry(event)?;
                }
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

    /// The next request of the load, when it gets to the volume, and whether there are more.
    fn next_arrival(&mut self) -> Result<(Option<(Arrival, u64)>, bool), SimError> {
        let (arrival, more) = load::next_arrival(&mut self.loads)?;
        let arrival = arrival.map(|arrival| {
            let busy = self.config.cpu.get() + self.search_ns(&arrival);
            let now = arrival.issued.max(self.cpu_until) + busy;
            (arrival, now)
        });
        Ok((arrival, more))
    }

    /// CPU time in which a request finds where its blocks lie.
    fn search_ns(&self, arrival: &Arrival) -> u64 {
        let (asked, each) = (&arrival.asked, self.config.cpu_search.get());
        if each == 0 || !matches!(asked.op, Op::Read | Op::Write) {
            return 0;
        }
        let offset = asked.offset + self.loads[arrival.load].tenant.base;
        let range = Range {
            lba: Lba::new(offset / 4096),
            blocks: (offset + u64::from(asked.len)).div_ceil(4096) - offset / 4096,
        };
        self.stack.volume.searches(range) * each
    }

    /// Takes a request to the volume.
    fn arrive(&mut self, arrival: &Arrival, now: u64) -> Result<(), SimError> {
        self.cpu_until = now;
        let load = &mut self.loads[arrival.load];
        load.began(arrival.issued, now);
        let offset = arrival.asked.offset + load.tenant.base;
        let request =
            Request::new(arrival.load, self.issued, arrival.issued, offset, &arrival.asked);
        self.count(&arrival.asked, offset, arrival.load);
        self.issued += 1;
        let tag = self.free.pop().unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() - 1
        });
        self.active[tag] = Some(request);
        let behind = request.is_change() && self.waiting.iter().any(|tag| self.is_change(*tag));
        if behind || !self.go_on(tag, now)? {
            self.refuse(tag, now);
        }
        self.stack.go_on(now, Delay::None);
        self.settle(now)?;
        if self.issued == self.warmup {
            self.begin_measuring(now);
        } else if self.issued.saturating_sub(self.warmup) == self.series.next() {
            let metrics: Vec<_> = self.loads.iter().map(|load| &load.tenant.metrics).collect();
            self.series.take(now, &self.stack.below.device, &self.measured.host, &metrics);
        }
        Ok(())
    }

    fn is_change(&self, tag: usize) -> bool {
        self.active[tag].as_ref().is_some_and(Request::is_change)
    }

    fn count(&mut self, asked: &onefold_trace::workload::Request, offset: u64, load: usize) {
        if self.issued < self.warmup {
            return;
        }
        let len = u64::from(asked.len);
        let pages = if len == 0 { 0 } else { (offset + len).div_ceil(4096) - offset / 4096 };
        self.measured.host.count(asked.op, pages);
        if self.loads.len() > 1 {
            self.loads[load].tenant.host.count(asked.op, pages);
        }
    }

    fn refuse(&mut self, tag: usize, now: u64) {
        let Some(request) = &mut self.active[tag] else { return };
        request.refused.get_or_insert_with(|| (now, self.stack.short_ns(now)));
        self.waiting.push_back(tag);
    }

    /// Asks the volume for what is left of a request. `false` if it refused: try again later.
    fn go_on(&mut self, tag: usize, now: u64) -> Result<bool, SimError> {
        let Some(mut request) = self.active[tag] else { return Ok(true) };
        let number = u64_from(tag);
        let mut taken = true;
        let write_blocks_max = self.stack.volume.write_blocks_max();
        while let Some(work) = request.next(write_blocks_max) {
            let outstanding = request.outstanding;
            let result = match work {
                Work::Wait if outstanding > 0 => break,
                Work::Wait => Ok((1, false)),
                Work::Flush => self.stack.volume.flush(number).map(|()| (1, true)),
                Work::Read(range) => match self.stack.read(now, number, range) {
                    Ok(waits) => Ok((range.blocks, waits)),
                    Err(ReadRefused::Volume(refusal)) => Err(refusal),
                    Err(ReadRefused::Device(source)) => {
                        let what = "read of the volume".to_owned();
                        return Err(source.of_request(request.number, what));
                    }
                },
                Work::Write(range) => {
                    let waits =
                        request.fua || self.config.options.acknowledge == Acknowledge::Complete;
                    let tag = if waits { number } else { NOBODY };
                    let written = self.stack.volume.write(tag, range, None, request.fua);
                    written.map(|()| (range.blocks, waits))
                }
                Work::Trim(range) => {
                    let waits = self.config.options.acknowledge == Acknowledge::Complete;
                    let tag = if waits { number } else { NOBODY };
                    self.stack.volume.trim(tag, range).map(|blocks| (blocks, waits))
                }
            };
            match result {
                Ok((blocks, waits)) => {
                    request.took(blocks);
                    request.outstanding += u32::from(waits);
                }
                Err(Refusal::Busy) => {
                    taken = false;
                    break;
                }
                Err(refusal) => return Err(SimError::Volume { what: request.op.name(), refusal }),
            }
        }
        if taken && let Some((since, short)) = request.refused.take() {
            request.delay = Delay::Background;
            let paced = now - since - (self.stack.short_ns(now) - short);
            self.count_stall(request.number, now - since, paced);
        }
        let over = request.is_over();
        self.active[tag] = Some(request);
        if over {
            self.end(tag, now);
        }
        Ok(taken)
    }

    /// A request waited for `ns`, of which `paced_ns` while the host could have had log segments.
    fn count_stall(&mut self, number: u64, ns: u64, paced_ns: u64) {
        if number >= self.warmup {
            let stalls = &mut self.measured.stalls;
            stalls.requests += 1;
            stalls.ns += ns;
            stalls.max_ns = stalls.max_ns.max(ns);
            stalls.max_paced_ns = stalls.max_paced_ns.max(paced_ns);
        }
    }

    /// Notes what ended.
    fn settle(&mut self, now: u64) -> Result<(), SimError> {
        while let Some(ended) = self.stack.ended.pop_front() {
            if ended.failed {
                return Err(SimError::VolumeFailed);
            }
            if ended.tag == NOBODY {
                continue;
            }
            let tag = index64(ended.tag);
            let Some(request) = &mut self.active[tag] else { continue };
            request.outstanding -= 1;
            request.delay = request.delay.max(ended.delay);
            if request.outstanding > 0 || request.refused.is_some() {
                continue;
            }
            if request.is_over() {
                self.end(tag, now);
            } else if !self.go_on(tag, now)? {
                self.refuse(tag, now);
            }
        }
        Ok(())
    }

    /// Tries again what was refused, in its order: behind a change that is refused again, no other one is taken.
    fn retry(&mut self, now: u64) -> Result<(), SimError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut refused = false;
        for _ in 0..self.waiting.len() {
            let Some(tag) = self.waiting.pop_front() else { break };
            let change = self.is_change(tag);
            if (change && refused) || !self.go_on(tag, now)? {
                refused |= change;
                self.waiting.push_back(tag);
            }
        }
        self.stack.go_on(now, Delay::None);
        self.settle(now)
    }

    fn end(&mut self, tag: usize, now: u64) {
        let Some(request) = self.active[tag].take() else { return };
        self.free.push(tag);
        self.executed += 1;
        let load = &mut self.loads[request.tenant];
        load.ended(request.issued, now);
        if request.number >= self.warmup {
            load.tenant.metrics.record(request.op, request.delay, now - request.issued);
        }
    }

    fn begin_measuring(&mut self, now: u64) {
        let (baseline, zns) = self.stack.below.device.baseline(now);
        self.measured = Measured {
            baseline,
            zns,
            volume: *self.stack.volume.stats(),
            host: HostStats::default(),
            stalls: Stalls::default(),
        };
        self.series.begin(now, &self.stack.below.device, &self.measured.host);
    }
}
