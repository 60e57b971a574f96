//! What is written: a trace, a generated workload, or the shape that stands for an unknown load.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use onefold_config::Load as ConfigLoad;
use onefold_trace::workload::{Request, Workload};
use onefold_trace::{Info, TraceOp};
use onefold_tracefile::{Options, TraceSource};
use onefold_units::convert::{float, floor_u64, u64_from};
use onefold_units::{Op, PAGE_BYTES};
use serde_json::{Value, json};

use crate::cmd::trace::trace_error;
use crate::error::{CliError, Exit};

/// Most pages that a load reads and writes in a run, roughly.
pub(super) const WRITTEN_PAGES_MAX: u64 = 1 << 21;

/// Most requests in a run.
const REQUESTS_MAX: u64 = 1 << 21;

/// Ends of writes that a later one may go on from: a file system writes several files in turns.
const STREAMS: usize = 16;

/// The load of which nothing is known: small random writes, and a flush now and then.
const SHAPE: &str = "randwrite,bs=4KiB,qd=32,flush_every=32";

/// Requests of a generator from which their mean size is taken, and by which two are compared.
const SAMPLE: usize = 4096;

/// Most passes over a trace.
const PASSES_MAX: u64 = 10_000;

/// What is written to the drive, with a volume and without.
#[derive(Clone, Debug)]
pub(super) enum Load {
    Trace(Box<Trace>),
    /// A workload in the words of `sim run --workload`; without a range it has that of the data.
    Generated(String),
}

/// A trace that was looked through.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) path: PathBuf,
    pub(super) options: Options,
    /// How it is read.
    pub(super) interpretation: String,
    pub(super) counts: Counts,
    requests: u64,
    /// Pages read and written by a request, on average.
    pages_per_request: f64,
    untimed: bool,
    /// End of its addresses, in bytes.
    end_bytes: u64,
    /// The same once regions of 1 MiB that it does not touch are left out.
    compact_bytes: u64,
}

/// What a trace is like.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    writes: u64,
    written_bytes: u64,
    mean_write_bytes: f64,
    /// Share of the writes that begin where one of the last 16 ended.
    sequential_share: f64,
    flushes_per_write: f64,
    /// Share of the writes that go to the most written fifth of the pages.
    top20_share: f64,
    /// Bytes that are written at least once.
    footprint_bytes: u64,
}

/// What a load is run on, with and without a volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// Capacity of the drive.
    pub(super) drive_bytes: u64,
    /// Capacity of the volume on it.
    pub(super) volume_bytes: u64,
    /// Bytes of data that are there before.
    pub(super) data_bytes: u64,
    /// Pages that are to be written at least.
    pub(super) wanted_pages: u64,
}

/// How a load is run on a drive.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) load: ConfigLoad,
    /// Keys of the configuration.
    pub(super) sets: Vec<String>,
    /// Requests after which it is cut off.
    pub(super) requests_max: u64,
}

impl Load {
    /// The load of these words; without any, the shape.
    pub(super) fn generated(words: Option<&str>) -> Result<Self, CliError> {
        let words = words.unwrap_or(SHAPE);
        Workload::parse(words).map_err(|error| bad_workload(words, &error))?;
        Ok(Self::Generated(words.to_owned()))
    }

    /// Reads all of a trace.
    pub(super) fn trace(path: &Path, options: Options) -> Result<Self, CliError> {
        let failed = |error| trace_error(&error);
        let mut source = TraceSource::open(path, &options).map_err(failed)?;
        let (mut info, mut batch) = (Info::new(), Vec::new());
        let (mut ends, mut sequential) = (VecDeque::with_capacity(STREAMS), 0);
        while source.next_batch(&mut batch).map_err(failed)? {
            for record in &batch {
                info.add(record);
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
        let meta = source.meta();
        let pages = float(info.read_pages() + info.write_pages());
        Ok(Self::Trace(Box::new(Trace {
            path: path.to_owned(),
            interpretation: meta.interpretation.clone(),
            counts: Counts::of(&info, sequential),
            requests: info.requests(),
            pages_per_request: pages / float(info.requests().max(1)),
            untimed: meta.untimed,
            end_bytes: meta.end_bytes,
            compact_bytes: source.regions().total(),
            options,
        })))
    }

    /// Bytes that a drive has to have for it at least; 0 where it takes what there is.
    pub(super) fn needed_bytes(&self) -> u64 {
        match self {
            Self::Trace(trace) => trace.compact_bytes.min(trace.end_bytes),
            Self::Generated(_) => 0,
        }
    }

    pub(super) fn options(&self) -> Options {
        match self {
            Self::Trace(trace) => trace.options.clone(),
            Self::Generated(_) => Options::default(),
        }
    }

    /// How it is run on both sides of a comparison.
    pub(super) fn running(&self, space: &Space) -> Result<Running, CliError> {
        match self {
            Self::Trace(trace) => trace.running(space),
            Self::Generated(words) => generated(words, space),
        }
    }

    /// One line for people.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Trace(trace) => trace.counts.described(&trace.path),
            Self::Generated(words) if words == SHAPE => {
                format!("{words} over the data: nothing is known of yours (--trace, --workload)")
            }
            Self::Generated(words) => words.clone(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Trace(trace) => trace.counts.to_json(&trace.path),
            Self::Generated(words) => json!({"workload": words}),
        }
    }
}

fn bad_workload(words: &str, error: &impl std::fmt::Display) -> CliError {
    CliError::new(Exit::Infeasible, "workload::spec", format!("workload `{words}`: {error}"))
        .help("see `onefold help sim run` and docs/simulate.md for the workload language")
}

/// Runs a workload over the data, unless it names a range.
fn generated(words: &str, space: &Space) -> Result<Running, CliError> {
    let parse = |words: &str| Workload::parse(words).map_err(|error| bad_workload(words, &error));
    let is_pattern = matches!(parse(words)?, Workload::Pattern(_));
    let has = |key: &str| words.split(',').any(|part| part.trim().starts_with(key));
    let mut words = words.to_owned();
    if is_pattern && !has("range=") {
        words = format!("{words},range={}B", space.data_bytes);
    }
    if words.starts_with(SHAPE) && !has("requests=") {
        // All data is overwritten once; each 33rd request is a flush.
        let writes = space.data_bytes / PAGE_BYTES;
        let requests = (writes + writes / 32).min(WRITTEN_PAGES_MAX / 2);
        words = format!("{words},requests={requests}");
    }
    let workload = parse(&words)?;
    let sample = |bytes: u64| -> Result<Vec<Request>, CliError> {
        let made = workload.instantiate(bytes, 0).map_err(|error| bad_workload(&words, &error))?;
        Ok(made.take(SAMPLE).collect())
    };
    let requests = sample(space.volume_bytes)?;
    if requests != sample(space.drive_bytes)? {
        let text = format!(
            "workload `{words}` depends on the capacity, and a volume exports less than its drive"
        );
        return Err(CliError::new(Exit::Usage, "volume::load", text)
            .help("name the addresses in bytes, such as range=1GiB"));
    }
    let moves = |request: &&Request| matches!(request.op, Op::Read | Op::Write);
    let bytes: u64 = requests.iter().filter(moves).map(|request| u64::from(request.len)).sum();
    let pages = float(bytes) / float(PAGE_BYTES) / float(u64_from(requests.len()).max(1));
    Ok(Running {
        load: ConfigLoad::Workload(words),
        sets: Vec::new(),
        requests_max: requests_max(pages),
    })
}

/// Requests of so many pages that are simulated at most.
fn requests_max(pages_per_request: f64) -> u64 {
    floor_u64(float(WRITTEN_PAGES_MAX) / pages_per_request.max(0.01)).clamp(1, REQUESTS_MAX)
}

impl Trace {
    fn running(&self, space: &Space) -> Result<Running, CliError> {
        let fit = match space.volume_bytes.min(space.drive_bytes) {
            bytes if bytes >= self.end_bytes => "error",
            bytes if bytes >= self.compact_bytes => "compact",
            bytes => return Err(self.too_large(bytes)),
        };
        let pages = (self.counts.written_bytes / PAGE_BYTES).max(1);
        // To the nearest: the more often a program is repeated, the less does the state before it count.
        let passes = ((space.wanted_pages + pages / 2) / pages).clamp(1, PASSES_MAX);
        let mut sets = vec![
            format!("run.fit={fit}"),
            format!("run.repeat={passes}"),
            "run.until=count".to_owned(),
        ];
        if self.untimed {
            sets.push("run.mode=closed".to_owned());
        }
        Ok(Running {
            load: ConfigLoad::Trace(self.path.clone()),
            sets,
            requests_max: requests_max(self.pages_per_request),
        })
    }

    fn too_large(&self, bytes: u64) -> CliError {
        let text = format!(
            "{}: the trace needs {} bytes ({} where regions that it does not touch are left out), a volume on this drive \
             exports {bytes}",
            self.path.display(),
            self.end_bytes,
            self.compact_bytes,
        );
        CliError::new(Exit::BadTrace, "trace::fit", text).help(
            "judge a larger drive (--size), or a part of the trace: `onefold trace sample` makes one",
        )
    }

    /// Requests of a pass.
    pub(super) const fn requests(&self) -> u64 {
        self.requests
    }
}

impl Counts {
    fn of(info: &Info, sequential: u64) -> Self {
        let (writes, flushes) = (info.of(TraceOp::Write), info.of(TraceOp::Flush));
        let per_write =
            |count: f64| if writes.requests == 0 { 0.0 } else { count / float(writes.requests) };
        Self {
            writes: writes.requests,
            written_bytes: writes.bytes,
            mean_write_bytes: per_write(float(writes.bytes)),
            sequential_share: per_write(float(sequential)),
            flushes_per_write: per_write(float(flushes.requests)) + info.fua_share(),
            top20_share: info.top_write_share(5),
            footprint_bytes: info.written_pages() * PAGE_BYTES,
        }
    }

    fn described(&self, path: &Path) -> String {
        format!(
            "{}: {} writes of {:.0} B, {:.0} % sequential, {:.2} flushes per write, {:.0} % of the writes to a fifth of {}",
            path.display(),
            self.writes,
            self.mean_write_bytes,
            self.sequential_share * 100.0,
            self.flushes_per_write,
            self.top20_share * 100.0,
            crate::cmd::ssd::render::size(self.footprint_bytes),
        )
    }

    fn to_json(&self, path: &Path) -> Value {
        json!({
            "trace": path.display().to_string(),
            "writes": self.writes,
            "mean_write_bytes": self.mean_write_bytes,
            "sequential_share": self.sequential_share,
            "flushes_per_write": self.flushes_per_write,
            "top20_write_share": self.top20_share,
            "write_footprint_bytes": self.footprint_bytes,
        })
    }
}
