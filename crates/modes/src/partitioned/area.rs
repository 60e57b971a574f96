//! Where things lie on a backing of the modes `sung` and `han`.
//!
//! Labels and roots lie where those of mode `log` do. Data begins at block 64 and leaves out 32
//! blocks around the second label and its roots; behind data come the logs or map files, the two
//! slots of each table (Sung's *reserved space*), and the two slots of the catalog.

use std::ops::Range;

use onefold_format::volume::{
    BODY_PAYLOAD_BYTES, Catalog, TABLE_BLOCK_ENTRIES, VolumeLabel, VolumeMode, label_addresses,
    root_addresses,
};
use onefold_units::Location;
use onefold_units::convert::{index, narrow, u32_from, u64_from};
use onefold_volume::GeometryError;

use super::rules::Rules;
use crate::{han, sung};

/// First block of data.
pub(super) const DATA_START: u32 = 64;

/// Blocks around the second label and its roots.
const HOLE: u32 = 32;

/// Data blocks beyond those that are exported, at least: pending versions, and holes for the
/// cleaner.
const SPARE_BLOCKS: u32 = 2048;

/// Fewest blocks of a log or map file.
const FILE_BLOCKS_MIN: u32 = 8;

/// Free regions that a checkpoint lists at most.
pub(super) const REGIONS_MAX: usize = 64;

/// A geometry that works.
#[derive(Clone, Debug)]
pub struct Areas {
    rules: &'static Rules,
    labels: Vec<u64>,
    roots: Vec<u64>,
    backing_blocks: u64,
    logical_blocks: u64,
    partition_blocks: u32,
    partitions: u32,
    data_end: u32,
    file_blocks: u32,
    slot_blocks: u32,
    catalog_blocks: u32,
}

/// The rules of a mode; of `sung` where it is neither.
const fn rules_of(mode: VolumeMode) -> &'static Rules {
    match mode {
        VolumeMode::Han => &han::RULES,
        VolumeMode::Sung | VolumeMode::Log => &sung::RULES,
    }
}

impl Areas {
    /// What a label describes.
    ///
    /// # Errors
    /// The inequality that does not hold.
    pub fn of(label: &VolumeLabel) -> Result<Self, GeometryError> {
        let backing = label.devices.iter().map(|device| device.blocks).sum();
        Self::new(label.mode, backing, label.segment_blocks, label.logical_blocks)
    }

    /// Blocks of a partition where none are given: 4 GiB (Sung 2022, sec. III-C), or a quarter of
    /// the data (Han 2021, sec. III-C).
    #[must_use]
    pub fn default_partition(mode: VolumeMode, backing_blocks: u64) -> u32 {
        let rules = rules_of(mode);
        let Some(count) = rules.partitions else { return 1 << 20 };
        let room = narrow(backing_blocks.min(u64::from(u32::MAX) - 1)).saturating_sub(128);
        let quarter = room / count;
        let beside = meta_blocks(rules, room, quarter, count);
        room.saturating_sub(beside) / count
    }

    /// Checks a geometry of partitions of so many blocks.
    ///
    /// # Errors
    /// The inequality that does not hold.
    pub fn new(
        mode: VolumeMode,
        backing_blocks: u64,
        partition_blocks: u32,
        logical_blocks: u64,
    ) -> Result<Self, GeometryError> {
        let rules = rules_of(mode);
        let max = u64::from(Location::LOST.raw());
        if backing_blocks > max {
            return Err(GeometryError::BackingTooLarge { found: backing_blocks, max });
        }
        let labels = label_addresses(backing_blocks);
        let room = narrow(labels.last().copied().unwrap_or(0)).saturating_sub(DATA_START);
        let too_small = GeometryError::Partition {
            backing: backing_blocks,
            found: partition_blocks,
            min: SPARE_BLOCKS / 4,
        };
        if partition_blocks < SPARE_BLOCKS / 4 {
            return Err(too_small);
        }
        let data = if let Some(count) = rules.partitions {
            partition_blocks.checked_mul(count)
        } else {
            let count = room.div_ceil(partition_blocks);
            room.checked_sub(meta_blocks(rules, room, partition_blocks, count))
        };
        let Some(data) = data.filter(|data| *data > SPARE_BLOCKS + HOLE) else {
            return Err(too_small);
        };
        let partitions = data.div_ceil(partition_blocks);
        let areas = Self {
            rules,
            roots: root_addresses(backing_blocks),
            labels,
            backing_blocks,
            logical_blocks,
            partition_blocks,
            partitions,
            data_end: DATA_START + data,
            file_blocks: file_blocks(rules, room),
            slot_blocks: slot_blocks(partition_blocks.min(room)),
            catalog_blocks: catalog_blocks(partitions),
        };
        if data > room || areas.end() > DATA_START + room || partitions > u32::from(u16::MAX) {
            return Err(too_small);
        }
        let (usable, space) = (areas.logical_max(), areas.data_blocks());
        if logical_blocks == 0 || logical_blocks > usable {
            return Err(GeometryError::Logical {
                logical: logical_blocks,
                usable,
                space,
                thin: usable,
            });
        }
        Ok(areas)
    }

    pub(super) const fn rules(&self) -> &'static Rules {
        self.rules
    }

    /// Blocks at which the copies of the label lie.
    #[must_use]
    pub fn labels(&self) -> &[u64] {
        &self.labels
    }

    /// Blocks of the slots of the root.
    #[must_use]
    pub fn roots(&self) -> &[u64] {
        &self.roots
    }

    /// Size of the backing in blocks.
    #[must_use]
    pub const fn backing_blocks(&self) -> u64 {
        self.backing_blocks
    }

    /// Exported blocks.
    #[must_use]
    pub const fn logical_blocks(&self) -> u64 {
        self.logical_blocks
    }

    /// Partitions.
    #[must_use]
    pub const fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Blocks of a partition; the last one may have fewer.
    #[must_use]
    pub const fn partition_blocks(&self) -> u32 {
        self.partition_blocks
    }

    /// Blocks that hold data.
    #[must_use]
    pub fn data_blocks(&self) -> u64 {
        self.data().iter().map(|piece| u64::from(piece.end - piece.start)).sum()
    }

    /// Most blocks that can be exported.
    #[must_use]
    pub fn logical_max(&self) -> u64 {
        let most = u64::from(Location::LOST.raw());
        self.data_blocks().saturating_sub(SPARE_BLOCKS.into()).min(most)
    }

    /// The pieces of the backing that hold data.
    pub(super) fn data(&self) -> [Range<u32>; 2] {
        let second = narrow(self.labels.get(1).copied().unwrap_or(0));
        let (from, to) = (second.min(self.data_end), (second + HOLE).min(self.data_end));
        [DATA_START..from, to..self.data_end]
    }

    /// Whether data may lie there.
    pub(super) fn is_data(&self, at: u32) -> bool {
        self.data().iter().any(|piece| piece.contains(&at))
    }

    /// The partition of a block of data.
    pub(super) fn partition_of(&self, at: u32) -> usize {
        index((at - DATA_START) / self.partition_blocks)
    }

    /// The partition that is being written if this block is next. The end of all data belongs to
    /// the last one.
    pub(super) fn partition_written(&self, next: u32) -> usize {
        self.partition_of(next.clamp(DATA_START, self.data_end - 1))
    }

    /// The blocks of a partition, those around the second label included.
    pub(super) fn partition(&self, number: usize) -> Range<u32> {
        let start = DATA_START + u32_from(number) * self.partition_blocks;
        start..start.saturating_add(self.partition_blocks).min(self.data_end)
    }

    /// Blocks of a log or map file.
    pub(super) const fn file_blocks(&self) -> u32 {
        self.file_blocks
    }

    /// A block of a log or map file.
    pub(super) const fn file_at(&self, file: u32, block: u32) -> u32 {
        self.data_end + file * self.file_blocks + block
    }

    /// Logs or map files.
    #[must_use]
    pub const fn files(&self) -> u32 {
        self.rules.files
    }

    /// The blocks of a log or map file.
    #[must_use]
    pub fn file(&self, file: u32) -> Option<Range<u32>> {
        (file < self.files()).then(|| self.file_at(file, 0)..self.file_at(file + 1, 0))
    }

    /// The first block of a slot (1 or 2) of a table.
    pub(super) fn slot_at(&self, partition: usize, slot: u8) -> u32 {
        let slots = self.data_end + self.rules.files * self.file_blocks;
        slots + (u32_from(partition) * 2 + u32::from(slot) - 1) * self.slot_blocks
    }

    /// Entries that a slot has room for.
    pub(super) fn slot_entries(&self) -> usize {
        index(self.slot_blocks) * TABLE_BLOCK_ENTRIES
    }

    /// The first block of the catalog of a root.
    pub(super) fn catalog_at(&self, generation: u64) -> u32 {
        let first = self.slot_at(index(self.partitions), 1);
        first + narrow(generation % 2) * self.catalog_blocks
    }

    /// The first block behind everything but the last label.
    fn end(&self) -> u32 {
        self.catalog_at(1) + self.catalog_blocks
    }
}

/// 0.4 % of the space, together (volume.md, section 3, V11).
fn file_blocks(rules: &Rules, room: u32) -> u32 {
    (room / 250 / rules.files).max(FILE_BLOCKS_MIN)
}

fn slot_blocks(partition_blocks: u32) -> u32 {
    partition_blocks.div_ceil(u32_from(TABLE_BLOCK_ENTRIES))
}

fn catalog_blocks(partitions: u32) -> u32 {
    let bytes = Catalog::bytes(index(partitions), REGIONS_MAX);
    narrow(u64_from(bytes.div_ceil(BODY_PAYLOAD_BYTES)))
}

fn meta_blocks(rules: &Rules, room: u32, partition_blocks: u32, partitions: u32) -> u32 {
    let tables = u64::from(partitions) * 2 * u64::from(slot_blocks(partition_blocks.min(room)));
    let files = u64::from(rules.files) * u64::from(file_blocks(rules, room));
    narrow(tables + files + 2 * u64::from(catalog_blocks(partitions)))
}
