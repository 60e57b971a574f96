//! What an open volume tells.

use std::collections::BTreeMap;

use onefold_units::ZoneId;

use crate::geometry::{Geometry, ZoneKind};
use crate::inspect::ZoneUse;
use crate::layout::Layout;
use crate::stats::Stats;
use crate::volume::Volume;

impl Volume {
    /// Whether a device failed, so that nothing changes any more. To be opened again.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Blocks of 4 KiB that are exported.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.layout.blocks(&self.geometry)
    }

    /// Sizes of the metadata.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The zones it lies on.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What was counted.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Free zones of a kind; reserved ones not counted.
    #[must_use]
    pub fn free_zones(&self, kind: ZoneKind) -> u32 {
        self.zones.free(kind)
    }

    /// Reserved zones that are free.
    #[must_use]
    pub fn free_reserved(&self) -> u32 {
        self.zones.reserved()
    }

    /// Data zone and buffer zone of a chunk.
    #[must_use]
    pub fn zones_of(&self, chunk: u32) -> (Option<ZoneId>, Option<ZoneId>) {
        let entry = self.meta.entry(chunk);
        (entry.data, entry.buffer)
    }

    /// Zones by kind and by the name of their [`ZoneUse`].
    #[must_use]
    pub fn zones_by_use(&self) -> BTreeMap<(ZoneKind, &'static str), u32> {
        let mut counts = BTreeMap::new();
        for id in self.geometry.ids() {
            let zone = self.zones.get(id);
            let used = ZoneUse::of(zone, self.layout.is_metadata(&self.geometry, id));
            *counts.entry((zone.kind, used.name())).or_default() += 1;
        }
        counts
    }

    /// Name of the volume, zero-terminated if it is shorter.
    #[must_use]
    pub const fn label(&self) -> &[u8; 32] {
        &self.identity.label
    }

    /// Valid blocks of a zone.
    #[must_use]
    pub fn weight(&self, zone: ZoneId) -> u32 {
        self.zones.get(zone).weight
    }

    /// Whether the chunk of a block has a zone, or blocks in the journal zone set, and how many blocks from it on, at most `blocks`, are alike: what has none reads
    /// as zeroes.
    #[must_use]
    pub fn mapped(&self, lba: u64, blocks: u64) -> (bool, u64) {
        let zone_blocks = u64::from(self.geometry.zone_blocks());
        let is_mapped = |block: u64| {
            let chunk = u32::try_from(block / zone_blocks).unwrap_or(u32::MAX);
            let start = u64::from(chunk) * zone_blocks;
            let in_set = || self.set.map.next(start).is_some_and(|next| next < start + zone_blocks);
            chunk < self.layout.chunks && (self.meta.entry(chunk).data.is_some() || in_set())
        };
        let (first, end) = (is_mapped(lba), lba + blocks);
        let mut at = lba;
        while at < end && is_mapped(at) == first {
            at = (at / zone_blocks + 1) * zone_blocks;
        }
        (first, at.min(end) - lba)
    }

    /// Chunks that have a zone.
    #[must_use]
    pub fn mapped_chunks(&self) -> u32 {
        let is_mapped = |chunk: &u32| self.meta.entry(*chunk).data.is_some();
        onefold_units::convert::u32_from((0..self.layout.chunks).filter(is_mapped).count())
    }

    /// Identity of the volume.
    #[must_use]
    pub const fn uuid(&self) -> [u8; 16] {
        self.identity.uuid
    }

    /// Bytes that map and validity take in memory.
    #[must_use]
    pub fn metadata_memory(&self) -> u64 {
        self.meta.memory()
    }
}
