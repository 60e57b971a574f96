//! Where requests come from: a generator, or a trace file shaped for the device.

use std::collections::VecDeque;

use onefold_config::{Align, Fit as ConfigFit, Run};
use onefold_trace::workload::{Generator, RemapFrom, Request};
use onefold_trace::{Record, Regions, TraceOp};
use onefold_tracefile::{Fit, TraceSource};
use onefold_units::{Keep, Keeper, Nanos, Op, PAGE_BYTES, keep};

use crate::SimError;
use crate::dependencies::{Known, Recorded};

/// Requests fetched at once: enough to load their map entries side by side.
pub(crate) const BATCH: usize = 64;

/// A stream of requests in order of time.
pub(crate) enum Source {
    Generator(Box<Generator>),
    Trace(Box<Replay>),
}

/// A trace on its way to the device.
pub(crate) struct Replay {
    trace: TraceSource,
    records: Vec<Record>,
    next: usize,
    fit: Shape,
    align: Align,
    /// The unit in bytes in which remaps are taken, if they are.
    remap_unit: Option<u32>,
    /// Requests that did not fit one call of `fill`.
    backlog: VecDeque<Request>,
    /// Requests left out: off the grid, or none of this device.
    skipped: u64,
    /// Of every write and remap handed out and not issued yet, what the trace tells about its pages:
    /// nothing of those of a remap. `None` if nobody asks.
    contents: Option<VecDeque<Vec<u128>>>,
    /// What requests waited for when the trace was recorded; `None` if nobody asks.
    recorded: Option<Recorded>,
    /// What it has to come to, where a run goes on.
    kept: Option<Kept>,
}

/// What is kept of a trace beside the requests that it gave.
struct Kept {
    skipped: u64,
    /// Writes and remaps in `contents`.
    told: usize,
    recorded: Option<Recorded>,
}

keep!(Kept { skipped, told } each { recorded });

/// How addresses are brought onto the device.
enum Shape {
    AsIs,
    Compact(Regions),
    Wrap(u64),
}

impl Source {
    /// Fills `out` as far as requests are left, and returns how many there were.
    #[inline]
    pub(crate) fn fill(&mut self, out: &mut [Request]) -> Result<usize, SimError> {
        match self {
            Self::Generator(generator) => Ok(generator.fill(out)),
            Self::Trace(replay) => replay.fill(out),
        }
    }

    /// Begins a trace again. Whether it is one.
    pub(crate) fn rewind(&mut self) -> Result<bool, SimError> {
        match self {
            Self::Generator(_) => Ok(false),
            Self::Trace(replay) => replay.rewind().map(|()| true),
        }
    }

    /// Requests of a trace that were left out so far, in all passes.
    pub(crate) const fn skipped(&self) -> u64 {
        match self {
            Self::Generator(_) => 0,
            Self::Trace(replay) => replay.skipped,
        }
    }

    /// What requests waited for, if that is replayed.
    pub(crate) const fn recorded(&mut self) -> Option<&mut Recorded> {
        match self {
            Self::Generator(_) => None,
            Self::Trace(replay) => replay.recorded.as_mut(),
        }
    }

    /// SHA-256 of a trace.
    pub(crate) fn sha256(&self) -> Option<&str> {
        match self {
            Self::Generator(_) => None,
            Self::Trace(replay) => Some(&replay.trace.meta().sha256),
        }
    }

    /// What is told about the pages of the next write: one id each, 0 if it is not known. To be asked
    /// once for each write and each remap, in their order.
    pub(crate) fn contents(&mut self) -> Option<Vec<u128>> {
        match self {
            Self::Generator(_) => None,
            Self::Trace(replay) => replay.contents.as_mut()?.pop_front(),
        }
    }
}

/// A source that begins anew is brought to where it was by what it gives: [`Source::passes_by`] for each batch, and then
/// [`Source::caught_up`].
impl Keep for Source {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let Self::Trace(replay) = self else { return };
        let told = replay.contents.as_ref().map_or(0, VecDeque::len);
        let recorded = replay.recorded.take();
        let anew = recorded.as_ref().map(Recorded::anew);
        let mut kept = Kept { skipped: replay.skipped, told, recorded };
        if keeper.reads() {
            // The one at hand goes on with the trace, and is replaced in the end.
            replay.recorded = std::mem::replace(&mut kept.recorded, anew);
            kept.keep(keeper);
            replay.kept = Some(kept);
        } else {
            kept.keep(keeper);
            replay.recorded = kept.recorded;
        }
    }
}

impl Source {
    /// The requests given so far were issued before: what goes with them is over.
    pub(crate) fn passes_by(&mut self) {
        let Self::Trace(replay) = self else { return };
        let Some(kept) = &replay.kept else { return };
        if let Some(recorded) = &mut replay.recorded {
            recorded.passes_by();
        }
        if let Some(contents) = &mut replay.contents {
            drop(contents.drain(..contents.len().saturating_sub(kept.told)));
        }
    }

    /// All that was issued passed by.
    pub(crate) fn caught_up(&mut self) {
        self.passes_by();
        if let Self::Trace(replay) = self
            && let Some(kept) = replay.kept.take()
        {
            (replay.skipped, replay.recorded) = (kept.skipped, kept.recorded);
        }
    }
}

impl Replay {
    pub(crate) fn new(
        trace: TraceSource,
        run: &Run,
        range_bytes: u64,
        (tells_contents, remap_unit): (bool, Option<u32>),
        known: Option<Known>,
    ) -> Result<Self, SimError> {
        let shape = match run.fit {
            ConfigFit::Error => Shape::AsIs,
            ConfigFit::Compact => Shape::Compact(trace.regions()),
            ConfigFit::Wrap => Shape::Wrap(range_bytes),
        };
        let policy = match run.fit {
            ConfigFit::Error => Fit::Error,
            ConfigFit::Compact => Fit::Compact,
            ConfigFit::Wrap => Fit::Wrap,
        };
        trace.fit(policy, range_bytes)?;
        Ok(Self {
            trace,
            records: Vec::new(),
            next: 0,
            fit: shape,
            align: run.align,
            remap_unit,
            backlog: VecDeque::new(),
            skipped: 0,
            contents: tells_contents.then(VecDeque::new),
            recorded: known.map(Recorded::new),
            kept: None,
        })
    }

    fn rewind(&mut self) -> Result<(), SimError> {
        self.trace = self.trace.again()?;
        self.next = self.records.len();
        self.recorded = self.recorded.take().map(|recorded| recorded.anew());
        Ok(())
    }

    fn fill(&mut self, out: &mut [Request]) -> Result<usize, SimError> {
        let mut filled = 0;
        while let Some(place) = out.get_mut(filled) {
            if let Some(request) = self.backlog.pop_front() {
                *place = request;
                filled += 1;
            } else if !self.shape_next()? {
                break;
            }
        }
        Ok(filled)
    }

    /// Turns the next record into requests. False when there are none left.
    fn shape_next(&mut self) -> Result<bool, SimError> {
        if self.next >= self.records.len() {
            self.next = 0;
            if !self.trace.next_batch(&mut self.records)? {
                return Ok(false);
            }
        }
        let record = &self.records[self.next];
        self.next += 1;
        let (align, backlog, skipped) = (self.align, &mut self.backlog, &mut self.skipped);
        let remap_unit = self.remap_unit;
        let contents = &mut self.contents;
        let before = backlog.len();
        let mut push = |record: &Record| {
            let from = backlog.len();
            match (record.source(), remap_unit) {
                (Some(source), Some(unit)) => {
                    *skipped += u64::from(!push_remap(record, source, (unit, align), backlog));
                }
                (Some(source), None) => push_written(record, source, align, backlog, skipped),
                _ => push_aligned(record, align, backlog, skipped),
            }
            if let Some(contents) = contents {
                push_contents(record, backlog.range(from..), contents);
            }
        };
        match &self.fit {
            Shape::AsIs => push(record),
            Shape::Compact(regions) => regions.map(record, |record| push(&record)),
            Shape::Wrap(bytes) => onefold_trace::wrap(record, *bytes, &mut |record| push(&record)),
        }
        if let Some(recorded) = &mut self.recorded {
            let depth = recorded.begin(record, self.backlog.len() - before);
            self.backlog.range_mut(before..).for_each(|request| request.depth = Some(depth));
        }
        Ok(true)
    }
}

/// Largest request of the engine; longer ones (discards may exceed 4 GiB) become several.
const LEN_MAX: u64 = 1 << 30;

fn push_aligned(record: &Record, align: Align, backlog: &mut VecDeque<Request>, skipped: &mut u64) {
    let Some(op) = host_op(record.op) else {
        *skipped += 1;
        return;
    };
    let mut offset = record.offset;
    let mut end = record.offset.saturating_add(record.len);
    let aligned = offset.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES);
    if !aligned && op != Op::Flush {
        match align {
            Align::Rmw => {}
            Align::Round => {
                offset -= offset % PAGE_BYTES;
                end = end.next_multiple_of(PAGE_BYTES);
            }
            Align::Drop => {
                *skipped += 1;
                return;
            }
        }
    }
    let fua = record.flags.has(onefold_trace::Flags::FUA);
    let at = Some(Nanos::new(record.t_ns));
    if op == Op::Flush {
        backlog.push_back(Request { at, ..Request::EMPTY });
        return;
    }
    while offset < end {
        let len = (end - offset).min(LEN_MAX);
        let len32 = u32::try_from(len).unwrap_or(u32::MAX);
        backlog.push_back(Request { op, fua, len: len32, offset, at, ..Request::EMPTY });
        offset += len;
    }
}

/// Adds a remap, unless it is off the grid of mapping units and such ones are dropped. A long one
/// becomes several, from its end if it moves data up: no source is a target before it was read.
fn push_remap(
    record: &Record,
    source: u64,
    (unit, align): (u32, Align),
    backlog: &mut VecDeque<Request>,
) -> bool {
    let aligned = (record.offset | source | record.len).is_multiple_of(u64::from(unit));
    if !aligned && align == Align::Drop {
        return false;
    }
    let moves = record.flags.has(onefold_trace::Flags::MOVE);
    let piece = |from: u64| Request {
        op: Op::Write,
        len: u32::try_from((record.len - from).min(LEN_MAX)).unwrap_or(u32::MAX),
        offset: record.offset + from,
        at: Some(Nanos::new(record.t_ns)),
        remap: Some(RemapFrom { offset: source + from, moves }),
        ..Request::EMPTY
    };
    let pieces = record.len.div_ceil(LEN_MAX);
    if record.offset > source {
        backlog.extend((0..pieces).rev().map(|n| piece(n * LEN_MAX)));
    } else {
        backlog.extend((0..pieces).map(|n| piece(n * LEN_MAX)));
    }
    true
}

/// Adds what a host does whose device takes no remaps: it writes the target, and trims the source of a
/// move where the target does not lie on it.
fn push_written(
    record: &Record,
    source: u64,
    align: Align,
    backlog: &mut VecDeque<Request>,
    skipped: &mut u64,
) {
    let write = Record::new(record.t_ns, TraceOp::Write, record.offset, record.len);
    push_aligned(&write, align, backlog, skipped);
    if record.flags.has(onefold_trace::Flags::MOVE) {
        let (first, end) = if source < record.offset {
            (source, record.offset.min(source + record.len))
        } else {
            (source.max(record.offset + record.len), source + record.len)
        };
        let trim = Record::new(record.t_ns, TraceOp::Trim, first, end.saturating_sub(first));
        push_aligned(&trim, align, backlog, skipped);
    }
}

/// Adds what a record tells about the pages of the requests made of it.
fn push_contents<'a>(
    record: &Record,
    requests: impl Iterator<Item = &'a Request>,
    contents: &mut VecDeque<Vec<u128>>,
) {
    let told: Vec<(u64, Option<u128>)> = record.contents().collect();
    let knows = told.iter().any(|(_, content)| content.is_some());
    for request in requests.filter(|request| request.op == Op::Write) {
        let (first, end) = (request.offset, request.offset + u64::from(request.len));
        let pages = first / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        let of_request = told.iter().filter(|(page, _)| knows && pages.contains(page));
        contents.push_back(of_request.map(|(_, content)| content.unwrap_or(0)).collect());
    }
}

/// The command of a block namespace, but for remaps; zone operations belong to other devices.
const fn host_op(op: TraceOp) -> Option<Op> {
    match op {
        TraceOp::Read => Some(Op::Read),
        TraceOp::Write => Some(Op::Write),
        TraceOp::Flush => Some(Op::Flush),
        TraceOp::Trim => Some(Op::Trim),
        TraceOp::WriteZeroes => Some(Op::WriteZeroes),
        TraceOp::Remap | TraceOp::Append | TraceOp::Zone => None,
    }
}
