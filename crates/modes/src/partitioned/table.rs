//! The table of a partition: entries in the order of the exported device (Sung 2022, sec. III-C;
//! Han 2021, sec. III-C).
//!
//! The papers use a red-black tree. This is a list of short sorted lists, which has the same order
//! and the same operations, and of which the memory is known to the byte.

use onefold_format::volume::TableEntry;
use onefold_units::Location;
use onefold_units::convert::u64_from;

/// Bytes of an entry as Sung 2022, sec. III-C, counts: 3 MB for 1 GB of data.
const PAPER_ENTRY_BYTES: u64 = 12;

/// Entries of a short list at most.
const CHUNK: usize = 512;

/// Of one block of the exported device there is at most one valid entry; it comes before the
/// invalid ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// None is empty.
    chunks: Vec<Vec<TableEntry>>,
    valid: u32,
    invalid: u32,
}

/// The valid entry of a block.
pub(super) const fn valid(lba: u32, to: u32) -> TableEntry {
    TableEntry { lba, invalid: false, to: Location::new(to) }
}

/// An entry of an overwritten block.
pub(super) const fn invalid(lba: u32, to: u32) -> TableEntry {
    TableEntry { lba, invalid: true, to: Location::new(to) }
}

impl Table {
    /// A table of entries in any order, some of them twice.
    pub(super) fn of_unsorted(mut entries: Vec<TableEntry>) -> Self {
        // One comparison for all three fields, in their order.
        entries.sort_unstable_by_key(|entry| {
            let low = u128::from(entry.invalid) << 32 | u128::from(entry.to.raw());
            u128::from(entry.lba) << 64 | low
        });
        entries.dedup();
        Self::of(&entries)
    }

    /// A table of entries that ascend.
    pub(super) fn of(entries: &[TableEntry]) -> Self {
        let invalid = entries.iter().filter(|entry| entry.invalid).count();
        let count = onefold_units::convert::u32_from;
        Self {
            chunks: entries.chunks(CHUNK / 2).map(<[TableEntry]>::to_vec).collect(),
            valid: count(entries.len() - invalid),
            invalid: count(invalid),
        }
    }

    pub(super) const fn valid_count(&self) -> u32 {
        self.valid
    }

    pub(super) const fn invalid_count(&self) -> u32 {
        self.invalid
    }

    pub(super) fn len(&self) -> usize {
        onefold_units::convert::index(self.valid + self.invalid)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TableEntry> + '_ {
        self.chunks.iter().flatten()
    }

    /// The first entry that is not before this one.
    fn first_from(&self, from: &TableEntry) -> Option<&TableEntry> {
        let at = self.chunk_of(from);
        let chunk = self.chunks.get(at)?;
        chunk.get(chunk.partition_point(|entry| entry < from))
    }

    /// The first list whose last entry is not before this one.
    fn chunk_of(&self, entry: &TableEntry) -> usize {
        self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| last < entry))
    }

    /// Where the valid version of a block lies.
    pub(super) fn find(&self, lba: u32) -> Option<u32> {
        let entry = self.first_from(&valid(lba, 0))?;
        (entry.lba == lba && !entry.invalid).then(|| entry.to.raw())
    }

    /// The first block from `lba` on that has a valid version.
    pub(super) fn next_valid(&self, lba: u32) -> Option<u32> {
        let from = valid(lba, 0);
        let chunks = &self.chunks[self.chunk_of(&from)..];
        let skipped = chunks.first()?.partition_point(|entry| *entry < from);
        let entry = chunks.iter().flatten().skip(skipped).find(|entry| !entry.invalid)?;
        Some(entry.lba)
    }

    pub(super) fn insert(&mut self, entry: TableEntry) {
        *(if entry.invalid { &mut self.invalid } else { &mut self.valid }) += 1;
        let at = self.chunk_of(&entry).min(self.chunks.len().saturating_sub(1));
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(vec![entry]);
            return;
        };
        chunk.insert(chunk.partition_point(|other| *other < entry), entry);
        if chunk.len() > CHUNK {
            let mut rest = chunk.split_off(CHUNK / 2);
            rest.shrink_to_fit();
            self.chunks.insert(at + 1, rest);
        }
    }

    /// Whether the entry was there.
    pub(super) fn remove(&mut self, entry: &TableEntry) -> bool {
        let at = self.chunk_of(entry);
        let Some(chunk) = self.chunks.get_mut(at) else { return false };
        let Ok(place) = chunk.binary_search(entry) else { return false };
        chunk.remove(place);
        if chunk.is_empty() {
            self.chunks.remove(at);
        }
        *(if entry.invalid { &mut self.invalid } else { &mut self.valid }) -= 1;
        true
    }

    /// Sets the `invalid_flag` of a block's entry (Sung 2022, sec. III-B3).
    pub(super) fn invalidate(&mut self, lba: u32, to: u32) {
        if self.remove(&valid(lba, to)) {
            self.insert(invalid(lba, to));
        }
    }

    /// Keeps some of the invalid entries.
    pub(super) fn retain_invalid(&mut self, mut keep: impl FnMut(u32) -> bool) {
        for chunk in &mut self.chunks {
            chunk.retain(|entry| !entry.invalid || keep(entry.to.raw()));
            chunk.shrink_to_fit();
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        let invalid = self.iter().filter(|entry| entry.invalid).count();
        self.invalid = onefold_units::convert::u32_from(invalid);
    }

    /// As the papers count.
    pub(super) fn paper_bytes(&self) -> u64 {
        u64_from(self.len()) * PAPER_ENTRY_BYTES
    }

    /// What the lists take.
    pub(super) fn real_bytes(&self) -> u64 {
        let entries: usize = self.chunks.iter().map(Vec::capacity).sum();
        let lists = self.chunks.capacity() * size_of::<Vec<TableEntry>>();
        u64_from(entries * size_of::<TableEntry>() + lists)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use onefold_units::Rng;

    use super::{Table, invalid, valid};

    #[test]
    fn entries_are_as_in_a_map() {
        let (mut table, mut model) = (Table::default(), BTreeMap::new());
        let mut rng = Rng::new(3);
        let small = |value: u64| u32::try_from(value).unwrap();
        for to in 0..20_000 {
            let lba = small(rng.below(3000));
            if let Some(old) = model.remove(&lba) {
                assert_eq!(table.find(lba), Some(old));
                table.invalidate(lba, old);
            }
            if rng.below(5) > 0 {
                table.insert(valid(lba, to));
                model.insert(lba, to);
            }
            if to % 5000 == 0 {
                table.retain_invalid(|at| at % 2 == 0);
            }
            let from = small(rng.below(3000));
            assert_eq!(table.next_valid(from), model.range(from..).next().map(|(lba, _)| *lba));
            assert_eq!(table.find(from), model.get(&from).copied());
        }
        assert!(table.iter().is_sorted_by(|a, b| a < b));
        assert_eq!(table.iter().count(), table.len());
        assert_eq!(table.iter().filter(|entry| !entry.invalid).count(), model.len());
        assert!(table.invalid_count() > 1000 && table.real_bytes() >= table.paper_bytes());
        assert!(!table.remove(&invalid(9999, 1)));
        let entries: Vec<_> = table.iter().copied().collect();
        let again = Table::of(&entries);
        assert_eq!((again.valid_count(), again.len()), (table.valid_count(), table.len()));
    }
}
