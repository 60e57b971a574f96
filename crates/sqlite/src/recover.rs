//! Makes a standard WAL of an aligned one that a crash has left.
//!
//! 1. The database is locked as SQLite locks it for exclusive use, so nobody has it open meanwhile.
//! 2. The standard WAL is written beside the aligned one, synced, and renamed over it: at each moment one of them is there, whole.
//! 3. It holds what SQLite would recover: the frames whose salts and checksums follow each other, up to the last commit.

use std::io::{self, Write};
use std::path::Path;

use onefold_units::convert::{index64, u64_from};

use crate::backing::Recovering;
use crate::device::Pointer;
use crate::error::RecoverError;
use crate::header::{self, FrameBytes, HeaderBytes, Kind};
use crate::layout::Layout;

/// What became of a WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovered {
    /// There is none, so the database is standard.
    NoWal,
    /// It is one of SQLite itself, and was left alone.
    Standard,
    /// It has no valid header. SQLite takes such a WAL for empty; it was left alone.
    Invalid,
    /// It was aligned and had no committed frame, and was removed.
    Removed,
    /// It was aligned, and is standard now.
    Converted {
        /// Frames up to the last commit.
        frames: u64,
        /// Whole frames behind them, which no commit ended. They are gone, as after a recovery of SQLite.
        dropped: u64,
    },
}

/// Makes the WAL of a database a standard one, which any SQLite recovers when it opens the database.
pub fn recover(database: &Path) -> Result<Recovered, RecoverError> {
    let file = Recovering::open(database)?;
    if Pointer::parse(&file.start()?).is_some() {
        return Err(RecoverError::OnDevice { database: database.to_owned() });
    }
    let Some(wal) = file.wal()? else { return Ok(Recovered::NoWal) };
    let failed = |source| RecoverError::File { what: "read", path: file.wal_path(), source };
    let read = |buffer: &mut [u8], at| wal.read(buffer, at);
    let mut start: HeaderBytes = [0; 32];
    read(&mut start, 0).map_err(failed)?;
    let layout = match header::kind(&start) {
        Kind::Nothing => return Ok(Recovered::Invalid),
        Kind::Foreign => return Ok(Recovered::Standard),
        Kind::Empty => None,
        Kind::Aligned(layout) => Some(layout),
    };
    let Some(layout) = layout else { return file.remove_wal().map(|()| Recovered::Removed) };
    let whole = layout.frames(wal.bytes().map_err(failed)?);
    let aligned = Aligned::new(start, layout);
    let frames = aligned.committed(whole, read).map_err(failed)?;
    if frames == 0 {
        return file.remove_wal().map(|()| Recovered::Removed);
    }
    file.replace_wal(|out| aligned.write(frames, read, out))?;
    Ok(Recovered::Converted { frames, dropped: whole - frames })
}

/// The standard WAL of the bytes of an aligned one. `None` if they are no aligned WAL.
#[must_use]
pub fn standard_wal(aligned: &[u8]) -> Option<Vec<u8>> {
    let read = |buffer: &mut [u8], at| {
        let from = aligned.get(usize::try_from(at).unwrap_or(usize::MAX)..).unwrap_or_default();
        let bytes = buffer.len().min(from.len());
        buffer[..bytes].copy_from_slice(&from[..bytes]);
        buffer[bytes..].fill(0);
        Ok(bytes == buffer.len())
    };
    let start: &HeaderBytes = aligned.first_chunk()?;
    let Kind::Aligned(layout) = header::kind(start) else { return None };
    let wal = Aligned::new(*start, layout);
    let frames = wal.committed(layout.frames(u64_from(aligned.len())), read).ok()?;
    let mut standard = Vec::new();
    wal.write(frames, read, &mut standard).ok()?;
    Some(standard)
}

/// An aligned WAL by its header.
pub(crate) struct Aligned {
    header: HeaderBytes,
    layout: Layout,
}

impl Aligned {
    /// The WAL with that header.
    pub(crate) fn new(start: HeaderBytes, layout: Layout) -> Self {
        Self { header: header::stock(start), layout }
    }

    /// Frames that are whole in so many bytes.
    pub(crate) const fn frames(&self, bytes: u64) -> u64 {
        self.layout.frames(bytes)
    }

    /// Frames up to the last commit that follow each other.
    pub(crate) fn committed(
        &self,
        frames: u64,
        read: impl Fn(&mut [u8], u64) -> io::Result<bool>,
    ) -> io::Result<u64> {
        let mut sum = header::sum(&self.header);
        let mut committed = 0;
        let mut page = vec![0; index64(self.layout.page_bytes())];
        for frame in 0..frames {
            let head = self.frame(frame, &mut page, &read)?;
            match header::follow(&self.header, sum, &head, &page) {
                Some(after) => sum = after,
                None => break,
            }
            if header::is_commit(&head) {
                committed = frame + 1;
            }
        }
        Ok(committed)
    }

    /// Writes the standard WAL of that many frames.
    pub(crate) fn write(
        &self,
        frames: u64,
        read: impl Fn(&mut [u8], u64) -> io::Result<bool>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        out.write_all(&self.header)?;
        let mut page = vec![0; index64(self.layout.page_bytes())];
        for frame in 0..frames {
            out.write_all(&self.frame(frame, &mut page, &read)?)?;
            out.write_all(&page)?;
        }
        Ok(())
    }

    /// Header and page of a frame.
    fn frame(
        &self,
        frame: u64,
        page: &mut [u8],
        read: impl Fn(&mut [u8], u64) -> io::Result<bool>,
    ) -> io::Result<FrameBytes> {
        let mut head: FrameBytes = [0; 24];
        read(&mut head, self.layout.header_at(frame))?;
        read(page, self.layout.page_at(frame))?;
        Ok(head)
    }
}
