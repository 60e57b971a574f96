//! Packs: blocks of the logical device that are compressed and lie together in one block of the backing, or in what a batch header leaves of its
//! own block.
//!
//! A pack: entries 2 | for each entry: slot 1, codec 1, bytes 2 | what is compressed, in the same order. It has no checksum: what
//! comes out of it is compared with the checksum of the block, as any other block is.
//!
//! 1. A block of the backing has four quarters. An entry takes a [`Slot`] of them, by its size; no two entries have a quarter in common. So each
//!    entry has a [`Location`] of its own, and what a log segment has of live data can be told from locations.
//! 2. Locations of a volume with packs have the slot in their three highest bits, so its backing has at most [`PACK_BACKING_MAX`] blocks.

use onefold_units::Location;
use onefold_units::convert::{index, low8, low16, u32_from, u64_from};

use super::coded::coded;
use super::kind::BLOCK_BYTES;
use super::label::{INCOMPAT_PACKED, INCOMPAT_ZSTD};

/// Blocks of a backing with packs at most: 2 TiB.
pub const PACK_BACKING_MAX: u64 = (1 << SLOT_SHIFT) - 2;

/// Quarters of a block.
pub const QUARTERS: u32 = 4;

const SLOT_SHIFT: u32 = 29;
const COUNT_BYTES: usize = 2;
const ENTRY_BYTES: usize = 4;

coded! {
    /// How a block is compressed.
    Codec {
        /// LZ4, block format.
        Lz4 = 0,
        /// Zstandard, a frame.
        Zstd = 1,
    }
}

impl Codec {
    /// What a volume with these `incompat` features compresses by, if it does.
    #[must_use]
    pub const fn of_features(incompat: u64) -> Option<Self> {
        if incompat & INCOMPAT_PACKED == 0 {
            return None;
        }
        Some(if incompat & INCOMPAT_ZSTD == 0 { Self::Lz4 } else { Self::Zstd })
    }

    /// The `incompat` features of a volume that compresses so.
    #[must_use]
    pub const fn features(self) -> u64 {
        match self {
            Self::Lz4 => INCOMPAT_PACKED,
            Self::Zstd => INCOMPAT_PACKED | INCOMPAT_ZSTD,
        }
    }

    /// Its name in commands and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// A compressed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackEntry<'a> {
    /// How it is compressed.
    pub codec: Codec,
    /// What came out of that.
    pub bytes: &'a [u8],
}

/// Where in a block an entry is, and what it takes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

impl Slot {
    /// All of a block, which is not compressed.
    pub const WHOLE: Self = Self(0);

    /// The slots that take so many quarters, in the order in which they are given out. One of more than three has no other beside it, unless that
    /// fits: only a header has room for it.
    #[must_use]
    pub const fn of_size(quarters: u32) -> &'static [Self] {
        match quarters {
            1 => &[Self(6), Self(5), Self(4), Self(3)],
            2 => &[Self(1), Self(2)],
            _ => &[Self(7)],
        }
    }

    /// The slot of a number in a format.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        if code < 8 { Some(Self(code)) } else { None }
    }

    /// Its number in formats.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Whether the block is an entry of a pack.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        self.0 != 0
    }

    /// The quarters that it takes, a bit for each.
    #[must_use]
    pub const fn mask(self) -> u8 {
        match self.0 {
            0 => 0b1111,
            1 => 0b0011,
            2 => 0b1100,
            7 => 0b0111,
            quarter => 1 << (quarter - 3),
        }
    }

    /// Quarters that it counts for. Two of three quarters never share a block, so such a one counts for four.
    #[must_use]
    pub const fn quarters(self) -> u32 {
        match self.0 {
            0 | 7 => QUARTERS,
            1 | 2 => 2,
            _ => 1,
        }
    }

    /// The place of this slot of a block.
    #[must_use]
    pub fn of_block(self, block: u32) -> Location {
        Location::new(u32::from(self.0) << SLOT_SHIFT | block)
    }

    /// The block of a location of a volume with packs, and the slot there.
    #[must_use]
    pub fn split(at: Location) -> (u32, Self) {
        (at.raw() & ((1 << SLOT_SHIFT) - 1), Self(low8(u64::from(at.raw() >> SLOT_SHIFT))))
    }
}

/// Quarters that so many compressed bytes take; four if they are better left as they were.
#[must_use]
pub fn quarters_of(bytes: usize) -> u32 {
    let quarter = (BLOCK_BYTES - COUNT_BYTES) / 4;
    u32_from((bytes + ENTRY_BYTES).div_ceil(quarter))
}

/// A pack that is being put together in a number of bytes.
#[derive(Clone, Debug)]
pub struct Pack {
    room: usize,
    taken: u8,
    entries: Vec<(Slot, Codec, u16)>,
    bytes: Vec<u8>,
}

impl Pack {
    /// An empty one.
    #[must_use]
    pub const fn new(room: usize) -> Self {
        Self { room, taken: 0, entries: Vec::new(), bytes: Vec::new() }
    }

    /// Bytes that it takes.
    #[must_use]
    pub const fn len(&self) -> usize {
        COUNT_BYTES + self.entries.len() * ENTRY_BYTES + self.bytes.len()
    }

    /// Whether it has no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Quarters that are free.
    #[must_use]
    pub const fn free(&self) -> u32 {
        QUARTERS - self.taken.count_ones()
    }

    /// The slot that an entry of so many quarters would get, if it fits.
    #[must_use]
    pub fn slot_for(&self, quarters: u32, bytes: usize) -> Option<Slot> {
        let fits = self.len() + ENTRY_BYTES + bytes <= self.room;
        let free = |slot: &&Slot| slot.mask() & self.taken == 0;
        Slot::of_size(quarters).iter().find(free).copied().filter(|_| fits)
    }

    /// Adds an entry in a slot that [`Pack::slot_for`] gave.
    pub fn push(&mut self, slot: Slot, PackEntry { codec, bytes }: PackEntry<'_>) {
        self.taken |= slot.mask();
        self.entries.push((slot, codec, low16(u64_from(bytes.len()))));
        self.bytes.extend_from_slice(bytes);
    }

    /// What is in a slot.
    #[must_use]
    pub fn entry(&self, slot: Slot) -> Option<PackEntry<'_>> {
        let mut from = 0;
        for (this, codec, bytes) in &self.entries {
            let end = from + usize::from(*bytes);
            if *this == slot {
                let bytes = self.bytes.get(from..end)?;
                return Some(PackEntry { codec: *codec, bytes });
            }
            from = end;
        }
        None
    }

    /// Writes the pack to the front of `out`. What is behind it is zeroes.
    pub fn write(&self, out: &mut [u8]) {
        let (front, rest) = out.split_at_mut(COUNT_BYTES + self.entries.len() * ENTRY_BYTES);
        front[..COUNT_BYTES].copy_from_slice(&low16(u64_from(self.entries.len())).to_le_bytes());
        for (place, (slot, codec, bytes)) in
            front[COUNT_BYTES..].chunks_exact_mut(ENTRY_BYTES).zip(&self.entries)
        {
            let [low, high] = bytes.to_le_bytes();
            place.copy_from_slice(&[slot.code(), codec.code(), low, high]);
        }
        rest[..self.bytes.len()].copy_from_slice(&self.bytes);
        rest[self.bytes.len()..].fill(0);
    }
}

/// An entry of the pack in `bytes`; `None` if there is none, or the pack is no pack.
#[must_use]
pub fn entry_of(bytes: &[u8], slot: Slot) -> Option<PackEntry<'_>> {
    let (count, rest) = bytes.split_first_chunk::<COUNT_BYTES>()?;
    let count = usize::from(u16::from_le_bytes(*count));
    let (entries, mut data) = rest.split_at_checked(count * ENTRY_BYTES)?;
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let length = usize::from(u16::from_le_bytes([entry[2], entry[3]]));
        let (this, behind) = data.split_at_checked(length)?;
        if entry[0] == slot.code() {
            return Some(PackEntry { codec: Codec::from_code(entry[1])?, bytes: this });
        }
        data = behind;
    }
    None
}

/// Where a block of a batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Blocks behind the header; 0: in the header itself.
    pub offset: u8,
    /// The slot there.
    pub slot: Slot,
}

impl Place {
    /// Bytes in a header.
    pub const BYTES: usize = 2;

    pub(super) const fn to_bytes(self) -> [u8; Self::BYTES] {
        [self.offset, self.slot.code()]
    }

    /// Its location in a batch whose header lies at `start`.
    #[must_use]
    pub fn at(self, start: u32) -> Location {
        self.slot.of_block(start + u32::from(self.offset))
    }

    /// Its block behind the header.
    #[must_use]
    pub fn block(self) -> usize {
        index(self.offset.into())
    }
}

/// How the blocks of a batch with packs lie.
#[derive(Clone, Copy, Debug)]
pub struct Packing<'a> {
    /// Where each block lies, in the order of the records.
    pub places: &'a [Place],
    /// Blocks behind the header that hold something.
    pub stored: u32,
    /// The pack in the header, if there is one.
    pub inside: Option<&'a Pack>,
}

#[cfg(test)]
mod tests {
    use super::{Codec, Pack, PackEntry, QUARTERS, Slot, entry_of, quarters_of};

    fn lz4(bytes: &[u8]) -> PackEntry<'_> {
        PackEntry { codec: Codec::Lz4, bytes }
    }

    /// Slots of one size have nothing in common, and together they are a block.
    #[test]
    fn slots_divide_a_block() {
        for (quarters, count) in [(1, 4), (2, 2), (3, 1)] {
            let slots = Slot::of_size(quarters);
            assert_eq!(slots.len(), count);
            let all = slots.iter().fold(0, |all, slot| {
                assert_eq!((all & slot.mask(), slot.mask().count_ones()), (0, quarters));
                all | slot.mask()
            });
            assert!(all.count_ones() <= QUARTERS);
        }
        for code in 0..8 {
            let slot = Slot::from_code(code).unwrap();
            assert_eq!((slot.code(), slot.is_packed()), (code, code > 0));
            assert_eq!(Slot::split(slot.of_block(0x1234_5678)), (0x1234_5678, slot));
        }
        assert_eq!(Slot::from_code(8), None);
    }

    /// What fits by its quarters fits by its bytes.
    #[test]
    fn quarters_always_fit_a_block() {
        assert_eq!([0, 1019, 1020, 2042, 2043, 3065, 3066].map(quarters_of), [1, 1, 2, 2, 3, 3, 4]);
        for sizes in [&[3065, 1019][..], &[2042, 2042], &[2042, 1019, 1019], &[1019; 4]] {
            let mut pack = Pack::new(4096);
            for size in sizes {
                let slot = pack.slot_for(quarters_of(*size), *size).expect("it fits");
                pack.push(slot, lz4(&vec![7; *size]));
            }
            assert_eq!((pack.free(), pack.len() <= 4096), (0, true));
            assert_eq!(pack.slot_for(1, 1), None);
        }
    }

    #[test]
    fn entries_come_back_and_what_is_no_pack_has_none() {
        let mut pack = Pack::new(100);
        for (quarters, bytes) in [(2, &b"half"[..]), (1, b"quarter"), (1, b"")] {
            let slot = pack.slot_for(quarters, bytes.len()).unwrap();
            pack.push(slot, PackEntry { codec: Codec::Zstd, bytes });
        }
        let mut block = [0xEE; 100];
        pack.write(&mut block);
        let slot = |code| Slot::from_code(code).unwrap();
        let entry = |code| {
            assert_eq!(entry_of(&block, slot(code)), pack.entry(slot(code)));
            entry_of(&block, slot(code)).map(|entry| {
                assert_eq!(entry.codec, Codec::Zstd);
                entry.bytes
            })
        };
        assert_eq!(
            (entry(1), entry(6), entry(5)),
            (Some(&b"half"[..]), Some(&b"quarter"[..]), Some(&b""[..]))
        );
        assert_eq!((entry(2), entry(7)), (None, None));
        for bytes in [&[][..], &[1], &[255, 255, 1, 0], &[1, 0, 1, 0, 9, 0, 1]] {
            assert_eq!(entry_of(bytes, Slot::from_code(1).unwrap()), None);
        }
    }
}
