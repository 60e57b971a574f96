//! The loads of a run: from the configuration to tenants.

use std::path::{Path, PathBuf};

use onefold_config::{Config, Extent, Load, Mode, RemapFull, Run, Tenant as TenantSpec};
use onefold_trace::workload::{Pacing, Workload};
use onefold_tracefile::{Meta, TraceSource};
use onefold_units::Nanos;
use onefold_units::convert::index;

use crate::SimError;
use crate::control::Control;
use crate::dependencies::Known;
use crate::setup::Setup;
use crate::source::{Replay, Source};
use crate::tenant::{Bound, Pace, Tenant};

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
    pub(crate) tells_contents: bool,
    /// The unit in bytes in which the device takes remaps, if it takes any.
    pub(crate) remap_unit: Option<u32>,
    /// Whether a load may have remaps that reach the device.
    pub(crate) has_remaps: bool,
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
                Load::Workload(text) => self.workload(text, bytes, seed, &spec)?,
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
        let trace = match control.open_trace {
            Some(open) => open(path, &setup.trace_options)?,
            None => TraceSource::open(path, &setup.trace_options)?,
        };
        let meta = trace.meta();
        let sending = Sending::of(run.mode, meta);
        if let Some(say) = control.say {
            say(&meta.interpretation);
            say(sending.explained());
        }
        self.warnings.extend(meta.warnings.iter().cloned());
        if meta.remaps > 0 {
            match (self.remap_unit, run.remap_full) {
                (Some(_), _) => self.has_remaps = true,
                (None, RemapFull::Write) => self.warnings.push(written(meta.remaps)),
                (None, RemapFull::Copy | RemapFull::Refuse) => {
                    let path = PathBuf::from(path);
                    return Err(SimError::TraceRemaps { path, remaps: meta.remaps });
                }
            }
        }
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
            skipped: 0,
            passes: 1,
            replay: sending.name().to_owned(),
        });
        let timed = |bound| Pace::open(spec.start.get(), spec.speed * run.speedup, bound);
        let pace = match sending {
            Sending::Closed => Pace::closed(run.qd, spec.start.get()),
            Sending::Open => timed(Bound::None),
            Sending::Bounded => timed(Bound::Most(index(run.qd).max(1))),
            Sending::Recorded => timed(Bound::Recorded),
            Sending::Dependencies(_) => timed(Bound::Dependencies(Box::default())),
        };
        let replay = Replay::new(
            trace,
            run,
            bytes,
            (self.tells_contents, self.remap_unit),
            sending.known(),
        )?;
        Ok((Source::Trace(Box::new(replay)), pace))
    }

    fn workload(
        &mut self,
        text: &str,
        bytes: u64,
        seed: u64,
        spec: &TenantSpec,
    ) -> Result<(Source, Pace), SimError> {
        let fail = |source| SimError::Workload { text: text.to_owned(), source };
        let workload = Workload::parse(text).map_err(fail)?;
        if workload.has_remaps() {
            if self.remap_unit.is_none() {
                return Err(SimError::Remaps { text: text.to_owned() });
            }
            self.has_remaps = true;
        }
        let generator = workload.instantiate(bytes, seed).map_err(fail)?;
        let pace = match workload.pacing() {
            Pacing::Closed { depth } => Pace::closed(depth, spec.start.get()),
            Pacing::Open { .. } | Pacing::Timed => {
                Pace::open(spec.start.get(), spec.speed, Bound::None)
            }
        };
        Ok((Source::Generator(Box::new(generator)), pace))
    }
}

/// What is said of remaps in a trace for a device without them, as `run.remap_full=write` has it.
fn written(remaps: u64) -> String {
    format!(
        "{remaps} remaps of the trace are written by the host: volumes and zoned namespaces take none"
    )
}

/// How the requests of a trace are sent.
#[derive(Clone, Copy)]
enum Sending {
    Dependencies(Known),
    Recorded,
    Open,
    Closed,
    Bounded,
}

impl Sending {
    /// Dependencies as far as the trace tells them.
    const fn of(mode: Mode, meta: &Meta) -> Self {
        match mode {
            Mode::Closed => Self::Closed,
            Mode::Bounded => Self::Bounded,
            Mode::Recorded => Self::Recorded,
            Mode::Dependencies if meta.has_latencies => Self::Dependencies(Known::Ends),
            Mode::Dependencies if meta.barriers > 0 => Self::Dependencies(Known::Flushes),
            Mode::Dependencies | Mode::Open => Self::Open,
        }
    }

    const fn known(self) -> Option<Known> {
        match self {
            Self::Dependencies(known) => Some(known),
            Self::Recorded => Some(Known::Ends),
            Self::Open | Self::Closed | Self::Bounded => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Dependencies(Known::Ends) => "dependencies",
            Self::Dependencies(Known::Flushes) => "flushes",
            Self::Recorded => "recorded",
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Bounded => "bounded",
        }
    }

    const fn explained(self) -> &'static str {
        match self {
            Self::Dependencies(Known::Ends) => {
                "replay: a request waits for what had ended before it when the trace was recorded"
            }
            Self::Dependencies(Known::Flushes) => {
                "replay: the trace does not tell when requests ended; at its times, but flushes and what follows them wait"
            }
            Self::Recorded => {
                "replay: at the times of the trace, with no more under way than when it was recorded"
            }
            Self::Open => "replay: at the times of the trace, whatever is under way",
            Self::Closed => "replay: as fast as run.qd allows",
            Self::Bounded => {
                "replay: at the times of the trace, with run.qd requests under way at most"
            }
        }
    }
}
