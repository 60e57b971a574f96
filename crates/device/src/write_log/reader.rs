//! Reading a log of writes, ours or one of the kernel. Nothing in it is believed.

use std::io;
use std::path::{Path, PathBuf};

use onefold_format::{WRITE_LOG_ENTRY_BYTES, WRITE_LOG_SUPER_BYTES, WriteLogEntry, WriteLogSuper};
use onefold_units::convert::{index64, u64_from};

use super::WriteLogError;
use crate::backing::{Access, Backing};

/// A log that is read from its first entry to its last.
#[derive(Debug)]
pub struct WriteLogReader {
    path: PathBuf,
    file: Backing,
    first: WriteLogSuper,
    /// Where the file ends, in bytes.
    end: u64,
    /// Number of the next entry.
    number: u64,
    /// Where it begins, in bytes.
    at: u64,
}

/// An entry of a log, which is there as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its number, from 0.
    pub number: u64,
    /// What it is about.
    pub entry: WriteLogEntry,
    /// The text of a mark.
    pub mark: Option<String>,
    sector_bytes: u32,
    data_at: u64,
}

impl Logged {
    /// First byte of the device that it is about.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.entry.sector * u64::from(self.sector_bytes)
    }

    /// Bytes of the device that it is about.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.entry.sectors * u64::from(self.sector_bytes)
    }

    /// Whether it is about none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entry.sectors == 0
    }

    /// Byte of the log from which on its data are.
    #[must_use]
    pub const fn data_at(&self) -> u64 {
        self.data_at
    }

    /// Bytes of data in the log.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.entry.data_sectors() * u64::from(self.sector_bytes)
    }
}

impl WriteLogReader {
    /// Opens a log.
    ///
    /// # Errors
    /// The file cannot be read, or is no log.
    pub fn open(path: &Path) -> Result<Self, WriteLogError> {
        let failed = |source| WriteLogError::Io { path: path.to_owned(), action: "open", source };
        let file = Backing::open(path, Access::ReadOnly).map_err(failed)?;
        let end = file.end().map_err(failed)?;
        let mut bytes = [0; WRITE_LOG_SUPER_BYTES];
        let found = index64(end.min(u64_from(bytes.len())));
        file.read_at(0, &mut bytes[..found]).map_err(failed)?;
        let first = WriteLogSuper::decode(&bytes[..found])
            .map_err(|source| WriteLogError::Super { path: path.to_owned(), source })?;
        let at = first.sector_bytes.into();
        Ok(Self { path: path.to_owned(), file, first, end, number: 0, at })
    }

    /// Entries that the log says it has.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.first.entries
    }

    /// Bytes of a sector.
    #[must_use]
    pub const fn sector_bytes(&self) -> u32 {
        self.first.sector_bytes
    }

    /// Goes back to the first entry.
    pub fn rewind(&mut self) {
        (self.number, self.at) = (0, self.first.sector_bytes.into());
    }

    /// The next entry; `None` behind the last one.
    ///
    /// # Errors
    /// It is damaged, or not there as a whole.
    pub fn read_next(&mut self) -> Result<Option<Logged>, WriteLogError> {
        let number = self.number;
        if number >= self.first.entries {
            return Ok(None);
        }
        let sector_bytes = self.first.sector_bytes;
        let data_at = self.expect(self.at, sector_bytes.into())?;
        let mut bytes = [0; WRITE_LOG_ENTRY_BYTES];
        self.read_at(self.at, &mut bytes)?;
        let entry = WriteLogEntry::decode(&bytes, sector_bytes)
            .map_err(|source| WriteLogError::Entry { path: self.path.clone(), number, source })?;
        let end = self.expect(data_at, entry.data_sectors() * u64::from(sector_bytes))?;
        let mark = if entry.is_mark() { Some(self.text(&entry)?) } else { None };
        (self.number, self.at) = (number + 1, end);
        Ok(Some(Logged { number, entry, mark, sector_bytes, data_at }))
    }

    fn text(&self, entry: &WriteLogEntry) -> Result<String, WriteLogError> {
        let mut text = vec![0; index64(entry.text_bytes())];
        self.read_at(self.at + u64_from(WRITE_LOG_ENTRY_BYTES), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads a part of the data of an entry, from byte `from` of it on.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_data(
        &self,
        logged: &Logged,
        from: u64,
        bytes: &mut [u8],
    ) -> Result<(), WriteLogError> {
        self.read_at(logged.data_at + from, bytes)
    }

    /// Number of the first mark with a text, from entry `from` on. The log is rewound.
    ///
    /// # Errors
    /// There is none, or an entry before it is damaged.
    pub fn find_mark(&mut self, text: &str, from: u64) -> Result<u64, WriteLogError> {
        self.rewind();
        while let Some(logged) = self.read_next()? {
            if logged.number >= from && logged.mark.as_deref() == Some(text) {
                self.rewind();
                return Ok(logged.number);
            }
        }
        Err(WriteLogError::NoMark { path: self.path.clone(), text: text.to_owned(), from })
    }

    /// Refuses the number of an entry that is not there.
    pub(crate) fn expect_entry(&self, number: u64) -> Result<(), WriteLogError> {
        let entries = self.first.entries;
        if number < entries {
            return Ok(());
        }
        Err(WriteLogError::NoEntry { path: self.path.clone(), number, entries })
    }

    /// Where a part of the next entry ends, if that is within the file.
    fn expect(&self, begin: u64, len: u64) -> Result<u64, WriteLogError> {
        let needed = begin.saturating_add(len);
        if needed <= self.end {
            return Ok(needed);
        }
        Err(WriteLogError::Cut {
            path: self.path.clone(),
            number: self.number,
            entries: self.first.entries,
            needed,
            found: self.end,
        })
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), WriteLogError> {
        let failed = |source: io::Error| WriteLogError::Io {
            path: self.path.clone(),
            action: "read",
            source,
        };
        self.file.read_at(offset, bytes).map_err(failed)
    }
}
