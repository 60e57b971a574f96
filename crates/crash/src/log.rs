//! The log as an index: which entry wrote which units, and from when on that is durable.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use onefold_device::{WriteLogError, WriteLogReader};
use onefold_units::convert::index;
use rustix::fs::{SeekFrom, seek};

use crate::CrashError;

/// Largest unit: a page.
const PAGE: u64 = 4096;
/// Versions of a unit that are looked at one by one before a search.
const LOOK_AT: usize = 8;

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
    /// From which position on it is durable: behind the flush that covers it, or behind itself. `u32::MAX`: never.
    durable: u32,
    data_at: u64,
}

/// A version of a unit: the event that wrote it. Its content is a part of the log, or zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) unit: u64,
    event: u32,
}

impl Version {
    pub(crate) fn event(self) -> usize {
        index(self.event)
    }
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
    /// Texts of marks, by event.
    marks: BTreeMap<usize, String>,
    /// By unit, then in order of completion.
    versions: Vec<Version>,
    /// Whether entries behind the last whole one are missing.
    is_cut_short: bool,
}

impl Log {
    /// Reads a log of dm-log-writes, and takes the disk as it was before. A page is there or not as a whole; where writes are
    /// of smaller blocks, such a block is.
    ///
    /// # Errors
    /// A file cannot be read, is no log, or the log is that of a larger disk. A log that was cut short is read up to its last whole
    /// entry.
    pub fn open(log: &Path, base: &Path) -> Result<Self, CrashError> {
        Self::open_as(log, base, false)
    }

    /// The same, where each sector is there or not by itself.
    ///
    /// # Errors
    /// As for [`Log::open`].
    pub fn open_by_sectors(log: &Path, base: &Path) -> Result<Self, CrashError> {
        Self::open_as(log, base, true)
    }

    fn open_as(log: &Path, base: &Path, by_sectors: bool) -> Result<Self, CrashError> {
        let failed = |source| CrashError::Base { path: base.to_owned(), source };
        let base_file = File::open(base).map_err(failed)?;
        let size = base_file.metadata().map_err(failed)?.len();
        let mut reader = WriteLogReader::open(log)?;
        let Entries { events, marks, is_cut_short } = entries(&mut reader, size)?;
        let sector = u64::from(reader.sector_bytes());
        let unit = if by_sectors { sector } else { unit(&events, size).max(sector) };
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
            marks,
            versions: Vec::new(),
            is_cut_short,
        };
        log.date();
        log.index();
        Ok(log)
    }

    /// Says of each event from when on it is durable.
    fn date(&mut self) {
        let mut flushed = u32::MAX;
        // There are no more events than 2^32.
        for (next, event) in (1..).zip(&mut self.events) {
            event.durable = next;
        }
        for event in self.events.iter_mut().rev() {
            match event.what {
                What::Flush => flushed = event.durable,
                What::Write { fua: true } => {}
                _ => event.durable = flushed,
            }
        }
    }

    /// Notes the versions of each unit. Of a discard only the units that hold something: others read as zeroes anyway.
    fn index(&mut self) {
        let mut versions = Vec::new();
        for (event, of) in (0..).zip(&self.events) {
            if matches!(of.what, What::Write { .. }) {
                versions.extend(self.units(of).map(|unit| Version { unit, event }));
            }
        }
        versions.sort_unstable();
        let mut discarded = Vec::new();
        for (event, of) in (0..).zip(&self.events) {
            if of.what == What::Discard {
                let held = self.held(&versions, self.units(of));
                discarded.extend(held.into_iter().map(|unit| Version { unit, event }));
            }
        }
        versions.append(&mut discarded);
        versions.sort_unstable();
        versions.shrink_to_fit();
        self.versions = versions;
    }

    /// Units that an event is about.
    fn units(&self, event: &Event) -> Range<u64> {
        event.offset / self.unit..(event.offset + event.bytes) / self.unit
    }

    /// The units of a range that are ever written, or that the disk before has data for.
    fn held(&self, versions: &[Version], units: Range<u64>) -> Vec<u64> {
        let first = versions.partition_point(|version| version.unit < units.start);
        let written = versions[first..].iter().map(|version| version.unit);
        let mut held: Vec<u64> = written.take_while(|unit| *unit < units.end).collect();
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
    pub(crate) fn data_from(&self, at: u64) -> Option<Range<u64>> {
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

    /// What is there or not as a whole after a power cut, in bytes: 4 KiB, or the block of which writes are, or a sector.
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

    /// The text of an event that is a mark.
    #[must_use]
    pub fn mark(&self, event: usize) -> Option<&str> {
        self.marks.get(&event).map(String::as_str)
    }

    /// Position behind the last entry with a number up to this one.
    #[must_use]
    pub fn behind(&self, entry: u64) -> usize {
        self.events.partition_point(|event| event.entry <= entry)
    }

    /// Position behind the first flush from a position on, where all that had completed there is durable.
    #[must_use]
    pub fn flushed(&self, at: usize) -> Option<usize> {
        let flush = self.events.get(at..)?.iter().position(|event| event.what == What::Flush)?;
        Some(at + flush + 1)
    }

    /// Position behind the last flush before `at`, from which on nothing is durable but what has FUA.
    pub(crate) fn epoch(&self, at: usize) -> usize {
        let before = self.events[..at].iter().rposition(|event| event.what == What::Flush);
        before.map_or(0, |flush| flush + 1)
    }

    /// Whether an event that completed before `at` is durable there.
    pub(crate) fn is_durable(&self, event: usize, at: usize) -> bool {
        index(self.events[event].durable) <= at
    }

    /// All versions, by unit and then in order.
    pub(crate) fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Units of a range that some entry wrote.
    pub(crate) fn touched(&self, units: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut unit = units.start;
        std::iter::from_fn(move || {
            let at = self.versions.partition_point(|version| version.unit < unit);
            let found = self.versions.get(at).filter(|version| version.unit < units.end)?.unit;
            unit = found + 1;
            Some(found)
        })
    }

    /// The versions that an event wrote, as indices.
    pub(crate) fn written(&self, event: usize) -> impl Iterator<Item = usize> + '_ {
        let of = &self.events[event];
        let is_data = matches!(of.what, What::Write { .. } | What::Discard);
        let units = if is_data { self.units(of) } else { 0..0 };
        self.touched(units).filter_map(move |unit| {
            let found = self.before(unit, event + 1).last()?;
            (self.versions[found].event() == event).then_some(found)
        })
    }

    /// The versions of a unit that had completed at a position, as indices.
    pub(crate) fn before(&self, unit: u64, at: usize) -> Range<usize> {
        let first = self.versions.partition_point(|version| version.unit < unit);
        let is_before = |version: &Version| version.unit == unit && version.event() < at;
        let of_unit = &self.versions[first..];
        // Most units have few versions, and the pages of a journal have thousands.
        let count = match of_unit.iter().take(LOOK_AT).position(|version| !is_before(version)) {
            Some(count) => count,
            None => of_unit.partition_point(is_before),
        };
        first..first + count
    }

    /// Fills `bytes` with the content of a version.
    pub(crate) fn read(&self, version: Version, bytes: &mut [u8]) -> Result<(), CrashError> {
        let of = &self.events[version.event()];
        if of.what == What::Discard {
            bytes.fill(0);
            return Ok(());
        }
        let at = of.data_at + version.unit * self.unit - of.offset;
        let read = self.data.read_exact_at(bytes, at);
        read.map_err(|source| CrashError::Data { path: self.data_path.clone(), source })
    }

    /// Fills `bytes` with what the disk before has from a byte on.
    pub(crate) fn read_base(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CrashError> {
        let read = self.base.read_exact_at(bytes, offset);
        read.map_err(|source| CrashError::Base { path: self.base_path.clone(), source })
    }
}

/// The largest power of two, up to a page, of which all writes are made, and the disk.
fn unit(events: &[Event], size: u64) -> u64 {
    let all = events.iter().fold(size, |all, event| all | event.offset | event.bytes);
    1 << all.trailing_zeros().min(PAGE.trailing_zeros())
}

/// What a log has.
struct Entries {
    events: Vec<Event>,
    /// Texts by event.
    marks: BTreeMap<usize, String>,
    /// Whether there is a part of an entry behind them.
    is_cut_short: bool,
}

/// All whole entries.
fn entries(data: &mut WriteLogReader, size: u64) -> Result<Entries, CrashError> {
    let (mut events, mut marks) = (Vec::new(), BTreeMap::new());
    loop {
        let logged = match data.read_next() {
            Ok(Some(logged)) => logged,
            Ok(None) => return Ok(Entries { events, marks, is_cut_short: false }),
            Err(WriteLogError::Cut { .. }) => {
                return Ok(Entries { events, marks, is_cut_short: true });
            }
            Err(error) => return Err(error.into()),
        };
        let (entry, offset, bytes) = (logged.number + 1, logged.offset(), logged.len());
        if offset + bytes > size {
            return Err(CrashError::Beyond { entry, end: offset + bytes, size });
        }
        let data_at = logged.data_at();
        let event = |what, bytes| Event { entry, what, offset, bytes, durable: 0, data_at };
        if logged.entry.is_flush() {
            events.push(event(What::Flush, 0));
        }
        if let Some(text) = logged.mark {
            marks.insert(events.len(), text);
            events.push(event(What::Mark, 0));
        }
        if logged.entry.is_discard() {
            events.push(event(What::Discard, bytes));
        } else if bytes > 0 {
            events.push(event(What::Write { fua: logged.entry.is_fua() }, bytes));
        }
    }
}
