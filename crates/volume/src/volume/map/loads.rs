//! Reading map pages when they are first needed, or before (`crate::map::loads`).

use std::ops::Range;

use onefold_format::volume::RunRecord;
use onefold_units::Nanos;

use crate::io::{Buffer, IoFailed, IoKind};
use crate::map::images::{Image, apply_all, merge, records_of};
use crate::map::loads::Wanted;
use crate::map::page::{PAGE_ENTRIES_U64, first_lba};
use crate::map::slices::Slice;
use crate::map::{Map, Ready};
use crate::pending::Purpose;
use crate::volume::Volume;

impl Volume {
    /// Makes room for some more pages in memory. `false` if other pages have to stay; a checkpoint makes room then.
    pub(crate) fn make_room(&mut self, pages: usize) -> bool {
        while self.map.resident() + self.loads.count() + pages > self.options.map_pages {
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
        if !self.make_room(1) && self.frozen.is_none() && self.stall.why().is_none() {
            return;
        }
        self.stats.map_faults += 1;
        self.load_pages(&[key], false);
    }

    /// Begins to read pages that are missing, for which there is room.
    pub(crate) fn load_pages(&mut self, keys: &[usize], background: bool) {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let slices = self.checkpoint.slices_of(&keys);
        let mut images = Vec::new();
        for key in keys {
            let image = self.map.image(key);
            let lost = self.is_lost(image);
            let places = (image.page.is_block() && !lost).then_some([image.page, image.sums]);
            let image = if lost { Image::lost(key) } else { Image::of(key, image) };
            images.push((image, places));
            self.map.begin_load(key);
        }
        let (load, parts) = self.loads.begin(images, slices);
        for at in parts.places() {
            self.segments.pin(self.layout.segment_of(at));
        }
        if parts.is_empty() {
            self.end_load(load);
        }
        let layout = &self.layout;
        let is_one = |a, b| layout.segment_of(a) == layout.segment_of(b);
        let wanted = self.loads.read(load, &parts, background, is_one);
        self.ask_for(wanted);
    }

    /// Asks for parts of pages, and for what is read in the background, as much as may be under way.
    fn ask_for(&mut self, wanted: Vec<Wanted>) {
        for Wanted { number, at, blocks } in wanted {
            self.ask(IoKind::Read, Purpose::Load(number), at, blocks);
        }
        while let Some(wanted) = self.loads.next_waiting(self.options.preload) {
            let Wanted { number, at, blocks } = wanted;
            self.ask(IoKind::Read, Purpose::Load(number), at, blocks);
        }
    }

    /// Parts of pages were read. Where a request for several blocks failed, each block is asked for by itself: one that is
    /// bad takes no other with it.
    pub(crate) fn load_over(&mut self, number: u64, buffer: Buffer, result: Result<(), IoFailed>) {
        let read = self.loads.take(number);
        if result.is_err() && read.blocks() > 1 {
            let wanted = self.loads.read_apart(&read);
            return self.ask_for(wanted);
        }
        let bytes = result.is_ok().then(|| buffer.bytes());
        let over = self.loads.fill(&self.label.uuid, &read, bytes);
        for at in read.places() {
            self.segments.unpin(self.layout.segment_of(at));
        }
        if read.is_long() {
            self.pending.keep_spare(buffer);
        }
        if let Some(load) = over {
            self.end_load(load);
        }
        self.ask_for(Vec::new());
        if self.loads.is_idle() {
            self.pending.drop_spare();
        }
    }

    /// All blocks of a load are there, or failed.
    fn end_load(&mut self, number: u64) {
        let (mut images, slices) = self.loads.end(number);
        for slot in self.members.slots() {
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
            for (_, recovered) in self.checkpoint.recovered().iter().filter(|(of, _)| *of == slot) {
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
        let recovered = self.checkpoint.recovered().iter().filter(|(of, _)| *of == slot);
        let all = of_runs.map(|slice| &slice.records).chain(recovered.map(|(_, records)| records));
        let blocks = self.members.of(slot).blocks.saturating_sub(first_lba(page).raw());
        merge(all.flat_map(|all| records_of(page..=page, all)), blocks.min(PAGE_ENTRIES_U64))
    }

    /// Pages that could not be read are read again when they are needed, after some time: some errors pass.
    pub(crate) fn step_damaged(&mut self) {
        for key in self.loads.due(self.now) {
            self.map.forget_damage(key);
        }
    }

    /// Pages that could not be read, nor what runs have of them.
    pub(crate) fn unread_pages(&self) -> impl Iterator<Item = usize> + '_ {
        let waits = |key: &usize| !matches!(self.map.ready(*key), Ready::Yes | Ready::Empty);
        self.loads.damaged().filter(move |key| waits(key) && self.loads.told(*key).is_none())
    }

    /// When the first page of these that cannot be read may be read again.
    pub(crate) fn damage_deadline(&self, keys: Range<usize>) -> Option<Nanos> {
        self.loads.deadline(keys, self.now)
    }

    /// A page that could not be read is read again when it is needed next. Whether that is an error for the host, because it waited for this page:
    /// another request is no part of it.
    pub(crate) fn tells_damage(&mut self, key: usize) -> bool {
        self.map.forget_damage(key);
        self.loads.tells_damage(key, self.now)
    }

    fn end_page(&mut self, mut image: Image, told: Option<Vec<RunRecord>>) {
        let key = image.key;
        self.loads.end_page(key, told);
        if image.failed {
            self.map.fail_load(key);
            self.loads.note_damage(key, self.now);
            self.stats.crc_errors += 1;
            return;
        }
        self.loads.forget_damage(key);
        self.map.end_load(key, image.take_entries(), image.in_runs);
        if let Some(number) = self.checkpoint.keeps(key) {
            self.map.keep(key, number);
        }
        self.note_replaced(key, image.replaced);
    }
}
