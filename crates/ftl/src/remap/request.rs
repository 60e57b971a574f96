//! What a host asks of the remap command, and what it gets back (remap.md section 2).

use onefold_units::{Lpn, Nanos};

/// Ranges of one command at most.
pub(crate) const RANGES_MAX: u32 = 168;

/// Units that a command may have to copy while its ranges overlap: they are read before anything
/// changes.
pub(crate) const OVERLAPPING_COPIES_MAX: usize = 4096;

/// One range of a command, in logical units: `dst..dst + len` is to hold what `src..src + len` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapRange {
    /// First target.
    pub dst: Lpn,
    /// First source.
    pub src: Lpn,
    /// Units, at least 1.
    pub len: u32,
}

/// How a command is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a command")]
pub struct RemapOptions {
    /// Sources are unmapped at completion.
    pub moves: bool,
    /// Sources are unmapped when the first flush after the completion completes, unless they were
    /// written, trimmed or remapped since. After a power cut before that they stay.
    pub moves_on_flush: bool,
    /// All or nothing, also over a power cut. One unit that has to be skipped skips all.
    pub atomic: bool,
    /// A command with the number of one that is known to be done is not executed again. Moves need
    /// one to be repeated safely.
    pub id: Option<u128>,
    /// Where sharing is impossible the unit is skipped instead of copied.
    pub no_fallback: bool,
    /// Units whose contents differ are skipped.
    pub verify_equal: bool,
}

/// What became of one range, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemapOutcome {
    /// Mapped to the slot of their source, or unmapped like it.
    pub remapped: u32,
    /// Copied.
    pub copied: u32,
    /// Left as they were.
    pub skipped: u32,
}

/// A completed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemapDone {
    /// When it is complete, and durable.
    pub at: Nanos,
    /// By range. Empty if the command was done before.
    pub outcomes: Vec<RemapOutcome>,
    /// It had been done before, and was not executed again.
    pub repeated: bool,
}

/// What the device can do (remap.md section 2, `caps`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapCaps {
    /// Bytes of a logical unit: ranges are multiples of it.
    pub granularity: u32,
    /// Ranges per command.
    pub max_ranges: u32,
    /// Units per range.
    pub max_units: u32,
    /// Units that may share a slot; 0 = any number.
    pub max_refs: u32,
    /// Units are shared; otherwise every remap is a copy.
    pub shares: bool,
}

/// Why a command is refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemapError {
    /// No range, or an empty one.
    #[error("range {range} of the remap is empty")]
    Empty {
        /// Number of the range.
        range: u32,
    },
    /// Too many ranges.
    #[error("the remap has {ranges} ranges, at most {RANGES_MAX} are possible: split it")]
    TooManyRanges {
        /// Ranges asked for.
        ranges: u32,
    },
    /// A range leaves the device.
    #[error("range {range} of the remap ends at unit {end}, beyond the device of {units} units")]
    OutOfRange {
        /// Number of the range.
        range: u32,
        /// Its end.
        end: u64,
        /// Units of the device.
        units: u32,
    },
    /// Two target ranges overlap.
    #[error("targets of the remap overlap at unit {lpn}: which source counts is not defined")]
    Overlap {
        /// First unit that is target twice.
        lpn: u32,
    },
    /// The content of a source is lost.
    #[error("the content of source unit {lpn} is lost: leave it out, or write it first")]
    LostSource {
        /// The unit.
        lpn: u32,
    },
    /// Nobody would know after a power cut whether the command was done.
    #[error(
        "atomic and numbered remaps need a device with ftl.remap = \"ln\" or \"lh\": leave out \
         the number and the flag"
    )]
    NoRing,
    /// Sources overlap targets, and too many units have to be copied.
    #[error(
        "sources and targets overlap and {units} units have to be copied, at most \
         {OVERLAPPING_COPIES_MAX} are possible: split the remap"
    )]
    OverlappingCopies {
        /// Units to copy.
        units: u32,
    },
}
