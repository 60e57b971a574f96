//! What a volume is made of, and how it is run.

use onefold_format::volume::{Codec, TRANSACTION_PAIRS_MAX};
use onefold_units::Nanos;
use onefold_units::convert::index;
use thiserror::Error;

use crate::limits::{BATCHES_OWN, CLEAN_RECORDS_MAX};
use crate::range::REQUEST_BLOCKS_MAX;

/// Fewest log segments of a volume (volume.md, section 5.1).
pub const SEGMENTS_MIN: u32 = 128;

/// Blocks of a batch: its header and at most 255 blocks.
pub const BATCH_BLOCKS_MAX: u32 = 256;

/// What is fixed when a volume is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size of the backing in blocks of 4 KiB.
    pub backing_blocks: u64,
    /// Size of a log segment in blocks. Without zones, segments lie at multiples of it; else it is what a zone takes.
    pub segment_blocks: u32,
    /// Size of a zone in addresses, at least what it takes: each log segment is one. 0: the backing has no zones.
    pub zone_blocks: u32,
    /// Indirection unit of the backing in blocks: batches begin and end at multiples of it.
    pub unit_blocks: u32,
    /// Size of the exported device in blocks.
    pub logical_blocks: u64,
    /// How blocks are compressed where that pays (`crate::packs`).
    pub compress: Option<Codec>,
}

/// Which log segment the cleaner takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// Always the one with the fewest live blocks.
    Greedy,
    /// The largest (1 - u) x age / (1 + u) while there is time, greedy when it is urgent (Rosenblum and
    /// Ousterhout 1992, section 3.6).
    CostBenefit,
}

/// How the cleaner moves blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanMove {
    /// It reads and writes them.
    Copy,
    /// The backing remaps them ([`crate::IoKind::Remap`]); where it cannot, they are copied. Needs an indirection unit of one
    /// block.
    Remap,
}

/// Which freed log segments are trimmed on the backing. Zones are reset whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// None.
    Never,
    /// Those that are not needed for 30 s because enough others are free (H of volume.md, section 5.7). For files: a hole
    /// that is filled again soon costs their file system more than the write, and only room that stays free is of use to others.
    Spare,
    /// All of them. For drives, which collect what they think is live.
    Always,
}

/// When a write of the host is answered, and so when its batch leaves that is not full (differs from volume.md, section 5.1, which
/// knows one rule; docs/volume.md has what it saves).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// When the volume has copied it. Like any write it is durable after the next flush. Nobody waits for the batch, so that waits for
    /// more: until a flush, a write with `fua`, [`Options::batch_age`], or so many blocks that a header more matters little
    /// while the backing has nothing to do.
    Buffered,
    /// When the backing has written it. The batch is sent as soon as none of its stream is under way, or after a millisecond.
    Complete,
}

/// How a volume is run. None of it is stored.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Blocks of a batch of the host with its header, at most [`BATCH_BLOCKS_MAX`]; batches of the cleaner and of checkpoints always
    /// have as many as that.
    pub batch_blocks: u32,
    /// Batches that may be in memory at once, over all streams.
    pub batches: usize,
    /// Map pages (4 MiB of the exported device each, 8 KiB of memory) that may be in memory.
    pub map_pages: usize,
    /// Requests at a time with which the map is read in the background after an opening, if all of it may be in memory; 0: it is
    /// not.
    pub preload: u32,
    /// A checkpoint is taken after this many blocks of log ..
    pub checkpoint_blocks: u64,
    /// .. or this many batches ..
    pub checkpoint_batches: u64,
    /// .. or this time with changes.
    pub checkpoint_age: Nanos,
    /// The backing is flushed after this many blocks of log ..
    pub flush_blocks: u64,
    /// .. or this time with changes.
    pub flush_age: Nanos,
    /// An idle volume says in a header that all is durable, so long after the last flush ([`crate::Stats::markers`]).
    pub marker_age: Nanos,
    /// When a write of the host is answered.
    pub acknowledge: Acknowledge,
    /// A batch that is not full, and that nobody waits for, waits at most this long.
    pub batch_age: Nanos,
    /// Separate frequently from rarely written blocks.
    pub hot_cold: bool,
    /// Whether journals have log segments of their own, once it is known where they are ([`crate::Volume::set_journal`]).
    pub journal: JournalStreams,
    /// Choice of victims.
    pub victim: Victim,
    /// How the cleaner moves blocks.
    pub clean_move: CleanMove,
    /// Free log segments below which the cleaner runs; `None`: 2 % of all, at least two above the reserve.
    pub clean_below: Option<u32>,
    /// Which freed log segments are trimmed on the backing.
    pub trim: Trim,
    /// Shortest time between two trims of log segments.
    pub trim_pause: Nanos,
    /// Whether data that is read is checked.
    pub verify: bool,
    /// Whether blocks carry bytes. Without them the volume counts and places, as simulations need.
    pub bytes: bool,
    /// Modes `sung` and `han`: block addresses that a transaction changes at most; at most
    /// [`crate::TRANSACTION_PAIRS_MAX`] count.
    pub transaction_pairs: usize,
    /// Mode `sung`: cleaning begins when contiguous free space / space for data is below this. Not in Sung 2022;
    /// volume.md, section 3, V6.
    pub free_share: f64,
    /// Modes `sung` and `han`: a transaction is committed after this time at the latest.
    pub commit_age: Nanos,
    /// Mode `sung`: bytes that tables may take; those updated least recently leave memory then. Two stay, and those that are
    /// in use.
    pub table_bytes: u64,
    /// Zones: a volume is opened although a zone holds less than the last checkpoint knows of, or one that may hold what came after
    /// it is offline. What was there is an error to read.
    pub give_up_zones: bool,
    /// Modes `sung` and `han`: flushes of the backing that are left out, as the papers have it.
    pub paper_flush: PaperFlush,
    /// Modes `sung` and `han`: writes that lie side by side become one request of up to 1 MiB, as the block layer merges (Han
    /// 2021, sec. III-B). The layer of Sung 2022 is below the block layer and merges nothing.
    pub merge: bool,
    /// Mode `han`: a partition is cleaned when invalid / written blocks in it exceed this (Han 2021, sec. III-A). 1: only
    /// partitions that writes left are cleaned, and what writes wait for.
    pub clean_share: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch_blocks: BATCH_BLOCKS_MAX,
            batches: 16,
            map_pages: usize::MAX,
            preload: 0,
            checkpoint_blocks: 65_536,
            checkpoint_batches: 8_192,
            checkpoint_age: Nanos::new(30_000_000_000),
            flush_blocks: 16_384,
            flush_age: Nanos::new(5_000_000_000),
            marker_age: Nanos::new(100_000_000),
            acknowledge: Acknowledge::Complete,
            batch_age: Nanos::new(1_000_000_000),
            hot_cold: false,
            journal: JournalStreams::Off,
            victim: Victim::CostBenefit,
            clean_move: CleanMove::Copy,
            clean_below: None,
            trim: Trim::Always,
            trim_pause: Nanos::new(50_000_000),
            verify: true,
            bytes: true,
            transaction_pairs: TRANSACTION_PAIRS_MAX,
            free_share: 0.1,
            commit_age: Nanos::new(5_000_000_000),
            table_bytes: u64::MAX,
            give_up_zones: false,
            paper_flush: PaperFlush::None,
            merge: true,
            clean_share: 1.0,
        }
    }
}

/// Flushes of the backing that the modes `sung` and `han` leave out. Neither paper sends any (volume.md, section 3, V4): all
/// but [`PaperFlush::None`] is for simulations, as what was flushed can be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaperFlush {
    /// None: data, FLUSH, log block, FLUSH.
    #[default]
    None,
    /// Those of the layer. Each FLUSH and each FUA write of the host is one FLUSH of the backing, after its log block.
    Own,
    /// Those of the host as well.
    All,
}

/// Options with which a volume would get stuck.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Batches do not begin and end at multiples of the indirection unit, or take no block.
    #[error(
        "batches of {found} blocks; expected at least 2, at most {BATCH_BLOCKS_MAX}, and a multiple of \
         the indirection unit of {unit}"
    )]
    BatchBlocks {
        /// Blocks.
        found: u32,
        /// Blocks of the unit.
        unit: u32,
    },
    /// Single blocks cannot be remapped.
    #[error(
        "cleaning by remap moves single blocks, and the indirection unit has {unit}: clean by copying"
    )]
    RemapUnit {
        /// Blocks of the unit.
        unit: u32,
    },
    /// Zones are written from start to end.
    #[error(
        "cleaning by remap needs blocks that can be changed anywhere, and the backing has zones: clean by copying"
    )]
    RemapZones,
    /// The longest request does not fit the batches.
    #[error("{found} batches of {blocks} blocks; expected at least {min} for the longest request")]
    Batches {
        /// Batches.
        found: usize,
        /// Blocks of one.
        blocks: u32,
        /// Fewest batches.
        min: usize,
    },
}

impl Options {
    /// Checks that a volume with an indirection unit of so many blocks can run with these.
    ///
    /// # Errors
    /// What cannot work.
    pub fn check(&self, unit: u32) -> Result<(), OptionsError> {
        let blocks = self.batch_blocks;
        if !(2..=BATCH_BLOCKS_MAX).contains(&blocks) || !blocks.is_multiple_of(unit) {
            return Err(OptionsError::BatchBlocks { found: blocks, unit });
        }
        if self.clean_move == CleanMove::Remap && unit > 1 {
            return Err(OptionsError::RemapUnit { unit });
        }
        let data = blocks.min(CLEAN_RECORDS_MAX + 1) - 1;
        let min = index(REQUEST_BLOCKS_MAX.div_ceil(data) + 1) + BATCHES_OWN;
        let found = self.batches;
        if found < min { Err(OptionsError::Batches { found, blocks, min }) } else { Ok(()) }
    }
}

/// A geometry that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// The indirection unit is none.
    #[error("an indirection unit of {found} blocks; expected a power of two of at most {max}")]
    Unit {
        /// Blocks.
        found: u32,
        /// Largest unit.
        max: u32,
    },
    /// A log segment is not a whole number of batches' units, or too small.
    #[error(
        "log segments of {found} blocks; expected a multiple of the indirection unit of {unit} blocks, \
         and at least {min}"
    )]
    Segment {
        /// Blocks.
        found: u32,
        /// Blocks of the unit.
        unit: u32,
        /// Fewest blocks.
        min: u32,
    },
    /// A zone takes more than it has addresses.
    #[error("zones of {zone} blocks that take {takes}; expected at most {zone}")]
    Zone {
        /// Addresses of a zone.
        zone: u32,
        /// Blocks that it takes.
        takes: u32,
    },
    /// The backing has more blocks than locations.
    #[error("a backing of {found} blocks of 4 KiB; expected at most {max} (16 TiB)")]
    BackingTooLarge {
        /// Blocks.
        found: u64,
        /// Most blocks.
        max: u64,
    },
    /// The backing has more blocks than locations with slots.
    #[error(
        "a backing of {found} blocks of 4 KiB; expected at most {max} (2 TiB) with compression: choose a smaller backing or \
         leave compression off"
    )]
    PackedTooLarge {
        /// Blocks.
        found: u64,
        /// Most blocks.
        max: u64,
    },
    /// The backing is too small.
    #[error(
        "a backing of {found} blocks of 4 KiB has {segments} log segments of {segment_blocks} blocks; \
         expected at least {min}: choose a larger backing or smaller log segments"
    )]
    BackingTooSmall {
        /// Blocks.
        found: u64,
        /// Usable log segments.
        segments: u32,
        /// Blocks of one.
        segment_blocks: u32,
        /// Fewest segments.
        min: u32,
    },
    /// The partitions of mode `sung` or `han` do not fit.
    #[error(
        "a backing of {backing} blocks of 4 KiB cannot be divided into partitions of {found} blocks with tables and logs \
         behind them; choose a larger backing, and partitions of at least {min} blocks"
    )]
    Partition {
        /// Blocks of the backing.
        backing: u64,
        /// Blocks of a partition.
        found: u32,
        /// Fewest blocks of one.
        min: u32,
    },
    /// More is exported than cleaning can serve.
    #[error(
        "{logical} blocks are to be exported, and {usable} of {space} blocks of log space can hold data \
         beside the reserve, headers and padding; choose a smaller size or a larger backing{}",
        if *thin > *usable { format!(", or make a thin volume of at most {thin} blocks") } else { String::new() }
    )]
    Logical {
        /// Blocks to export.
        logical: u64,
        /// Blocks that can hold data.
        usable: u64,
        /// Blocks of all log segments.
        space: u64,
        /// Most blocks that a thin volume can export.
        thin: u64,
    },
}

/// Whether journals have log segments of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalStreams {
    /// They are data.
    #[default]
    Off,
    /// Ring, header and fast-commit area go to the same ones.
    Together,
    /// Header and fast-commit area, which are rewritten at any time, do not go to those of the ring.
    Apart,
}
