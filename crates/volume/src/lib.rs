//! The volume: a log-structured layer between a block device and what uses it.
//!
//! It exports blocks of 4 KiB and appends every write to large log segments of its backing, remembering in a map where
//! each block went (Sung 2022, Han 2021; volume.md): mode `log`, [`Volume`]. The layers of both papers as they are described
//! are modes of their own, [`Faithful`]; drivers know each as an [`Engine`]. Without I/O of its own: a driver carries out what [`Volume::poll_io`]
//! asks for.
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
mod faithful;
mod family;
mod faults;
mod flush;
mod han;
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
mod sung;
mod suspects;
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
pub use faithful::{Areas, Faithful, PartitionInfo};
pub use family::{FamilyError, MemberId, MemberInfo, Usage};
pub use host::{REQUEST_BLOCKS_MAX, Range};
pub use inspect::{FINDINGS_MAX, Finding, Inspection, inspect};
pub use io::{Buffer, Done, Io, IoFailed, IoId, IoKind, Refusal, Relocation};
pub use journal::JournalStreams;
pub use layout::Layout;
pub use log::Stream;
pub use memory::Memory;
pub use mount::{Recovery, format, mount, mount_read_only, open, open_read_only, read_label};
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
