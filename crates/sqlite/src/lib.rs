//! SQLite VFS whose checkpoints clone pages of the WAL instead of writing them again.
//!
//! SQLite writes a page to the WAL when it commits, and the same page to the database when it checkpoints. Frames of a stock WAL
//! have headers of 24 bytes between the pages, so a page never lies in the WAL as it lies in the database, and no file system can
//! let both share a block. This VFS lays the WAL out *aligned*: block 0 with the WAL header, then groups of one block of 170 frame
//! headers and the 170 pages of these frames ([`Layout`]). Where commits are of one page and synced, groups of one frame come first,
//! and header and page are one request. SQLite is not changed and knows nothing of it: it goes on naming
//! offsets of the stock layout, and checksums, salts, locks and the WAL-index stay its own.
//!
//! **Terms.** A *stock* WAL is one of SQLite's layout; an *aligned* one has ours. A *frame* is a page in the WAL with its header.
//! A *block* has 4 KiB. *Shared memory* is the WAL-index of SQLite and the locks on it.
//!
//! # Back ends
//!
//! - *reflink*: at a checkpoint, runs of frames are cloned to the database with `FICLONERANGE` (XFS, btrfs and their kind).
//! - *remap*: the database lies on an Onefold device without a file system in between, and its file only names the device (the
//!   module `device`). A checkpoint has the device map pages of the database to those of frames.
//! - *plain*: pages are written, as SQLite would. Every failed clone ends here, page by page; a file system that cannot clone is
//!   asked once. Small commits that are synced one by one are written too, as clones would cost them more. On a device that maps equal blocks to one page the plain write costs no program, as both copies are aligned.
//!
//! # Invariants
//!
//! 1. What SQLite reads is what it wrote, at the offsets that it named.
//! 2. From its first use to its deletion an aligned WAL has a valid header of a version that SQLite does not know, so SQLite
//!    without the extension answers `SQLITE_CANTOPEN` (the module `header`). Taken for a stock WAL it would look empty, and
//!    what was committed would be lost.
//! 3. Connections on an aligned WAL have their shared memory in `DB-wal-shm`, those on a stock WAL in `DB-shm`. No connection on
//!    one kind begins while one on the other kind lives (below). So nobody follows an index into frames of the other layout.
//! 4. A page is cloned only if the bytes that SQLite writes are those that it read from the frame, and it is in the database when
//!    the write returns (the module `checkpoint`).
//! 5. A clean close leaves a standard database: the last connection checkpoints and deletes the WAL. `SQLITE_FCNTL_PERSIST_WAL`
//!    is refused for that reason.
//!
//! # Which layout
//!
//! The header of a WAL decides. Only an empty WAL is a choice, made under a lock (`flock`) on the WAL: it becomes aligned, unless
//! the WAL is read-only, pages are below 4 KiB, or `psow` is off. A stock WAL that is found, left by a crash for example, is used
//! as it is until its last connection deletes it.
//!
//! A SQLite without the extension locks a byte of `DB-shm` first and reads the header of the WAL then. A connection of this VFS
//! writes the header first and then looks for that lock. So of two that come at once, one sees the other at least. SQLite
//! without the extension is refused by the header; this VFS answers `SQLITE_BUSY`, or uses a stock WAL with the other one if
//! there was one.
//!
//! # Power cuts
//!
//! Order is that of SQLite: sync of the WAL, data into the database, sync of the database, reuse of the WAL. Clones obey the sync
//! of the database as writes do, since the sync writes the mapping of the file. Frames of a reused WAL are written to new blocks
//! by a file system that shares the old ones.
//!
//! A frame header is appended to a block that holds headers of committed frames. The kernel rewrites that block as a whole, with
//! the same bytes for the others. If the power fails, each sector of the block is old or new, and has all committed headers in
//! both cases: they were synced before. That is the assumption that stock SQLite makes too (*powersafe overwrite*), as a commit
//! begins in the sector where the one before has ended. Without it (`psow=0`) stock pads each commit to a whole sector, which
//! would not protect a block of headers. So then the stock layout is used. A header whose frame was not synced is nothing: its
//! checksum covers the page. The header of a pair has a block of its own, which no later commit touches.
//!
//! The WAL header is one write of 32 bytes at the start of block 0, which has nothing else.

mod backing;
mod blocks;
mod checkpoint;
mod code;
mod connection;
mod device;
mod error;
mod export;
mod ffi;
mod header;
mod layout;
mod recover;
mod wal;

pub use error::{DeviceError, RecoverError};
pub use export::{Disk, Exported, attach, create, export};
pub use layout::{Layout, Piece};
pub use recover::{Recovered, recover, standard_wal};
