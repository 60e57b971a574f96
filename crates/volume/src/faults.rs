//! Reading map pages when they are first needed, or before.
//!
//! A page is made from its image and from its slice of each run, oldest first (`crate::map`, invariant 1). Pages that are
//! asked for together are read together: what lies side by side is one request, and a block of a run is read once for all
//! pages that have records in it.

use std::collections::{BTreeMap, BTreeSet};

use onefold_format::checksum;
use onefold_format::volume::{PAGE_ENTRIES, RunBlock, RunRecord, decode_page};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Lba, Location};

use crate::counting::Replaced;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::log::BLOCK;
use crate::map::Map;
use crate::page::{Entries, Entry, blank_entries};
use crate::pending::Purpose;
use crate::runs::Run;
use crate::volume::Volume;

/// Blocks that are read at once, at most: 1 MiB.
const READ_BLOCKS_MAX: u32 = 256;

/// A page that is being read.
#[derive(Debug)]
struct Image {
    key: usize,
    /// As far as the image is there.
    entries: Entries,
    page_crc: u32,
    sums_crc: u32,
    failed: bool,
}

/// A block of a run with records of pages that are being read.
#[derive(Debug)]
struct Slice {
    run: u64,
    members: u64,
    counted: bool,
    at: Location,
    /// The pages that may have records in it, as members count them.
    pages: std::ops::RangeInclusive<usize>,
    records: Vec<RunRecord>,
    /// Records before this one were looked for already.
    next: usize,
    failed: bool,
}

/// Pages that are read together.
#[derive(Debug)]
struct Load {
    images: Vec<Image>,
    /// Oldest run first, and ascending.
    slices: Vec<Slice>,
    /// Blocks that are not there yet.
    missing: usize,
}

/// What a block is for, by place in its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Page(usize),
    Sums(usize),
    Slice(usize),
}

/// A request: the load it is for, and its blocks, ascending.
#[derive(Debug)]
struct Read {
    load: u64,
    parts: Vec<(Location, Part)>,
}

impl Read {
    fn first(&self) -> Location {
        self.parts[0].0
    }

    /// Blocks from the first to the last.
    fn blocks(&self) -> u32 {
        self.parts.last().map_or(1, |(at, _)| at.raw() - self.first().raw() + 1)
    }
}

/// What is being read.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    keys: BTreeSet<usize>,
    loads: BTreeMap<u64, Load>,
    reads: BTreeMap<u64, Read>,
    /// The next load or read.
    next: u64,
}

impl Faults {
    /// Whether a page of a member is being read.
    pub(crate) fn reads(&self, keys: std::ops::Range<usize>) -> bool {
        self.keys.range(keys).next().is_some()
    }

    /// Pages that are being read.
    pub(crate) fn count(&self) -> usize {
        self.keys.len()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Volume {
    /// Makes room for some more pages in memory. `false` if other pages have to stay; a checkpoint makes room then.
    pub(crate) fn make_room(&mut self, pages: usize) -> bool {
        while self.map.resident() + self.faults.count() + pages > self.options.map_pages {
            if !self.map.evict(self.checkpoint.committed()) {
                self.checkpoint.want();
                return false;
            }
            self.stats.map_evictions += 1;
        }
        true
    }

    /// Begins to read a page that is missing. Does nothing if there is no room for it; a checkpoint makes some.
    pub(crate) fn load_page(&mut self, key: usize) {
        // What changed stays in memory for ever in a frozen volume; reads go on with a page more than the limit.
        if !self.make_room(1) && self.frozen.is_none() {
            return;
        }
        self.stats.map_faults += 1;
        self.load_pages(&[key]);
    }

    /// Begins to read pages that are missing, for which there is room.
    pub(crate) fn load_pages(&mut self, keys: &[usize]) {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let mut load = Load { images: Vec::new(), slices: self.slices_of(&keys), missing: 0 };
        let mut parts = Vec::new();
        for key in keys {
            let image = self.map.image(key);
            let at = load.images.len();
            if image.page.is_block() {
                parts.push((image.page, Part::Page(at)));
                parts.push((image.sums, Part::Sums(at)));
            }
            let (page_crc, sums_crc) = (image.page_crc, image.sums_crc);
            let entries = blank_entries();
            load.images.push(Image { key, entries, page_crc, sums_crc, failed: false });
            self.map.begin_load(key);
            self.faults.keys.insert(key);
        }
        parts.extend(load.slices.iter().enumerate().map(|(n, slice)| (slice.at, Part::Slice(n))));
        parts.sort_unstable();
        for (at, _) in &parts {
            self.segments.pin(self.layout.segment_of(*at));
        }
        load.missing = parts.len();
        let number = self.faults.number();
        let nothing = parts.is_empty();
        self.faults.loads.insert(number, load);
        if nothing {
            self.end_load(number);
        }
        let together = |(a, _): &(Location, Part), (b, _): &(Location, Part)| {
            b.raw() - a.raw() <= 1 && self.layout.segment_of(*a) == self.layout.segment_of(*b)
        };
        let runs: Vec<Vec<_>> = parts.chunk_by(together).map(<[_]>::to_vec).collect();
        for parts in runs {
            self.read_parts(number, parts);
        }
    }

    /// The blocks of runs that may have records of pages.
    fn slices_of(&self, keys: &[usize]) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        for run in &self.checkpoint.runs().list {
            let begin = slices.len();
            for key in keys {
                let (slot, page) = self.map.of_key(*key);
                if run.members >> slot & 1 == 0 {
                    continue;
                }
                for at in run.blocks_of(page) {
                    let same = slices[begin..].iter_mut().rev().find(|slice| slice.at == at);
                    if let Some(slice) = same {
                        let (first, last) = (*slice.pages.start(), *slice.pages.end());
                        slice.pages = first.min(page)..=last.max(page);
                    } else {
                        slices.push(Slice::of(run, at, page));
                    }
                }
            }
            slices[begin..].sort_by_key(|slice| *slice.pages.start());
        }
        slices
    }

    /// Reads parts that lie side by side in as few requests as may be.
    fn read_parts(&mut self, load: u64, mut parts: Vec<(Location, Part)>) {
        while let Some((at, _)) = parts.first().copied() {
            let end = at.raw() + READ_BLOCKS_MAX;
            let rest = parts.split_off(parts.partition_point(|(at, _)| at.raw() < end));
            let read = Read { load, parts };
            let (number, blocks) = (self.faults.number(), read.blocks());
            self.faults.reads.insert(number, read);
            self.ask(IoKind::Read, Purpose::Load(number), at, blocks);
            parts = rest;
        }
    }

    /// Parts of pages were read. Where a request for several blocks failed, each block is asked for by itself: one that is
    /// bad takes no other with it.
    pub(crate) fn load_over(&mut self, number: u64, buffer: &Buffer, result: Result<(), IoFailed>) {
        let read = self.faults.reads.remove(&number).expect("a request that is under way");
        if result.is_err() && read.blocks() > 1 {
            let blocks: Vec<Vec<_>> =
                read.parts.chunk_by(|(a, _), (b, _)| a == b).map(<[_]>::to_vec).collect();
            for parts in blocks {
                self.read_parts(read.load, parts);
            }
            return;
        }
        let uuid = self.uuid;
        let load = self.faults.loads.get_mut(&read.load).expect("pages that are being read");
        for (at, part) in &read.parts {
            let from = index(at.raw() - read.first().raw()) * BLOCK;
            let bytes = buffer.bytes().get(from..from + BLOCK).filter(|_| result.is_ok());
            load.take(&uuid, *at, *part, bytes.unwrap_or_default());
            self.segments.unpin(self.layout.segment_of(*at));
        }
        load.missing -= read.parts.len();
        if load.missing == 0 {
            self.end_load(read.load);
        }
    }

    /// All blocks of a load are there, or failed.
    fn end_load(&mut self, number: u64) {
        let Load { images, mut slices, .. } =
            self.faults.loads.remove(&number).expect("pages that are being read");
        for image in images {
            self.end_page(image, &mut slices);
        }
    }

    fn end_page(&mut self, image: Image, slices: &mut [Slice]) {
        let key = image.key;
        self.faults.keys.remove(&key);
        let (slot, page) = self.map.of_key(key);
        let own = |slice: &Slice| slice.members >> slot & 1 == 1 && slice.pages.contains(&page);
        if image.failed || slices.iter().any(|slice| own(slice) && slice.failed) {
            self.map.fail_load(key);
            self.stats.crc_errors += 1;
            return;
        }
        let mut entries = image.entries;
        let mut replaced: Vec<Replaced> = Vec::new();
        let mut in_runs = false;
        for slice in slices.iter_mut().filter(|slice| own(slice)) {
            let counted = slice.counted;
            let old = |at, entry: Entry| {
                replaced.extend((!counted && entry.at.is_block()).then_some((at, entry.at)));
            };
            in_runs |= apply(slice.records_of(page), &mut entries, old);
        }
        for (_, recovered) in self.recovered.iter().filter(|(of, _)| *of == slot) {
            let old = |at, entry: Entry| {
                replaced.extend(entry.at.is_block().then_some((at, entry.at)));
            };
            in_runs |= apply(records_of(page, recovered), &mut entries, old);
        }
        self.map.end_load(key, entries, in_runs);
        if let Some(number) = self.checkpoint.keeps(key) {
            self.map.keep(key, number);
        }
        self.note_replaced(key, replaced);
    }
}

impl Slice {
    fn of(run: &Run, at: Location, page: usize) -> Self {
        let Run { number, members, counted, .. } = *run;
        let (pages, records) = (page..=page, Vec::new());
        Self { run: number, members, counted, at, pages, records, next: 0, failed: false }
    }

    /// The records of a page. Fast if pages are asked for in their order.
    fn records_of(&mut self, page: usize) -> &[RunRecord] {
        let page_of = |record: &RunRecord| Map::place(record.lba).0;
        if self.next > 0 && page_of(&self.records[self.next - 1]) >= page {
            self.next = 0;
        }
        let rest = &self.records[self.next..];
        let from = self.next + rest.iter().take_while(|record| page_of(record) < page).count();
        let rest = &self.records[from..];
        self.next = from + rest.iter().take_while(|record| page_of(record) == page).count();
        &self.records[from..self.next]
    }
}

impl Load {
    /// Takes the bytes of a block; none if it could not be read.
    fn take(&mut self, uuid: &[u8; 16], at: Location, part: Part, bytes: &[u8]) {
        match part {
            Part::Page(n) => {
                let image = &mut self.images[n];
                let place = |entry: &mut Entry, word| entry.at = Location::new(word);
                image.failed |= !take_words(bytes, image.page_crc, &mut image.entries, place);
            }
            Part::Sums(n) => {
                let image = &mut self.images[n];
                let sum = |entry: &mut Entry, word| entry.crc = word;
                image.failed |= !take_words(bytes, image.sums_crc, &mut image.entries, sum);
            }
            Part::Slice(n) => {
                let slice = &mut self.slices[n];
                match RunBlock::decode(bytes, uuid, at.raw().into()) {
                    Ok(block) if block.run == slice.run => slice.records = block.records,
                    _ => slice.failed = true,
                }
            }
        }
    }
}

/// Sets what one of the two blocks of an image says of each entry. `false` if it is damaged.
fn take_words(
    bytes: &[u8],
    crc: u32,
    entries: &mut Entries,
    set: impl Fn(&mut Entry, u32),
) -> bool {
    let mut words = [0; PAGE_ENTRIES];
    if checksum(bytes) != crc || decode_page(bytes, &mut words).is_err() {
        return false;
    }
    for (entry, word) in entries.iter_mut().zip(words) {
        set(entry, word);
    }
    true
}

/// The records of a page, of those of a run.
fn records_of(page: usize, records: &[RunRecord]) -> &[RunRecord] {
    let page_of = |record: &RunRecord| Map::place(record.lba).0;
    let from = records.partition_point(|record| page_of(record) < page);
    let len = records[from..].partition_point(|record| page_of(record) == page);
    &records[from..from + len]
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

/// The first block of a page of a member.
pub(crate) fn first_lba(page: usize) -> Lba {
    Lba::new(u64_from(page) * u64_from(PAGE_ENTRIES))
}
