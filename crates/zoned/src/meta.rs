//! Map and validity bits as they are stored: the bytes of a metadata set are what the volume works on.

use std::collections::BTreeSet;
use std::ops::Range;

use onefold_format::{DMZ_BLOCK_BITS, DMZ_BLOCK_BYTES, DmzMapEntry, DmzRoot, DmzSums};
use onefold_units::ZoneId;
use onefold_units::convert::{index, u32_from, u64_from};

use crate::bits::Bits;
use crate::geometry::Geometry;
use crate::layout::Layout;

/// Names of a volume and its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name, zero-terminated if it is shorter.
    pub label: [u8; 32],
    /// Of the volume. Not all zero.
    pub uuid: [u8; 16],
    /// Of each device. Not all zero.
    pub device_uuids: Vec<[u8; 16]>,
}

/// What a root record says of one state of its set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) generation: u64,
    /// Blocks of the journal block map.
    pub(crate) journal_blocks: u32,
    pub(crate) sums: Option<DmzSums>,
}

impl Stored {
    /// What a root record says.
    pub(crate) fn of(root: &DmzRoot) -> Self {
        let DmzRoot { generation, journal_blocks, .. } = *root;
        Self { generation, journal_blocks, sums: root.sums.clone() }
    }
}

impl Identity {
    /// The root record at block `block` (over all devices) of a device.
    pub(crate) fn record(
        &self,
        layout: &Layout,
        (device, block): (usize, u64),
        Stored { generation, journal_blocks, sums }: Stored,
    ) -> DmzRoot {
        DmzRoot {
            generation,
            block,
            metadata_blocks: layout.metadata_blocks,
            reserved: layout.reserved,
            chunks: layout.chunks,
            map_blocks: layout.map_blocks,
            bitmap_blocks: layout.bitmap_blocks,
            label: self.label,
            uuid: self.uuid,
            device_uuid: self.device_uuids.get(device).copied().unwrap_or_default(),
            journal_blocks,
            sums,
        }
    }

    /// The root record of a metadata set.
    pub(crate) fn root(
        &self,
        geometry: &Geometry,
        layout: &Layout,
        set: u32,
        stored: Stored,
    ) -> DmzRoot {
        self.record(layout, (0, layout.set_block(geometry, set)), stored)
    }

    /// The copy of the root record on a device after the first.
    pub(crate) fn copy(&self, geometry: &Geometry, layout: &Layout, device: usize) -> DmzRoot {
        let zone = geometry.first_zone(device);
        let block = u64::from(zone.raw()) * u64::from(geometry.zone_blocks());
        self.record(layout, (device, block), Stored::default())
    }
}

/// The blocks of a metadata set; that of the root record is left blank.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    /// The root record and the map, as they are stored.
    map: Vec<u8>,
    /// Each block of validity bits.
    bits: Vec<Bits>,
    /// Such blocks of a zone.
    zone_bitmap_blocks: u32,
    /// Blocks that differ from what is stored.
    dirty: BTreeSet<u32>,
}

impl Metadata {
    /// No chunk is mapped, no block is valid.
    pub(crate) fn blank(layout: &Layout) -> Self {
        let mut map = vec![0xFF; index(1 + layout.map_blocks) * DMZ_BLOCK_BYTES];
        map[..DMZ_BLOCK_BYTES].fill(0);
        let bits = vec![Bits::First(0); index(layout.bitmap_blocks)];
        let zone_bitmap_blocks = layout.zone_bitmap_blocks;
        Self { map, bits, zone_bitmap_blocks, dirty: BTreeSet::new() }
    }

    /// The blocks of a set as they were read.
    pub(crate) fn of(layout: &Layout, bytes: &[u8]) -> Self {
        let (map, bits) = bytes.split_at(index(1 + layout.map_blocks) * DMZ_BLOCK_BYTES);
        let bits = bits.chunks_exact(DMZ_BLOCK_BYTES).map(Bits::of).collect();
        let zone_bitmap_blocks = layout.zone_bitmap_blocks;
        Self { map: map.to_vec(), bits, zone_bitmap_blocks, dirty: BTreeSet::new() }
    }

    /// Bytes of a block as they are now.
    pub(crate) fn block(&self, block: u32) -> Vec<u8> {
        match index(block).checked_sub(self.map_blocks()) {
            Some(at) => self.bits[at].to_bytes(),
            None => self.map[index(block) * DMZ_BLOCK_BYTES..][..DMZ_BLOCK_BYTES].to_vec(),
        }
    }

    /// Blocks before those of validity bits.
    fn map_blocks(&self) -> usize {
        self.map.len() / DMZ_BLOCK_BYTES
    }

    /// Blocks that have to be written, with their bytes as they are now; from now on they count as written.
    pub(crate) fn take_dirty(&mut self) -> Vec<(u32, Vec<u8>)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|block| (block, self.block(block))).collect()
    }

    /// Every block has to be written.
    pub(crate) fn touch_all(&mut self) {
        self.dirty = (1..u32_from(self.map_blocks() + self.bits.len())).collect();
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn entry_at(chunk: u32) -> Range<usize> {
        let at = DMZ_BLOCK_BYTES + index(chunk) * DmzMapEntry::BYTES;
        at..at + DmzMapEntry::BYTES
    }

    /// Where a chunk lies.
    pub(crate) fn entry(&self, chunk: u32) -> DmzMapEntry {
        let mut bytes = [0; DmzMapEntry::BYTES];
        bytes.copy_from_slice(&self.map[Self::entry_at(chunk)]);
        DmzMapEntry::decode(bytes)
    }

    pub(crate) fn set_entry(&mut self, chunk: u32, entry: DmzMapEntry) {
        let range = Self::entry_at(chunk);
        self.dirty.insert(u32_from(range.start / DMZ_BLOCK_BYTES));
        self.map[range].copy_from_slice(&entry.encode());
    }

    /// The blocks of bits that have some of a zone's blocks, and which bits of each.
    fn bits_of(
        &self,
        zone: ZoneId,
        blocks: Range<u32>,
    ) -> impl Iterator<Item = (usize, Range<u32>)> + use<> {
        let first = index(zone.raw()) * index(self.zone_bitmap_blocks);
        let Range { start, end } = blocks;
        (start / DMZ_BLOCK_BITS..end.div_ceil(DMZ_BLOCK_BITS)).map(move |at| {
            let begin = at * DMZ_BLOCK_BITS;
            let range = start.max(begin) - begin..(end - begin).min(DMZ_BLOCK_BITS);
            (first + index(at), range)
        })
    }

    /// Makes blocks of a zone valid, or not. Gives how many changed.
    pub(crate) fn set_valid(&mut self, zone: ZoneId, blocks: Range<u32>, valid: bool) -> u32 {
        let (mut changed, before) = (0, self.map_blocks());
        for (at, range) in self.bits_of(zone, blocks) {
            let here = self.bits[at].set(range, valid);
            if here > 0 {
                self.dirty.insert(u32_from(before + at));
            }
            changed += here;
        }
        changed
    }

    /// Whether the first of these blocks is valid, and how many from it on are like it. The range is not empty.
    pub(crate) fn run(&self, zone: ZoneId, blocks: Range<u32>) -> (bool, u32) {
        let (mut first, mut len) = (None, 0);
        for (at, range) in self.bits_of(zone, blocks) {
            let all = range.end - range.start;
            let (valid, here) = self.bits[at].run(range);
            if *first.get_or_insert(valid) != valid {
                break;
            }
            len += here;
            if here < all {
                break;
            }
        }
        (first.unwrap_or(false), len)
    }

    /// The first run of valid blocks among these.
    pub(crate) fn first_valid(&self, zone: ZoneId, blocks: Range<u32>) -> Option<Range<u32>> {
        let mut at = blocks.start;
        while at < blocks.end {
            let (valid, len) = self.run(zone, at..blocks.end);
            if valid {
                return Some(at..at + len);
            }
            at += len;
        }
        None
    }

    /// Valid blocks of a zone.
    pub(crate) fn weight(&self, zone: ZoneId) -> u32 {
        let blocks = index(self.zone_bitmap_blocks);
        self.bits[index(zone.raw()) * blocks..][..blocks].iter().map(Bits::count).sum()
    }

    /// Valid blocks of a zone before a block.
    pub(crate) fn weight_before(&self, zone: ZoneId, end: u32) -> u32 {
        let parts = self.bits_of(zone, 0..end);
        parts.map(|(at, range)| self.bits[at].count_before(range.end)).sum()
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> u64 {
        u64_from(self.map.len() + self.bits.iter().map(Bits::memory).sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::DeviceZones;

    fn metadata() -> Metadata {
        let devices = vec![DeviceZones { conventional: 4, sequential: 12 }];
        let geometry = Geometry::new(65_536, devices).unwrap();
        Metadata::blank(&Layout::new(&geometry, 16).unwrap())
    }

    #[test]
    fn bits_are_counted_as_they_change_and_lie_lowest_first() {
        let mut metadata = metadata();
        let zone = ZoneId::new(3);
        assert_eq!(metadata.set_valid(zone, 5..30, true), 25);
        assert_eq!(metadata.set_valid(zone, 0..10, true), 5);
        assert_eq!(metadata.set_valid(zone, 8..9, false), 1);
        assert_eq!(metadata.weight(zone), 29);
        // Zone 3 has bitmap blocks 6 and 7, after the root and a map block.
        assert_eq!(metadata.block(8)[..4], [0xFF, 0xFE, 0xFF, 0x3F]);
        assert_eq!(metadata.take_dirty().len(), 1);
        assert_eq!(metadata.set_valid(zone, 0..8, true), 0);
        assert!(!metadata.is_dirty(), "what does not change anything need not be written");
    }

    #[test]
    fn runs_cross_bytes_and_blocks() {
        let mut metadata = metadata();
        let zone = ZoneId::new(1);
        metadata.set_valid(zone, 32_700..32_800, true);
        assert_eq!(metadata.run(zone, 0..65_536), (false, 32_700));
        assert_eq!(metadata.run(zone, 32_701..65_536), (true, 99));
        assert_eq!(metadata.run(zone, 32_701..32_710), (true, 9));
        assert_eq!(metadata.first_valid(zone, 0..65_536), Some(32_700..32_800));
        assert_eq!(metadata.first_valid(zone, 32_800..65_536), None);
        metadata.set_valid(zone, 5..10, true);
        metadata.set_valid(zone, 32_700..32_768, false);
        assert_eq!(
            metadata.run(zone, 5..65_536),
            (true, 5),
            "what the next block begins with is another one"
        );
        assert_eq!(metadata.weight(ZoneId::new(0)) + metadata.weight(ZoneId::new(2)), 0);
        assert_eq!(metadata.take_dirty().len(), 2);
    }

    #[test]
    fn ten_terabytes_without_holes_take_4_5_mb() {
        let devices = vec![
            DeviceZones { conventional: 400, sequential: 0 },
            DeviceZones { conventional: 0, sequential: 36_850 },
        ];
        let geometry = Geometry::new(65_536, devices).unwrap();
        let layout = Layout::new(&geometry, geometry.zones()).unwrap();
        let mut metadata = Metadata::blank(&layout);
        for zone in geometry.ids() {
            // In full, in part, or not at all.
            metadata.set_valid(zone, 0..zone.raw() % 3 * 30_000, true);
        }
        let zones = index(geometry.zones()) * size_of::<crate::zones::Zone>();
        let zones = u64_from(zones);
        let memory = metadata.memory() + zones;
        assert!(memory < 4_500_000, "{memory} B");
        // Every other block is a hole.
        for block in (0..65_536).step_by(2) {
            metadata.set_valid(ZoneId::new(9), block..block + 1, true);
        }
        assert!(metadata.memory() + zones - memory <= 2 * 4096, "two blocks of bits");
    }
}
