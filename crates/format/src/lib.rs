//! Bytes on media: encode, decode, checksums, versions. `docs/spec.md` is the same in words.
//!
//! All integers are little-endian. Every record carries a crc32c over everything before it, and an
//! erased area reads as all ones, which is told apart from damage.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]
#![deny(clippy::host_endian_bytes, clippy::big_endian_bytes)]

mod buffer_table;
mod bytes;
mod cache_sums;
mod checkpoint;
mod dmz;
mod dmz_journal;
mod head;
mod image;
mod lifetime;
mod remap;
mod spare;
mod tail;
mod trim;
pub mod volume;
mod write_log;
mod zone;

pub use buffer_table::{BUFFER_TABLE_VERSION, BufferTable};
pub use cache_sums::{
    CACHE_BLOCK_BYTES, CACHE_REGION_BLOCKS, CACHE_SUMS_MAGIC, CACHE_SUMS_VERSION, CacheBits,
    CacheHeader, CacheHeaderError, CacheLayout, cache_sum, decode_cache_sums, encode_cache_sums,
};
pub use checkpoint::{CheckpointLabel, EpochLimit, Frontier, LABEL_VERSION, SyncMark, SyncedLog};
pub use dmz::{
    DMZ_BLOCK_BITS, DMZ_BLOCK_BYTES, DMZ_BLOCK_ENTRIES, DMZ_BLOCK_SUMS, DMZ_JOURNAL_MAP, DMZ_MAGIC,
    DMZ_SUM_BLOCKS_MAX, DMZ_VERSION, DmzMapEntry, DmzRoot, DmzRootError, DmzSums,
};
pub use dmz_journal::{
    DMZ_JOURNAL_ENTRY_BYTES, DMZ_JOURNAL_SLOTS_MAX, DmzJournalError, DmzJournalHead,
    DmzJournalSlot, dmz_journal_blocks,
};
pub use head::{HEAD_VERSION, HeadRecord, HeadState, SuperblockKind};
pub use image::{
    FEATURE_CONVENTIONAL, FEATURE_STRIDES, FEATURE_ZONES, IMAGE_MAGIC, IMAGE_VERSION, ImageError,
    ImageLabel, LABEL_BYTES,
};
pub use lifetime::{LIFETIME_BYTES, LIFETIME_VERSION, Lifetime, LifetimeRecord};
pub use remap::{
    CommandSlot, CommandState, LogPageHead, REMAP_BLOCK_BYTES, REMAP_RANGES_MAX, RangeResult,
    RemapBlockError, RemapCaps, RemapDurability, RemapEntry, RemapFlags, RemapReply, RemapVector,
    ReplyContent, SNAPSHOT_NAME_MAX, SNAPSHOTS_MAX, SegmentHead, SnapshotAction, SnapshotCommand,
    SnapshotEntry, SnapshotName, SnapshotTable, Topology, VectorRange, decode_segment,
    entries_per_segment, log_page_capacity, pack_log_page, unpack_log_page,
};
pub use spare::{SlotKind, SpareRecord, SpareState};
pub use tail::{
    TAIL_RECORD_BYTES, TailMeter, TailRecord, decode_tail, encode_tail, tail_records_per_unit,
};
pub use trim::{TRIM_RECORD_BYTES, TrimRecord};
pub use write_log::{
    WRITE_LOG_ENTRY_BYTES, WRITE_LOG_MAGIC, WRITE_LOG_SUPER_BYTES, WRITE_LOG_VERSION,
    WriteLogDamage, WriteLogEntry, WriteLogSuper,
};
pub use zone::{
    BlockSetRecord, BlockSetState, NvramRecord, ZONE_RECORD_BYTES, ZoneCondition, ZoneRecord,
};

/// Checksum of every record and of user data: CRC-32C (Castagnoli).
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
