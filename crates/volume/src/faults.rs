//! Reading map pages when they are first needed.
//!
//! A page is made from its image and from its slice of each run, oldest first (`crate::map`, invariant 1).

use std::collections::BTreeMap;

use onefold_format::checksum;
use onefold_format::volume::{PAGE_ENTRIES, RunBlock, RunRecord, decode_page};
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location};

use crate::counting::Replaced;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::map::Map;
use crate::page::{Entries, Entry, blank_entries};
use crate::pending::Purpose;
use crate::runs::Run;
use crate::volume::Volume;

#[derive(Debug)]
enum Part {
    Page(u32),
    Sums(u32),
    /// A block of the run of this number.
    Run(u64),
}

#[derive(Debug)]
enum Content {
    Missing,
    Words(Box<[u32; PAGE_ENTRIES]>),
    Records(Vec<RunRecord>),
}

/// A page that is being read.
#[derive(Debug)]
struct Load {
    parts: Vec<(Part, Location, Content)>,
    missing: usize,
    failed: bool,
}

/// The pages that are being read, by key.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    loads: BTreeMap<usize, Load>,
}

impl Faults {
    /// Whether a page of a member is being read.
    pub(crate) fn reads(&self, keys: std::ops::Range<usize>) -> bool {
        self.loads.range(keys).next().is_some()
    }
}

impl Volume {
    /// Makes room for some more pages in memory. `false` if other pages have to stay; a checkpoint makes room then.
    pub(crate) fn make_room(&mut self, pages: usize) -> bool {
        while self.map.resident() + self.faults.loads.len() + pages > self.options.map_pages {
            if !self.map.evict(self.checkpoint.committed()) {
                self.checkpoint.want();
                return false;
            }
            self.stats.map_evictions += 1;
        }
        true
    }

    /// Begins to read a page that is missing. Does nothing if there is no room for it; a checkpoint makes some.
    pub(crate) fn load_page(&mut self, page: usize) {
        // What changed stays in memory for ever in a frozen volume; reads go on with a page more than the limit.
        if !self.make_room(1) && self.frozen.is_none() {
            return;
        }
        let load = Load { parts: self.parts_of(page), missing: 0, failed: false };
        self.map.begin_load(page);
        self.stats.map_faults += 1;
        let places: Vec<_> = load.parts.iter().map(|(_, at, _)| *at).collect();
        self.faults.loads.insert(page, Load { missing: places.len(), ..load });
        for (part, at) in places.iter().enumerate() {
            self.segments.pin(self.layout.segment_of(*at));
            self.ask(IoKind::Read, Purpose::Load { page, part }, *at, 1);
        }
        if places.is_empty() {
            self.end_load(page);
        }
    }

    fn parts_of(&self, page: usize) -> Vec<(Part, Location, Content)> {
        let image = self.map.image(page);
        let mut parts = Vec::new();
        if image.page.is_block() {
            parts.push((Part::Page(image.page_crc), image.page, Content::Missing));
            parts.push((Part::Sums(image.sums_crc), image.sums, Content::Missing));
        }
        let (slot, page) = self.map.of_key(page);
        let own = |run: &&Run| run.members >> slot & 1 == 1;
        for run in self.checkpoint.runs().list.iter().filter(own) {
            let blocks = run.blocks_of(page);
            parts.extend(blocks.map(|at| (Part::Run(run.number), at, Content::Missing)));
        }
        parts
    }

    /// One of the parts of a page was read.
    pub(crate) fn load_over(
        &mut self,
        page: usize,
        part: usize,
        buffer: &Buffer,
        result: Result<(), IoFailed>,
    ) {
        let uuid = self.uuid;
        let load = self.faults.loads.get_mut(&page).expect("a page that is being read");
        let (what, at, content) = &mut load.parts[part];
        match result.ok().and_then(|()| decode(&uuid, what, *at, buffer.bytes())) {
            Some(decoded) => *content = decoded,
            None => load.failed = true,
        }
        load.missing -= 1;
        let (over, at) = (load.missing == 0, *at);
        self.segments.unpin(self.layout.segment_of(at));
        if over {
            self.end_load(page);
        }
    }

    fn end_load(&mut self, page: usize) {
        let load = self.faults.loads.remove(&page).expect("a page that is being read");
        if load.failed {
            self.map.fail_load(page);
            self.stats.crc_errors += 1;
            return;
        }
        let (slot, of_member) = self.map.of_key(page);
        let mut entries = blank_entries();
        let mut replaced: Vec<Replaced> = Vec::new();
        let mut in_runs = false;
        for (part, _, content) in &load.parts {
            match (part, content) {
                (Part::Page(_), Content::Words(words)) => {
                    for (entry, word) in entries.iter_mut().zip(words.iter()) {
                        entry.at = Location::new(*word);
                    }
                }
                (Part::Sums(_), Content::Words(words)) => {
                    for (entry, word) in entries.iter_mut().zip(words.iter()) {
                        entry.crc = *word;
                    }
                }
                (Part::Run(number), Content::Records(records)) => {
                    let counted = self.checkpoint.runs().of(*number).is_none_or(|run| run.counted);
                    let mut old = |at: usize, entry: Entry| {
                        if !counted && entry.at.is_block() {
                            replaced.push((at, entry.at));
                        }
                    };
                    in_runs |= apply(of_member, records, &mut entries, &mut old);
                }
                _ => unreachable!("each part was decoded as what it is"),
            }
        }
        for (_, recovered) in self.recovered.iter().filter(|(of, _)| *of == slot) {
            let old = |at, entry: Entry| {
                replaced.extend(entry.at.is_block().then_some((at, entry.at)));
            };
            in_runs |= apply(of_member, recovered, &mut entries, old);
        }
        self.map.end_load(page, entries, in_runs);
        if let Some(number) = self.checkpoint.keeps(page) {
            self.map.keep(page, number);
        }
        self.note_replaced(page, replaced);
    }
}

fn decode(uuid: &[u8; 16], what: &Part, at: Location, bytes: &[u8]) -> Option<Content> {
    match what {
        Part::Page(crc) | Part::Sums(crc) => {
            if checksum(bytes) != *crc {
                return None;
            }
            let mut words = Box::new([0; PAGE_ENTRIES]);
            decode_page(bytes, &mut words).ok()?;
            Some(Content::Words(words))
        }
        Part::Run(number) => {
            let block = RunBlock::decode(bytes, uuid, at.raw().into()).ok()?;
            (block.run == *number).then_some(Content::Records(block.records))
        }
    }
}

/// Applies the records of a page of a member; `old` gets what each one replaces, and at which entry. Whether there was any.
pub(crate) fn apply(
    page: usize,
    records: &[RunRecord],
    entries: &mut Entries,
    mut old: impl FnMut(usize, Entry),
) -> bool {
    let mut any = false;
    let from = records.partition_point(|record| Map::place(record.lba).0 < page);
    for record in &records[from..] {
        let (of, at) = Map::place(record.lba);
        if of != page {
            break;
        }
        any = true;
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
    any
}

/// The first block of a page of a member.
pub(crate) fn first_lba(page: usize) -> Lba {
    Lba::new(u64_from(page) * u64_from(PAGE_ENTRIES))
}
