//! How a device's flash is divided up, and whether the configuration can work.

use onefold_format::{CheckpointLabel, SyncMark, TRIM_RECORD_BYTES, tail_records_per_unit};
use onefold_nand::Geometry;
use onefold_units::convert::{float, floor_u64, narrow, u64_from};

use crate::config_error::ConfigError;
use crate::{FtlConfig, RemapScheme};

/// Logical unit that nothing is mapped to.
pub(crate) const UNMAPPED: u32 = u32::MAX;

/// Superblocks kept free for the remap log (remap.md section 6). What it takes beyond them is less than
/// what sharing saves.
const LOG_SUPERBLOCKS: u64 = 3;

/// Bytes of the ring of remap commands (remap.md section 7).
pub(crate) const COMMAND_RING_BYTES: u64 = 4096;

/// In a wear entry: the superblock is out of use.
pub(crate) const RETIRED_BIT: u32 = 1 << 31;

/// In a wear entry: the superblock holds log pages that do not count any more, and is about to be
/// erased.
pub(crate) const ERASING_BIT: u32 = 1 << 30;

/// Reverse map of a slot that only remaps lead to.
pub(crate) const NO_OWNER: u32 = u32::MAX;

/// Logical unit whose content is known to be lost.
pub(crate) const LOST: u32 = u32::MAX - 1;

/// Logical units at most: numbers above it have meanings of their own.
const UNITS_MAX: u64 = 0xFFFF_0000;

/// Everything that follows from geometry and configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Logical units of the host.
    pub(crate) host_units: u32,
    /// Those and the snapshot units, which come after them.
    pub(crate) data_units: u32,
    /// Logical units including translation pages, which come last.
    pub(crate) units: u32,
    /// Map entries per unit.
    pub(crate) entries_per_unit: u32,
    /// First data slot of a superblock.
    pub(crate) data_begin: u32,
    /// End of the data slots.
    pub(crate) data_end: u32,
    /// Frontiers per pool: host streams, and one for collection if separate.
    pub(crate) frontiers: u32,
    /// Frontier of collection within a pool.
    pub(crate) gc_frontier: u32,
    /// Free superblocks of a pool below which background collection runs.
    pub(crate) start: u32,
    /// Free superblocks of a pool at which a host write waits for collection.
    pub(crate) stop: u32,
    /// Free superblocks of a pool that only collection may take.
    pub(crate) collection_reserve: u32,
    /// Host data may get into superblocks that collection opened: by a shared frontier, or by a staged copy that
    /// is rewritten in place.
    pub(crate) mixes: bool,
    /// Valid slots of a pool at which new host data goes to other pools.
    pub(crate) pool_valid_max: u32,
    /// Superblocks that one checkpoint takes.
    pub(crate) checkpoint_superblocks: u32,
    /// Host writes from one checkpoint to the next; `u64::MAX` if none is asked for.
    pub(crate) checkpoint_every: u64,
    /// Where the parts of NVRAM lie.
    pub(crate) nvram: NvramLayout,
}

/// Offsets in NVRAM, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NvramLayout {
    pub(crate) mark: u64,
    pub(crate) epoch_limit: u64,
    /// 4 B per superblock: erases, and [`RETIRED_BIT`] or [`ERASING_BIT`].
    pub(crate) wear: u64,
    pub(crate) labels: [u64; 2],
    pub(crate) label_bytes: u64,
    pub(crate) trims: [u64; 2],
    pub(crate) trim_records: u32,
    /// Segments of the remap log, one after the other.
    pub(crate) segments: u64,
    pub(crate) segment_bytes: u32,
    /// Slots of remap commands, 32 B each.
    pub(crate) commands: u64,
    pub(crate) bytes: u64,
}

impl Layout {
    /// Checks `config` against `geometry`.
    ///
    /// # Errors
    /// Names the key, the value and the limit.
    pub fn new(geometry: &Geometry, config: &FtlConfig) -> Result<Self, ConfigError> {
        check_ranges(config)?;
        check_remap(geometry, config)?;
        let entries_per_unit = geometry.unit_bytes() / 4;
        let data_units = config.logical_units + config.snapshot_units;
        let translation_units = match config.map_cache_bytes {
            Some(_) => data_units.div_ceil(u64::from(entries_per_unit)),
            None => 0,
        };
        let (data_begin, data_end) = data_range(geometry, config)?;
        let frontiers = config.streams + u32::from(config.separate_gc);
        let per_pool = geometry.superblocks_per_pool();
        let share = |share: f64| narrow(floor_u64((share * float(u64::from(per_pool))).ceil()));
        let mixes = !config.separate_gc || geometry.slots_per_program() > 1;
        // One superblock for collection to write to; one more where it mixes, because a power cut then
        // leaves the superblock that collection had taken in use.
        let collection_reserve = if mixes { 2 } else { 1 };
        // Collection may have to move log entries to flash: one more superblock for that.
        let hybrid = config.remap.scheme == RemapScheme::Lh;
        let stop = share(config.gc_stop).max(collection_reserve + u32::from(hybrid));
        let start = share(config.gc_start).max(stop + 1);
        let units = data_units + translation_units;
        let data_slots = data_end - data_begin;
        let map_units = units.div_ceil(u64::from(entries_per_unit));
        let checkpoint_superblocks = map_units.div_ceil(u64::from(data_slots));
        let pools = u64::from(geometry.pools());
        // A checkpoint is written while the one before it is kept.
        let checkpoint_reserve = (2 * checkpoint_superblocks).div_ceil(pools);
        let log_reserve = if hybrid { LOG_SUPERBLOCKS.div_ceil(pools) } else { 0 };
        let reserve = u64::from(start) + u64::from(frontiers) + checkpoint_reserve + log_reserve;
        let usable = u64::from(per_pool).saturating_sub(reserve) * u64::from(data_slots) * pools;
        if units >= usable {
            return Err(ConfigError::NoSpace {
                logical: data_units * u64::from(geometry.unit_bytes()),
                snapshots: config.snapshot_units * u64::from(geometry.unit_bytes()),
                usable: usable * u64::from(geometry.unit_bytes()),
                reserve,
                superblocks: u64::from(per_pool),
            });
        }
        let spare_units = (usable - units) / pools / 2;
        let frontier_slots = pools * u64::from(frontiers + 1);
        Ok(Self {
            host_units: narrow(config.logical_units),
            data_units: narrow(data_units),
            units: narrow(units),
            entries_per_unit,
            data_begin,
            data_end,
            frontiers,
            gc_frontier: if config.separate_gc { config.streams } else { 0 },
            start,
            stop,
            collection_reserve,
            mixes,
            pool_valid_max: narrow(units.div_ceil(pools) + spare_units.max(1)),
            checkpoint_superblocks: narrow(checkpoint_superblocks),
            checkpoint_every: if config.checkpoint > 0.0 {
                floor_u64(config.checkpoint * float(config.logical_units)).max(1)
            } else {
                u64::MAX
            },
            nvram: NvramLayout::new(geometry, frontier_slots, config),
        })
    }

    /// Slots for data per superblock.
    pub(crate) const fn data_slots(&self) -> u32 {
        self.data_end - self.data_begin
    }

    /// Bytes of NVRAM the device needs.
    #[must_use]
    pub const fn nvram_bytes(&self) -> u64 {
        self.nvram.bytes
    }
}

impl NvramLayout {
    fn new(geometry: &Geometry, frontiers: u64, config: &FtlConfig) -> Self {
        const BLOCK: u64 = 4096;
        let superblocks = u64::from(geometry.superblocks());
        let label_bytes =
            CheckpointLabel::max_bytes(superblocks, frontiers).next_multiple_of(BLOCK);
        let record = u64_from(TRIM_RECORD_BYTES);
        let trim_records = (config.trim_log_bytes / 2 / record).max(1);
        let trim_bytes = (trim_records * record).next_multiple_of(BLOCK);
        let mark = 0;
        let wear = mark + u64_from(SyncMark::BYTES).next_multiple_of(BLOCK);
        let label = wear + (superblocks * 4).next_multiple_of(BLOCK);
        let trims = label + 2 * label_bytes;
        let commands = trims + 2 * trim_bytes;
        let (command_bytes, log_bytes) = if config.remap.scheme.is_local() {
            (COMMAND_RING_BYTES, config.remap.log_bytes.next_multiple_of(BLOCK))
        } else {
            (0, 0)
        };
        let segments = commands + command_bytes;
        Self {
            mark,
            // In the block of the mark, but written by itself.
            epoch_limit: mark + 64,
            wear,
            labels: [label, label + label_bytes],
            label_bytes,
            trims: [trims, trims + trim_bytes],
            trim_records: narrow(trim_records),
            segments,
            segment_bytes: config.remap.segment_bytes,
            commands,
            bytes: segments + log_bytes,
        }
    }

    /// Offset of a segment of the remap log.
    pub(crate) fn segment(&self, id: u32) -> u64 {
        self.segments + u64::from(id) * u64::from(self.segment_bytes)
    }
}

fn check_ranges(config: &FtlConfig) -> Result<(), ConfigError> {
    for (key, value, min, max) in [
        ("ftl.gc_start", config.gc_start, 0.0, 0.9),
        ("ftl.gc_stop", config.gc_stop, 0.0, 0.9),
        ("ftl.checkpoint", config.checkpoint, 0.0, 1000.0),
    ] {
        if !(min..=max).contains(&value) {
            return Err(ConfigError::Share { key, value, min, max });
        }
    }
    for (key, value, min, max) in [
        ("ftl.streams", u64::from(config.streams), 1, 256),
        ("capacity.logical", config.logical_units, 1, UNITS_MAX),
        // Together they are numbered in 32 bits.
        (
            "capacity.snapshots",
            config.snapshot_units,
            0,
            UNITS_MAX.saturating_sub(config.logical_units),
        ),
        ("ftl.trim_log", config.trim_log_bytes, 4096, 1 << 34),
    ] {
        if !(min..=max).contains(&value) {
            return Err(ConfigError::Count { key, value, min, max });
        }
    }
    Ok(())
}

/// The least segments that leave some for the host beside the reserves.
const SEGMENTS_MIN: u64 = 6;

fn check_remap(geometry: &Geometry, config: &FtlConfig) -> Result<(), ConfigError> {
    let remap = &config.remap;
    if remap.scheme == RemapScheme::None {
        return Ok(());
    }
    let smallest = u64::from(remap.segment_head_bytes() + remap.entry_bytes());
    let segment = u64::from(remap.segment_bytes);
    for (key, value, min, max) in [
        ("ftl.remap_segment", segment, smallest, 65_536),
        ("ftl.remap_log", remap.log_bytes, SEGMENTS_MIN * segment, 1 << 40),
    ] {
        if !(min..=max).contains(&value) {
            return Err(ConfigError::Count { key, value, min, max });
        }
    }
    if remap.paper && geometry.slots_per_program() > 1 {
        return Err(ConfigError::PaperProgram { slots: geometry.slots_per_program() });
    }
    Ok(())
}

/// Data slots of a superblock: what head and tail pages leave.
fn data_range(geometry: &Geometry, config: &FtlConfig) -> Result<(u32, u32), ConfigError> {
    let slots = geometry.slots();
    let program = geometry.slots_per_program();
    // Whole programs only: a superblock whose slots are no multiple wastes the rest.
    let whole = slots - slots % program;
    let error = ConfigError::NoDataSlots { slots };
    if !config.metadata_pages {
        return if whole > 0 { Ok((0, whole)) } else { Err(error) };
    }
    let records = tail_records_per_unit(geometry.unit_bytes());
    let tail = slots.div_ceil(records).next_multiple_of(program);
    let end = whole.checked_sub(tail).filter(|end| *end > program).ok_or(error)?;
    Ok((program, end))
}
