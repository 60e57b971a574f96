//! The table of superblocks.

use onefold_nand::Geometry;
use onefold_units::convert::index;
use onefold_units::{Ppn, SuperblockId};

use crate::entries::{Entries, Pattern};

/// What a superblock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// In the free list of its pool.
    #[default]
    Free,
    /// A frontier fills it.
    Open,
    /// Full, or closed short: a candidate for collection.
    Closed,
    /// The victim of collection.
    Collecting,
    /// Holds pages of a checkpoint.
    Checkpoint,
    /// Holds pages of the remap log.
    Log,
    /// Worn out or bad; never used again.
    Retired,
}

onefold_units::keep_enum!(State { Free, Open, Closed, Collecting, Checkpoint, Log, Retired });

/// One superblock.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a superblock")]
pub(crate) struct Superblock {
    /// Slots that hold the current content of a logical unit.
    pub(crate) valid: u32,
    pub(crate) state: State,
    /// A program failed in it: retire it once it is empty.
    pub(crate) failing: bool,
    /// It has to be erased before it is opened (after recovery).
    pub(crate) dirty: bool,
    /// Its header says that it holds pages of the remap log; they may all be dead by now.
    pub(crate) holds_log: bool,
    /// NVRAM says that it is about to be erased.
    pub(crate) erasing: bool,
    /// It holds slots that failed verification: keep verifying it (recovery, step 3).
    pub(crate) unverified: bool,
    pub(crate) erases: u32,
    /// Units that its tail takes, as far as that is known.
    pub(crate) tail_units: u32,
    /// Number of its allocation among all allocations.
    pub(crate) epoch: u64,
    /// Sequence number when it was closed; its age for victim policies.
    pub(crate) closed_at: u64,
}

onefold_units::keep!(Superblock {
    valid,
    state,
    failing,
    dirty,
    holds_log,
    erasing,
    unverified,
    erases,
    tail_units,
    epoch,
    closed_at
});

impl Superblock {
    pub(crate) const FREE: Self = Self {
        valid: 0,
        state: State::Free,
        failing: false,
        dirty: false,
        holds_log: false,
        erasing: false,
        unverified: false,
        erases: 0,
        tail_units: u32::MAX,
        epoch: 0,
        closed_at: 0,
    };
}

/// Which slots are valid: one bit each, whole words per superblock.
#[derive(Clone, Debug)]
pub(crate) struct ValidBits {
    words: Vec<u64>,
    per_superblock: usize,
}

onefold_units::keep!(ValidBits { words } but { per_superblock });

impl ValidBits {
    pub(crate) fn new(superblocks: u32, slots: u32) -> Self {
        let per_superblock = index(slots.div_ceil(64));
        Self { words: vec![0; per_superblock * index(superblocks)], per_superblock }
    }

    #[inline]
    fn place(&self, superblock: SuperblockId, slot: u32) -> (usize, u64) {
        (superblock.index() * self.per_superblock + index(slot / 64), 1 << (slot % 64))
    }

    #[inline]
    pub(crate) fn set(&mut self, superblock: SuperblockId, slot: u32) {
        let (word, bit) = self.place(superblock, slot);
        self.words[word] |= bit;
    }

    /// Sets those of `count` slots from `slot` on.
    pub(crate) fn set_run(&mut self, superblock: SuperblockId, slot: u32, count: u32) {
        let mut at = slot;
        while at < slot + count {
            let (word, bit) = self.place(superblock, at);
            if at.is_multiple_of(64) && slot + count - at >= 64 {
                self.words[word] = u64::MAX;
                at += 64;
            } else {
                self.words[word] |= bit;
                at += 1;
            }
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self, superblock: SuperblockId, slot: u32) {
        let (word, bit) = self.place(superblock, slot);
        debug_assert!(self.words[word] & bit != 0, "slot {slot} of {superblock:?} is not valid");
        self.words[word] &= !bit;
    }

    #[inline]
    pub(crate) fn get(&self, superblock: SuperblockId, slot: u32) -> bool {
        let (word, bit) = self.place(superblock, slot);
        self.words[word] & bit != 0
    }

    /// The first valid slot at or after `from`.
    #[inline]
    pub(crate) fn next(&self, superblock: SuperblockId, from: u32) -> Option<u32> {
        self.from(superblock, from).next()
    }

    /// The valid slots at or after `from`, in order.
    #[inline]
    pub(crate) fn from(&self, superblock: SuperblockId, from: u32) -> impl Iterator<Item = u32> {
        let first = superblock.index() * self.per_superblock;
        let words = &self.words[first..first + self.per_superblock];
        let mut at = from / 64;
        let mut word = words.get(index(at)).map_or(0, |word| word & (u64::MAX << (from % 64)));
        std::iter::from_fn(move || {
            while word == 0 {
                at += 1;
                word = *words.get(index(at))?;
            }
            let slot = at * 64 + word.trailing_zeros();
            word &= word - 1;
            Some(slot)
        })
    }

    /// Number of valid slots, by counting.
    pub(crate) fn count(&self, superblock: SuperblockId) -> u32 {
        let first = superblock.index() * self.per_superblock;
        self.words[first..first + self.per_superblock].iter().map(|word| word.count_ones()).sum()
    }
}

/// The two directions of the mapping.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    /// Physical slot by logical unit, or [`crate::layout::UNMAPPED`], or [`crate::layout::LOST`].
    pub(crate) l2p: Entries,
    /// Logical unit that wrote a physical slot, or [`crate::layout::NO_OWNER`]; meaningful where the
    /// slot is valid. With remaps it may be mapped elsewhere by now, and others to the slot.
    pub(crate) p2l: Entries,
}

onefold_units::keep!(Map { l2p, p2l });

impl Map {
    /// Nothing is mapped.
    pub(crate) fn new(units: u32, geometry: &Geometry) -> Self {
        let (pools, slots) = (geometry.pools(), geometry.slots());
        let by_unit = Pattern::new(geometry.pool_divisor(), slots);
        let by_slot = Pattern::new(geometry.slot_divisor(), pools);
        Self {
            l2p: Entries::new(index(units), crate::layout::UNMAPPED, by_unit),
            p2l: Entries::new(onefold_units::convert::index64(geometry.total_slots()), 0, by_slot),
        }
    }

    /// Where `lpn` is stored, if anywhere.
    #[inline]
    pub(crate) fn stored(&self, lpn: u32) -> Option<Ppn> {
        stored(self.l2p.get(index(lpn)))
    }
}

/// The slot that an entry of the map by unit names, if it names one.
#[inline]
pub(crate) fn stored(entry: u32) -> Option<Ppn> {
    (entry < crate::layout::LOST).then(|| Ppn::new(entry))
}
