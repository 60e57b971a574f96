//! How a zoned namespace divides the flash array and NVRAM.

use onefold_format::{ZONE_RECORD_BYTES, checksum};
use onefold_ftl::Layout;
use onefold_nand::Geometry;
use onefold_units::convert::{narrow, u64_from};
use onefold_units::{Ppn, SuperblockId, ZoneId};

use super::config::BLOCK;
use super::{ZnsConfig, ZnsConfigError, ZoneLimits};
use crate::BuildError;

/// Bytes of NVRAM for a staged block: its spare area in 64 B, and its data.
const STAGED_BYTES: u64 = 64 + 4096;

/// Where the conventional zones have their share of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConventionalShare {
    /// Their first superblock; all from there on are theirs.
    pub first_superblock: SuperblockId,
    /// Where their NVRAM begins behind that of the sequential zones, in bytes.
    pub nvram_at: u64,
    /// Its bytes.
    pub nvram_bytes: u64,
}

/// How a zoned namespace divides the flash array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZnsLayout {
    /// The share of the sequential zones.
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
    /// Sequential zones.
    zones: u32,
    /// Conventional zones.
    conventional: u32,
    /// Bytes of NVRAM of those.
    mapped_nvram: u64,
}

impl ZnsLayout {
    /// Checks `config`.
    ///
    /// # Errors
    /// The number that does not fit the others.
    pub fn new(config: &ZnsConfig) -> Result<Self, ZnsConfigError> {
        let geometry = config.sequential_geometry()?;
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
        let mapped = config.conventional.map(|device| Layout::new(&device.geometry, &device.ftl));
        let mapped_nvram =
            mapped.transpose().map_err(BuildError::Ftl)?.map_or(0, |layout| layout.nvram_bytes());
        Ok(Self {
            geometry,
            stripe,
            depth,
            groups,
            sets,
            page,
            pages,
            zones: config.zones,
            conventional: config.conventional_zones(),
            mapped_nvram,
        })
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

    /// The flash blocks of the sequential zones, which come first in every plane.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where conventional zones lie, if there are any.
    #[must_use]
    pub fn conventional(&self) -> Option<ConventionalShare> {
        (self.conventional > 0).then(|| ConventionalShare {
            first_superblock: SuperblockId::new(self.geometry.superblocks()),
            nvram_at: self.nvram_bytes().next_multiple_of(BLOCK.into()),
            nvram_bytes: self.mapped_nvram,
        })
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

    /// Bytes of NVRAM that the sequential zones need, and the records of all.
    #[must_use]
    pub fn nvram_bytes(&self) -> u64 {
        self.staged_at(ZoneId::new(self.conventional + self.zones), 0)
    }

    /// Bytes of NVRAM of the whole namespace.
    #[must_use]
    pub fn all_nvram_bytes(&self) -> u64 {
        self.conventional()
            .map_or_else(|| self.nvram_bytes(), |share| share.nvram_at + share.nvram_bytes)
    }

    /// Checksum that binds records in NVRAM to this layout.
    pub(crate) fn id(&self) -> u64 {
        let spec = self.geometry.spec();
        let mut numbers = vec![
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
        // Without conventional zones as before there were any.
        numbers.extend(Some(self.conventional).filter(|zones| *zones > 0));
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
        let zones =
            Self::set_record_at(self.sets) + Self::set_record_at(self.conventional + self.zones);
        let sequential = u64::from(zone.raw() - self.conventional);
        zones + (sequential * u64::from(self.page) + u64::from(place)) * STAGED_BYTES
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
            conventional: None,
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
