//! What can be wrong with a workload specification.

use super::Pattern;

/// Why a workload specification was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Nothing was given.
    #[error("the workload is empty, expected a pattern such as `randwrite,bs=4KiB,qd=32`")]
    Empty,
    /// The first word names no pattern.
    #[error(
        "`{found}` is no access pattern{}; use randwrite, randread, write, read, randrw, mix or \
         one of the names that `onefold trace generate --list` shows",
        hint(*.nearest)
    )]
    UnknownPattern {
        /// The word.
        found: String,
        /// The pattern it may be a misspelling of.
        nearest: Option<&'static str>,
    },
    /// A key that does not exist.
    #[error(
        "unknown workload key `{key}`{}; the keys are {}",
        hint(*.nearest),
        known.join(", ")
    )]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The key it may be a misspelling of.
        nearest: Option<&'static str>,
        /// Every key of this kind of workload.
        known: &'static [&'static str],
    },
    /// A key without a value.
    #[error("workload key `{key}` has no value; write `{key}=VALUE`")]
    MissingValue {
        /// The key.
        key: &'static str,
    },
    /// A key given twice.
    #[error("workload key `{key}` is given twice; keep one")]
    DuplicateKey {
        /// The key.
        key: &'static str,
    },
    /// A value that is no number, or has the wrong unit or shape.
    #[error("`{key}={value}` is malformed: expected {expected}")]
    Malformed {
        /// The key.
        key: &'static str,
        /// The value as written.
        value: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// A word of a list of choices that does not exist.
    #[error("`{key}={value}` is unknown{}; use {choices}", hint(*.nearest))]
    UnknownChoice {
        /// The key.
        key: &'static str,
        /// The word as written.
        value: String,
        /// The choice it may be a misspelling of.
        nearest: Option<&'static str>,
        /// Every choice.
        choices: &'static str,
    },
    /// A number outside its limits.
    #[error("`{key}={value}` is out of limits: expected {limits}")]
    OutOfLimits {
        /// The key.
        key: &'static str,
        /// The value as written.
        value: String,
        /// The limits.
        limits: &'static str,
    },
    /// A size that does not consist of 512 B sectors.
    #[error(
        "`{key}` is {bytes} bytes, expected a multiple of 512 that is not 0; \
         note that KB is 1000 bytes and KiB is 1024"
    )]
    NotSectors {
        /// The key.
        key: &'static str,
        /// The size.
        bytes: u64,
    },
    /// Reads, trims and remaps are more than all requests.
    #[error(
        "read_share {read} and trim_share {trim}{} add up to more than 1; lower one of them",
        and_remap(*.remap)
    )]
    SharesExceedOne {
        /// Share of reads.
        read: f64,
        /// Share of trims.
        trim: f64,
        /// Share of remaps.
        remap: f64,
    },
    /// Remaps of parts of pages.
    #[error(
        "`remap_share` needs an `align` of whole pages of 4096 bytes, found {align}: a device maps \
         pages; say align=4KiB"
    )]
    RemapAlign {
        /// Bytes of the alignment.
        align: u32,
    },
    /// Two keys that contradict each other.
    #[error("`{first}` and `{second}` exclude each other; keep one")]
    Exclusive {
        /// One key.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A key that means something only beside another.
    #[error("`{key}` needs `{needs}`; add it or drop `{key}`")]
    Needs {
        /// The key.
        key: &'static str,
        /// What has to be given too.
        needs: &'static str,
    },
    /// A key that means nothing for the pattern.
    #[error(
        "`{key}` has no meaning for the pattern `{}`; drop it or choose another",
        .pattern.name()
    )]
    NotForPattern {
        /// The key.
        key: &'static str,
        /// The pattern.
        pattern: Pattern,
    },
    /// A length in drive writes for a workload that never writes.
    #[error("`drive_writes` never ends: the workload writes nothing; use `requests` or `bytes`")]
    NeverWrites,
    /// The range leaves the device.
    #[error("the range ends at byte {end}, but the device has {device} bytes; lower `range`")]
    RangeBeyondDevice {
        /// First byte after the range.
        end: u64,
        /// Size of the device in bytes.
        device: u64,
    },
    /// The range holds no request.
    #[error(
        "the range holds {range} bytes after rounding inwards to `align`, \
         less than one request of {request} bytes; raise `range` or lower `bs`"
    )]
    RangeTooSmall {
        /// Bytes of the range.
        range: u64,
        /// Bytes of the largest request.
        request: u64,
    },
    /// A workload with addresses of its own touches more than the range holds.
    #[error(
        "the workload touches up to {needed} bytes, but its range holds {range}; \
         take a larger device or range, or lower `requests`"
    )]
    FootprintTooLarge {
        /// Bytes of the range.
        range: u64,
        /// Bytes the workload needs.
        needed: u64,
    },
    /// The first word names no workload of the kind that was asked.
    #[error("`{found}` is no such workload{}; use {known}", hint(*.nearest))]
    UnknownGenerator {
        /// The word.
        found: String,
        /// The workload it may be a misspelling of.
        nearest: Option<&'static str>,
        /// Every choice.
        known: String,
    },
    /// The first word names no content model.
    #[error(
        "`{found}` is no content model{}; use unique, iid_zipf, exact_dup_ratio or recent",
        hint(*.nearest)
    )]
    UnknownContents {
        /// The word.
        found: String,
        /// The model it may be a misspelling of.
        nearest: Option<&'static str>,
    },
    /// Extents larger than files.
    #[error("`align` is {align} bytes, more than `file` or `memtable`; lower it")]
    AlignTooLarge {
        /// Bytes of the alignment.
        align: u64,
    },
    /// The files of a store may not fit its space.
    #[error(
        "`space` is {space} bytes, but this tree may need {needed} at times; raise `space`, or \
         lower `capacity` or the sizes of the tree"
    )]
    SpaceTooSmall {
        /// Bytes of the space.
        space: u64,
        /// Bytes it may need.
        needed: u64,
    },
    /// A loop over more pages than are only read.
    #[error("`loop` has {pages} pages, but only {read_only} are `read_only`; lower `loop`")]
    LoopTooLong {
        /// Pages of the loop.
        pages: u64,
        /// Pages that are only read.
        read_only: u64,
    },
    /// More positions than the generator can number.
    #[error("the range has {found} units of `align`, expected at most {limit}; raise `align`")]
    TooManyUnits {
        /// Units of the range.
        found: u64,
        /// The most this workload can use.
        limit: u64,
    },
}

fn and_remap(share: f64) -> String {
    if share > 0.0 { format!(" and remap_share {share}") } else { String::new() }
}

fn hint(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |word| format!(", did you mean `{word}`?"))
}
