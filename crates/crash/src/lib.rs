//! Power cuts of a disk of which every write was logged: which contents it can have afterwards.
//!
//! A [`Log`] is read from a log of dm-log-writes, ours or one of the kernel. A [`State`] is one outcome
//! of a power cut, with a name that stays the same ([`State`] as text). [`States`] lists them in the
//! order in which they are worth looking at, and [`Disk`] is what such a disk reads as: a block device,
//! over the disk before and the log, of which nothing is copied.
//!
//! **The model**, by units of 4 KiB, or of smaller blocks if writes are of such ([`Log::unit_bytes`]). What completed before a flush
//! that was answered is durable, and so is a write with FUA that was answered. Anything else that completed may be there or
//! not, each unit by itself. Of several writes to one unit, those after the last durable one compete in their order. A discard
//! is a write of zeroes that may come or not.
#![forbid(unsafe_code)]

mod contents;
mod disk;
mod error;
mod log;
mod state;
mod states;

pub use contents::Digest;
pub use disk::Disk;
pub use error::CrashError;
pub use log::{Event, Log, What};
pub use state::{Kind, Pending, Piece, State};
pub use states::States;
