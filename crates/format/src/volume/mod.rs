//! Records of a volume: what the host-side log-structured layer keeps on its backing (volume.md,
//! sections 5, 7 and 8). `docs/spec.md`, section 9, is the same in words.
//!
//! - [`VolumeLabel`]: what volume it is, on which devices, at the places of [`label_addresses`].
//! - [`Root`]: the newest checkpoint, at the places of [`root_addresses`]; it leads to the [`Body`],
//!   a stream of bytes in [`BodyBlock`]s.
//! - [`BatchHeader`]: begins each batch of the log and tells what its blocks are.
//! - [`encode_page`]: a page of the map or of checksums, listed in a [`DirectoryBlock`].
//! - [`RunBlock`], [`RunIndexBlock`]: what changed in the map since, sorted.
//! - [`Transaction`], [`TableBlock`], [`Catalog`]: log, tables and body of the modes `sung` and `han`.
//!
//! Invariants:
//! 1. Every block but the pages and transactions begins with a [`BlockHead`], and one CRC-32C covers all of it: a torn,
//!    stale or misdirected block is never taken for another one.
//! 2. What an `encode` accepts, its `decode` accepts; it panics at what it cannot write, since a
//!    checkpoint that cannot be read again would be lost data.
//! 3. A count is compared with the bytes that are there before anything is allocated for it.

mod addresses;
mod batch;
mod batch_records;
mod block;
mod body;
mod body_block;
mod catalog;
mod coded;
mod directory;
mod error;
mod extent;
mod fields;
mod kind;
mod label;
mod member;
mod name;
mod pack;
mod page;
mod root;
mod run;
mod run_entry;
mod run_index;
mod segment;
mod table;
#[cfg(test)]
mod testing;
mod transaction;

pub use addresses::{BACKING_BLOCKS_MIN, RESERVED_BLOCKS, label_addresses, root_addresses};
pub use batch::{BatchHeader, BatchPeek, DecodedBatch, pack_of};
pub use batch_records::{
    BatchRecords, CleanRecord, DataRecord, MetaKind, MetaRecord, RecordList, Records, TrimRecord,
    Version, moved_max, records_room, trims_max,
};
pub use block::BlockHead;
pub use body::{BODY_COUNTERS_MAX, Body, MEMBERS_MAX};
pub use body_block::{BODY_PAYLOAD_BYTES, BodyBlock};
pub use catalog::{Catalog, TablePlace};
pub use directory::{DIRECTORY_ENTRIES, DirectoryBlock, DirectoryEntry};
pub use error::BlockError;
pub use extent::Extent;
pub use fields::{BIRTH_LIMIT, LBA_LIMIT};
pub use kind::{BLOCK_BYTES, BLOCK_VERSION, BlockKind};
pub use label::{
    COMPAT_KNOWN, DeviceRole, INCOMPAT_KNOWN, INCOMPAT_PACKED, INCOMPAT_ZSTD, RO_COMPAT_KNOWN,
    VOLUME_DEVICES_MAX, VolumeDevice, VolumeLabel, VolumeMode,
};
pub use member::{DirectoryPlace, MEMBER_DELETED, MEMBER_READ_ONLY, Member};
pub use name::{NameError, VOLUME_NAME_MAX, VolumeName};
pub use pack::{
    Codec, PACK_BACKING_MAX, Pack, PackEntry, Packing, Place, QUARTERS, Slot, entry_of, quarters_of,
};
pub use page::{PAGE_ENTRIES, decode_page, encode_page};
pub use root::{BodyPlace, ROOT_EXTENTS_MAX, Root};
pub use run::{PAGE_GONE_BIRTH, RUN_BLOCK_RECORDS, RunBlock, RunRecord};
pub use run_entry::RunEntry;
pub use run_index::{RUN_INDEX_ENTRIES, RunIndexBlock};
pub use segment::{OpenSegment, SegmentEntry, SegmentState};
pub use table::{TABLE_BLOCK_ENTRIES, TableBlock, TableEntry};
pub use transaction::{Pair, TRANSACTION_PAIRS_MAX, Transaction};
