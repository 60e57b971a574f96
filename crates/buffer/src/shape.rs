//! Sizes of the buffer, checked once.

use onefold_units::convert::narrow;

use crate::BufferError;
use crate::part_mask::bits;

/// Largest number of entries in one flash page, and of entries scanned for one.
pub(crate) const SCAN_MAX: u32 = 64;

/// Entries a 32-bit index can manage, with room for ghosts and list heads.
const ENTRIES_MAX: u64 = 1 << 30;

const ENTRY_LEAST: u32 = 512;

/// Request edges are given as u8 counts of 512 B sectors.
const ENTRY_MOST: u32 = 256 * 512;

/// What the buffer stands in front of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of an entry: the mapping unit of the FTL.
    pub entry_bytes: u32,
    /// Bytes of a flash page, or several of them.
    pub flash_page_bytes: u32,
    /// Bytes the host can address.
    pub device_bytes: u64,
    /// Flash channels.
    pub channels: u32,
    /// Dies on a channel.
    pub ways: u32,
}

impl Sizes {
    /// In front of one die, with entries that are flash pages.
    #[must_use]
    pub const fn of_one_die(entry_bytes: u32, device_bytes: u64) -> Self {
        Self { entry_bytes, flash_page_bytes: entry_bytes, device_bytes, channels: 1, ways: 1 }
    }
}

/// Sizes every policy needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    slots: u32,
    entry_bytes: u32,
    per_program: u32,
    part_sectors: u32,
    /// One bit per part. Kept, because every page needs it and a division is slower than a list.
    full: u16,
    volatile: bool,
}

impl Shape {
    /// The shape of a buffer of `bytes` whose content may be lost at a power cut.
    pub fn new(bytes: u64, volatile: bool, sizes: &Sizes) -> Result<Self, BufferError> {
        let Sizes { entry_bytes, flash_page_bytes, .. } = *sizes;
        if !entry_bytes.is_power_of_two() || !(ENTRY_LEAST..=ENTRY_MOST).contains(&entry_bytes) {
            let (bytes, least, most) = (entry_bytes, ENTRY_LEAST, ENTRY_MOST);
            return Err(BufferError::EntrySize { bytes, least, most });
        }
        let per_program = per_program(entry_bytes, flash_page_bytes)?;
        let least = u64::from(per_program) * u64::from(entry_bytes);
        if bytes < least {
            return Err(BufferError::TooSmall { bytes, least });
        }
        let entries = bytes / u64::from(entry_bytes);
        if entries > ENTRIES_MAX {
            return Err(BufferError::TooLarge { bytes, entries, most: ENTRIES_MAX });
        }
        let part_sectors = (entry_bytes / 16 / 512).max(1);
        Ok(Self {
            slots: narrow(entries),
            entry_bytes,
            per_program,
            part_sectors,
            full: bits(0, entry_bytes / 512 / part_sectors),
            volatile,
        })
    }

    /// The same with fewer entries, the rest of the memory being used for tables.
    #[must_use]
    pub(crate) const fn with_slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// Entries the buffer holds: C.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of an entry.
    #[must_use]
    pub const fn entry_bytes(&self) -> u32 {
        self.entry_bytes
    }

    /// Entries in one flash page: k. 1 where an entry spans several flash pages.
    #[must_use]
    pub const fn per_program(&self) -> u32 {
        self.per_program
    }

    /// Sectors of 512 B in one part, the unit of valid and dirty masks: 1/16 entry, at least one
    /// sector. 512 B in entries of 4 KiB, 1 KiB in 16 KiB, 4 KiB in 64 KiB.
    #[must_use]
    pub const fn part_sectors(&self) -> u32 {
        self.part_sectors
    }

    /// Sectors of 512 B in an entry.
    #[must_use]
    pub const fn entry_sectors(&self) -> u32 {
        self.entry_bytes / 512
    }

    /// All parts of an entry.
    #[inline]
    pub(crate) const fn full(&self) -> u16 {
        self.full
    }

    /// Whether the content is lost at a power cut.
    #[must_use]
    pub const fn volatile(&self) -> bool {
        self.volatile
    }
}

fn per_program(entry: u32, flash_page: u32) -> Result<u32, BufferError> {
    let whole = flash_page != 0
        && (flash_page.is_multiple_of(entry) || entry.is_multiple_of(flash_page))
        && flash_page / entry <= SCAN_MAX;
    if whole {
        Ok((flash_page / entry).max(1))
    } else {
        Err(BufferError::FlashPage { flash_page, entry, most: SCAN_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::{Shape, Sizes};
    use crate::BufferError;

    fn shape(bytes: u64, entry: u32, page: u32) -> Result<Shape, BufferError> {
        let sizes = Sizes { flash_page_bytes: page, ..Sizes::of_one_die(entry, 1 << 30) };
        Shape::new(bytes, true, &sizes)
    }

    #[test]
    fn entries_and_flash_pages() {
        for (bytes, entry, page, slots, k, sectors) in [
            (1 << 20, 4096, 4096, 256, 1, 1),
            (1 << 20, 4096, 16_384, 256, 4, 1),
            ((1 << 20) + 4095, 4096, 16_384, 256, 4, 1),
            (1 << 20, 16_384, 4096, 64, 1, 2),
            (1 << 20, 65_536, 65_536, 16, 1, 8),
        ] {
            let shape = shape(bytes, entry, page).unwrap();
            assert_eq!((shape.slots(), shape.per_program()), (slots, k));
            assert_eq!(shape.part_sectors(), sectors);
        }
    }

    #[test]
    fn refusals_name_value_limit_and_remedy() {
        let small = shape(16_383, 4096, 16_384).unwrap_err();
        assert_eq!(small, BufferError::TooSmall { bytes: 16_383, least: 16_384 });
        let text = small.to_string();
        assert!(text.contains("16383") && text.contains("16384") && text.contains("enlarge"));
        assert_eq!(shape(0, 4096, 4096), Err(BufferError::TooSmall { bytes: 0, least: 4096 }));
        assert!(matches!(shape(u64::MAX, 4096, 4096), Err(BufferError::TooLarge { .. })));
        for entry in [0, 256, 4095, 6144, 1 << 18] {
            assert!(matches!(shape(1 << 30, entry, 4096), Err(BufferError::EntrySize { .. })));
        }
        for page in [0, 6144, 65 * 4096] {
            assert!(matches!(shape(1 << 30, 4096, page), Err(BufferError::FlashPage { .. })));
        }
    }
}
