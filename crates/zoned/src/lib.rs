//! The zoned volume: a chunk-mapped layer between zoned devices and what uses them like an ordinary one.
//!
//! It does what the Linux target dm-zoned does, number by number and in its format (zoned.md, section 3), so that its counters can
//! be laid beside the kernel's; it flushes what the kernel forgets. With a journal range the journal of a file system keeps out
//! of reclaim (Choi 2022). Without I/O of its own: a driver carries out what [`Volume::poll_io`] asks for.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod append;
mod backing;
mod bits;
mod block_map;
mod config;
mod copy;
mod device_io;
mod error;
mod faults;
mod flush;
mod foreground;
mod geometry;
mod inspect;
mod io;
mod job;
mod journal;
mod journal_set;
mod layout;
mod load;
mod map;
mod meta;
mod metadata_sets;
mod mount;
mod opening_io;
mod pinned;
mod quarantine;
mod queries;
mod queues;
mod reclaim;
mod recovery;
mod requests;
mod rest;
mod retries;
mod rewrite;
mod roots;
mod stall;
mod stats;
mod sums;
mod volume;

mod worker;
mod write_metadata;
mod zones;

pub use backing::{Backing, ZoneReport, drive, execute};
pub use block_map::Stream;
pub use config::{FLUSH_PERIOD, IDLE, JournalMode, LOW_PERCENT, Options, WAIT};
pub use error::{JournalFault, Lost, MountError, owner};
pub use geometry::{
    DEVICES_MAX, DeviceZones, Geometry, GeometryError, ZONE_BLOCKS_MAX, ZONE_BLOCKS_MIN, ZONES_MAX,
    ZoneKind,
};
pub use inspect::{Finding, Inspection, Place, ZoneUse, ZoneView, inspect};
pub use io::{Done, Failure, Io, IoFailed, IoId, IoKind, REQUESTS_MAX, Refusal, Request};
pub use layout::{CONVENTIONAL_MIN, Layout, LayoutError, RESERVED};
pub use meta::Identity;
pub use mount::{format, mount};
pub use reclaim::Move;
pub use recovery::Recovery;
pub use stats::{Action, DeviceStats, JournalZone, Reclaims, Sent, Stats, WaitReason, Waits};
pub use volume::Volume;
pub use zones::Condition;
