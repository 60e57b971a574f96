//! How much DRAM the tables of the remap primitive take (Wu 2022, sections IV-B, IV-D and IV-F).

use onefold_units::convert::{float, u32_from};

use super::{Remap, RemapScheme};

/// Bytes of the tables, as a controller would pack them. The L2P table is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemapTables {
    /// RC-table: references of each flash page, 4 bits up to 15, 8 bits without a limit.
    pub refs: u64,
    /// LR-bitmap: two bits for each logical unit.
    pub units: u64,
    /// RP-index: two pointers of 4 B for each page of the log superblocks in use.
    pub log_pages: u64,
    /// SV-bitmap: a bit for each segment of NVRAM.
    pub segments: u64,
}

impl RemapTables {
    /// The tables of a device. Global logs and the scheme `opt` have no local logs to index.
    fn of(scheme: RemapScheme, size: &Sizes) -> Self {
        let bits = match size.max_refs {
            0 => u64::from(u8::BITS),
            most => u64::from(u32::BITS - most.leading_zeros()),
        };
        let local = Self {
            log_pages: size.log_pages * 8,
            segments: size.segments.div_ceil(8),
            ..Self::default()
        };
        let indexes = if scheme.is_local() { local } else { Self::default() };
        Self {
            refs: (size.slots * bits).div_ceil(8),
            units: (size.units * 2).div_ceil(8),
            ..indexes
        }
    }

    /// Bytes of all tables.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.refs + self.units + self.log_pages + self.segments
    }
}

/// What the tables have entries for.
struct Sizes {
    slots: u64,
    units: u64,
    log_pages: u64,
    segments: u64,
    max_refs: u32,
}

impl Remap {
    /// The tables of a device with so many slots, logical units, and slots of a superblock.
    pub(crate) fn tables(&self, slots: u64, units: u32, superblock: u32) -> RemapTables {
        let size = Sizes {
            slots,
            units: u64::from(units),
            log_pages: u64::from(self.superblocks.count()) * u64::from(superblock),
            segments: u64::from(self.segments.total),
            max_refs: self.config.max_refs,
        };
        RemapTables::of(self.config.scheme, &size)
    }

    /// How often a segment of NVRAM was taken into use: most, and mean.
    pub(crate) fn segment_cycles(&self) -> (u32, f64) {
        let most = self.segments.uses.iter().copied().max().unwrap_or(0);
        let all: u64 = self.segments.uses.iter().copied().map(u64::from).sum();
        let count = u32_from(self.segments.uses.len()).max(1);
        (most, float(all) / f64::from(count))
    }

    /// Bytes that recovery reads of a global log, which has neither segments nor log pages of its own.
    pub(crate) fn global_log_bytes(&self) -> u64 {
        self.global_entries * u64::from(self.config.entry_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::{RemapScheme, RemapTables, Sizes};

    const MIB: u64 = 1 << 20;

    /// The paper's example: 1 TiB of 1.25 TiB, pages of 4 KiB, six log superblocks of 512 MiB.
    #[test]
    fn sizes_are_those_of_the_paper() {
        let size = Sizes {
            slots: 1280 << 18,
            units: 1024 << 18,
            log_pages: 6 * 512 * MIB / 4096,
            segments: 64 * MIB / 1024,
            max_refs: 15,
        };
        let tables = RemapTables::of(RemapScheme::Lh, &size);
        assert_eq!((tables.refs, tables.units, tables.log_pages), (160 * MIB, 64 * MIB, 6 * MIB));
        assert_eq!(tables.segments, 8192);
        let global = RemapTables::of(RemapScheme::Gn, &size);
        assert_eq!((global.log_pages, global.segments, global.total()), (0, 0, 224 * MIB));
        let more = RemapTables::of(RemapScheme::Lh, &Sizes { max_refs: 0, ..size });
        assert_eq!(more.refs, 320 * MIB);
    }
}
