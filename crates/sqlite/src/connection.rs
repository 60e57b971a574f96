//! What the files of one connection know together: the database and its WAL.

use std::fmt;
use std::sync::Arc;

use rustix::io::Errno;

use crate::backing::WalFile;
use crate::checkpoint::{Bounds, Checkpoint, pages_of};
use crate::code::Code;
use crate::device::{Device, RUNS_MAX};
use crate::header::Kind;
use crate::layout::{BLOCK_BYTES, Layout};
use crate::wal::AlignedWal;

/// The database and the WAL of a connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// The device that the database is on, if its file is a pointer to one.
    pub(crate) device: Option<Arc<Device>>,
    /// The WAL, while it is open and aligned.
    pub(crate) wal: Option<OpenWal>,
    /// Why a WAL that is open is not aligned.
    pub(crate) stock: Option<Stock>,
    /// The checkpoint that runs.
    pub(crate) checkpoint: Option<Checkpoint>,
    /// Pages that checkpoints of this connection have cloned.
    pub(crate) cloned_pages: u64,
    /// System calls which cloned them.
    pub(crate) clone_calls: u64,
    /// Writes of checkpoints of this connection that were not clones.
    pub(crate) written_pages: u64,
    /// What the last refusal of a clone was, if there was one.
    pub(crate) refused: Option<Errno>,
    /// The file system or the files do not take clones: none is tried any more.
    pub(crate) is_plain: bool,
    /// Checkpoints that wrote, as commits were small.
    pub(crate) small_commits: u64,
}

/// An aligned WAL.
#[derive(Debug)]
pub(crate) struct OpenWal {
    pub(crate) view: AlignedWal,
    pub(crate) file: WalFile,
}

/// Why a connection leaves the layout of SQLite as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stock {
    /// A WAL of SQLite was there, left by a crash or in use.
    Found,
    /// Another connection uses the database without the extension.
    InUse,
    /// The WAL cannot be written.
    ReadOnly,
    /// A write may damage bytes beside it (`psow=0`).
    NotPowersafe,
    /// Pages are smaller than a block, so none could be cloned.
    SmallPages,
    /// The database is not open through this VFS.
    Apart,
}

/// What decides on the layout of a WAL, apart from its header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) is_read_only: bool,
    pub(crate) is_powersafe: bool,
    /// 0 if the database is empty.
    pub(crate) page_bytes: u32,
    pub(crate) is_stock_live: bool,
}

/// What becomes of a WAL that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is aligned.
    Aligned,
    /// It is empty, and becomes aligned.
    Create,
    /// It is left to SQLite.
    Stock(Stock),
}

/// Decides on a WAL under its lock. The layout of a WAL is that of its header; only an empty one is a choice.
///
/// A SQLite without the extension that has the database open holds shared memory of its own. With a stock WAL this connection
/// joins that; with an aligned one it must wait until the other one is gone.
pub(crate) fn choose(kind: Kind, facts: Facts) -> Result<Choice, Code> {
    let stock = |reason| Ok(Choice::Stock(reason));
    match kind {
        Kind::Aligned(_) | Kind::Empty if facts.is_stock_live => Err(Code::BUSY),
        Kind::Aligned(_) | Kind::Empty => Ok(Choice::Aligned),
        Kind::Foreign => stock(Stock::Found),
        Kind::Nothing if facts.is_stock_live => stock(Stock::InUse),
        Kind::Nothing if facts.is_read_only => stock(Stock::ReadOnly),
        Kind::Nothing if !facts.is_powersafe => stock(Stock::NotPowersafe),
        Kind::Nothing if (1..BLOCK_BYTES).contains(&u64::from(facts.page_bytes)) => {
            stock(Stock::SmallPages)
        }
        Kind::Nothing => Ok(Choice::Create),
    }
}

impl Connection {
    /// A checkpoint begins. `bounds` are those of the shared memory, if the connection has it.
    pub(crate) fn begin_checkpoint(&mut self, bounds: Option<Bounds>) {
        self.checkpoint = None;
        let Some(OpenWal { view, file }) = &self.wal else { return };
        let device = self.device.as_deref();
        let Some(layout) = view.layout().filter(|layout| layout.page_bytes() >= BLOCK_BYTES) else {
            return;
        };
        let bounds = bounds.unwrap_or(Bounds { copied_frames: 0, safe_frames: 0, pages: 0 });
        // A clone saves the page in the database. It also shares blocks of the WAL, so that the next frames go to new blocks, and
        // each sync of the WAL writes metadata of the file system: some one and a half pages on XFS. Small commits would cost more.
        if device.is_none() && view.written().is_of_small_commits() {
            self.checkpoint = Some(Checkpoint::of_writes(layout));
            self.small_commits += 1;
            return;
        }
        self.checkpoint = Some(match device {
            Some(device) => Checkpoint::begin(layout, bounds, RUNS_MAX, |frames| {
                pages_of(layout, view.pages(), frames, |buffer, at| device.read_wal(buffer, at))
            }),
            None => Checkpoint::begin(layout, bounds, 1, |frames| {
                pages_of(layout, view.pages(), frames, |buffer, at| file.read(buffer, at))
            }),
        });
    }

    /// A clone failed. Some failures hold for all clones.
    pub(crate) fn note_refused(&mut self, error: Errno) {
        self.refused = Some(error);
        self.is_plain |= !matches!(error, Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::INTR);
    }
}

impl fmt::Display for Connection {
    /// What `PRAGMA onefold` answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.wal, self.stock) {
            (Some(wal), _) if wal.view.layout().is_some_and(Layout::is_paired) => {
                write!(f, "layout=paired")?;
            }
            (Some(_), _) => write!(f, "layout=aligned")?,
            (None, Some(stock)) => write!(f, "layout=stock reason={stock}")?,
            (None, None) => write!(f, "layout=none reason=no_wal")?,
        }
        let backend = match (&self.wal, self.is_plain, self.cloned_pages) {
            (None, ..) | (_, true, _) => "plain",
            (_, false, 0) if self.small_commits > 0 => "plain",
            (_, false, 0) => "untried",
            _ if self.device.is_some() => "remap",
            _ => "reflink",
        };
        write!(f, " backend={backend} cloned_pages={}", self.cloned_pages)?;
        write!(f, " clone_calls={} written_pages={}", self.clone_calls, self.written_pages)?;
        write!(f, " small_commits={}", self.small_commits)?;
        match self.refused {
            Some(error) => write!(f, " refused=\"{error}\""),
            None => write!(f, " refused=none"),
        }
    }
}

impl fmt::Display for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Found => "stock_wal_found",
            Self::InUse => "in_use_without_extension",
            Self::ReadOnly => "read_only",
            Self::NotPowersafe => "psow_off",
            Self::SmallPages => "page_below_4096",
            Self::Apart => "database_of_another_vfs",
        })
    }
}
