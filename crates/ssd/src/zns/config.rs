//! What defines a zoned namespace, and how it divides the flash array.

use onefold_format::{ZONE_RECORD_BYTES, checksum};
use onefold_nand::{FaultSpec, Geometry, TimingSpec};
use onefold_units::convert::{narrow, u64_from};
use onefold_units::{Ppn, SuperblockId, ZoneId};

use super::ZoneLimits;

/// Bytes of a block.
pub(crate) const BLOCK: u32 = 4096;

/// Bytes of NVRAM for a staged block: its spare area in 64 B, and its data.
const STAGED_BYTES: u64 = 64 + 4096;

/// A zoned namespace as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZnsConfig {
    /// The flash array. Its units are 4 KiB: nothing is mapped below a zone.
    pub geometry: Geometry,
    /// Latencies and rates.
    pub timing: TimingSpec,
    /// Addresses of a zone in blocks (ZSZE): a power of two.
    pub zone_blocks: u32,
    /// Blocks of a zone that can be written (ZCAP).
    pub capacity_blocks: u32,
    /// Zones.
    pub zones: u32,
    /// Dies that a zone stripes over.
    pub zone_dies: u32,
    /// Open and active zones at most (MOR, MAR).
    pub limits: ZoneLimits,
    /// Blocks of an append at most (ZASL); `None`: as many as of a write.
    pub append_blocks: Option<u32>,
    /// A read may go on in the next zone.
    pub read_across: bool,
    /// Bytes of the write cache; 0: a write completes when its flash pages are programmed.
    pub cache_bytes: u64,
    /// A power cut loses what the cache holds and was not flushed.
    pub cache_volatile: bool,
    /// Injected faults. A bad superblock costs its set.
    pub faults: FaultSpec,
}

/// Why a zoned namespace cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZnsConfigError {
    /// The unit of the geometry is not a block.
    #[error("the mapping unit is {found} B, expected 4096 B on a zoned namespace")]
    Unit {
        /// What was found.
        found: u32,
    },
    /// Linux takes powers of two only.
    #[error("a zone is {found} blocks of 4 KiB, expected a power of two")]
    ZoneSize {
        /// What was found.
        found: u32,
    },
    /// The capacity does not fit the zone, or the flash page.
    #[error(
        "the capacity of a zone is {found} blocks of 4 KiB, expected whole flash pages of {page} blocks, and at most the \
         {zone} blocks of a zone"
    )]
    Capacity {
        /// What was found.
        found: u32,
        /// Blocks of a flash page.
        page: u32,
        /// Blocks of a zone.
        zone: u32,
    },
    /// The dies cannot be divided among zones.
    #[error(
        "a zone stripes over {found} dies, expected a divisor of {dies}, and all of them where a superblock spans the device"
    )]
    Dies {
        /// What was found.
        found: u32,
        /// Dies of the array.
        dies: u32,
    },
    /// Nothing would be left for blocks that fail.
    #[error(
        "{zones} zones and no spare one need {} sets of {superblocks} superblocks, expected at most the {sets} of the flash \
         array: lower capacity.logical, or raise geometry.blocks",
        u64::from(*zones) + 1
    )]
    Space {
        /// Zones.
        zones: u32,
        /// Superblocks of a set.
        superblocks: u32,
        /// Sets of the array.
        sets: u32,
    },
    /// A limit that leaves no zone to write to, or contradicts the other.
    #[error("{what} is {found}, expected 1 to {max}")]
    Limit {
        /// Which one.
        what: &'static str,
        /// What was found.
        found: u32,
        /// Largest accepted value.
        max: u32,
    },
}

/// How a zoned namespace divides the flash array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZnsLayout {
    geometry: Geometry,
    /// Superblocks of a set side by side.
    stripe: u32,
    /// Superblocks of a set one after the other.
    depth: u32,
    /// Sets side by side on the array.
    groups: u32,
    sets: u32,
    /// Blocks of a flash page.
    page: u32,
    /// Flash pages of a superblock.
    pages: u32,
    zones: u32,
}

impl ZnsLayout {
    /// Checks `config`.
    ///
    /// # Errors
    /// The number that does not fit the others.
    pub fn new(config: &ZnsConfig) -> Result<Self, ZnsConfigError> {
        let geometry = config.geometry;
        if geometry.unit_bytes() != BLOCK {
            return Err(ZnsConfigError::Unit { found: geometry.unit_bytes() });
        }
        let (zone, capacity) = (config.zone_blocks, config.capacity_blocks);
        let page = geometry.slots_per_program();
        if !zone.is_power_of_two() {
            return Err(ZnsConfigError::ZoneSize { found: zone });
        }
        if capacity == 0 || capacity > zone || !capacity.is_multiple_of(page) {
            return Err(ZnsConfigError::Capacity { found: capacity, page, zone });
        }
        let (dies, wide) = (geometry.dies(), config.zone_dies);
        let per_superblock = dies / geometry.pools();
        if wide == 0 || !dies.is_multiple_of(wide) || !wide.is_multiple_of(per_superblock) {
            return Err(ZnsConfigError::Dies { found: wide, dies });
        }
        Self::check_limits(config)?;
        let stripe = wide / per_superblock;
        let depth = u64::from(capacity).div_ceil(u64::from(stripe) * u64::from(geometry.slots()));
        let (depth, groups) = (narrow(depth), dies / wide);
        let sets = geometry.superblocks_per_pool() / depth * groups;
        if config.zones == 0 || config.zones >= sets {
            let superblocks = stripe * depth;
            return Err(ZnsConfigError::Space { zones: config.zones, superblocks, sets });
        }
        let pages = geometry.slots() / page;
        Ok(Self { geometry, stripe, depth, groups, sets, page, pages, zones: config.zones })
    }

    fn check_limits(config: &ZnsConfig) -> Result<(), ZnsConfigError> {
        let ZoneLimits { max_open, max_active } = config.limits;
        let most_open = max_active.unwrap_or(u32::MAX);
        let limits = [
            ("the limit of open zones", max_open, most_open),
            ("the limit of active zones", max_active, u32::MAX),
            ("the blocks of an append", config.append_blocks, config.capacity_blocks),
        ];
        for (what, limit, max) in limits {
            if let Some(found) = limit.filter(|found| !(1..=max).contains(found)) {
                return Err(ZnsConfigError::Limit { what, found, max });
            }
        }
        Ok(())
    }

    /// Sets of flash blocks; those that are more than zones are spare.
    #[must_use]
    pub const fn sets(&self) -> u32 {
        self.sets
    }

    /// Blocks of a flash page.
    #[must_use]
    pub const fn page(&self) -> u32 {
        self.page
    }

    /// Bytes of NVRAM that the namespace needs.
    #[must_use]
    pub fn nvram_bytes(&self) -> u64 {
        self.staged_at(ZoneId::new(self.zones), 0)
    }

    /// Checksum that binds records in NVRAM to this layout.
    pub(crate) fn id(&self) -> u64 {
        let spec = self.geometry.spec();
        let numbers = [
            spec.channels,
            spec.ways,
            spec.planes,
            spec.blocks,
            spec.pages,
            spec.page_bytes,
            self.stripe,
            self.depth,
            self.zones,
        ];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        checksum(&bytes).into()
    }

    pub(crate) const fn set_record_at(set: u32) -> u64 {
        u64_from(ZONE_RECORD_BYTES) * u64_from(onefold_units::convert::index(set))
    }

    pub(crate) fn zone_record_at(&self, zone: ZoneId) -> u64 {
        Self::set_record_at(self.sets) + Self::set_record_at(zone.raw())
    }

    /// Where the staged block of a zone at `place` of its flash page lies in NVRAM.
    pub(crate) fn staged_at(&self, zone: ZoneId, place: u32) -> u64 {
        let zones = Self::set_record_at(self.sets) + Self::set_record_at(self.zones);
        let before = u64::from(zone.raw()) * u64::from(self.page) + u64::from(place);
        zones + before * STAGED_BYTES
    }

    /// The superblocks of a set.
    pub(crate) fn superblocks(self, set: u32) -> impl Iterator<Item = SuperblockId> {
        (0..self.stripe * self.depth)
            .map(move |at| self.superblock(set, at % self.stripe, at / self.stripe))
    }

    fn superblock(&self, set: u32, column: u32, row: u32) -> SuperblockId {
        let (group, place) = (set % self.groups, set / self.groups);
        self.geometry.superblock_of_pool(group * self.stripe + column, place * self.depth + row)
    }

    /// The set of a superblock; `None` if it belongs to none.
    pub(crate) fn set_of(&self, superblock: SuperblockId) -> Option<u32> {
        let (pool, place) = self.geometry.pool_and_place(superblock);
        let set = place / self.depth * self.groups + pool / self.stripe;
        (set < self.sets).then_some(set)
    }

    /// Superblock and program of a flash page of a set.
    pub(crate) fn place(&self, set: u32, page: u32) -> (SuperblockId, u32) {
        let (column, row) = (page % self.stripe, page / self.stripe);
        (self.superblock(set, column, row / self.pages), row % self.pages)
    }

    /// The slot of a block of a set.
    pub(crate) fn slot(&self, set: u32, block: u32) -> Ppn {
        let (superblock, program) = self.place(set, block / self.page);
        self.geometry.ppn(superblock, program * self.page + block % self.page)
    }

    /// How many programs each superblock of a set has when `pages` flash pages were programmed.
    pub(crate) fn programs(
        self,
        set: u32,
        pages: u32,
    ) -> impl Iterator<Item = (SuperblockId, u32)> {
        (0..self.stripe * self.depth).map(move |at| {
            let (column, row) = (at % self.stripe, at / self.stripe);
            let in_column = (pages + self.stripe - 1 - column) / self.stripe;
            let programs = in_column.saturating_sub(row * self.pages).min(self.pages);
            (self.superblock(set, column, row), programs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ZnsConfig, ZnsConfigError, ZnsLayout};
    use crate::zns::ZoneLimits;

    /// 2 channels x 2 dies of 9 superblocks of 8 pages of two blocks.
    fn config(zone_dies: u32, capacity_blocks: u32) -> ZnsConfig {
        let example = crate::example_config();
        let spec = onefold_nand::GeometrySpec {
            blocks: 9,
            pages: 8,
            page_bytes: 8192,
            span: onefold_nand::Span::Die,
            ..*example.geometry.spec()
        };
        ZnsConfig {
            geometry: onefold_nand::Geometry::new(spec).unwrap(),
            timing: example.timing,
            zone_blocks: 64,
            capacity_blocks,
            zones: 4,
            zone_dies,
            limits: ZoneLimits { max_open: None, max_active: None },
            append_blocks: None,
            read_across: false,
            cache_bytes: 0,
            cache_volatile: true,
            faults: example.faults,
        }
    }

    #[test]
    fn every_slot_of_every_set_is_one_of_its_own() {
        for (dies, capacity, sets) in [(1, 64, 8), (2, 64, 8), (4, 64, 9), (2, 34, 8), (1, 16, 36)]
        {
            let layout = ZnsLayout::new(&config(dies, capacity)).unwrap();
            assert_eq!(layout.sets(), sets, "{dies} dies, {capacity} blocks");
            let mut slots = std::collections::BTreeSet::new();
            for set in 0..sets {
                let superblocks: Vec<_> = layout.superblocks(set).collect();
                for block in 0..capacity {
                    let slot = layout.slot(set, block);
                    let (superblock, _) = layout.geometry.split(slot);
                    assert!(slots.insert(slot));
                    assert!(superblocks.contains(&superblock));
                    assert_eq!(layout.set_of(superblock), Some(set));
                }
            }
        }
    }

    #[test]
    fn pages_go_side_by_side_and_programs_ascend() {
        let layout = ZnsLayout::new(&config(2, 64)).unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for page in 0..32 {
            let expected: Vec<_> = layout.programs(3, page).filter(|(_, n)| *n > 0).collect();
            let counted: Vec<_> = counts.iter().map(|(s, n)| (*s, *n)).collect();
            let mut sorted = expected.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, counted, "{page} pages");
            let (superblock, program) = layout.place(3, page);
            let next = counts.entry(superblock).or_insert(0);
            assert_eq!(program, *next);
            *next += 1;
        }
        let dies: Vec<_> =
            (0..4).map(|page| layout.geometry.pool_of(layout.place(3, page).0)).collect();
        assert_eq!(dies, [2, 3, 2, 3]);
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let refused = |change: fn(&mut ZnsConfig)| {
            let mut config = config(2, 64);
            change(&mut config);
            ZnsLayout::new(&config).unwrap_err()
        };
        assert_eq!(refused(|c| c.zone_blocks = 96), ZnsConfigError::ZoneSize { found: 96 });
        let capacity = |found| ZnsConfigError::Capacity { found, page: 2, zone: 64 };
        assert_eq!(refused(|c| c.capacity_blocks = 65), capacity(65));
        assert_eq!(refused(|c| c.capacity_blocks = 63), capacity(63));
        assert_eq!(refused(|c| c.zone_dies = 3), ZnsConfigError::Dies { found: 3, dies: 4 });
        let space = ZnsConfigError::Space { zones: 8, superblocks: 4, sets: 8 };
        assert_eq!(refused(|c| c.zones = 8), space);
        let max_open = |c: &mut ZnsConfig| {
            c.limits = ZoneLimits { max_open: Some(3), max_active: Some(2) };
        };
        let limit = ZnsConfigError::Limit { what: "the limit of open zones", found: 3, max: 2 };
        assert_eq!(refused(max_open), limit);
    }
}
