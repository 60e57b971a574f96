//! The log as an index: which entry wrote which units, and from when on that is durable.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use onefold_device::{WriteLogError, WriteLogReader};
use onefold_units::convert::index;
use rustix::fs::{SeekFrom, seek};

use crate::CrashError;

/// Unit where every write is aligned to it.
const PAGE: u64 = 4096;

/// Where the content of a unit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From this byte of the log on.
    Log(u64),
    /// It was discarded.
    Zeroes,
}

/// What an entry was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Data was written.
    Write {
        /// Whether it was durable when it was answered.
        fua: bool,
    },
    /// A range was discarded.
    Discard,
    /// What had completed before is durable.
    Flush,
    /// Somebody wanted to find this place again.
    Mark,
}

/// One entry of the log, in the order in which they completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in the log, from 1. A write that asks for a flush before it is two events of one entry.
    pub entry: u64,
    /// What it was.
    pub what: What,
    /// First byte that it is about.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// The text of a mark.
    pub mark: Option<String>,
    /// From which position on it is durable: behind the flush that covers it, or behind itself. `usize::MAX`: never.
    durable: usize,
    data_at: u64,
}

/// A version of a unit: the event that wrote it, and what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) event: u32,
    pub(crate) source: Source,
}

/// Every write of a disk, and the disk before.
#[derive(Debug)]
pub struct Log {
    base: File,
    base_path: PathBuf,
    /// Bytes of the disk.
    size: u64,
    data: File,
    data_path: PathBuf,
    unit: u64,
    events: Vec<Event>,
    /// By unit, in order of completion.
    versions: BTreeMap<u64, Vec<Version>>,
    /// Whether entries behind the last whole one are missing.
    is_cut_short: bool,
}

impl Log {
    /// Reads a log of dm-log-writes, and takes the disk as it was before.
    ///
    /// # Errors
    /// A file cannot be read, is no log, or the log is that of a larger disk. A log that was cut short is read up to its last whole
    /// entry.
    pub fn open(log: &Path, base: &Path) -> Result<Self, CrashError> {
        let failed = |source| CrashError::Base { path: base.to_owned(), source };
        let base_file = File::open(base).map_err(failed)?;
        let size = base_file.metadata().map_err(failed)?.len();
        let mut reader = WriteLogReader::open(log)?;
        let (events, is_cut_short) = events(&mut reader, size)?;
        let is_aligned =
            |event: &Event| event.offset.is_multiple_of(PAGE) && event.bytes.is_multiple_of(PAGE);
        let unit = if events.iter().all(is_aligned) { PAGE } else { reader.sector_bytes().into() };
        let data_path = log.to_owned();
        let data = File::open(log)
            .map_err(|source| CrashError::Data { path: data_path.clone(), source })?;
        let mut log = Self {
            base: base_file,
            base_path: base.to_owned(),
            size,
            data,
            data_path,
            unit,
            events,
            versions: BTreeMap::new(),
            is_cut_short,
        };
        log.date();
        log.index();
        Ok(log)
    }

    /// Says of each event from when on it is durable.
    fn date(&mut self) {
        let mut flushed = usize::MAX;
        for (at, event) in self.events.iter_mut().enumerate().rev() {
            if event.what == What::Flush {
                flushed = at + 1;
            }
            event.durable = match event.what {
                What::Write { fua: true } => at + 1,
                _ => flushed,
            };
        }
    }

    /// Notes the versions of each unit. Of a discard only the units that hold something: others read as zeroes anyway.
    fn index(&mut self) {
        for (at, event) in self.events.iter().enumerate() {
            // More entries than 2^32 have no room in memory.
            let number = u32::try_from(at).unwrap_or(u32::MAX);
            let units = event.offset / self.unit..(event.offset + event.bytes) / self.unit;
            match event.what {
                What::Write { .. } => {
                    for unit in units {
                        let source = Source::Log(event.data_at + unit * self.unit - event.offset);
                        let version = Version { event: number, source };
                        self.versions.entry(unit).or_default().push(version);
                    }
                }
                What::Discard => {
                    for unit in self.held(units) {
                        let version = Version { event: number, source: Source::Zeroes };
                        self.versions.entry(unit).or_default().push(version);
                    }
                }
                What::Flush | What::Mark => {}
            }
        }
    }

    /// The units of a range that were written, or that the disk before has data for.
    fn held(&self, units: Range<u64>) -> Vec<u64> {
        let mut held: Vec<u64> =
            self.versions.range(units.clone()).map(|(unit, _)| *unit).collect();
        let (mut at, end) = (units.start * self.unit, units.end * self.unit);
        while at < end {
            let Some(data) = self.data_from(at).filter(|data| data.start < end) else { break };
            held.extend(data.start / self.unit..data.end.min(end).div_ceil(self.unit));
            at = data.end;
        }
        held.sort_unstable();
        held.dedup();
        held
    }

    /// The next range of the disk before that is no hole; where the file system cannot tell, all the rest.
    fn data_from(&self, at: u64) -> Option<Range<u64>> {
        let start = match seek(&self.base, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => return None,
            Err(_) => return Some(at..self.size),
        };
        let end = seek(&self.base, SeekFrom::Hole(start)).unwrap_or(self.size);
        Some(start..end.max(start + self.unit))
    }

    /// Bytes of the disk.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// What is there or not as a whole after a power cut: 4 KiB, or a sector of the log where a write is smaller.
    #[must_use]
    pub const fn unit_bytes(&self) -> u64 {
        self.unit
    }

    /// The entries, in the order in which they completed.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Whether the log ends in the middle of an entry, which then does not count.
    #[must_use]
    pub const fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Position behind the last flush before `at`, from which on nothing is durable but what has FUA.
    pub(crate) fn epoch(&self, at: usize) -> usize {
        let before = self.events[..at].iter().rposition(|event| event.what == What::Flush);
        before.map_or(0, |flush| flush + 1)
    }

    /// Units that an event wrote, and what to.
    pub(crate) fn written(&self, event: usize) -> impl Iterator<Item = (u64, Source)> + '_ {
        let of = &self.events[event];
        let units = of.offset / self.unit..(of.offset + of.bytes) / self.unit;
        let is_data = matches!(of.what, What::Write { .. } | What::Discard);
        let units = if is_data { units } else { 0..0 };
        let own = move |(unit, versions): (&u64, &Vec<Version>)| {
            let of = versions.iter().find(|version| index(version.event) == event)?;
            Some((*unit, of.source))
        };
        self.versions.range(units).filter_map(own)
    }

    /// What is durable of a unit when the power is cut at a position; `None` is the disk before.
    pub(crate) fn durable(&self, unit: u64, at: usize) -> Option<Version> {
        let versions = self.versions.get(&unit)?;
        let before = versions.partition_point(|version| index(version.event) < at);
        let durable = |version: &&Version| self.events[index(version.event)].durable <= at;
        versions[..before].iter().rev().find(durable).copied()
    }

    /// Fills `bytes` with the content of a unit.
    pub(crate) fn read(
        &self,
        unit: u64,
        source: Option<Source>,
        bytes: &mut [u8],
    ) -> Result<(), CrashError> {
        match source {
            Some(Source::Zeroes) => bytes.fill(0),
            Some(Source::Log(at)) => self
                .data
                .read_exact_at(bytes, at)
                .map_err(|source| CrashError::Data { path: self.data_path.clone(), source })?,
            None => self.read_base(unit * self.unit, bytes)?,
        }
        Ok(())
    }

    /// Fills `bytes` with what the disk before has from a byte on.
    pub(crate) fn read_base(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CrashError> {
        let read = self.base.read_exact_at(bytes, offset);
        read.map_err(|source: io::Error| CrashError::Base { path: self.base_path.clone(), source })
    }

    /// Units of a range that some entry wrote.
    pub(crate) fn touched(&self, units: Range<u64>) -> impl Iterator<Item = u64> {
        self.versions.range(units).map(|(unit, _)| *unit)
    }
}

/// All whole entries, and whether there is a part of one behind them.
fn events(data: &mut WriteLogReader, size: u64) -> Result<(Vec<Event>, bool), CrashError> {
    let mut events = Vec::new();
    loop {
        let logged = match data.read_next() {
            Ok(Some(logged)) => logged,
            Ok(None) => return Ok((events, false)),
            Err(WriteLogError::Cut { .. }) => return Ok((events, true)),
            Err(error) => return Err(error.into()),
        };
        let (entry, offset, bytes) = (logged.number + 1, logged.offset(), logged.len());
        if offset + bytes > size {
            return Err(CrashError::Beyond { entry, end: offset + bytes, size });
        }
        let mut push = |what, bytes, mark| {
            let (durable, data_at) = (usize::MAX, logged.data_at());
            events.push(Event { entry, what, offset, bytes, mark, durable, data_at });
        };
        if logged.entry.is_flush() {
            push(What::Flush, 0, None);
        }
        if logged.mark.is_some() {
            push(What::Mark, 0, logged.mark.clone());
        }
        if logged.entry.is_discard() {
            push(What::Discard, bytes, None);
        } else if bytes > 0 {
            push(What::Write { fua: logged.entry.is_fua() }, bytes, None);
        }
    }
}
