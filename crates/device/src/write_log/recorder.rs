//! Keeping a log of writes.
//!
//! A request *completes* when the backing has answered it; a flush *covers* what had completed when it was sent.
//!
//! 1. A write or trim is in the log before the first flush that covers it, and behind every flush that was sent before it completed:
//!    a log up to any flush is what a power cut at that moment leaves of a device that keeps nothing it was not told to. What no
//!    flush covers yet is there or is not, as [`Keeps`] says.
//! 2. Entries have the order in which requests completed, whichever flush covered them first.
//! 3. The first sector counts only entries that are there, so a process that is killed leaves a whole log.
//! 4. A log that could not be written is not continued, and whoever ends it is told: one with a gap would tell of states that never
//!    were.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use onefold_format::{WRITE_LOG_ENTRY_BYTES, WriteLogEntry, WriteLogSuper};
use onefold_units::convert::{index, u64_from};

use super::WriteLogError;
use crate::backing::{self, Backing};

/// Bytes of a sector. Requests of a volume are longer; a shorter sector makes headers short.
const SECTOR_BYTES: u32 = 512;

/// What a log has beside the flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// What they cover, as dm-log-writes does.
    Covered,
    /// What completed, whether a flush covers it or not.
    Completed,
}

/// A log that is being kept.
#[derive(Debug)]
pub struct WriteLog {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: Backing,
    keeps: Keeps,
    /// What the flushes that are under way cover.
    flushing: Vec<u64>,
    /// What completed and is not in the log, with its data, in order.
    completed: VecDeque<(WriteLogEntry, Vec<u8>)>,
    /// How many of those went before.
    gone: u64,
    /// Entries in the log.
    entries: u64,
    /// Where the next one goes.
    end: u64,
    failed: Option<io::Error>,
}

/// What a flush covers: so many requests, from the first one on.
#[derive(Clone, Copy, Debug)]
#[must_use = "the log waits for the end of the flush"]
pub struct Covered(u64);

impl WriteLog {
    /// Begins a log in a new file.
    ///
    /// # Errors
    /// The file is there already, or cannot be written.
    pub fn create(path: &Path, keeps: Keeps) -> Result<Self, WriteLogError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => WriteLogError::Exists { path: path.to_owned() },
            _ => WriteLogError::Io { path: path.to_owned(), action: "create", source },
        };
        let file = Backing::create_new(path).map_err(failed)?;
        let mut inner = Inner {
            file,
            keeps,
            flushing: Vec::new(),
            completed: VecDeque::new(),
            gone: 0,
            entries: 0,
            end: SECTOR_BYTES.into(),
            failed: None,
        };
        inner.file.write_at(0, &vec![0; index(SECTOR_BYTES)]).map_err(failed)?;
        inner.count().map_err(failed)?;
        backing::sync_directory_of(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of a sector: what is logged begins and ends with one.
    #[must_use]
    pub const fn sector_bytes() -> u32 {
        SECTOR_BYTES
    }

    /// A write of whole sectors completed. With `fua` it is durable.
    pub fn wrote(&self, offset: u64, bytes: &[u8], fua: bool) {
        let (sector, sectors) = range(offset, u64_from(bytes.len()));
        let entry = WriteLogEntry::write(sector, sectors);
        self.complete(if fua { entry.with_fua() } else { entry }, bytes);
    }

    /// A trim of whole sectors completed.
    pub fn trimmed(&self, offset: u64, len: u64) {
        let (sector, sectors) = range(offset, len);
        self.complete(WriteLogEntry::discard(sector, sectors), &[]);
    }

    fn complete(&self, entry: WriteLogEntry, data: &[u8]) {
        let mut inner = self.inner();
        if inner.failed.is_some() {
            return;
        }
        if inner.goes_on() && inner.completed.is_empty() {
            inner.gone += 1;
            let done = inner.append(&entry, data);
            self.note(inner, done);
        } else {
            inner.completed.push_back((entry, data.to_vec()));
        }
    }

    /// A flush is about to be sent.
    pub fn covered(&self) -> Covered {
        let mut inner = self.inner();
        let covered = inner.gone + u64_from(inner.completed.len());
        inner.flushing.push(covered);
        Covered(covered)
    }

    /// The flush completed, and is answered next.
    pub fn flushed(&self, covered: Covered) {
        let mut inner = self.inner();
        inner.is_over(covered);
        let done = inner.flush(covered).and_then(|()| inner.go_on());
        self.note(inner, done);
    }

    /// The flush failed.
    pub fn unflushed(&self, covered: Covered) {
        let mut inner = self.inner();
        inner.is_over(covered);
        let done = inner.go_on();
        self.note(inner, done);
    }

    /// Entries of the log.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.inner().entries
    }

    /// Marks what is in the log now with a text.
    ///
    /// # Errors
    /// The text is too long for a sector.
    pub fn mark(&self, text: &str) -> Result<(), WriteLogError> {
        let Some(entry) = WriteLogEntry::mark(text, SECTOR_BYTES) else {
            let most = index(SECTOR_BYTES) - WRITE_LOG_ENTRY_BYTES - 1;
            return Err(WriteLogError::Text { found: text.len(), most });
        };
        let mut inner = self.inner();
        let done = inner.append(&entry, text.as_bytes()).and_then(|()| inner.count());
        self.note(inner, done);
        Ok(())
    }

    fn note(&self, mut inner: MutexGuard<'_, Inner>, done: io::Result<()>) {
        if let Err(error) = done {
            tracing::error!(path = %self.path.display(), %error, "the write log ends here");
            inner.failed = Some(error);
            inner.completed.clear();
        }
    }

    /// Ends the log. What it [`Keeps`] is in it. Gives the number of entries.
    ///
    /// # Errors
    /// It could not be written, now or before.
    pub fn finish(&self) -> Result<u64, WriteLogError> {
        let mut inner = self.inner();
        if inner.failed.is_none()
            && let Err(error) = inner.count()
        {
            inner.failed = Some(error);
        }
        let failed =
            |source| WriteLogError::Io { path: self.path.clone(), action: "write", source };
        match inner.failed.take() {
            Some(error) => Err(failed(error)),
            None => inner.file.sync().map_err(failed).map(|()| inner.entries),
        }
    }
}

impl Inner {
    /// Whether what completes now may go into the log: it may not stand before a flush that does not cover it.
    fn goes_on(&self) -> bool {
        self.keeps == Keeps::Completed && self.flushing.is_empty()
    }

    /// Appends what may go into the log.
    fn go_on(&mut self) -> io::Result<()> {
        let end = self.flushing.iter().min().copied().unwrap_or(u64::MAX);
        if self.keeps == Keeps::Completed { self.append_up_to(end) } else { Ok(()) }
    }

    fn is_over(&mut self, covered: Covered) {
        if let Some(at) = self.flushing.iter().position(|end| *end == covered.0) {
            self.flushing.swap_remove(at);
        }
    }

    fn append_up_to(&mut self, end: u64) -> io::Result<()> {
        while self.gone < end
            && let Some((entry, data)) = self.completed.pop_front()
        {
            self.gone += 1;
            self.append(&entry, &data)?;
        }
        Ok(())
    }

    fn flush(&mut self, covered: Covered) -> io::Result<()> {
        if self.failed.is_some() {
            return Ok(());
        }
        self.append_up_to(covered.0)?;
        self.append(&WriteLogEntry::FLUSH, &[])?;
        self.count()
    }

    /// Appends an entry with the text or the data that belongs to it.
    fn append(&mut self, entry: &WriteLogEntry, bytes: &[u8]) -> io::Result<()> {
        if self.failed.is_some() {
            return Ok(());
        }
        let sector = index(SECTOR_BYTES);
        let mut all = vec![0; sector + if entry.is_mark() { 0 } else { bytes.len() }];
        all[..WRITE_LOG_ENTRY_BYTES].copy_from_slice(&entry.encode());
        let from = if entry.is_mark() { WRITE_LOG_ENTRY_BYTES } else { sector };
        all[from..from + bytes.len()].copy_from_slice(bytes);
        self.file.write_at(self.end, &all)?;
        self.end += u64_from(all.len());
        self.entries += 1;
        Ok(())
    }

    /// Lets what is there count (invariant 3).
    fn count(&mut self) -> io::Result<()> {
        let first = WriteLogSuper { entries: self.entries, sector_bytes: SECTOR_BYTES };
        self.file.write_at(0, &first.encode())
    }
}

/// First sector and number of sectors. What a volume sends are whole blocks.
fn range(offset: u64, len: u64) -> (u64, u64) {
    let sector = u64::from(SECTOR_BYTES);
    debug_assert!(offset.is_multiple_of(sector) && len.is_multiple_of(sector), "whole blocks");
    (offset / sector, len / sector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteLogReader;

    fn entries(path: &Path) -> Vec<(u64, bool, Vec<u8>)> {
        let mut reader = WriteLogReader::open(path).unwrap();
        let mut list = Vec::new();
        while let Some(logged) = reader.read_next().unwrap() {
            let mut data = vec![0; index(u32::try_from(logged.data_bytes()).unwrap())];
            reader.read_data(&logged, 0, &mut data).unwrap();
            list.push((logged.entry.sector, logged.entry.is_flush(), data));
        }
        list
    }

    /// Two flushes under way: the one that was sent later is answered first. What the first one covers completed before, is as
    /// durable, and has to come before in the log, or a replay would end with the older of two writes.
    #[test]
    fn a_flush_brings_what_completed_before_it_was_sent_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = WriteLog::create(&path, Keeps::Covered).unwrap();
        log.wrote(4096, &[1; 512], false);
        let first = log.covered();
        log.wrote(4096, &[2; 512], false);
        let second = log.covered();
        log.wrote(0, &[3; 512], false);
        assert_eq!(entries(&path), [], "nothing is durable");
        log.flushed(second);
        let mut expected =
            vec![(8, false, vec![1; 512]), (8, false, vec![2; 512]), (0, true, vec![])];
        assert_eq!(entries(&path), expected);
        log.flushed(first);
        expected.push((0, true, vec![]));
        assert_eq!(entries(&path), expected);
        let last = log.covered();
        log.flushed(last);
        expected.extend([(0, false, vec![3; 512]), (0, true, vec![])]);
        assert_eq!(entries(&path), expected);
        assert_eq!(log.finish().unwrap(), 6);
    }

    /// What completed while a flush was under way stands behind it, and everything else at once.
    #[test]
    fn what_completes_is_there_at_once_unless_a_flush_that_does_not_cover_it_is_under_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = WriteLog::create(&path, Keeps::Completed).unwrap();
        let write = |fill: u8| log.wrote(4096, &[fill; 512], false);
        let fills = || {
            log.finish().unwrap();
            let fill = |(_, _, data): &(u64, bool, Vec<u8>)| data.first().copied();
            entries(&path).iter().map(fill).collect::<Vec<_>>()
        };
        write(1);
        assert_eq!(fills(), [Some(1)]);
        let first = log.covered();
        write(2);
        let second = log.covered();
        write(3);
        assert_eq!(fills(), [Some(1)], "both flushes are under way");
        log.flushed(second);
        assert_eq!(
            fills(),
            [Some(1), Some(2), None],
            "the first one does not cover the last write"
        );
        log.unflushed(first);
        write(4);
        let expected = [Some(1), Some(2), None, Some(3), Some(4)];
        assert_eq!(fills(), expected, "a flush that failed is none");
    }

    #[test]
    fn a_log_that_cannot_be_written_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        drop(WriteLog::create(&path, Keeps::Covered).unwrap());
        let log = WriteLog {
            path: path.clone(),
            inner: Mutex::new(Inner {
                file: Backing::open(&path, backing::Access::ReadOnly).unwrap(),
                keeps: Keeps::Covered,
                flushing: Vec::new(),
                completed: VecDeque::new(),
                gone: 0,
                entries: 0,
                end: 512,
                failed: None,
            }),
        };
        log.wrote(0, &[1; 512], false);
        log.flushed(log.covered());
        log.wrote(0, &[1; 512], false);
        assert_eq!(log.inner().completed.len(), 0, "nobody will ever want it");
        assert!(log.finish().unwrap_err().to_string().contains("cannot write the write log"));
    }
}
