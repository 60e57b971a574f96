//! What a run leaves behind, whatever it was on.

use onefold_config::Run;
use onefold_ssd::HostStats;

use crate::SimError;
use crate::metrics::Metrics;
use crate::passes::Passes;
use crate::series::{Recorder, Windowed};
use crate::tenant::Tenant;

/// A run that ended.
pub(crate) struct Ran<C> {
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) series: Recorder,
    /// When measuring began, and what counters said then.
    pub(crate) at: u64,
    pub(crate) baseline: C,
    /// It was interrupted.
    pub(crate) partial: bool,
    pub(crate) cpu_s: f64,
    pub(crate) passes: Passes,
}

impl<C: Default> Ran<C> {
    pub(crate) fn new(tenants: Vec<Tenant>, run: &Run) -> Self {
        let (series, passes) = (Recorder::new(run.window), Passes::new(run));
        let baseline = C::default();
        Self { tenants, series, at: 0, baseline, partial: false, cpu_s: 0.0, passes }
    }
}

/// Refuses a run of so many requests of which none was measured.
pub(crate) const fn check_measured(
    requests: u64,
    warmup: u64,
    partial: bool,
) -> Result<(), SimError> {
    match requests > warmup {
        true => Ok(()),
        false if partial => Err(SimError::Interrupted),
        false => Err(SimError::OnlyWarmUp { requests, warmup }),
    }
}

/// Begins the traces of tenants again. Whether there are any.
pub(crate) fn rewind<'a>(
    tenants: impl Iterator<Item = &'a mut Tenant>,
    passes: &Passes,
) -> Result<bool, SimError> {
    let mut any = false;
    for tenant in tenants {
        any |= tenant.rewind()?;
        if passes.measures_the_last() {
            tenant.forget_measured();
        }
    }
    Ok(any)
}

impl Ran<()> {
    /// The same, with what counters said when measuring began.
    pub(crate) fn with<C>(self, baseline: C) -> Ran<C> {
        let Self { tenants, series, at, baseline: (), partial, cpu_s, passes } = self;
        Ran { tenants, series, at, baseline, partial, cpu_s, passes }
    }
}

impl<C> Ran<C> {
    /// What counters said when measuring began, and the rest.
    pub(crate) fn split(self) -> (C, Ran<()>) {
        let Self { tenants, series, at, baseline, partial, cpu_s, passes } = self;
        (baseline, Ran { tenants, series, at, baseline: (), partial, cpu_s, passes })
    }

    /// Begins traces again. Whether there are any. What is measured is forgotten if the last pass alone
    /// is measured.
    pub(crate) fn rewind(&mut self) -> Result<bool, SimError> {
        if self.passes.measures_the_last() {
            self.series = self.series.anew();
        }
        rewind(self.tenants.iter_mut(), &self.passes)
    }

    /// A window of the series is full.
    pub(crate) fn take_window(&mut self, now: u64, device: &impl Windowed, host: &HostStats) {
        let metrics: Vec<&Metrics> = self.tenants.iter().map(|tenant| &tenant.metrics).collect();
        self.series.take(now, device, host, &metrics);
    }
}
