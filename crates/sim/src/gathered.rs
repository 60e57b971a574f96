//! The loads of a run: from the configuration to tenants.

use std::path::{Path, PathBuf};

use onefold_config::{Config, Extent, Load, Mode, Run, Tenant as TenantSpec};
use onefold_trace::workload::{Pacing, Workload};
use onefold_tracefile::TraceSource;
use onefold_units::Nanos;
use onefold_units::convert::index;

use crate::SimError;
use crate::control::Control;
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
