//! What a trace writes.

use std::collections::VecDeque;
use std::path::Path;

use onefold_trace::{Info, TraceOp};
use onefold_tracefile::{Options, TraceSource};
use onefold_units::convert::float;
use serde_json::{Value, json};

use crate::cmd::trace::trace_error;
use crate::error::CliError;

/// Ends of writes that a later one may go on from: a file system writes several files in turns.
const STREAMS: usize = 16;

/// What decides in a trace.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) writes: u64,
    pub(super) mean_write_bytes: f64,
    /// Share of the writes that begin where one of the last 16 ended.
    pub(super) sequential_share: f64,
    pub(super) flushes_per_write: f64,
    /// Share of the writes that go to the most written fifth of the pages.
    pub(super) top20_share: f64,
    /// Bytes that are written at least once.
    pub(super) footprint_bytes: u64,
}

impl Workload {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let failed = |error| trace_error(&error);
        let mut source = TraceSource::open(path, &Options::default()).map_err(failed)?;
        let (mut counts, mut batch) = (Info::new(), Vec::new());
        let (mut ends, mut sequential) = (VecDeque::with_capacity(STREAMS), 0);
        while source.next_batch(&mut batch).map_err(failed)? {
            for record in &batch {
                counts.add(record);
                if record.op == TraceOp::Write {
                    let goes_on = ends.iter().position(|end| *end == record.offset);
                    sequential += u64::from(goes_on.is_some());
                    match goes_on {
                        Some(at) => drop(ends.remove(at)),
                        None if ends.len() == STREAMS => drop(ends.pop_front()),
                        None => {}
                    }
                    ends.push_back(record.offset.saturating_add(record.len));
                }
            }
        }
        let (writes, flushes) = (counts.of(TraceOp::Write), counts.of(TraceOp::Flush));
        let per_write =
            |count: f64| if writes.requests == 0 { 0.0 } else { count / float(writes.requests) };
        Ok(Self {
            writes: writes.requests,
            mean_write_bytes: per_write(float(writes.bytes)),
            sequential_share: per_write(float(sequential)),
            flushes_per_write: per_write(float(flushes.requests)) + counts.fua_share(),
            top20_share: counts.top_write_share(5),
            footprint_bytes: counts.written_pages() * 4096,
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "writes": self.writes,
            "mean_write_bytes": self.mean_write_bytes,
            "sequential_share": self.sequential_share,
            "random_share": 1.0 - self.sequential_share,
            "flushes_per_write": self.flushes_per_write,
            "top20_write_share": self.top20_share,
            "write_footprint_bytes": self.footprint_bytes,
        })
    }
}
