//! Pages of the map in memory.

use onefold_units::Location;

use crate::map::PAGE_ENTRIES;

/// Where a block lies and the checksum of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Location,
    pub(crate) crc: u32,
}

impl Entry {
    pub(crate) const UNMAPPED: Self = Self { at: Location::UNMAPPED, crc: 0 };
}

/// The entries of a page.
pub(crate) type Entries = Box<[Entry; PAGE_ENTRIES]>;

/// A page that maps nothing.
pub(crate) fn blank_entries() -> Entries {
    Box::new([Entry::UNMAPPED; PAGE_ENTRIES])
}

/// A page in memory.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entries: Entries,
    /// What changed since the last capture, one bit per entry.
    pub(crate) dirty: [u64; PAGE_ENTRIES / 64],
    pub(crate) index: u32,
    /// The checkpoint that has to be committed before the page may leave (invariant 2).
    pub(crate) keep_until: u64,
    pub(crate) referenced: bool,
}

impl Page {
    pub(crate) fn copy(&self) -> Entries {
        self.entries.clone()
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.iter().any(|word| *word != 0)
    }

    pub(crate) fn maps_nothing(&self) -> bool {
        self.entries.iter().all(|entry| entry.at == Location::UNMAPPED)
    }
}
