//! The run: requests of all tenants in order of time.

use onefold_ssd::HostStats;
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsMedia, ZnsStats};
use onefold_trace::workload::Request;
use onefold_units::{Nanos, Op};

use super::host::{Refused, ZonedHost};
use super::outcome::{self, Finished};
use crate::SimError;
use crate::control::{Control, INTERRUPT_EVERY};
use crate::cpu::thread_cpu_s;
use crate::engine::{Gathered, Setup};
use crate::precondition::Preconditioned;
use crate::result::RunResult;
use crate::series::Recorder;
use crate::tenant::Tenant;

/// A run on a zoned namespace, and what it leaves behind.
pub(super) struct Runner {
    pub(super) device: ZonedHost,
    pub(super) tenants: Vec<Tenant>,
    pub(super) series: Recorder,
    pub(super) baseline: Baseline,
    pub(super) partial: bool,
    pub(super) cpu_s: f64,
    pub(super) gathered: Gathered,
    warmup: u64,
    done: u64,
    last_time: u64,
}

/// Counters when measuring began.
#[derive(Clone, Copy, Default)]
pub(super) struct Baseline {
    pub(super) zns: ZnsStats,
    pub(super) host: HostStats,
    pub(super) at: u64,
}

/// Runs a setup on a zoned namespace.
pub(crate) fn simulate(
    setup: &Setup,
    config: &ZnsConfig,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut device = ZonedHost::new(Zns::new(*config, ZnsMedia::NULL)?);
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(setup, device.bytes(), control)?;
    let begin = thread_cpu_s();
    device.fill(setup.config.precondition().fill, control)?;
    let preconditioned =
        Preconditioned { cpu_s: thread_cpu_s() - begin, ..Preconditioned::default() };
    let run = setup.config.run();
    let mut runner = Runner {
        device,
        tenants,
        series: Recorder::new(run.window),
        baseline: Baseline::default(),
        partial: false,
        cpu_s: 0.0,
        gathered,
        warmup: run.warmup,
        done: 0,
        last_time: 0,
    };
    runner.run(control)?;
    let Runner { device, tenants, series, baseline, partial, .. } = runner;
    let finished = Finished {
        stats: device.zns.stats().since(&baseline.zns),
        host: device.host.since(&baseline.host),
        executed: device.host.requests(),
        bytes: device.bytes(),
        zns: device.zns,
        regular: None,
        tenants,
        series,
        at: baseline.at,
        partial,
        preconditioned,
        cpu_s: runner.cpu_s,
        gathered: runner.gathered,
        volume: None,
    };
    outcome::result(setup, finished)
}

impl Runner {
    fn run(&mut self, control: &Control<'_>) -> Result<(), SimError> {
        let begin = thread_cpu_s();
        if self.warmup == 0 {
            self.begin_measuring();
        }
        let mut look = INTERRUPT_EVERY;
        while let Some((tenant, request, now)) = self.next()? {
            self.issue(tenant, &request, now)?;
            if self.done == look {
                look += INTERRUPT_EVERY;
                if let Some(progress) = control.progress {
                    progress(self.done);
                }
                if control.is_interrupted() {
                    self.partial = true;
                    break;
                }
            }
        }
        self.cpu_s = thread_cpu_s() - begin;
        Ok(())
    }

    /// The request whose turn it is: earliest first, then of the tenant that had least of its share.
    fn next(&mut self) -> Result<Option<(usize, Request, u64)>, SimError> {
        let mut best: Option<(usize, Request, u64, u64)> = None;
        for (at, tenant) in self.tenants.iter_mut().enumerate() {
            let Some(request) = tenant.peek()? else { continue };
            let time = tenant.next_time(&request);
            let share = tenant.issued / u64::from(tenant.weight);
            if best.as_ref().is_none_or(|first| (time, share) < (first.2, first.3)) {
                best = Some((at, request, time, share));
            }
        }
        Ok(best.map(|(at, request, time, _)| (at, request, time)))
    }

    fn issue(&mut self, tenant: usize, request: &Request, now: u64) -> Result<(), SimError> {
        let now = now.max(self.last_time);
        self.last_time = now;
        let load = &mut self.tenants[tenant];
        let (offset, len) = match request.op {
            Op::Flush => (0, 0),
            _ => (request.offset + load.base, u64::from(request.len)),
        };
        let done = self.device.submit(Nanos::new(now), request.op, request.fua, offset, len);
        let done = done.map_err(|refused| {
            let what = format!("{} of {len} B at byte {offset}", request.op.name());
            match refused {
                Refused::Alignment => SimError::ZoneAlignment { request: self.done, what },
                Refused::Zone(source) => SimError::Zone { request: self.done, what, source },
            }
        })?;
        let at = done.at.get();
        let several = self.tenants.len() > 1;
        let load = &mut self.tenants[tenant];
        load.issued(now, at);
        if self.done >= self.warmup {
            load.metrics.record(request.op, done.delay, at - now);
            if several {
                load.host.count(request.op, len / 4096);
            }
        }
        self.done += 1;
        if self.done == self.warmup {
            self.begin_measuring();
        } else if self.done.saturating_sub(self.warmup) == self.series.next() {
            let metrics: Vec<_> = self.tenants.iter().map(|tenant| &tenant.metrics).collect();
            self.series.take(now, &self.device.zns, &self.device.host, &metrics);
        }
        Ok(())
    }

    fn begin_measuring(&mut self) {
        self.baseline =
            Baseline { zns: self.device.zns.stats(), host: self.device.host, at: self.last_time };
        self.series.begin(self.last_time, &self.device.zns, &self.device.host);
    }
}
