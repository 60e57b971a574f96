//! Reading map pages when they are first needed, or before.
//!
//! A page is made from its image and from its slice of each run, oldest first (`crate::map`, invariant 1). Pages that are
//! asked for together are read together: what lies side by side is one request, and a block of a run is read once for all
//! pages that have records in it.
//!
//! Pages that nobody waits for are read in the background: few of their requests are asked for at a time, so that a page that
//! somebody needs is read before the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use onefold_format::volume::RunRecord;
use onefold_units::convert::index;
use onefold_units::{Location, Nanos};

use crate::limits::BLOCK;
use crate::map::images::Image;
use crate::map::preload::Preload;
use crate::map::slices::Slice;

/// Blocks between two that are needed, at most, for which they are read at once: 32 KiB take no longer than a request.
const GAP_BLOCKS_MAX: u32 = 8;

/// Blocks that are read at once, at most: 1 MiB.
const READ_BLOCKS_MAX: u32 = 256;

/// Blocks that are being read in the background, at most, before more are asked for: 8 MiB.
const BACKGROUND_BLOCKS: u32 = 2048;

/// How long a page that cannot be read is an error for the host, and how long it is one for all others at most: until it is read again.
const DAMAGED_MIN: Nanos = Nanos::new(1_000_000_000);

const DAMAGED_MAX: Nanos = Nanos::new(60_000_000_000);

fn damaged_until(since: Nanos, failures: u32) -> Nanos {
    let doubled = DAMAGED_MIN.get() << (failures - 1).min(16);
    since + Nanos::new(doubled.min(DAMAGED_MAX.get()))
}

/// Pages that are read together.
#[derive(Debug)]
struct Load {
    /// By key, ascending.
    images: Vec<Image>,
    /// Oldest run first.
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

/// What is to be read of a load, ascending.
#[derive(Debug)]
pub(crate) struct Parts(Vec<(Location, Part)>);

impl Parts {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places of its blocks, one for each part.
    pub(crate) fn places(&self) -> impl Iterator<Item = Location> + '_ {
        self.0.iter().map(|(at, _)| *at)
    }
}

/// A request: the load it is for, and its blocks, ascending.
#[derive(Debug)]
pub(crate) struct Read {
    load: u64,
    parts: Vec<(Location, Part)>,
    background: bool,
}

impl Read {
    fn first(&self) -> Location {
        self.parts[0].0
    }

    /// Blocks from the first to the last.
    pub(crate) fn blocks(&self) -> u32 {
        self.parts.last().map_or(1, |(at, _)| at.raw() - self.first().raw() + 1)
    }

    /// The places of its blocks, one for each part.
    pub(crate) fn places(&self) -> impl Iterator<Item = Location> + '_ {
        self.parts.iter().map(|(at, _)| *at)
    }

    /// Whether it is as long as a request gets.
    pub(crate) fn is_long(&self) -> bool {
        self.blocks() == READ_BLOCKS_MAX
    }
}

/// A request to the backing for parts of pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Names it at its completion.
    pub(crate) number: u64,
    pub(crate) at: Location,
    pub(crate) blocks: u32,
}

/// What is being read.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    keys: BTreeSet<usize>,
    together: BTreeMap<u64, Load>,
    reads: BTreeMap<u64, Read>,
    /// Reads in the background that were not asked for yet, and how many are under way, with how many blocks.
    waiting: VecDeque<u64>,
    requests: u32,
    blocks: u32,
    /// What runs have of pages that could not be read, by key.
    told: BTreeMap<usize, Vec<RunRecord>>,
    /// Pages that could not be read: when each was read last, and how often.
    damaged: BTreeMap<usize, (Nanos, u32)>,
    /// The next load or read.
    next: u64,
    /// How far the map was read in the background.
    preload: Preload,
}

impl Loads {
    /// Whether a page of a member is being read.
    pub(crate) fn reads(&self, keys: Range<usize>) -> bool {
        self.keys.range(keys).next().is_some()
    }

    /// Pages that are being read.
    pub(crate) fn count(&self) -> usize {
        self.keys.len()
    }

    /// What runs have of a page that could not be read, if that could be.
    pub(crate) fn told(&self, key: usize) -> Option<&[RunRecord]> {
        self.told.get(&key).map(Vec::as_slice)
    }

    /// A page maps nothing any more, whether it can be read or not.
    pub(crate) fn forget(&mut self, key: usize) {
        self.damaged.remove(&key);
        self.told.remove(&key);
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Begins to read pages together: these images, in the order of keys, each with the places of its blocks if it is to be read, and these blocks of
    /// runs. Gives the number of the load, and what is to be read of it.
    pub(crate) fn begin(
        &mut self,
        images: Vec<(Image, Option<[Location; 2]>)>,
        slices: Vec<Slice>,
    ) -> (u64, Parts) {
        let mut parts = Vec::new();
        for (at, (image, places)) in images.iter().enumerate() {
            if let Some([page, sums]) = places {
                parts.push((*page, Part::Page(at)));
                parts.push((*sums, Part::Sums(at)));
            }
            self.keys.insert(image.key);
        }
        parts.extend(slices.iter().enumerate().map(|(n, slice)| (slice.at, Part::Slice(n))));
        parts.sort_unstable();
        let images = images.into_iter().map(|(image, _)| image).collect();
        let number = self.number();
        self.together.insert(number, Load { images, slices, missing: parts.len() });
        (number, Parts(parts))
    }

    /// Reads parts of a load in as few requests as may be: those side by side, in the same log segment, together. Gives the requests, but for those
    /// of the background ([`Loads::next_waiting`]).
    pub(crate) fn read(
        &mut self,
        load: u64,
        parts: &Parts,
        background: bool,
        is_one: impl Fn(Location, Location) -> bool,
    ) -> Vec<Wanted> {
        let together = |(a, _): &(Location, Part), (b, _): &(Location, Part)| {
            b.raw() - a.raw() <= 1 + GAP_BLOCKS_MAX && is_one(*a, *b)
        };
        let mut wanted = Vec::new();
        for parts in parts.0.chunk_by(together) {
            self.read_chunk((load, background), parts.to_vec(), &mut wanted);
        }
        wanted
    }

    /// Reads each block of a request that failed by itself: one that is bad takes no other with it.
    pub(crate) fn read_apart(&mut self, read: &Read) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for parts in read.parts.chunk_by(|(a, _), (b, _)| a == b) {
            self.read_chunk((read.load, read.background), parts.to_vec(), &mut wanted);
        }
        wanted
    }

    /// Reads parts that lie side by side.
    fn read_chunk(
        &mut self,
        (load, background): (u64, bool),
        mut parts: Vec<(Location, Part)>,
        wanted: &mut Vec<Wanted>,
    ) {
        while let Some((at, _)) = parts.first().copied() {
            let end = at.raw() + READ_BLOCKS_MAX;
            let rest = parts.split_off(parts.partition_point(|(at, _)| at.raw() < end));
            let read = Read { load, parts, background };
            let (number, blocks) = (self.number(), read.blocks());
            self.reads.insert(number, read);
            if background {
                self.waiting.push_back(number);
            } else {
                wanted.push(Wanted { number, at, blocks });
            }
            parts = rest;
        }
    }

    /// The next request of the background, if fewer than `most` are under way.
    pub(crate) fn next_waiting(&mut self, most: u32) -> Option<Wanted> {
        if self.requests >= most || self.blocks >= BACKGROUND_BLOCKS {
            return None;
        }
        let number = self.waiting.pop_front()?;
        let read = &self.reads[&number];
        let (at, blocks) = (read.first(), read.blocks());
        self.requests += 1;
        self.blocks += blocks;
        Some(Wanted { number, at, blocks })
    }

    /// A request is over.
    pub(crate) fn take(&mut self, number: u64) -> Read {
        let read = self.reads.remove(&number).expect("a request that is under way");
        if read.background {
            self.requests -= 1;
            self.blocks -= read.blocks();
        }
        read
    }

    /// What was read goes to the pages that it is of; `None`: it could not be read. Gives the number of the load if that was the last of it.
    pub(crate) fn fill(&mut self, uuid: &[u8; 16], read: &Read, all: Option<&[u8]>) -> Option<u64> {
        let load = self.together.get_mut(&read.load).expect("pages that are being read");
        for (at, part) in &read.parts {
            let from = index(at.raw() - read.first().raw()) * BLOCK;
            let bytes = all.and_then(|all| all.get(from..from + BLOCK));
            load.take(uuid, *at, *part, bytes.unwrap_or_default());
        }
        load.missing -= read.parts.len();
        (load.missing == 0).then_some(read.load)
    }

    /// All blocks of a load are there, or failed.
    pub(crate) fn end(&mut self, number: u64) -> (Vec<Image>, Vec<Slice>) {
        let Load { images, slices, .. } =
            self.together.remove(&number).expect("pages that are being read");
        (images, slices)
    }

    /// Whether nothing is being read, nor waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.reads.is_empty()
    }

    /// A page is through; `told` is what runs have of it if it could not be read.
    pub(crate) fn end_page(&mut self, key: usize, told: Option<Vec<RunRecord>>) {
        self.keys.remove(&key);
        self.told.remove(&key);
        self.told.extend(told.map(|told| (key, told)));
    }

    /// A page could not be read.
    pub(crate) fn note_damage(&mut self, key: usize, now: Nanos) {
        let failures = self.damaged.get(&key).map_or(0, |(_, failures)| *failures);
        self.damaged.insert(key, (now, failures + 1));
    }

    /// A page could be read.
    pub(crate) fn forget_damage(&mut self, key: usize) {
        self.damaged.remove(&key);
    }

    /// Pages that could not be read.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = usize> + '_ {
        self.damaged.keys().copied()
    }

    /// Those of them that may be read again.
    pub(crate) fn due(&self, now: Nanos) -> impl Iterator<Item = usize> + '_ {
        let due =
            self.damaged.iter().filter(move |(_, (since, n))| now >= damaged_until(*since, *n));
        due.map(|(key, _)| *key)
    }

    /// When the first of these that cannot be read may be read again.
    pub(crate) fn deadline(&self, keys: Range<usize>, now: Nanos) -> Option<Nanos> {
        let damaged = self.damaged.range(keys).map(|(_, (since, n))| damaged_until(*since, *n));
        damaged.filter(|until| *until > now).min()
    }

    /// Whether that a page could not be read is an error for the host that waited for it.
    pub(crate) fn tells_damage(&self, key: usize, now: Nanos) -> bool {
        let since = self.damaged.get(&key).map_or(now, |(since, _)| *since);
        now < since + DAMAGED_MIN
    }

    pub(crate) const fn preload(&self) -> &Preload {
        &self.preload
    }

    pub(crate) const fn preload_mut(&mut self) -> &mut Preload {
        &mut self.preload
    }
}

impl Load {
    /// Takes the bytes of a block; none if it could not be read.
    fn take(&mut self, uuid: &[u8; 16], at: Location, part: Part, bytes: &[u8]) {
        match part {
            Part::Page(n) => self.images[n].take_page(bytes),
            Part::Sums(n) => self.images[n].take_sums(bytes),
            Part::Slice(n) => self.slices[n].take(uuid, at, bytes),
        }
    }
}
