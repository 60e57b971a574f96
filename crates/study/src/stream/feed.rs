//! One source: a generator or a trace, in entries of the buffer.

use std::path::Path;

use onefold_config::size_text;
use onefold_trace::workload::{
    Generator, PAGE_BYTES, PageRequest, PageSource, Request, Workload as Spec, WorkloadError,
};
use onefold_trace::{Flags, Record, TraceOp};
use onefold_tracefile::{Options, TraceSource};
use onefold_units::convert::narrow;
use onefold_units::{Op, Rng};
use serde_json::{Value, json};

use super::PackedReq;
use crate::StudyError;
use crate::file::{Input, Source, Study, WarmUp, Workload};

/// Requests fetched at once.
const BATCH: usize = 1024;

/// A source being read.
pub(crate) struct Feed {
    origin: Origin,
    entry: u64,
    /// Bytes added to every address.
    base: u64,
    tenant: u8,
    buffer: Vec<PackedReq>,
    at: usize,
}

enum Origin {
    Generator { generator: Box<Generator>, batch: Vec<Request> },
    Pages { source: Box<dyn Pages>, batch: Vec<PageRequest> },
    Trace { trace: Box<TraceSource>, batch: Vec<Record>, workload: String },
}

/// A source in pages of which copies can be made.
trait Pages: PageSource {
    fn boxed_clone(&self) -> Box<dyn Pages>;
}

impl<S: PageSource + Clone + 'static> Pages for S {
    fn boxed_clone(&self) -> Box<dyn Pages> {
        Box::new(self.clone())
    }
}

impl Origin {
    /// A copy in the same state; `None` of a trace, whose file is read only once.
    fn copy(&self) -> Option<Self> {
        match self {
            Self::Generator { generator, batch } => {
                Some(Self::Generator { generator: generator.clone(), batch: batch.clone() })
            }
            Self::Pages { source, batch } => {
                Some(Self::Pages { source: (**source).boxed_clone(), batch: batch.clone() })
            }
            Self::Trace { .. } => None,
        }
    }
}

/// What is known of a source before it is read.
#[derive(Debug)]
pub(crate) struct Facts {
    /// What determines its requests.
    pub(crate) identity: Value,
    /// Bytes of address space it may touch, from its own 0.
    pub(crate) end: u64,
    /// Bytes it reads and writes, if it knows.
    pub(crate) bytes: Option<u64>,
}

/// A source about to be opened.
struct Opening<'a> {
    study: &'a Study,
    workload: &'a Workload,
    source: &'a Source,
    tenant: u8,
}

impl Opening<'_> {
    fn open(&self) -> Result<(Origin, Facts), StudyError> {
        let Self { study, source, .. } = self;
        let has_load =
            matches!(&source.input, Input::Workload(spec) if matches!(**spec, Spec::Lsm(_)));
        if source.warm_up == WarmUp::Load && !has_load {
            let problem = "warm_up is \"load\", but the source has no load phase; give a size";
            return Err(self.refuse(problem));
        }
        // At most the device, as the file was checked: 0 if the offset is its end.
        let space = source.size.unwrap_or_else(|| study.device_bytes.saturating_sub(source.offset));
        let seed = Rng::fork(study.seed, u64::from(self.tenant)).next_u64();
        let spec = match &source.input {
            Input::Workload(spec) => spec,
            Input::Trace { path, options } => return self.open_trace(path, options, space),
        };
        let refused = |error: WorkloadError| {
            let space = size_text(space);
            self.refuse(format_args!("{error} (its addresses have {space})"))
        };
        let (origin, end, bytes) = match &**spec {
            Spec::Lsm(store) => {
                let source = store.instantiate(space, seed).map_err(refused)?;
                pages(Box::new(source), Some(store.traffic_bytes()))
            }
            Spec::Pages(volume) => {
                pages(Box::new(volume.instantiate(space, seed).map_err(refused)?), None)
            }
            other => {
                if other.has_remaps() {
                    return Err(self.refuse(
                        "it has remaps, and a study of buffers has no device that takes them: drop remap_share",
                    ));
                }
                let generator = Box::new(other.instantiate(space, seed).map_err(refused)?);
                let batch = vec![Request::EMPTY; BATCH];
                let end = generator.end_bytes().or_else(|| other.natural_bytes()).unwrap_or(space);
                (Origin::Generator { generator, batch }, end, None)
            }
        };
        let identity = json!({"workload": spec.canonical(), "seed": seed, "space": space});
        Ok((origin, Facts { identity, end, bytes }))
    }

    fn open_trace(
        &self,
        path: &Path,
        options: &Options,
        space: u64,
    ) -> Result<(Origin, Facts), StudyError> {
        let trace = TraceSource::open(path, options).map_err(|error| {
            let workload = self.workload.name.clone();
            StudyError::Trace { workload, source: Box::new(error) }
        })?;
        let meta = trace.meta();
        let device = options.device.clone();
        let format = meta.spec.format.name();
        let identity = json!({"trace": meta.sha256, "format": format, "device": device});
        let end = meta.end_bytes.next_multiple_of(u64::from(self.study.entry_bytes));
        if end > space {
            let [end, space] = [end, space].map(size_text);
            let text = format!(
                "the trace addresses {end}, expected at most the {space} of address space it has \
                 (size, or device - offset)"
            );
            return Err(self.refuse(text));
        }
        let workload = self.workload.name.clone();
        let origin = Origin::Trace { trace: Box::new(trace), batch: Vec::new(), workload };
        Ok((origin, Facts { identity, end, bytes: None }))
    }

    fn refuse(&self, problem: impl std::fmt::Display) -> StudyError {
        refuse(self.workload, self.source, problem)
    }
}

/// A source in pages, where its addresses end, and what it reads and writes.
fn pages(source: Box<dyn Pages>, bytes: Option<u64>) -> (Origin, u64, Option<u64>) {
    let end = u64::from(source.end_pages()) * u64::from(PAGE_BYTES);
    (Origin::Pages { source, batch: vec![PageRequest::EMPTY; BATCH] }, end, bytes)
}

fn pack_pages(
    requests: &[PageRequest],
    base: u64,
    tenant: u8,
    entry: u64,
    out: &mut Vec<PackedReq>,
) {
    let page = u64::from(PAGE_BYTES);
    out.extend(requests.iter().filter_map(|request| {
        let (first, len) = (u64::from(request.lpn) * page, u64::from(request.n) * page);
        packed(request.op, false, tenant, base + first, len, entry)
    }));
}

impl Feed {
    pub(crate) fn open(
        study: &Study,
        workload: &Workload,
        source: &Source,
        tenant: u8,
    ) -> Result<(Self, Facts), StudyError> {
        let (origin, facts) = Opening { study, workload, source, tenant }.open()?;
        let (entry, base) = (u64::from(study.entry_bytes), source.offset);
        Ok((Self { origin, entry, base, tenant, buffer: Vec::new(), at: 0 }, facts))
    }

    /// A copy that goes on from the same request; `None` of a trace.
    pub(crate) fn copy(&self) -> Option<Self> {
        let (origin, buffer) = (self.origin.copy()?, self.buffer.clone());
        Some(Self { origin, buffer, ..*self })
    }

    /// The next request.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<PackedReq>, StudyError> {
        while self.at == self.buffer.len() {
            if !self.fill()? {
                return Ok(None);
            }
        }
        let request = self.buffer[self.at];
        self.at += 1;
        Ok(Some(request))
    }

    /// The next request of the load phase; other requests follow it.
    pub(crate) fn next_of_load(&mut self) -> Option<PackedReq> {
        if self.at == self.buffer.len() {
            self.at = 0;
            self.buffer.clear();
            if let Origin::Pages { source, batch } = &mut self.origin {
                let made = source.fill_warm_up(batch);
                pack_pages(&batch[..made], self.base, self.tenant, self.entry, &mut self.buffer);
            }
        }
        let request = self.buffer.get(self.at).copied()?;
        self.at += 1;
        Some(request)
    }

    /// Fetches a batch; false if there are no more requests.
    fn fill(&mut self) -> Result<bool, StudyError> {
        self.at = 0;
        self.buffer.clear();
        let (entry, base, tenant) = (self.entry, self.base, self.tenant);
        let pack = |op, fua, offset: u64, len| packed(op, fua, tenant, base + offset, len, entry);
        match &mut self.origin {
            Origin::Generator { generator, batch } => {
                let made = generator.fill(batch);
                let requests = batch.iter().take(made);
                self.buffer
                    .extend(requests.filter_map(|r| pack(r.op, r.fua, r.offset, u64::from(r.len))));
                Ok(made > 0)
            }
            Origin::Pages { source, batch } => {
                let made = source.fill_pages(batch);
                pack_pages(&batch[..made], base, tenant, entry, &mut self.buffer);
                Ok(made > 0)
            }
            Origin::Trace { trace, batch, workload } => {
                let more = trace.next_batch(batch).map_err(|error| StudyError::Trace {
                    workload: workload.clone(),
                    source: Box::new(error),
                })?;
                let requests = batch.iter().filter_map(|record| {
                    pack(host_op(record)?, record.flags.has(Flags::FUA), record.offset, record.len)
                });
                self.buffer.extend(requests);
                Ok(more)
            }
        }
    }
}

pub(crate) fn refuse(
    workload: &Workload,
    source: &Source,
    problem: impl std::fmt::Display,
) -> StudyError {
    StudyError::Source {
        workload: workload.name.clone(),
        name: source.name.clone(),
        problem: problem.to_string(),
    }
}

/// A request in entries: a read or write has all it touches, a trim what it covers, `None` if that
/// is nothing.
fn packed(op: Op, fua: bool, tenant: u8, offset: u64, len: u64, entry: u64) -> Option<PackedReq> {
    let end = offset + len;
    // Generators write zeroes to deallocate; traces tell.
    let op = if op == Op::WriteZeroes { Op::Trim } else { op };
    let (first, end) = match op {
        Op::Flush => (0, 0),
        Op::Trim | Op::WriteZeroes => (offset.div_ceil(entry), end / entry),
        Op::Read | Op::Write => (offset / entry, end.div_ceil(entry)),
    };
    if first >= end && op != Op::Flush {
        return None;
    }
    // Addresses were checked against a device of less than 2^32 entries.
    Some(PackedReq { lpn: narrow(first), n: narrow(end - first), op, fua, tenant })
}

/// What a record asks of the buffer. Zeroes that deallocate are a trim; commands of other devices are
/// nothing.
fn host_op(record: &Record) -> Option<Op> {
    match record.op {
        TraceOp::Read => Some(Op::Read),
        TraceOp::Write => Some(Op::Write),
        TraceOp::Flush => Some(Op::Flush),
        TraceOp::WriteZeroes if record.flags.has(Flags::NO_UNMAP) => Some(Op::Write),
        TraceOp::Trim | TraceOp::WriteZeroes => Some(Op::Trim),
        TraceOp::Remap | TraceOp::Append | TraceOp::Zone => None,
    }
}

#[cfg(test)]
mod tests {
    use super::packed;
    use onefold_units::Op;

    #[test]
    fn reads_and_writes_round_outward_and_trims_inward() {
        let pack = |op, offset, len| packed(op, false, 3, offset, len, 4096).map(|r| (r.lpn, r.n));
        assert_eq!(pack(Op::Write, 4095, 2), Some((0, 2)));
        assert_eq!(pack(Op::Read, 4096, 4096), Some((1, 1)));
        assert_eq!(pack(Op::Trim, 1, 12_287), Some((1, 2)));
        assert_eq!(pack(Op::Trim, 1, 4096), None);
        assert_eq!(pack(Op::Write, 4096, 0), None);
        assert_eq!(pack(Op::Flush, 0, 0), Some((0, 0)));
    }
}
