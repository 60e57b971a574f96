//! The volume: a log-structured layer between a block device and what uses it.
//!
//! It exports blocks of 4 KiB and appends every write to large log segments of its backing,
//! remembering in a map where each block went (Sung 2022, Han 2021; volume.md): mode `log`,
//! [`Volume`]. Drivers know a volume of any mode as an [`Engine`]; the crate `onefold-modes` has
//! the other modes, and opens a volume of any mode. Without I/O of its own: a driver carries out
//! what [`Volume::poll_io`] asks for.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod append;
mod backing;
mod check;
mod checkpoint;
mod clean;
mod config;
mod counting;
mod doubts;
mod engine;
mod error;
mod family;
mod faults;
mod flush;
mod heat;
mod host;
mod images;
mod inspect;
mod io;
mod journal;
mod layout;
mod log;
mod map;
mod marker;
mod memory;
mod mount;
mod pace;
mod packs;
mod page;
mod pending;
mod plan;
mod preload;
mod rebuild;
mod remap;
mod replay;
mod requests;
mod resize;
mod restore;
mod retries;
mod roots;
mod runs;
mod scrub;
mod segments;
mod service;
mod slices;
mod stall;
mod stats;
mod stream;
mod suspects;
mod tries;
mod trims;
mod unmap;
mod volume;
mod zones;

pub use backing::{Backing, Piece, drive, execute, settle};
pub use check::{Miscount, SegmentInfo};
pub use config::{
    Acknowledge, BATCH_BLOCKS_MAX, CleanMove, Geometry, GeometryError, Options, OptionsError,
    SEGMENTS_MIN, Trim, Victim,
};
pub use engine::Engine;
pub use error::MountError;
pub use family::{FamilyError, MemberId, MemberInfo, Usage};
pub use host::{REQUEST_BLOCKS_MAX, Range};
pub use inspect::{FINDINGS_MAX, Finding, Inspection, inspect};
pub use io::{Buffer, Done, Io, IoFailed, IoId, IoKind, Refusal, Relocation};
pub use journal::JournalStreams;
pub use layout::Layout;
pub use log::Stream;
pub use memory::Memory;
pub use mount::{Recovery, format, mount, mount_read_only, read_label};
pub use onefold_format::volume::{Codec, TRANSACTION_PAIRS_MAX, VolumeMode};
pub use packs::unpack;
pub use plan::{ReadPlan, ReadRun};
pub use rebuild::{Found, Rebuilt, rebuild};
pub use resize::{Resize, ResizeError};
pub use scrub::{Damage, SCRUB_PAUSE, ScrubError, ScrubState, Scrubbed, scrub};
pub use stats::{Sent, Stats};
pub use suspects::Faulty;
pub use volume::{Frozen, Volume};
pub use zones::{ZoneError, ZoneReport, ZoneStatus, write_label};

/// What crates with other modes share with mode `log`. An engine for a new mode implements
/// [`Engine`] and needs of these what it does not do in its own way.
pub mod parts {
    pub use crate::backing::{bytes_of, damaged, fetch, locations, read_block};
    pub use crate::inspect::{Findings, check_copies};
    pub use crate::requests::Requests;
    pub use crate::retries::{Failing, Retries, TRIES_FEW, TRIES_MANY};
    pub use crate::roots::newest_in_slots;
}
