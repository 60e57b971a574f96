//! The index of deduplication: which slot holds a content (remap.md, section 11).
//!
//! A bounded map from fingerprint to slot. What it holds are hints: it is volatile, recovery never
//! needs it, and a content it has dropped is programmed once more.
//!
//! Terms. A *slot* is a mapping-unit slot of the flash array, named by its [`Ppn`]. A *place* is a
//! cell of the table.
//!
//! Entries have fixed places of 32 B, so the lists through them stay short to write. Each belongs to
//! the *chain* of its hash and to one list in order of last use. Chains begin in a table of 4 B for
//! each 1.6 entries: 34.6 B per entry in all, and 4 B per slot of the device for the way back from a
//! slot to its place.
//!
//! Invariants:
//! 1. An entry is in the chain of its hash. Chains hold nothing else.
//! 2. `place_of` names, for the slot of an entry, the place of that entry, and nothing for others.
//! 3. A fingerprint has at most one entry, and so has a slot.
//! 4. Every place below `touched` is in the list of uses. Empty ones are at its cold end.
//!
//! **Eviction** takes the entry that was used least recently: entered, found, or entered again. A
//! copy is written once and in the order in which it was read, so the oldest entry is the one whose
//! copy is the least likely to come. CLOCK needs 8 B less, but forgets in an order of its own: a table
//! of 16,384 contents lost 6 % of the copies in a backlog that LRU holds (writeonce.md, section 2).
//!
//! Differs from remap.md, section 11: an entry has no epoch. The FTL calls [`forget`] and [`moved`]
//! in the step that invalidates or moves a page, so no entry outlives the content of its slot.
//!
//! [`forget`]: FingerprintIndex::forget
//! [`moved`]: FingerprintIndex::moved

use onefold_units::Ppn;
use onefold_units::convert::{high_product, index, low32, low64, narrow, u64_from};

/// Names a content of one mapping unit: equal fingerprints are taken for equal contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

/// A fingerprint as the table stores it: 16 B that need no alignment to 16.
type Key = [u32; 4];

impl Fingerprint {
    /// The fingerprint `raw`.
    #[must_use]
    pub const fn new(raw: u128) -> Self {
        Self(raw)
    }

    /// The bare number.
    #[must_use]
    pub const fn raw(self) -> u128 {
        self.0
    }

    const fn key(self) -> Key {
        let (low, high) = (low64(self.0), low64(self.0 >> 64));
        [low32(low), low32(low >> 32), low32(high), low32(high >> 32)]
    }
}

/// 64 mixed bits. Contents of models may be small numbers, so no part of a fingerprint is taken to
/// be random. Two rounds of `SplitMix64`'s finaliser.
fn hash(key: &Key) -> u64 {
    let half = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let [low, high] = [half(key[0], key[1]), half(key[2], key[3])];
    let mut z = low ^ high.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A place: the words of the key, then [`SLOT`], [`CHAIN`], [`NEWER`] and [`OLDER`]. All zero, it was
/// never used. Arrays of integers, because a vector of zeroes costs neither time nor memory until it
/// is used; a table for 1 TiB has 9 GB.
type Cell = [u32; 8];
/// Word of the slot + 1; 0 in an empty place.
const SLOT: usize = 4;
/// Word of the next place of the chain; 0 ends it.
const CHAIN: usize = 5;
/// Words of the neighbours in the list of uses, a circle through place [`ENDS`].
const NEWER: usize = 6;
const OLDER: usize = 7;
/// The place that is no entry but the ends of the list: next to it are the most recently used entry
/// (older) and the least recently used one (newer).
const ENDS: u32 = 0;

fn key_of(cell: &Cell) -> Key {
    [cell[0], cell[1], cell[2], cell[3]]
}

/// The slot an entry names; 0 in the cell is an empty place.
fn slot_of(cell: &Cell) -> Option<Ppn> {
    cell[SLOT].checked_sub(1).map(Ppn::new)
}

/// What told the device about a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The host read it.
    Read,
    /// The host wrote it, and did not read it since.
    Write,
}

/// A bounded index from fingerprint to slot. Every operation takes constant time on average over
/// fingerprints.
///
/// ```
/// use onefold_ftl::{Fingerprint, FingerprintIndex, Origin};
/// use onefold_units::Ppn;
///
/// let mut index = FingerprintIndex::new(1 << 20, 1 << 18);
/// let content = Fingerprint::new(0x5EED);
/// index.insert(content, Ppn::new(7), Origin::Write);
/// index.moved(Ppn::new(7), Ppn::new(900)); // garbage collection copied the page
/// assert_eq!(index.find(content), Some((Ppn::new(900), Origin::Write)));
/// index.forget(Ppn::new(900)); // its last reference is gone
/// assert_eq!(index.find(content), None);
/// ```
#[derive(Clone, Debug)]
pub struct FingerprintIndex {
    /// By place, counted from 1.
    cells: Vec<Cell>,
    /// One bit per place: the host read the content.
    read: Vec<u64>,
    /// By hash: the first place of the chain, or 0.
    chains: Vec<u32>,
    /// By slot: place, or 0.
    place_of: Vec<u32>,
    capacity: u32,
    len: u32,
    /// The last place that was ever used.
    touched: u32,
}

onefold_units::keep!(FingerprintIndex { cells, read, chains, place_of, len, touched } but { capacity });

impl FingerprintIndex {
    /// Most entries of an index: their places are counted in 32 bits.
    pub const MAX_CAPACITY: u32 = u32::MAX - 1;

    /// An empty index for a device of `slots` physical slots that keeps `capacity` entries at most.
    /// More than one per slot, or more than [`MAX_CAPACITY`](Self::MAX_CAPACITY), are never kept.
    ///
    /// Panics if `slots` is not below 2^32 - 1, which no validated geometry reaches.
    #[must_use]
    pub fn new(slots: u64, capacity: u32) -> Self {
        assert!(slots < u64::from(u32::MAX), "{slots} slots, expected fewer than 2^32 - 1");
        let capacity = capacity.min(narrow(slots)).min(Self::MAX_CAPACITY);
        let places = index(capacity) + 1;
        Self {
            cells: vec![Cell::default(); places],
            read: vec![0; places.div_ceil(64)],
            chains: vec![0; (index(capacity) / 8 * 5).max(1)],
            place_of: vec![0; index(narrow(slots))],
            capacity,
            len: 0,
            touched: 0,
        }
    }

    /// About how many bytes such an index takes.
    #[must_use]
    pub fn bytes_for(slots: u64, capacity: u32) -> u64 {
        let capacity = slots.min(capacity.into());
        capacity.saturating_mul(35).saturating_add(slots.saturating_mul(4))
    }

    /// The slot that holds this content and what told of it, if the index knows one. Counts as a use.
    #[must_use]
    pub fn find(&mut self, content: Fingerprint) -> Option<(Ppn, Origin)> {
        let place = self.lookup(&content.key())?;
        self.use_now(place);
        let origin = if self.is_read(place) { Origin::Read } else { Origin::Write };
        slot_of(self.cell(place)).map(|slot| (slot, origin))
    }

    /// Remembers that `slot` holds `content`. What the index knew about that slot, and another slot
    /// with that content, is forgotten; a full index evicts the entry used least recently. A content
    /// that was read stays so.
    ///
    /// Panics if `slot` is not on the device.
    pub fn insert(&mut self, content: Fingerprint, slot: Ppn, origin: Origin) {
        if self.capacity == 0 {
            return;
        }
        let key = content.key();
        let known = self.lookup(&key);
        let place = if let Some(place) = known {
            self.name_slot(place, slot);
            self.use_now(place);
            place
        } else {
            self.forget(slot);
            let place = self.fresh();
            self.enter(place, key, slot);
            place
        };
        if origin == Origin::Read {
            self.read[index(place / 64)] |= 1 << (place % 64);
        }
    }

    /// The content of `from` is now in `to` instead; whatever `to` held before is forgotten.
    ///
    /// Panics if a slot is not on the device.
    pub fn moved(&mut self, from: Ppn, to: Ppn) {
        match self.place_of[from.index()] {
            0 => self.forget(to),
            place => self.name_slot(place, to),
        }
    }

    /// Drops the entry of `slot`, if there is one: its content is gone or about to go.
    ///
    /// Panics if `slot` is not on the device.
    pub fn forget(&mut self, slot: Ppn) {
        let place = self.place_of[slot.index()];
        if place != 0 {
            self.remove(place);
            // Empty places are used first (invariant 4).
            self.unlink(place);
            self.link(place, self.cell(ENDS)[NEWER]);
        }
    }

    /// Entries.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory reserved, in bytes; what was never used costs address space only.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let cells = size_of_val(self.cells.as_slice()) + size_of_val(self.read.as_slice());
        let links = size_of_val(self.chains.as_slice()) + size_of_val(self.place_of.as_slice());
        u64_from(cells + links)
    }

    fn cell(&self, place: u32) -> &Cell {
        &self.cells[index(place)]
    }

    fn cell_mut(&mut self, place: u32) -> &mut Cell {
        &mut self.cells[index(place)]
    }

    fn chain_of(&self, key: &Key) -> usize {
        index(narrow(high_product(hash(key), u64_from(self.chains.len()))))
    }

    /// The places of a chain.
    fn chain(&self, first: u32) -> impl Iterator<Item = u32> {
        let next = |place: u32| Some(place).filter(|place| *place != 0);
        std::iter::successors(next(first), move |place| next(self.cell(*place)[CHAIN]))
    }

    /// The place of the entry with this key.
    fn lookup(&self, key: &Key) -> Option<u32> {
        self.chain(self.chains[self.chain_of(key)]).find(|place| key_of(self.cell(*place)) == *key)
    }

    /// Lets an entry name another slot (invariant 2); an entry of that slot goes.
    fn name_slot(&mut self, place: u32, slot: Ppn) {
        if self.place_of[slot.index()] == place {
            return;
        }
        self.forget(slot);
        if let Some(before) = slot_of(self.cell(place)) {
            self.place_of[before.index()] = 0;
        }
        self.cell_mut(place)[SLOT] = slot.raw() + 1;
        self.place_of[slot.index()] = place;
    }

    /// Makes an entry of a place that is in no list.
    fn enter(&mut self, place: u32, key: Key, slot: Ppn) {
        let chain = self.chain_of(&key);
        let cell = &mut self.cells[index(place)];
        cell[..key.len()].copy_from_slice(&key);
        cell[SLOT] = slot.raw() + 1;
        cell[CHAIN] = self.chains[chain];
        self.chains[chain] = place;
        self.place_of[slot.index()] = place;
        self.link(place, ENDS);
        self.len += 1;
    }

    /// A place for a new entry, in no list: an empty one, or that of the entry used least recently.
    fn fresh(&mut self) -> u32 {
        // No place is empty, and not all were used yet.
        if self.len == self.touched && self.len < self.capacity {
            self.touched += 1;
            return self.touched;
        }
        let coldest = self.cell(ENDS)[NEWER];
        if self.cell(coldest)[SLOT] != 0 {
            self.remove(coldest);
        }
        self.unlink(coldest);
        coldest
    }

    /// Empties a place, which stays in the list of uses.
    fn remove(&mut self, place: u32) {
        let cell = *self.cell(place);
        let chain = self.chain_of(&key_of(&cell));
        let before = self.chain(self.chains[chain]).find(|at| self.cell(*at)[CHAIN] == place);
        match before {
            Some(before) => self.cell_mut(before)[CHAIN] = cell[CHAIN],
            None => self.chains[chain] = cell[CHAIN],
        }
        if let Some(slot) = slot_of(&cell) {
            self.place_of[slot.index()] = 0;
            self.cell_mut(place)[SLOT] = 0;
            self.len -= 1;
        }
        self.read[index(place / 64)] &= !(1 << (place % 64));
    }

    fn use_now(&mut self, place: u32) {
        self.unlink(place);
        self.link(place, ENDS);
    }

    fn unlink(&mut self, place: u32) {
        let cell = *self.cell(place);
        self.cell_mut(cell[NEWER])[OLDER] = cell[OLDER];
        self.cell_mut(cell[OLDER])[NEWER] = cell[NEWER];
    }

    /// Puts a place into the list of uses, next to `newer`.
    fn link(&mut self, place: u32, newer: u32) {
        let older = self.cell(newer)[OLDER];
        let cell = self.cell_mut(place);
        (cell[NEWER], cell[OLDER]) = (newer, older);
        self.cell_mut(newer)[OLDER] = place;
        self.cell_mut(older)[NEWER] = place;
    }

    fn is_read(&self, place: u32) -> bool {
        self.read[index(place / 64)] >> (place % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests;
