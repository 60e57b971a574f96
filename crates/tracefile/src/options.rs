//! How to read a trace file.

use onefold_trace::{Event, FormatSpec, MAX_GAP_NS, OnBadLine};

/// Which lines are one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Merge {
    /// Lines of equal time in formats that split requests (fiu), none elsewhere.
    #[default]
    Auto,
    /// None.
    Off,
    /// Adjacent lines of one client at most this many nanoseconds apart, in any format.
    Within(u64),
}

/// What is subtracted from every offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shift {
    /// Nothing.
    #[default]
    None,
    /// The commonest offset modulo 4 KiB, if it covers more than 70 % of the reads and writes.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

/// What to do with a trace larger than the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fit {
    /// Refuse it.
    #[default]
    Error,
    /// Renumber the touched regions of 1 MiB without gaps, whether or not the trace fits.
    Compact,
    /// Take offsets modulo the device.
    Wrap,
}

/// How to read a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The format, if it should not be detected.
    pub format: Option<FormatSpec>,
    /// Further files of a trace that blktrace wrote per CPU; merged by time.
    pub cpu_files: Vec<std::path::PathBuf>,
    /// Bad lines.
    pub on_bad_line: OnBadLine,
    /// Event of block-layer traces.
    pub event: Event,
    /// Allow formats that cannot tell reads from writes.
    pub cache_study: bool,
    /// Only this device; all if `None`.
    pub device: Option<String>,
    /// A longer gap between requests is cut to nothing.
    pub max_gap_ns: u64,
    /// Which lines are one request.
    pub merge: Merge,
    /// What is subtracted from every offset.
    pub shift: Shift,
    /// Spaces requests of equal times evenly inside the clock's tick.
    pub spread_ties: bool,
    /// Lays devices one after another, each rounded up to 1 GiB, in one address space with device
    /// number 0.
    pub flat: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            cpu_files: Vec::new(),
            on_bad_line: OnBadLine::Fail,
            event: Event::Issue,
            cache_study: false,
            device: None,
            max_gap_ns: MAX_GAP_NS,
            merge: Merge::Auto,
            shift: Shift::None,
            spread_ties: false,
            flat: true,
        }
    }
}
