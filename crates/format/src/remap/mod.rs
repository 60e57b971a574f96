//! Records of the remap primitive: a target LPN gets the page of a source, and only a record of it
//! is written. Source: Wu 2022; remap.md sections 2, 3 and 7.
//!
//! - [`RemapEntry`]: a run of targets and the slots they map to, in a [`SegmentHead`]'s segment
//!   (NVRAM) or packed into a log page (flash, [`pack_log_page`]).
//! - [`CommandSlot`]: what NVRAM knows about one remap command.
//! - [`RemapVector`], [`RemapReply`]: what a host sends and gets back.
//! - [`SnapshotCommand`], [`SnapshotTable`]: the same for snapshots of ranges.
//!
//! Invariants:
//! 1. An entry counts only in the life of the segment it was written in: its checksum starts with
//!    the number of that life, which is never given out twice on a device.
//! 2. Every intact entry of a segment counts by itself, whatever lies before it.
//! 3. A place for an entry is written at most once in a life, and after a power cut no longer: the
//!    rest of a torn entry could complete a later one that got the same sequence number.
//! 4. No record of NVRAM that is written in place straddles two aligned 64 B blocks.
//!
//! Differs from remap.md section 3 (E24, 40-bit LPNs, torn bits and CRC-16): integers are whole
//! bytes, an entry has no source and no kind, since unmapping is always a record of the trim log,
//! and one CRC-32C tells torn, stale and damaged entries alike.

pub(crate) mod bits;
mod entry;
mod log_page;
mod reply;
mod ring;
mod segment;
mod snapshot;
mod vector;
mod wire;

pub use entry::RemapEntry;
pub use log_page::{LogPageHead, log_page_capacity, pack_log_page, unpack_log_page};
pub use reply::{RangeResult, RemapCaps, RemapDurability, RemapReply, ReplyContent, Topology};
pub use ring::{CommandSlot, CommandState};
pub use segment::{SegmentHead, decode_segment, entries_per_segment};
pub use snapshot::{
    SNAPSHOT_NAME_MAX, SNAPSHOTS_MAX, SnapshotAction, SnapshotCommand, SnapshotEntry, SnapshotName,
    SnapshotTable,
};
pub use vector::{RemapFlags, RemapVector, VectorRange};
pub use wire::{REMAP_BLOCK_BYTES, REMAP_RANGES_MAX, RemapBlockError};
