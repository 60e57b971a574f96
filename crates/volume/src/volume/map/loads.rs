//! Reading map pages when they are first needed, or before (`crate::map::loads`).

use std::ops::Range;

use onefold_format::volume::RunRecord;
use onefold_units::convert::index;
use onefold_units::{Location, Nanos};

use crate::io::{Buffer, IoFailed, IoKind};
use crate::limits::BLOCK;
use crate::map::images::{Image, apply_all, merge, records_of};
use crate::map::loads::{
    BACKGROUND_BLOCKS, DAMAGED_MIN, Load, Part, READ_BLOCKS_MAX, Read, damaged_until,
};
use crate::map::page::{PAGE_ENTRIES_U64, first_lba};
use crate::map::slices::Slice;
use crate::map::{Map, Ready};
use crate::pending::Purpose;
use crate::volume::Volume;

/// Blocks between two that are needed, at most, for which they are read at once: 32 KiB take no longer than a request.
const GAP_BLOCKS_MAX: u32 = 8;

impl Volume {
    /// Makes room for some more pages in memory. `false` if other pages have to stay; a checkpoint makes room then.
    pub(crate) fn make_room(&mut self, pages: usize) -> bool {
        while self.map.resident() + self.faults.count() + pages > self.options.map_pages {
            if !self.map.evict(self.checkpoint.committed()) {
                // Where pages that are being read take all the memory, a checkpoint would change nothing.
                if self.map.resident() > 0 {
                    self.checkpoint.want();
                }
                return false;
            }
            self.stats.map_evictions += 1;
        }
        true
    }

    /// Begins to read a page that is missing. Does nothing if there is no room for it; a checkpoint makes some.
    pub(crate) fn load_page(&mut self, key: usize) {
        // What changed stays in memory in a volume that is frozen or stalls; reads go on with a page more than the limit.
        if !self.make_room(1) && self.frozen.is_none() && self.stalled.is_none() {
            return;
        }
        self.stats.map_faults += 1;
        self.load_pages(&[key], false);
    }

    /// Begins to read pages that are missing, for which there is room.
    pub(crate) fn load_pages(&mut self, keys: &[usize], background: bool) {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let slices = self.slices_of(&keys);
        let mut load = Load { images: Vec::new(), slices, missing: 0 };
        let mut parts = Vec::new();
        for key in keys {
            let image = self.map.image(key);
            let at = load.images.len();
            let lost = self.is_lost(image);
            if image.page.is_block() && !lost {
                parts.push((image.page, Part::Page(at)));
                parts.push((image.sums, Part::Sums(at)));
            }
            load.images.push(if lost { Image::lost(key) } else { Image::of(key, image) });
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
            b.raw() - a.raw() <= 1 + GAP_BLOCKS_MAX
                && self.layout.segment_of(*a) == self.layout.segment_of(*b)
        };
        let runs: Vec<Vec<_>> = parts.chunk_by(together).map(<[_]>::to_vec).collect();
        for parts in runs {
            self.read_parts(number, parts, background);
        }
        self.read_waiting();
    }

    /// The blocks of runs that may have records of pages, which ascend.
    fn slices_of(&self, keys: &[usize]) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        let (mut members, mut pages) = (0, Vec::new());
        for run in &self.checkpoint.runs().list {
            if run.members != members {
                members = run.members;
                let places = keys.iter().map(|key| Map::of_key(*key));
                pages = places
                    .filter(|(slot, _)| members >> slot & 1 == 1)
                    .map(|(_, page)| page)
                    .collect();
                pages.sort_unstable();
            }
            slices.extend(Slice::of_run(run, &pages));
        }
        slices
    }

    /// Reads parts that lie side by side in as few requests as may be.
    fn read_parts(&mut self, load: u64, mut parts: Vec<(Location, Part)>, background: bool) {
        while let Some((at, _)) = parts.first().copied() {
            let end = at.raw() + READ_BLOCKS_MAX;
            let rest = parts.split_off(parts.partition_point(|(at, _)| at.raw() < end));
            let read = Read { load, parts, background };
            let (number, blocks) = (self.faults.number(), read.blocks());
            self.faults.reads.insert(number, read);
            if background {
                self.faults.waiting.push_back(number);
            } else {
                self.ask(IoKind::Read, Purpose::Load(number), at, blocks);
            }
            parts = rest;
        }
    }

    /// Asks for what is read in the background, as much as may be under way.
    fn read_waiting(&mut self) {
        while self.faults.requests < self.options.preload
            && self.faults.blocks < BACKGROUND_BLOCKS
            && let Some(number) = self.faults.waiting.pop_front()
        {
            let read = &self.faults.reads[&number];
            let (at, blocks) = (read.first(), read.blocks());
            self.faults.requests += 1;
            self.faults.blocks += blocks;
            self.ask(IoKind::Read, Purpose::Load(number), at, blocks);
        }
    }

    /// Parts of pages were read. Where a request for several blocks failed, each block is asked for by itself: one that is
    /// bad takes no other with it.
    pub(crate) fn load_over(&mut self, number: u64, buffer: Buffer, result: Result<(), IoFailed>) {
        let read = self.faults.reads.remove(&number).expect("a request that is under way");
        if read.background {
            self.faults.requests -= 1;
            self.faults.blocks -= read.blocks();
        }
        if result.is_err() && read.blocks() > 1 {
            let blocks: Vec<Vec<_>> =
                read.parts.chunk_by(|(a, _), (b, _)| a == b).map(<[_]>::to_vec).collect();
            for parts in blocks {
                self.read_parts(read.load, parts, read.background);
            }
            self.read_waiting();
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
        if read.blocks() == READ_BLOCKS_MAX {
            self.pending.keep_spare(buffer);
        }
        load.missing -= read.parts.len();
        if load.missing == 0 {
            self.end_load(read.load);
        }
        self.read_waiting();
        if self.faults.reads.is_empty() {
            self.pending.drop_spare();
        }
    }

    /// All blocks of a load are there, or failed.
    fn end_load(&mut self, number: u64) {
        let Load { mut images, slices, .. } =
            self.faults.loads.remove(&number).expect("pages that are being read");
        for slot in self.family.slots() {
            let Range { start: first, end } = self.map.keys_of(slot);
            let from = images.partition_point(|image| image.key < first);
            let to = images.partition_point(|image| image.key < end);
            let own = &mut images[from..to];
            for slice in slices.iter().filter(|slice| slice.members >> slot & 1 == 1) {
                if slice.failed {
                    let hit = |image: &&mut Image| slice.pages.contains(&(image.key - first));
                    own.iter_mut().filter(hit).for_each(|image| {
                        (image.failed, image.untold) = (true, true);
                    });
                }
                apply_all(&slice.records, own, first, slice.counted);
            }
            for (_, recovered) in self.recovered.iter().filter(|(of, _)| *of == slot) {
                let pages = own.first().zip(own.last()).map(|(a, b)| a.key - first..=b.key - first);
                let records = pages.map_or(&[][..], |pages| records_of(pages, recovered));
                apply_all(records, own, first, false);
            }
        }
        for image in images {
            let told = (image.failed && !image.untold).then(|| self.merge_told(image.key, &slices));
            self.end_page(image, told);
        }
    }

    /// What is known of a page without its image.
    fn merge_told(&self, key: usize, slices: &[Slice]) -> Vec<RunRecord> {
        let (slot, page) = Map::of_key(key);
        let of_runs = slices.iter().filter(|slice| slice.members >> slot & 1 == 1);
        let recovered = self.recovered.iter().filter(|(of, _)| *of == slot);
        let all = of_runs.map(|slice| &slice.records).chain(recovered.map(|(_, records)| records));
        let blocks = self.family.of(slot).blocks.saturating_sub(first_lba(page).raw());
        merge(all.flat_map(|all| records_of(page..=page, all)), blocks.min(PAGE_ENTRIES_U64))
    }

    /// Pages that could not be read are read again when they are needed, after some time: some errors pass.
    pub(crate) fn step_damaged(&mut self) {
        for (key, (since, failures)) in &self.faults.damaged {
            if self.now >= damaged_until(*since, *failures) {
                self.map.forget_damage(*key);
            }
        }
    }

    /// Pages that could not be read, nor what runs have of them.
    pub(crate) fn unread_pages(&self) -> impl Iterator<Item = usize> + '_ {
        let damaged = self.faults.damaged.keys().copied();
        let waits = |key: &usize| !matches!(self.map.ready(*key), Ready::Yes | Ready::Empty);
        damaged.filter(move |key| waits(key) && self.faults.told(*key).is_none())
    }

    /// When the first page of these that cannot be read may be read again.
    pub(crate) fn damage_deadline(&self, keys: Range<usize>) -> Option<Nanos> {
        let damaged = self.faults.damaged.range(keys).map(|(_, (since, n))| (*since, *n));
        let until = damaged.map(|(since, failures)| damaged_until(since, failures));
        until.filter(|until| *until > self.now).min()
    }

    /// A page that could not be read is read again when it is needed next. Whether that is an error for the host, because it waited for this page:
    /// another request is no part of it.
    pub(crate) fn tells_damage(&mut self, key: usize) -> bool {
        self.map.forget_damage(key);
        let since = self.faults.damaged.get(&key).map_or(self.now, |(since, _)| *since);
        self.now < since + DAMAGED_MIN
    }

    fn end_page(&mut self, mut image: Image, told: Option<Vec<RunRecord>>) {
        let key = image.key;
        self.faults.keys.remove(&key);
        self.faults.told.remove(&key);
        self.faults.told.extend(told.map(|told| (key, told)));
        if image.failed {
            self.map.fail_load(key);
            let failures = self.faults.damaged.get(&key).map_or(0, |(_, failures)| *failures);
            self.faults.damaged.insert(key, (self.now, failures + 1));
            self.stats.crc_errors += 1;
            return;
        }
        self.faults.damaged.remove(&key);
        self.map.end_load(key, image.take_entries(), image.in_runs);
        if let Some(number) = self.checkpoint.keeps(key) {
            self.map.keep(key, number);
        }
        self.note_replaced(key, image.replaced);
    }
}
