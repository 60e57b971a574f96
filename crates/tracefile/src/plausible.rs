//! Numbers that no real trace has tell that the units are others than assumed.

use std::path::Path;

use onefold_trace::{Scan, TraceOp};

use crate::error::TraceFileError;

/// 1 PiB.
const FOOTPRINT_MAX: u64 = 1 << 50;
/// 10 years.
const DURATION_MAX_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;
const MEAN_MIN: u64 = 512;
const MEAN_MAX: u64 = 64 << 20;

/// Refuses implausible sums. `duration_ns` is after the jump rule.
pub(crate) fn check(scan: &Scan, duration_ns: u64, path: &Path) -> Result<(), TraceFileError> {
    let refuse = |what, found, expected, proposal: &str| {
        Err(TraceFileError::Implausible {
            path: path.to_path_buf(),
            what,
            found,
            expected,
            proposal: proposal.to_owned(),
        })
    };
    let footprint = scan.touched_bytes();
    if footprint > FOOTPRINT_MAX {
        return refuse(
            "the footprint",
            format!("{} TiB", footprint >> 40),
            "at most 1 PiB",
            "perhaps addresses are in bytes: try --trace-format FORMAT:addr=bytes",
        );
    }
    if duration_ns > DURATION_MAX_NS {
        return refuse(
            "the duration",
            format!("{} days", duration_ns / (86_400 * 1_000_000_000)),
            "at most 10 years",
            "perhaps times are in a smaller unit: try --trace-format FORMAT:time=ns, us or ms, or a \
             smaller --max-gap",
        );
    }
    let Some(mean) = scan.data_bytes.checked_div(scan.data_requests) else { return Ok(()) };
    if mean < MEAN_MIN {
        return refuse(
            "the mean request",
            format!("{mean} bytes"),
            "at least 512 bytes",
            "perhaps sizes are in sectors: try --trace-format FORMAT:addr=512 or another format",
        );
    }
    if mean > MEAN_MAX {
        return refuse(
            "the mean request",
            format!("{} MiB", mean >> 20),
            "at most 64 MiB",
            "perhaps sizes are in bytes: try --trace-format FORMAT:addr=bytes or another format",
        );
    }
    Ok(())
}

/// A trace that could hold both directions and holds one.
pub(crate) fn one_direction(reads: u64, writes: u64) -> Option<String> {
    let only = match (reads, writes) {
        (0, 2..) => TraceOp::Write,
        (2.., 0) => TraceOp::Read,
        _ => return None,
    };
    let word = if only == TraceOp::Read { "reads" } else { "writes" };
    Some(format!("all requests are {word}: check the direction (:read=0 or :read=1)"))
}
