//! How a run goes: preconditioning, replay, measurement.

/// Preconditioning of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precondition {
    /// Drive writes, sequential.
    pub fill: f64,
    /// Drive writes, uniform random.
    pub overwrite: f64,
    /// Share of the logical space that both address.
    pub range: f64,
    /// When it ends.
    pub until: Until,
    /// Share of the remap log to be filled with entries.
    pub remap_log: f64,
}

/// When preconditioning or passes over a trace end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After the configured drive writes or passes.
    Count,
    /// When the WAF of windows or passes that follow each other differs by less than 1 %.
    Steady,
}

/// How a run goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Requests that are not measured.
    pub warmup: u64,
    /// Requests per point of the time series.
    pub window: u64,
    /// Replay of traces.
    pub mode: Mode,
    /// Passes over traces, unless they end when the drive is steady.
    pub repeat: u32,
    /// When the passes end.
    pub until: Until,
    /// Whether what the device does takes time.
    pub timed: bool,
    /// Factor by which a replay at the times of the trace is faster than the trace.
    pub speedup: f64,
    /// Requests in flight in a closed replay.
    pub qd: u32,
    /// Requests off the 4 KiB grid.
    pub align: Align,
    /// Requests beyond the device.
    pub fit: Fit,
    /// Remaps that cannot share a page.
    pub remap_full: RemapFull,
}

/// What becomes of a remap of the load where the device cannot share a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapFull {
    /// The device copies the page.
    Copy,
    /// The device copies the page; a host whose device has no remap writes its range instead.
    Write,
    /// The target stays as it was.
    Refuse,
}

/// Replay of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When what a request had waited for has ended, as far as the trace tells, after the pause
    /// that was recorded.
    Dependencies,
    /// At the times of the trace.
    Open,
    /// As fast as the queue depth allows.
    Closed,
    /// At the times of the trace, but no more than the queue depth at once.
    Bounded,
    /// At the times of the trace, but no more at once than were under way when it was recorded.
    Recorded,
}

/// What happens to trace requests off the 4 KiB grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Partial pages are read before they are written.
    Rmw,
    /// Requests are widened to whole pages.
    Round,
    /// Requests are skipped and counted.
    Drop,
}

/// What happens to trace requests beyond the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The run fails.
    Error,
    /// Used pages are renumbered from 0.
    Compact,
    /// Addresses wrap at the capacity.
    Wrap,
}
