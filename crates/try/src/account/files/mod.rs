//! What the file system wrote, by what it is: data of which file, journal, metadata, unknown.
//!
//! [`Layout`] knows what has a fixed place, [`Snapshot`] which file has which bytes at a moment;
//! [`Owners`] puts both together, and [`FileSystem`] adds up the requests of a recording.

mod ext4;
mod layout;
mod owners;
mod read;
mod snapshot;
mod xfs;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use onefold_trace::{Flags, Record, TraceOp};
use onefold_tracefile::{Options, TraceFileError, TraceSource};
use onefold_units::convert::{low64, u64_from};
use serde::{Deserialize, Serialize};

pub use layout::{Fixed, Layout};
pub use owners::{Look, Owner, Owners};
pub use snapshot::Snapshot;

/// Files that are listed at most, those that cost most.
const LISTED_MAX: usize = 1000;

/// What a file system sent to its disk. Keys that results of `sim run` have in `host` mean the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// The file systems on the disk before the run.
    pub systems: Vec<String>,
    /// Read requests.
    pub read_requests: u64,
    /// Write requests, with and without FUA.
    pub write_requests: u64,
    /// Write requests that are answered when they are durable.
    pub fua_requests: u64,
    /// Trim requests.
    pub trim_requests: u64,
    /// Requests to write zeroes, which carry no data.
    pub zero_requests: u64,
    /// Flush requests.
    pub flush_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written: the sum of `by`.
    pub write_bytes: u64,
    /// Bytes trimmed.
    pub trim_bytes: u64,
    /// Bytes that became zeroes without data.
    pub zero_bytes: u64,
    /// Bytes written, by what they are.
    pub by: ByOwner,
    /// Files by the bytes of their data that were written, the most first: 1,000 at most.
    pub files: Vec<FileCost>,
    /// Files with data that was written.
    pub files_count: u64,
    /// Looks by which files are known.
    pub looks: u64,
    /// Why files are not known.
    pub remarks: Vec<String>,
}

/// Bytes written, by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByOwner {
    /// Data of files.
    pub data: u64,
    /// The journal.
    pub journal: u64,
    /// Tables and folders.
    pub metadata: u64,
    /// What cannot be known.
    pub unknown: u64,
}

/// What a file cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCost {
    /// Its path below the folder of the program.
    pub path: String,
    /// Bytes of its data that were written.
    pub write_bytes: u64,
    /// Write requests with data of it.
    pub write_requests: u64,
}

impl ByOwner {
    /// Each name with its bytes.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 4] {
        [
            ("data", self.data),
            ("journal", self.journal),
            ("metadata", self.metadata),
            ("unknown", self.unknown),
        ]
    }
}

impl Look {
    /// A look now, in nanoseconds since 1970: the scale of [`attribute`].
    ///
    /// # Errors
    /// As [`Snapshot::take`].
    pub fn now(dir: &Path) -> io::Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { at: low64(since.as_nanos()), snapshot: Snapshot::take(dir)? })
    }
}

/// Requests of a recording, added up.
#[derive(Debug)]
pub struct Tally<'a> {
    owners: &'a Owners,
    sum: FileSystem,
    files: BTreeMap<&'a str, FileCost>,
}

impl<'a> Tally<'a> {
    /// Nothing yet.
    #[must_use]
    pub fn new(owners: &'a Owners) -> Self {
        let mut remarks = Vec::new();
        for remark in owners.looks().iter().flat_map(|look| &look.snapshot.remarks) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        let sum = FileSystem {
            systems: owners.layout().systems.clone(),
            looks: u64_from(owners.looks().len()),
            remarks,
            ..FileSystem::default()
        };
        Self { owners, sum, files: BTreeMap::new() }
    }

    /// A request at a time on the scale of the looks.
    pub fn add(&mut self, at: u64, record: &Record) {
        let sum = &mut self.sum;
        match record.op {
            TraceOp::Read => {
                sum.read_requests += 1;
                sum.read_bytes += record.len;
            }
            TraceOp::Write => self.write(at, record),
            TraceOp::Flush => sum.flush_requests += 1,
            TraceOp::Trim => {
                sum.trim_requests += 1;
                sum.trim_bytes += record.len;
            }
            TraceOp::WriteZeroes => {
                sum.zero_requests += 1;
                sum.zero_bytes += record.len;
            }
            TraceOp::Remap | TraceOp::Append | TraceOp::Zone => {}
        }
    }

    fn write(&mut self, at: u64, record: &Record) {
        let sum = &mut self.sum;
        sum.write_requests += 1;
        sum.fua_requests += u64::from(record.flags.has(Flags::FUA));
        sum.write_bytes += record.len;
        let mut last = None;
        let end = record.offset.saturating_add(record.len);
        for (owner, bytes) in self.owners.of(at, record.offset..end) {
            match owner {
                Owner::Journal => sum.by.journal += bytes,
                Owner::Metadata => sum.by.metadata += bytes,
                Owner::Unknown => sum.by.unknown += bytes,
                Owner::File(path) => {
                    sum.by.data += bytes;
                    let file = self.files.entry(path).or_default();
                    file.write_bytes += bytes;
                    file.write_requests += u64::from(last != Some(path));
                    last = Some(path);
                }
            }
        }
    }

    /// The sum.
    #[must_use]
    pub fn finish(self) -> FileSystem {
        let named = |(path, cost): (&str, FileCost)| FileCost { path: path.to_owned(), ..cost };
        let mut files: Vec<FileCost> = self.files.into_iter().map(named).collect();
        let files_count = u64_from(files.len());
        files.sort_by(|a, b| (b.write_bytes, &a.path).cmp(&(a.write_bytes, &b.path)));
        files.truncate(LISTED_MAX);
        FileSystem { files, files_count, ..self.sum }
    }
}

/// What a recording wrote, by owners whose looks have times since 1970, and the seconds from its
/// first request to its last end.
///
/// # Errors
/// The recording cannot be read.
pub fn attribute(requests: &Path, owners: &Owners) -> Result<(FileSystem, f64), TraceFileError> {
    // No pause is cut out: looks have true times.
    let options = Options { max_gap_ns: u64::MAX, ..Options::default() };
    let mut source = TraceSource::open(requests, &options)?;
    let epoch = source.meta().epoch_unix_ns.unwrap_or(0);
    let (mut tally, mut batch, mut end) = (Tally::new(owners), Vec::new(), 0);
    while source.next_batch(&mut batch)? {
        for record in &batch {
            tally.add(epoch.saturating_add(record.t_ns), record);
            end = end.max(record.t_ns.saturating_add(record.lat_ns.unwrap_or(0)));
        }
    }
    Ok((tally.finish(), onefold_units::convert::float(end) / 1e9))
}
