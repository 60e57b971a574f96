//! Address newtypes. Two address spaces never mix.

use crate::convert::{index, u32_from};

/// Index of a mapping unit of the logical space: what the FTL maps. Not a byte offset, not a
/// physical location.
///
/// ```compile_fail,E0308
/// # use onefold_units::{Lpn, Ppn};
/// let wrong: Lpn = Ppn::new(7); // the two address spaces do not mix
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lpn(u32);

/// Index of a mapping-unit slot of the flash array: superblock x slots per superblock + slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ppn(u32);

/// Index of a superblock: the stripe of blocks that is erased together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SuperblockId(u32);

/// Index of a zone: a piece of a zoned device that is written from start to end and reset as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(u32);

/// Index of a 4 KiB block of the device that a host layer exports. At most 2^40 blocks (4 PiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(u64);

/// Index of a 4 KiB block of the backing of a host layer. At most 2^32 - 2 blocks (16 TiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(u32);

/// Index of a log segment: the piece of a backing that a volume fills from start to end and frees as
/// a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogSegmentId(u32);

/// Position in the order of all mapping changes of a device's life. Starts at 1; 0 means "never".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(u64);

macro_rules! index_newtype {
    ($name:ident) => {
        impl $name {
            /// The index `raw` as this kind of address.
            #[must_use]
            pub const fn new(raw: u32) -> Self {
                Self(raw)
            }

            /// The bare index, for arithmetic inside one layer and for formats.
            #[must_use]
            pub const fn raw(self) -> u32 {
                self.0
            }

            /// The index into a table of this address space.
            #[must_use]
            pub fn index(self) -> usize {
                index(self.0)
            }

            /// The address of table entry `at`. Panics past `u32::MAX` entries, which no validated
            /// geometry reaches.
            #[must_use]
            pub fn from_index(at: usize) -> Self {
                Self(u32_from(at))
            }

            /// Index + count. `None` past the end of the address space; it never wraps.
            #[must_use]
            pub fn checked_add(self, count: u32) -> Option<Self> {
                self.0.checked_add(count).map(Self)
            }
        }
    };
}

index_newtype!(Lpn);
index_newtype!(Ppn);
index_newtype!(SuperblockId);
index_newtype!(Location);
index_newtype!(LogSegmentId);
index_newtype!(ZoneId);

impl Location {
    /// No block: the mapping reads as zeroes.
    pub const UNMAPPED: Self = Self(u32::MAX);

    /// A block whose data is lost: reading it is an error.
    pub const LOST: Self = Self(u32::MAX - 1);

    /// Whether a block of the backing is meant.
    #[must_use]
    pub const fn is_block(self) -> bool {
        self.0 < Self::LOST.0
    }
}

impl Lba {
    /// The block `raw`.
    #[must_use]
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The bare index.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

impl Seq {
    /// The sequence number `raw`.
    #[must_use]
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The bare number, for formats.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The next number. 2^64 changes outlast any device.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
