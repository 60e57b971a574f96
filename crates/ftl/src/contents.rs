//! Which contents a device remembers, and which writes may share them (writeonce.md, section 2).
//!
//! 1. A *source* is a slot whose content the index names. With scope `reads` these are slots that the
//!    host read, with `writes` those it wrote, with `all` both.
//! 2. With scope `reads` a source serves one write; the host has to read it again for the next. So of
//!    a content that is read once and written twice, as btrfs DUP does when it moves a chunk, the
//!    second copy is programmed.
//! 3. With scope `reads` a unit that the host read itself a short while ago is programmed when it is
//!    written. A program that repairs one of two copies reads both: what it writes must not become a
//!    second name of the good one. Not so where what was read there has been written elsewhere since:
//!    that is the old place of data that moved, which a log-structured file system uses again soon.
//!
//! `writes` and `all` have no such rules: there, copies that a host makes on purpose share a page.

use onefold_units::Ppn;
use onefold_units::convert::{index, index64, u64_from};

use crate::ConfigError;
use crate::fingerprints::{Fingerprint, FingerprintIndex, Origin};

/// Units that the host read last, for rule 3: the last 64 to 128 MiB with units of 4 KiB, on small
/// devices a 16th of them. A scrub of btrfs has 8 MiB in flight before it repairs.
const RECENT_UNITS: u32 = 16_384;
const RECENT_SHARE: u32 = 16;

/// Which contents deduplication remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DedupScope {
    /// What the host wrote.
    #[default]
    Writes,
    /// What the host read: copies are shared, contents that are written twice are not.
    Reads,
    /// Both.
    All,
}

impl DedupScope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Writes, Self::Reads, Self::All];

    /// Name in configuration, tables and errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Writes => "writes",
            Self::Reads => "reads",
            Self::All => "all",
        }
    }

    /// Whether contents that the host read are remembered.
    #[must_use]
    pub const fn has_reads(self) -> bool {
        matches!(self, Self::Reads | Self::All)
    }

    /// Whether contents that the host wrote are remembered.
    #[must_use]
    pub const fn has_writes(self) -> bool {
        matches!(self, Self::Writes | Self::All)
    }
}

/// The index of a device under the rules of its scope.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    index: FingerprintIndex,
    scope: DedupScope,
    recent: RecentUnits,
    /// By slot: its content was written elsewhere after the host read it (rule 3). Empty without that rule.
    copied: Bits,
}

onefold_units::keep!(Contents { index, recent, copied } but { scope });

impl Contents {
    /// `entries` contents of a device with so many slots and units of the host; `None` where none are remembered.
    ///
    /// # Errors
    /// The table does not fit into memory. Otherwise the process would end when it is made.
    pub(crate) fn new(
        scope: DedupScope,
        entries: u32,
        slots: u64,
        host_units: u32,
    ) -> Result<Option<Box<Self>>, ConfigError> {
        if entries == 0 {
            return Ok(None);
        }
        let bytes = FingerprintIndex::bytes_for(slots, entries);
        if Vec::<u8>::new().try_reserve_exact(index64(bytes)).is_err() {
            return Err(ConfigError::FingerprintMemory { entries, bytes });
        }
        let judged = scope == DedupScope::Reads;
        Ok(Some(Box::new(Self {
            index: FingerprintIndex::new(slots, entries),
            scope,
            recent: RecentUnits::new(if judged { host_units } else { 0 }),
            copied: Bits::new(if judged { slots } else { 0 }),
        })))
    }

    /// The host read a unit, well or not, that lies in `slot`, if it is mapped.
    pub(crate) fn note_read(&mut self, lpn: u32, slot: Option<Ppn>) {
        self.recent.insert(lpn);
        if let Some(slot) = slot {
            self.copied.clear(slot.raw());
        }
    }

    /// The host read this content, which is in `slot`.
    pub(crate) fn enter_read(&mut self, content: Fingerprint, slot: Ppn) {
        if self.scope.has_reads() {
            self.index.insert(content, slot, Origin::Read);
        }
    }

    /// The host wrote this content, which was programmed to `slot`.
    pub(crate) fn enter_written(&mut self, content: Fingerprint, slot: Ppn) {
        if self.scope.has_writes() {
            self.index.insert(content, slot, Origin::Write);
        }
    }

    /// A source of the content of a unit that is written and lies in `held` so far, if the unit may
    /// share it (rule 3).
    pub(crate) fn source_for(
        &mut self,
        lpn: u32,
        held: Option<Ppn>,
        content: Fingerprint,
    ) -> Option<(Ppn, Origin)> {
        let source = self.index.find(content)?;
        let has_moved = held.is_some_and(|slot| self.copied.contains(slot.raw()));
        if self.recent.contains(lpn) && !has_moved {
            self.copied.insert(source.0.raw());
            return None;
        }
        Some(source)
    }

    /// A source of this content served a write (rule 2). Where it lies now does not matter.
    pub(crate) fn served(&mut self, content: Fingerprint) {
        if self.scope == DedupScope::Reads
            && let Some((slot, _)) = self.index.find(content)
        {
            self.index.forget(slot);
            self.copied.insert(slot.raw());
        }
    }

    /// As [`FingerprintIndex::moved`].
    pub(crate) fn moved(&mut self, from: Ppn, to: Ppn) {
        self.index.moved(from, to);
        self.copied.clear(to.raw());
        if self.copied.contains(from.raw()) {
            self.copied.clear(from.raw());
            self.copied.insert(to.raw());
        }
    }

    /// As [`FingerprintIndex::forget`].
    pub(crate) fn forget(&mut self, slot: Ppn) {
        self.index.forget(slot);
        self.copied.clear(slot.raw());
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.index.bytes() + self.recent.bytes() + self.copied.bytes()
    }
}

/// The units put in last: at least `max` different ones, at most twice as many.
#[derive(Clone, Debug)]
struct RecentUnits {
    /// The newer and the older half.
    halves: [Half; 2],
    /// Units of a half.
    max: usize,
}

onefold_units::keep!(RecentUnits { halves } but { max });

/// A set of units, and a list of them to clear it by.
#[derive(Clone, Debug)]
struct Half {
    bits: Bits,
    units: Vec<u32>,
}

onefold_units::keep!(Half { bits, units });

/// A set of numbers below a bound; others are never in it.
#[derive(Clone, Debug)]
struct Bits(Vec<u64>);

onefold_units::keep!(Bits(words));

impl RecentUnits {
    /// Of units below `units`; others are never in it.
    fn new(units: u32) -> Self {
        let half = Half { bits: Bits::new(units.into()), units: Vec::new() };
        let max = index(RECENT_UNITS.min(units / RECENT_SHARE).max(1));
        Self { halves: [half.clone(), half], max }
    }

    fn insert(&mut self, lpn: u32) {
        let [newer, older] = &mut self.halves;
        if newer.bits.contains(lpn) || !newer.bits.may_have(lpn) {
            return;
        }
        if newer.units.len() == self.max {
            older.clear();
            std::mem::swap(newer, older);
        }
        newer.bits.insert(lpn);
        newer.units.push(lpn);
    }

    fn contains(&self, lpn: u32) -> bool {
        self.halves.iter().any(|half| half.bits.contains(lpn))
    }

    fn bytes(&self) -> u64 {
        let bytes = |half: &Half| half.bits.bytes() + u64_from(half.units.capacity() * 4);
        self.halves.iter().map(bytes).sum()
    }
}

impl Half {
    fn clear(&mut self) {
        for lpn in self.units.drain(..) {
            self.bits.clear(lpn);
        }
    }
}

impl Bits {
    fn new(bound: u64) -> Self {
        Self(vec![0; index64(bound.div_ceil(64))])
    }

    fn may_have(&self, number: u32) -> bool {
        index(number / 64) < self.0.len()
    }

    fn contains(&self, number: u32) -> bool {
        self.0.get(index(number / 64)).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn insert(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(index(number / 64)) {
            *word |= 1 << (number % 64);
        }
    }

    fn clear(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(index(number / 64)) {
            *word &= !(1 << (number % 64));
        }
    }

    fn bytes(&self) -> u64 {
        u64_from(size_of_val(self.0.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Ppn;

    use super::{Contents, DedupScope, RECENT_SHARE, RECENT_UNITS, RecentUnits};
    use crate::fingerprints::{Fingerprint, FingerprintIndex};

    /// The check whether a table fits into memory, and documents, go by `bytes_for`.
    #[test]
    fn a_full_table_takes_what_is_claimed() {
        let (slots, entries, units) = (1 << 19, 1 << 18, 1 << 19);
        for scope in DedupScope::ALL {
            let new = Contents::new(scope, entries, slots, units);
            let mut contents = new.unwrap().unwrap();
            for n in 0..2 * entries {
                let content = Fingerprint::new(u128::from(n) << 64 | 7);
                contents.note_read(n, None);
                contents.enter_read(content, Ppn::new(n));
                contents.enter_written(content, Ppn::new(n));
            }
            let claimed = FingerprintIndex::bytes_for(slots, entries);
            // Two sets of units, and the lists of at most `max` of each, which grow by doubling; a set of slots.
            let recent = u64::from(2 * (units / 8 + 2 * RECENT_UNITS * 4)) + slots / 8;
            let recent = if scope == DedupScope::Reads { recent } else { 0 };
            let found = contents.bytes();
            assert!(found <= claimed + recent, "{scope:?}: {found} of {claimed}");
            assert!(found * 50 >= claimed * 49, "{scope:?}: {found} of {claimed}");
        }
    }

    /// That a content was written elsewhere is known of its page, wherever that is moved, until it goes.
    #[test]
    fn a_page_that_moves_is_known_as_copied() {
        let [copied, other] = [7, 8].map(Fingerprint::new);
        let mut contents = Contents::new(DedupScope::Reads, 4, 8, 64).unwrap().unwrap();
        let may_share = |contents: &mut Contents, held| {
            contents.source_for(5, Some(Ppn::new(held)), other).is_some()
        };
        for (unit, content, slot) in [(5, copied, 0), (6, other, 1)] {
            contents.note_read(unit, Some(Ppn::new(slot)));
            contents.enter_read(content, Ppn::new(slot));
        }
        assert!(!may_share(&mut contents, 0));
        contents.served(copied);
        assert!(may_share(&mut contents, 0));
        contents.moved(Ppn::new(0), Ppn::new(3));
        assert!(may_share(&mut contents, 3) && !may_share(&mut contents, 0));
        contents.moved(Ppn::new(2), Ppn::new(3));
        assert!(!may_share(&mut contents, 3), "another page took its place");
        contents.served(other);
        contents.enter_read(other, Ppn::new(4));
        assert!(may_share(&mut contents, 1));
        contents.forget(Ppn::new(1));
        assert!(!may_share(&mut contents, 1));
    }

    #[test]
    fn the_units_read_last_are_known_and_no_others() {
        assert_eq!(RecentUnits::new(1 << 30).max, 16_384);
        let recent_units = RECENT_UNITS / 8;
        let mut recent = RecentUnits::new(RECENT_SHARE * recent_units);
        for lpn in 0..4 * recent_units {
            recent.insert(lpn);
            // Once more changes nothing.
            recent.insert(lpn);
            assert!(recent.contains(lpn) && !recent.contains(lpn + 1));
            if let Some(oldest) = (lpn + 1).checked_sub(recent_units) {
                assert!(recent.contains(oldest), "{oldest} at {lpn}");
            }
            if let Some(gone) = lpn.checked_sub(2 * recent_units) {
                assert!(!recent.contains(gone), "{gone} at {lpn}");
            }
        }
        // A unit that is read again is recent again.
        recent.insert(0);
        for lpn in 5 * recent_units..6 * recent_units - 1 {
            recent.insert(lpn);
        }
        assert!(recent.contains(0));
        recent.insert(u32::MAX);
        assert!(!recent.contains(u32::MAX), "it is not on the device");
    }
}
