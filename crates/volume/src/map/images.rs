//! Map pages that are being read: their images, and the records of runs that change them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use onefold_format::checksum;
use onefold_format::volume::{DirectoryEntry, PAGE_ENTRIES, RunRecord, decode_page};
use onefold_units::{Lba, Location};

use crate::map::Map;
use crate::map::page::{Entries, Entry, blank_entries};

/// An entry of a page, and the block that a record replaced there.
pub(crate) type Replaced = (usize, Location);

/// A page that is being read.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) key: usize,
    /// As far as the image is there. Made with the first of its blocks: memory that was never used costs more than to fill it.
    entries: Option<Entries>,
    page_crc: u32,
    sums_crc: u32,
    pub(crate) failed: bool,
    /// Nor can what runs have of it be read.
    pub(crate) untold: bool,
    /// Runs have records of it.
    pub(crate) in_runs: bool,
    /// What records of recovery replaced.
    pub(crate) replaced: Vec<Replaced>,
}

impl Image {
    pub(crate) fn of(key: usize, image: DirectoryEntry) -> Self {
        let DirectoryEntry { page_crc, sums_crc, .. } = image;
        Self {
            key,
            entries: None,
            page_crc,
            sums_crc,
            failed: false,
            untold: false,
            in_runs: false,
            replaced: Vec::new(),
        }
    }

    /// One whose blocks are gone for good: only runs tell of its entries. Its image is written anew like those that runs change.
    pub(crate) fn lost(key: usize) -> Self {
        let entries: Entries = Box::new([Entry::LOST; PAGE_ENTRIES]);
        Self { entries: Some(entries), in_runs: true, ..Self::of(key, DirectoryEntry::ABSENT) }
    }

    /// Takes the block with places; no bytes if it could not be read.
    pub(crate) fn take_page(&mut self, bytes: &[u8]) {
        self.take_words(bytes, self.page_crc, |entry, word| entry.at = Location::new(word));
    }

    /// Takes the block with checksums; no bytes if it could not be read.
    pub(crate) fn take_sums(&mut self, bytes: &[u8]) {
        self.take_words(bytes, self.sums_crc, |entry, word| entry.crc = word);
    }

    /// Sets what one of the two blocks says of each entry.
    fn take_words(&mut self, bytes: &[u8], crc: u32, set: impl Fn(&mut Entry, u32)) {
        let words = decode_page(bytes).ok().filter(|_| checksum(bytes) == crc);
        let Some(words) = words else {
            self.failed = true;
            return;
        };
        if let Some(entries) = &mut self.entries {
            entries.iter_mut().zip(words).for_each(|(entry, word)| set(entry, word));
        } else {
            let mut blank = Entry::UNMAPPED;
            let made = words.map(|word| {
                set(&mut blank, word);
                blank
            });
            self.entries = made.collect::<Box<[Entry]>>().try_into().ok();
        }
    }

    /// What was taken.
    pub(crate) fn take_entries(&mut self) -> Entries {
        self.entries.take().unwrap_or_else(blank_entries)
    }
}

/// The records of some pages, of those of a run.
pub(crate) fn records_of(pages: RangeInclusive<usize>, records: &[RunRecord]) -> &[RunRecord] {
    let from = records.partition_point(|record| page_of(record) < *pages.start());
    let to = records.partition_point(|record| page_of(record) <= *pages.end());
    &records[from..to.max(from)]
}

fn page_of(record: &RunRecord) -> usize {
    Map::place(record.lba).0
}

/// What records of a page come to, oldest first, as records of one run. The page has so many blocks.
pub(crate) fn merge<'a>(
    records: impl Iterator<Item = &'a RunRecord>,
    blocks: u64,
) -> Vec<RunRecord> {
    let mut newest = BTreeMap::new();
    for record in records {
        if record.is_page_gone() {
            let Entry { at: location, crc } = Entry::UNMAPPED;
            let gone = |at| RunRecord { lba: Lba::new(at), birth: 0, location, crc };
            let first = record.lba.raw();
            newest.extend((first..first + blocks).map(|at| (at, gone(at))));
        } else {
            newest.insert(record.lba.raw(), *record);
        }
    }
    newest.into_values().collect()
}

/// Applies records of a member to its images, which ascend; its first page has key `first`.
pub(crate) fn apply_all(records: &[RunRecord], images: &mut [Image], first: usize, counted: bool) {
    for records in records.chunk_by(|a, b| page_of(a) == page_of(b)) {
        let key = first + page_of(&records[0]);
        // Most often all pages are read.
        let near = images.first().and_then(|image| key.checked_sub(image.key));
        let near = near.filter(|at| images.get(*at).is_some_and(|image| image.key == key));
        let found = near.or_else(|| images.binary_search_by_key(&key, |image| image.key).ok());
        let Some(Image { entries, replaced, in_runs, .. }) = found.map(|at| &mut images[at]) else {
            continue;
        };
        let old = |at, entry: Entry| {
            replaced.extend((!counted && entry.at.is_block()).then_some((at, entry.at)));
        };
        *in_runs |= apply(records, entries.get_or_insert_with(blank_entries), old);
    }
}

/// Applies records of a page; `old` gets what each one replaces, and at which entry. Whether there was any.
fn apply(records: &[RunRecord], entries: &mut Entries, mut old: impl FnMut(usize, Entry)) -> bool {
    for record in records {
        let at = Map::place(record.lba).1;
        if record.is_page_gone() {
            for (at, entry) in entries.iter_mut().enumerate() {
                old(at, std::mem::replace(entry, Entry::UNMAPPED));
            }
        } else {
            let new = Entry { at: record.location, crc: record.crc };
            let before = std::mem::replace(&mut entries[at], new);
            if before != new {
                old(at, before);
            }
        }
    }
    !records.is_empty()
}
