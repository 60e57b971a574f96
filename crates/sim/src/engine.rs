//! The run: requests of all tenants in order of time, through the device, into the metrics.

use std::path::{Path, PathBuf};

use onefold_config::{Config, Extent, Load, Mode, Precondition, Run, Tenant as TenantSpec};
use onefold_ftl::{FtlStats, RemapStats};
use onefold_nand::NullMedia;
use onefold_ssd::{Command, DedupStats, HostStats, Payload, Ssd};
use onefold_trace::workload::{Pacing, Request, Workload};
use onefold_tracefile::{Options, TraceSource};
use onefold_units::convert::index;
use onefold_units::{Nanos, Op};

use crate::SimError;
use crate::contents::Contents;
use crate::control::{Control, INTERRUPT_EVERY};
use crate::cpu::thread_cpu_s;
use crate::dmz;
use crate::outcome;
use crate::precondition::{Bare, Preconditioned, precondition};
use crate::result::RunResult;
use crate::series::Recorder;
use crate::source::{Replay, Source};
use crate::tenant::{Bound, Pace, Tenant};
use crate::used::Used;
use crate::volume::{self, VolumeRun};
use crate::zoned;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Device, preconditioning, replay, and the loads.
    pub config: Config,
    /// How trace files are read.
    pub trace_options: Options,
    /// Seed of everything random.
    pub seed: u64,
    /// Version and commit, for the result.
    pub program: crate::result::Program,
}

/// Everything a finished run leaves behind.
pub(crate) struct Finished {
    pub(crate) ssd: Ssd<NullMedia>,
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) series: Recorder,
    pub(crate) baseline: Baseline,
    pub(crate) preconditioned: Preconditioned,
    pub(crate) partial: bool,
    pub(crate) cpu_s: f64,
    pub(crate) warnings: Vec<String>,
    pub(crate) trace: Option<crate::result::TraceSource>,
    pub(crate) volume: Option<VolumeRun>,
}

/// Counters when measuring began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Baseline {
    pub(crate) ftl: FtlStats,
    pub(crate) host: HostStats,
    pub(crate) remap: RemapStats,
    pub(crate) dedup: DedupStats,
    pub(crate) buffer: Option<onefold_buffer::Stats>,
    pub(crate) at: u64,
}

/// Runs a setup in virtual time.
///
/// # Errors
/// The configuration, a trace or a workload is wrong, or the device failed.
pub fn simulate(setup: &Setup, control: &Control<'_>) -> Result<RunResult, SimError> {
    if let Some(config) = setup.config.zns(setup.seed)? {
        if let Some(volume) = setup.config.zoned_volume()? {
            return dmz::simulate(setup, &volume, &config, control);
        }
        return match setup.config.volume()? {
            Some(volume) => {
                let regular = match setup.config.regular_of_log()? {
                    Some(regular) => Some(Ssd::new(regular.ssd(setup.seed)?, NullMedia)?),
                    None => None,
                };
                let device = volume::Device::on_zones(&config, regular)?;
                volume::simulate(setup, &volume, device, control)
            }
            None => zoned::simulate(setup, &config, control),
        };
    }
    let ssd = Ssd::new(setup.config.ssd(setup.seed)?, NullMedia)?;
    if let Some(config) = setup.config.volume()? {
        return volume::simulate(setup, &config, volume::Device::Blocks(Box::new(ssd)), control);
    }
    let wanted = setup.config.precondition();
    on_drive(setup, ssd, Some(&wanted), control)
}

/// Runs a setup in virtual time on a drive that was used before, and on the volume on it if there is one at its beginning. There is no
/// preconditioning.
///
/// # Errors
/// As [`simulate`]; or there is a damaged volume, or one that compresses.
pub fn simulate_on(
    setup: &Setup,
    used: Used,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut below = volume::Below::used(used);
    match below.label()? {
        Some(label) => volume::simulate_on(setup, &label, below, control),
        None => match below.into_device() {
            volume::Device::Blocks(ssd) => on_drive(setup, *ssd, None, control),
            _ => unreachable!("a drive without zones"),
        },
    }
}

/// Runs a setup on a drive without a volume.
fn on_drive(
    setup: &Setup,
    mut ssd: Ssd<NullMedia>,
    wanted: Option<&Precondition>,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut gathered = Gathered { tells_contents: ssd.deduplicates(), ..Gathered::default() };
    let tenants = gathered.tenants(setup, ssd.capacity(), control)?;
    // A wrong content model is an error even where nobody looks at contents.
    let contents = Contents::new(setup, ssd.capacity())?;
    let mut contents = Some(contents).filter(|_| ssd.deduplicates());
    let mut bare = Bare { ssd: &mut ssd, contents: contents.as_mut() };
    let preconditioned = match wanted {
        Some(wanted) => precondition(&mut bare, wanted, setup.seed, control)?,
        None => Preconditioned::default(),
    };
    let run = setup.config.run();
    ssd.set_timed(run.timed);
    let mut engine = Engine {
        finished: Finished {
            baseline: Baseline::default(),
            ssd,
            tenants,
            series: Recorder::new(run.window),
            preconditioned,
            partial: false,
            cpu_s: 0.0,
            warnings: gathered.warnings,
            trace: gathered.trace,
            volume: None,
        },
        contents,
        warmup: run.warmup,
        done: 0,
        last_time: 0,
        touched: 0,
    };
    engine.run(control)?;
    outcome::result(setup, engine.finished)
}

struct Engine {
    finished: Finished,
    /// Contents of writes, if the device looks at them.
    contents: Option<Contents>,
    warmup: u64,
    /// Requests done, warm-up included.
    done: u64,
    last_time: u64,
    /// Keeps the loads of `Ssd::touch` alive.
    touched: u64,
}

impl Engine {
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
                    self.finished.partial = true;
                    break;
                }
            }
        }
        std::hint::black_box(self.touched);
        self.finished.cpu_s = thread_cpu_s() - begin;
        Ok(())
    }

    /// The tenant whose turn it is: earliest first, then the one that had least of its share.
    #[inline]
    fn next(&mut self) -> Result<Option<(usize, Request, u64)>, SimError> {
        let ssd = &self.finished.ssd;
        if let [tenant] = self.finished.tenants.as_mut_slice() {
            let Some(request) = tenant.peek()? else { return Ok(None) };
            if tenant.at_batch_start() {
                self.touched = self.touched.wrapping_add(ssd.touch(tenant.upcoming()));
            }
            let time = tenant.next_time(&request);
            return Ok(Some((0, request, time)));
        }
        let mut best: Option<(usize, Request, u64)> = None;
        let mut best_share = 0;
        for (at, tenant) in self.finished.tenants.iter_mut().enumerate() {
            let Some(request) = tenant.peek()? else { continue };
            if tenant.at_batch_start() {
                self.touched = self.touched.wrapping_add(ssd.touch(tenant.upcoming()));
            }
            let time = tenant.next_time(&request);
            let share = tenant.issued / u64::from(tenant.weight);
            let earlier = best.as_ref().is_none_or(|(_, _, first)| {
                time < *first || (time == *first && share < best_share)
            });
            if earlier {
                best = Some((at, request, time));
                best_share = share;
            }
        }
        Ok(best)
    }

    #[inline]
    fn issue(&mut self, tenant: usize, request: &Request, now: u64) -> Result<(), SimError> {
        // Times of a trace may lie before work already submitted by another tenant.
        let now = now.max(self.last_time);
        self.last_time = now;
        let finished = &mut self.finished;
        let load = &mut finished.tenants[tenant];
        let command = Command {
            op: request.op,
            fua: request.fua,
            tenant: u8::try_from(tenant).unwrap_or(u8::MAX),
            stream: load.stream,
            offset: if request.op == Op::Flush { 0 } else { request.offset + load.base },
            len: u64::from(request.len),
        };
        let payload = match &mut self.contents {
            Some(contents) if command.op == Op::Write => {
                Payload::Contents(contents.of_write(&command, load.source.contents()))
            }
            Some(contents) => {
                contents.note(&command);
                Payload::None
            }
            None => Payload::None,
        };
        let done = match finished.ssd.submit(Nanos::new(now), &command, payload) {
            Ok(completion) => completion,
            Err(source) => return Err(self.failed(&command, source)),
        };
        let at = done.at.get();
        load.issued(now, at);
        if self.done >= self.warmup {
            load.metrics.record(request.op, done.delay, at - now);
            if finished.tenants.len() > 1 {
                self.count_for_tenant(tenant, &command);
            }
        }
        self.done += 1;
        let measured = self.done.saturating_sub(self.warmup);
        if self.done == self.warmup {
            self.begin_measuring();
        } else if measured == self.finished.series.next() {
            self.take_window(now);
        }
        Ok(())
    }

    fn count_for_tenant(&mut self, tenant: usize, command: &Command) {
        let end = command.offset + command.len;
        let pages = if command.len == 0 { 0 } else { end.div_ceil(4096) - command.offset / 4096 };
        self.finished.tenants[tenant].host.count(command.op, pages);
    }

    fn take_window(&mut self, now: u64) {
        let finished = &mut self.finished;
        let metrics: Vec<_> = finished.tenants.iter().map(|tenant| &tenant.metrics).collect();
        finished.series.take(now, &finished.ssd, finished.ssd.host_stats(), &metrics);
    }

    fn begin_measuring(&mut self) {
        let finished = &mut self.finished;
        finished.baseline = Baseline {
            ftl: finished.ssd.ftl().stats(),
            host: *finished.ssd.host_stats(),
            remap: finished.ssd.ftl().remap_stats(),
            dedup: finished.ssd.dedup_stats(),
            buffer: finished.ssd.buffer_stats(),
            at: self.last_time,
        };
        finished.series.begin(self.last_time, &finished.ssd, finished.ssd.host_stats());
    }

    fn failed(&self, command: &Command, source: onefold_ssd::SsdError) -> SimError {
        let what = format!("{} of {} B at byte {}", command.op.name(), command.len, command.offset);
        SimError::Device { request: self.done, what, source }
    }
}

/// The tenants of the configuration, or its single load as one tenant over the whole device.
fn specs(config: &Config, capacity: u64) -> Result<Vec<TenantSpec>, SimError> {
    let tenants = config.tenants()?;
    match config.load_of_run() {
        None => Ok(tenants),
        Some(_) if !tenants.is_empty() => Err(SimError::TwoLoads),
        Some(load) => Ok(vec![TenantSpec {
            name: "host".to_owned(),
            load,
            range: Extent::whole(capacity),
            start: Nanos::ZERO,
            speed: 1.0,
            weight: 1,
            stream: 0,
        }]),
    }
}

/// Turns loads into tenants.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Contents of traces are wanted.
    tells_contents: bool,
    pub(crate) warnings: Vec<String>,
    pub(crate) trace: Option<crate::result::TraceSource>,
}

impl Gathered {
    pub(crate) fn tenants(
        &mut self,
        setup: &Setup,
        capacity: u64,
        control: &Control<'_>,
    ) -> Result<Vec<Tenant>, SimError> {
        let run = setup.config.run();
        let mut tenants = Vec::new();
        for (at, spec) in specs(&setup.config, capacity)?.into_iter().enumerate() {
            let name = spec.name.clone();
            let range = spec.range.resolve(capacity);
            let range = range.ok_or(SimError::Range { name, capacity })?;
            let bytes = range.end - range.start;
            let seed = setup.seed.wrapping_add(u64::try_from(at).unwrap_or(0));
            let (source, pace) = match &spec.load {
                Load::Workload(text) => workload(text, bytes, seed, &spec)?,
                Load::Trace(path) => self.trace(path, setup, &run, bytes, &spec, control)?,
            };
            let mut tenant = Tenant::new(spec.name, source, pace, range.start);
            tenant.stream = u16::try_from(spec.stream).unwrap_or(0);
            tenant.weight = spec.weight.max(1);
            if tenant.peek()?.is_none() {
                return Err(SimError::Empty { name: tenant.name });
            }
            tenants.push(tenant);
        }
        if tenants.is_empty() {
            return Err(SimError::NoLoad);
        }
        Ok(tenants)
    }

    fn trace(
        &mut self,
        path: &Path,
        setup: &Setup,
        run: &Run,
        bytes: u64,
        spec: &TenantSpec,
        control: &Control<'_>,
    ) -> Result<(Source, Pace), SimError> {
        let trace = TraceSource::open(path, &setup.trace_options)?;
        let meta = trace.meta();
        if let Some(say) = control.say {
            say(&meta.interpretation);
        }
        self.warnings.extend(meta.warnings.iter().cloned());
        if meta.untimed && run.mode != Mode::Closed {
            return Err(SimError::Untimed { path: PathBuf::from(path) });
        }
        if !meta.has_latencies && run.mode == Mode::Recorded {
            return Err(SimError::NoLatencies { path: PathBuf::from(path) });
        }
        self.trace.get_or_insert_with(|| crate::result::TraceSource {
            path: path.display().to_string(),
            format: meta.spec.format.name().to_owned(),
            sha256: meta.sha256.clone(),
            requests: meta.requests,
        });
        let timed = |bound| Pace::open(spec.start.get(), spec.speed * run.speedup, bound);
        let pace = match run.mode {
            Mode::Closed => Pace::closed(run.qd, spec.start.get()),
            Mode::Open => timed(Bound::None),
            Mode::Bounded => timed(Bound::Most(index(run.qd).max(1))),
            Mode::Recorded => timed(Bound::Recorded),
        };
        let replay = Replay::new(trace, run, bytes, self.tells_contents)?;
        Ok((Source::Trace(Box::new(replay)), pace))
    }
}

fn workload(
    text: &str,
    bytes: u64,
    seed: u64,
    spec: &TenantSpec,
) -> Result<(Source, Pace), SimError> {
    let fail = |source| SimError::Workload { text: text.to_owned(), source };
    let workload = Workload::parse(text).map_err(fail)?;
    let generator = workload.instantiate(bytes, seed).map_err(fail)?;
    let pace = match workload.pacing() {
        Pacing::Closed { depth } => Pace::closed(depth, spec.start.get()),
        Pacing::Open { .. } | Pacing::Timed => {
            Pace::open(spec.start.get(), spec.speed, Bound::None)
        }
    };
    Ok((Source::Generator(Box::new(generator)), pace))
}
