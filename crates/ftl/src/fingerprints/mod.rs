//! The index of deduplication: which slot holds a content (remap.md, section 11).
//!
//! A bounded map from fingerprint to slot. What it holds are hints: it is volatile, recovery never
//! needs it, and a content it has dropped is programmed once more.
//!
//! Terms. A *slot* is a mapping-unit slot of the flash array, named by its [`Ppn`]. A *place* is a
//! cell of the table. The *home* of a fingerprint is the place its hash names.
//!
//! One table with linear probing holds the full fingerprints, so a lookup mostly touches one or two
//! cache lines. At most three quarters of the places are taken: 26.8 B per entry, and 4 B per slot
//! of the device for the way back from a slot to its place.
//!
//! Invariants:
//! 1. No place between the home of an entry and its place is empty. Removal therefore moves later
//!    entries back instead of leaving a mark, and lookups do not slow down with age.
//! 2. `place_of` names, for the slot of an entry, the place of that entry, and nothing for others.
//! 3. A fingerprint has at most one entry, and so has a slot.
//!
//! **Eviction** is CLOCK over the places: the hand passes over the entries that were found since its
//! last visit and takes the first that was not. That is cheaper than LRU, whose lists need 8 B more
//! per entry and touch three entries per lookup. A new entry has to be found once to count as used,
//! so contents that never repeat hardly push out those that do. The hand visits every place once per
//! round, but in strides of the golden section: taking neighbours one after another would leave the
//! places behind the hand empty and pile up twice the average load before it, more than fits.
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

/// A cell of the table: an entry, or all zero. Arrays of integers, because a vector of zeroes costs
/// neither time nor memory until it is used; a table for 1 TiB has 7 GB.
type Cell = [u32; 5];
const EMPTY: Cell = [0; 5];

fn key_of(cell: &Cell) -> Key {
    [cell[0], cell[1], cell[2], cell[3]]
}

/// The slot an entry names; 0 in the cell is an empty place.
fn slot_of(cell: &Cell) -> Option<Ppn> {
    cell[4].checked_sub(1).map(Ppn::new)
}

fn entry([a, b, c, d]: Key, slot: Ppn) -> Cell {
    [a, b, c, d, slot.raw() + 1]
}

/// About 0.618 of `places`, without a common divisor: strides of this length visit every place once,
/// and any number of visits in a row is spread evenly.
fn golden_stride(places: u32) -> u32 {
    let golden = narrow(high_product(u64::from(places), 0x9E37_79B9_7F4A_7C15));
    (golden.max(1)..places).find(|stride| gcd(places, *stride) == 1).unwrap_or(1)
}

const fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A bounded index from fingerprint to slot. Every operation takes constant time: lookup, move and
/// removal on average over fingerprints, insertion also on average over a pass of the hand.
///
/// ```
/// use onefold_ftl::{Fingerprint, FingerprintIndex};
/// use onefold_units::Ppn;
///
/// let mut index = FingerprintIndex::new(1 << 20, 1 << 18);
/// let content = Fingerprint::new(0x5EED);
/// index.insert(content, Ppn::new(7));
/// index.moved(Ppn::new(7), Ppn::new(900)); // garbage collection copied the page
/// assert_eq!(index.find(content), Some(Ppn::new(900)));
/// index.forget(Ppn::new(900)); // its last reference is gone
/// assert_eq!(index.find(content), None);
/// ```
#[derive(Clone, Debug)]
pub struct FingerprintIndex {
    cells: Vec<Cell>,
    /// One bit per place: found since the hand was last there.
    used: Vec<u64>,
    /// By slot: place + 1, or 0.
    place_of: Vec<u32>,
    capacity: u32,
    len: u32,
    /// The place CLOCK looks at next.
    hand: u32,
    /// From one place to the next CLOCK looks at; has no divisor in common with the places.
    stride: u32,
}

impl FingerprintIndex {
    /// Most entries of an index: their places are counted in 32 bits.
    pub const MAX_CAPACITY: u32 = u32::MAX / 4 * 3;

    /// An empty index for a device of `slots` physical slots that keeps `capacity` entries at most.
    /// More than one per slot, or more than [`MAX_CAPACITY`](Self::MAX_CAPACITY), are never kept.
    ///
    /// Panics if `slots` is not below 2^32 - 1, which no validated geometry reaches.
    #[must_use]
    pub fn new(slots: u64, capacity: u32) -> Self {
        assert!(slots < u64::from(u32::MAX), "{slots} slots, expected fewer than 2^32 - 1");
        let capacity = capacity.min(narrow(slots)).min(Self::MAX_CAPACITY);
        // One place is always empty: it ends a probe that finds nothing.
        let places = index(capacity) + index(capacity).div_ceil(3) + 1;
        Self {
            cells: vec![EMPTY; places],
            used: vec![0; places.div_ceil(64)],
            place_of: vec![0; index(narrow(slots))],
            capacity,
            len: 0,
            hand: 0,
            stride: golden_stride(narrow(u64_from(places))),
        }
    }

    /// The slot that holds this content, if the index knows one. Counts as a use of the entry.
    #[must_use]
    pub fn find(&mut self, content: Fingerprint) -> Option<Ppn> {
        let place = self.probe(&content.key());
        let slot = slot_of(self.cell(place));
        if slot.is_some() {
            self.set_used(place, true);
        }
        slot
    }

    /// Remembers that `slot` holds `content`. What the index knew about that slot, and another slot
    /// with that content, is forgotten; a full index evicts an entry that was not used for long.
    ///
    /// Panics if `slot` is not on the device.
    pub fn insert(&mut self, content: Fingerprint, slot: Ppn) {
        if self.capacity == 0 {
            return;
        }
        self.forget(slot);
        let key = content.key();
        let mut place = self.probe(&key);
        if let Some(other) = slot_of(self.cell(place)) {
            self.place_of[other.index()] = 0;
            self.set_used(place, true);
        } else {
            if self.len == self.capacity {
                self.evict();
                // The eviction may have moved the end of this probe.
                place = self.probe(&key);
            }
            self.len += 1;
        }
        self.put(place, entry(key, slot));
    }

    /// The content of `from` is now in `to` instead; whatever `to` held before is forgotten.
    ///
    /// Panics if a slot is not on the device.
    pub fn moved(&mut self, from: Ppn, to: Ppn) {
        if from == to {
            return;
        }
        self.forget(to);
        let Some(place) = self.place_of[from.index()].checked_sub(1) else { return };
        self.place_of[from.index()] = 0;
        let key = key_of(self.cell(place));
        self.put(place, entry(key, to));
    }

    /// Drops the entry of `slot`, if there is one: its content is gone or about to go.
    ///
    /// Panics if `slot` is not on the device.
    pub fn forget(&mut self, slot: Ppn) {
        if let Some(place) = self.place_of[slot.index()].checked_sub(1) {
            self.remove(place);
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
        let cells = size_of_val(self.cells.as_slice()) + size_of_val(self.used.as_slice());
        u64_from(cells + size_of_val(self.place_of.as_slice()))
    }

    fn cell(&self, place: u32) -> &Cell {
        &self.cells[index(place)]
    }

    fn places(&self) -> u32 {
        narrow(u64_from(self.cells.len()))
    }

    fn home(&self, key: &Key) -> u32 {
        narrow(high_product(hash(key), u64_from(self.cells.len())))
    }

    fn after(&self, place: u32) -> u32 {
        self.forward(place, 1)
    }

    /// The place so many steps on, at most one round.
    fn forward(&self, place: u32, steps: u32) -> u32 {
        let left = self.places() - place;
        if steps >= left { steps - left } else { place + steps }
    }

    /// Steps from one place forward to another.
    fn steps(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { self.places() - from + to }
    }

    /// The place of the entry with this key, or else the empty place where it belongs.
    fn probe(&self, key: &Key) -> u32 {
        let mut place = self.home(key);
        loop {
            let cell = self.cell(place);
            if cell[4] == 0 || key_of(cell) == *key {
                return place;
            }
            place = self.after(place);
        }
    }

    /// Writes an entry and its way back (invariant 2).
    fn put(&mut self, place: u32, cell: Cell) {
        self.cells[index(place)] = cell;
        if let Some(slot) = slot_of(&cell) {
            self.place_of[slot.index()] = place + 1;
        }
    }

    /// Empties a place and closes the gap (invariant 1): each later entry of the run whose home is
    /// not after the gap moves into it and leaves the next gap.
    fn remove(&mut self, place: u32) {
        if let Some(slot) = slot_of(self.cell(place)) {
            self.place_of[slot.index()] = 0;
            self.len -= 1;
        }
        let (mut gap, mut next) = (place, self.after(place));
        while self.cell(next)[4] != 0 {
            let cell = *self.cell(next);
            let home = self.home(&key_of(&cell));
            if self.steps(home, next) >= self.steps(gap, next) {
                self.put(gap, cell);
                self.set_used(gap, self.is_used(next));
                gap = next;
            }
            next = self.after(next);
        }
        self.cells[index(gap)] = EMPTY;
        self.set_used(gap, false);
    }

    /// Removes the first entry from the hand on that was not found since the hand was last there.
    /// The hand stays, as another entry may have moved into the gap.
    fn evict(&mut self) {
        loop {
            let place = self.hand;
            if self.is_used(place) {
                self.set_used(place, false);
            } else if self.cell(place)[4] != 0 {
                self.remove(place);
                return;
            }
            self.hand = self.forward(place, self.stride);
        }
    }

    fn is_used(&self, place: u32) -> bool {
        self.used[index(place / 64)] >> (place % 64) & 1 == 1
    }

    fn set_used(&mut self, place: u32, used: bool) {
        let word = &mut self.used[index(place / 64)];
        *word = *word & !(1 << (place % 64)) | u64::from(used) << (place % 64);
    }
}

#[cfg(test)]
mod tests;
