//! The volume: a log-structured layer between a block device and what uses it.
//!
//! It exports blocks of 4 KiB and appends every write to large log segments of its backing,
//! remembering in a map where each block went (Sung 2022, Han 2021; volume.md): mode `log`,
//! [`Volume`]. Drivers know a volume of any mode as an [`Engine`]; the crate `onefold-modes` has
//! the other modes, and opens a volume of any mode. Without I/O of its own: a driver carries out
//! what [`Volume::poll_io`] asks for.
//!
//! Each part knows its own state, and nothing of the volume: `log` has the batches that are being put together and sent, and
//! what is durable; `segments` what each log segment is used for; `map` where each block lies, with what is being read of it;
//! `cleaner`, `checkpoint` and `scrub` how far they are; `snapshots` the members, `zones` and `resize` what their names say; and
//! `recovery` finds what counts behind a root. `volume` has one of each and carries requests from part to part, in modules
//! named like the parts.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod answers;
mod backing;
mod checkpoint;
mod cleaner;
mod config;
mod engine;
mod error;
mod findings;
mod frozen;
mod io;
mod layout;
mod limits;
mod log;
mod map;
mod memory;
mod packs;
mod pending;
mod plan;
mod range;
mod recovery;
mod requests;
mod resize;
mod retries;
mod scrub;
mod segments;
mod snapshots;
mod stall;
mod stats;
mod volume;
mod zones;

pub use backing::{Backing, Piece, drive, execute, settle};
pub use config::{
    Acknowledge, BATCH_BLOCKS_MAX, CleanMove, Geometry, GeometryError, JournalStreams, Options,
    OptionsError, PaperFlush, SEGMENTS_MIN, Trim, Victim,
};
pub use engine::Engine;
pub use error::MountError;
pub use findings::{FINDINGS_MAX, Finding, Inspection, Miscount};
pub use frozen::Frozen;
pub use io::{Buffer, Done, Io, IoFailed, IoId, IoKind, Refusal, Relocation};
pub use layout::Layout;
pub use log::Stream;
pub use memory::Memory;
pub use onefold_format::volume::{Codec, TRANSACTION_PAIRS_MAX, VolumeMode};
pub use packs::unpack;
pub use plan::{ReadPlan, ReadRun};
pub use range::{REQUEST_BLOCKS_MAX, Range};
pub use recovery::Recovery;
pub use resize::{Resize, ResizeError};
pub use scrub::{Damage, SCRUB_PAUSE, ScrubError, ScrubState, Scrubbed};
pub use segments::Faulty;
pub use snapshots::{MemberId, MemberInfo, SnapshotError, Usage};
pub use stats::{Sent, Stats};
pub use volume::recovery::rebuild::{Found, Rebuilt, rebuild};
pub use volume::recovery::{format, mount, mount_read_only, read_label};
pub use volume::{SegmentInfo, Volume, inspect, scrub};
pub use zones::{ZoneError, ZoneReport, ZoneStatus, write_label};

/// What crates with other modes share with mode `log`. An engine for a new mode implements
/// [`Engine`] and needs of these what it does not do in its own way.
pub mod parts {
    pub use crate::backing::{bytes_of, damaged, fetch, locations};
    pub use crate::checkpoint::roots::newest_in_slots;
    pub use crate::findings::Findings;
    pub use crate::requests::Requests;
    pub use crate::retries::{Failing, Retries, TRIES_FEW, TRIES_MANY};
    pub use crate::volume::check_copies;
}
