//! Map and validity bits as they are stored: the bytes of a metadata set are what the volume works on.

use std::collections::BTreeSet;
use std::ops::Range;

use onefold_format::{DMZ_BLOCK_BITS, DMZ_BLOCK_BYTES, DmzMapEntry, DmzRoot};
use onefold_units::ZoneId;
use onefold_units::convert::{index, index64, low8, narrow, u32_from, u64_from};

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

impl Identity {
    /// The root record at block `block` (over all devices) of a device.
    pub(crate) fn record(
        &self,
        layout: &Layout,
        (device, block): (usize, u64),
        (generation, journal_blocks): (u64, u32),
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
        }
    }

    /// The root record of a metadata set, with generation and blocks of the journal block map.
    pub(crate) fn root(
        &self,
        geometry: &Geometry,
        layout: &Layout,
        set: u32,
        stored: (u64, u32),
    ) -> DmzRoot {
        self.record(layout, (0, layout.set_block(geometry, set)), stored)
    }

    /// The copy of the root record on a device after the first.
    pub(crate) fn copy(&self, geometry: &Geometry, layout: &Layout, device: usize) -> DmzRoot {
        let zone = geometry.first_zone(device);
        let block = u64::from(zone.raw()) * u64::from(geometry.zone_blocks());
        self.record(layout, (device, block), (0, 0))
    }
}

/// The blocks of a metadata set; that of the root record is left blank.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    bytes: Vec<u8>,
    /// First validity bit, counted from the first byte.
    first_bit: u64,
    /// Validity bits of a zone, those not in use included.
    zone_bits: u64,
    /// Blocks that differ from what is stored.
    dirty: BTreeSet<u32>,
}

impl Metadata {
    /// No chunk is mapped, no block is valid.
    pub(crate) fn blank(layout: &Layout) -> Self {
        let mut bytes = vec![0; index(layout.metadata_blocks) * DMZ_BLOCK_BYTES];
        let map = DMZ_BLOCK_BYTES..(1 + index(layout.map_blocks)) * DMZ_BLOCK_BYTES;
        bytes[map].fill(0xFF);
        Self::of(layout, bytes)
    }

    /// The blocks of a set as they were read.
    pub(crate) fn of(layout: &Layout, bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            first_bit: u64::from(1 + layout.map_blocks) * u64::from(DMZ_BLOCK_BITS),
            zone_bits: u64::from(layout.zone_bitmap_blocks) * u64::from(DMZ_BLOCK_BITS),
            dirty: BTreeSet::new(),
        }
    }

    /// Bytes of a block as they are now.
    pub(crate) fn block(&self, block: u32) -> &[u8] {
        let at = index(block) * DMZ_BLOCK_BYTES;
        &self.bytes[at..at + DMZ_BLOCK_BYTES]
    }

    /// Blocks that have to be written, with their bytes as they are now; from now on they count as written.
    pub(crate) fn take_dirty(&mut self) -> Vec<(u32, Vec<u8>)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|block| (block, self.block(block).to_vec())).collect()
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
        bytes.copy_from_slice(&self.bytes[Self::entry_at(chunk)]);
        DmzMapEntry::decode(bytes)
    }

    pub(crate) fn set_entry(&mut self, chunk: u32, entry: DmzMapEntry) {
        let range = Self::entry_at(chunk);
        self.dirty.insert(u32_from(range.start / DMZ_BLOCK_BYTES));
        self.bytes[range].copy_from_slice(&entry.encode());
    }

    fn bit_at(&self, zone: ZoneId, block: u32) -> u64 {
        self.first_bit + u64::from(zone.raw()) * self.zone_bits + u64::from(block)
    }

    /// Makes blocks of a zone valid, or not. Gives how many changed.
    pub(crate) fn set_valid(&mut self, zone: ZoneId, blocks: Range<u32>, valid: bool) -> u32 {
        let mut changed = 0;
        let (mut at, end) = (self.bit_at(zone, blocks.start), self.bit_at(zone, blocks.end));
        while at < end {
            let next = (at / 8 * 8 + 8).min(end);
            let mask = low8(((1 << (next - at)) - 1) << (at % 8));
            let byte = &mut self.bytes[index64(at / 8)];
            let new = if valid { *byte | mask } else { *byte & !mask };
            if new != *byte {
                changed += (new ^ *byte).count_ones();
                *byte = new;
                self.dirty.insert(narrow(at / u64::from(DMZ_BLOCK_BITS)));
            }
            at = next;
        }
        changed
    }

    /// Whether the first of these blocks is valid, and how many from it on are like it. The range is not empty.
    pub(crate) fn run(&self, zone: ZoneId, blocks: Range<u32>) -> (bool, u32) {
        let (start, end) = (self.bit_at(zone, blocks.start), self.bit_at(zone, blocks.end));
        let valid = self.bytes[index64(start / 8)] >> (start % 8) & 1 == 1;
        let mut at = start;
        while at < end {
            // Bits that are not alike are set; those before `at` are left out.
            let other = self.word(at / 64) ^ if valid { u64::MAX } else { 0 };
            let other = other >> (at % 64);
            if other > 0 {
                at += u64::from(other.trailing_zeros());
                break;
            }
            at = at / 64 * 64 + 64;
        }
        (valid, narrow(at.min(end) - start))
    }

    /// Bits from 64 x `at` on.
    fn word(&self, at: u64) -> u64 {
        let from = index64(at * 8);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.bytes[from..from + 8]);
        u64::from_le_bytes(bytes)
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
        let start = index64(self.bit_at(zone, 0) / 8);
        let len = index64(self.zone_bits / 8);
        self.bytes[start..start + len].iter().map(|byte| byte.count_ones()).sum()
    }

    /// Valid blocks of a zone before a block.
    pub(crate) fn weight_before(&self, zone: ZoneId, end: u32) -> u32 {
        let (mut at, mut weight) = (0, 0);
        while let Some(run) = self.first_valid(zone, at..end) {
            at = run.end;
            weight += run.end - run.start;
        }
        weight
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> u64 {
        u64_from(self.bytes.len())
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
        assert_eq!(metadata.weight(ZoneId::new(0)) + metadata.weight(ZoneId::new(2)), 0);
        assert_eq!(metadata.take_dirty().len(), 2);
    }
}
