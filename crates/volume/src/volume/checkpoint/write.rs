//! Putting a checkpoint into the `meta` stream, block by block.

use onefold_format::checksum;
use onefold_format::volume::{
    BODY_PAYLOAD_BYTES, Body, BodyBlock, DIRECTORY_ENTRIES, DirectoryBlock, DirectoryEntry,
    DirectoryPlace, Member, MetaKind, MetaRecord, PAGE_ENTRIES, RUN_BLOCK_RECORDS,
    RUN_INDEX_ENTRIES, RunBlock, RunEntry, RunIndexBlock, encode_page,
};
use onefold_units::convert::{index, u32_from, u64_from};
use onefold_units::{Lba, Location, Seq};

use crate::checkpoint::write::describe_run;
use crate::checkpoint::{Phase, Work};
use crate::limits::BLOCK;
use crate::log::Stream;
use crate::map::Map;
use crate::map::page::{Entries, Page};
use crate::volume::Volume;

impl Volume {
    pub(super) fn put_meta(
        &mut self,
        work: &mut Work,
        kind: MetaKind,
        object: u64,
        bytes: &[u8],
    ) -> Location {
        let id = self.batch_with_room(Stream::Meta);
        let batch = self.log.batch_mut(id);
        let (at, slot) = (batch.next_location(), index(batch.records.blocks()));
        batch.records.meta.push(MetaRecord { object, kind, crc: checksum(bytes) });
        batch.block_mut(slot).copy_from_slice(bytes);
        self.gain(at);
        work.made.push(at);
        at
    }

    pub(super) fn meta_place(&mut self) -> Location {
        let id = self.batch_with_room(Stream::Meta);
        self.log.batch(id).next_location()
    }

    pub(super) fn write_page(&mut self, work: &mut Work) -> bool {
        let Some(keys) = work.pages.pop_front() else {
            work.phase = Phase::Directory;
            return true;
        };
        let page = Map::of_key(keys[0]).1;
        let entries = self.map.page_mut(keys[0]).and_then(Page::take_image);
        let image =
            entries.map_or(DirectoryEntry::ABSENT, |entries| self.put_image(work, page, &entries));
        for key in keys {
            let old = self.map.image(key);
            work.old_images.push((key, old));
            self.map.set_image(key, image, 0);
            if old.page.is_block() && !self.members.has_image(&self.map, page, old) {
                work.replaced.extend([old.page, old.sums]);
            }
        }
        true
    }

    fn put_image(&mut self, work: &mut Work, page: usize, entries: &Entries) -> DirectoryEntry {
        let mut block = [0; BLOCK];
        let mut words = [0; PAGE_ENTRIES];
        let mut put =
            |volume: &mut Self, kind, block: &mut [u8; BLOCK], words: &[u32; PAGE_ENTRIES]| {
                encode_page(words, block);
                (volume.put_meta(work, kind, u64_from(page), block), checksum(block))
            };
        words.iter_mut().zip(entries.iter()).for_each(|(word, entry)| *word = entry.at.raw());
        let (at, page_crc) = put(self, MetaKind::Page, &mut block, &words);
        words.iter_mut().zip(entries.iter()).for_each(|(word, entry)| *word = entry.crc);
        let (sums, sums_crc) = put(self, MetaKind::Sums, &mut block, &words);
        DirectoryEntry { page: at, page_crc, sums, sums_crc }
    }

    pub(super) fn write_directory(&mut self, work: &mut Work) -> bool {
        let Some((slot, at)) = work.directories.pop_front() else {
            work.phase = Phase::Run;
            return true;
        };
        let same = self.same_directory(work, slot, at);
        let place = same.unwrap_or_else(|| self.put_directory(work, slot, at));
        let old = std::mem::replace(&mut self.members.of_mut(slot).directory[at], place);
        work.old_directory.push((slot, at, old));
        if old.location.is_block() && !self.members.has_directory(at, old) {
            work.replaced.push(old.location);
        }
        true
    }

    /// The block of a directory that another member has, and that says the same.
    fn same_directory(&self, work: &Work, slot: usize, at: usize) -> Option<DirectoryPlace> {
        let other = self.members.others(slot).find(|other| {
            !work.directories.contains(&(*other, at))
                && self.map.directory_images(*other, at).eq(self.map.directory_images(slot, at))
        })?;
        Some(self.members.of(other).directory[at])
    }

    fn put_directory(&mut self, work: &mut Work, slot: usize, at: usize) -> DirectoryPlace {
        let mut entries = Box::new([DirectoryEntry::ABSENT; DIRECTORY_ENTRIES]);
        for (entry, image) in entries.iter_mut().zip(self.map.directory_images(slot, at)) {
            *entry = image;
        }
        let (seq, member) = (Seq::new(work.seq), self.members.of(slot).id);
        let directory = DirectoryBlock { seq, index: u32_from(at), member, entries };
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        directory.encode(&self.label.uuid, place.raw().into(), &mut block);
        let location = self.put_meta(work, MetaKind::Directory, u64_from(at), &block);
        DirectoryPlace { location, crc: checksum(&block) }
    }

    pub(super) fn write_run(&mut self, work: &mut Work) -> bool {
        let Some(new) = work.runs.get_mut(work.at) else {
            work.phase = Phase::Body;
            return true;
        };
        let rest = &new.records[new.written..];
        if rest.is_empty() {
            work.phase = Phase::Index;
            return true;
        }
        let records = rest[..rest.len().min(RUN_BLOCK_RECORDS)].to_vec();
        let (first, number) = (records[0].lba, new.run.number);
        new.written += records.len();
        let run = RunBlock { seq: Seq::new(work.seq), run: number, records };
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        run.encode(&self.label.uuid, place.raw().into(), &mut block);
        let at = self.put_meta(work, MetaKind::Run, number, &block);
        let run = &mut work.runs[work.at].run;
        run.blocks.push(at);
        run.index.push(first.raw());
        true
    }

    pub(super) fn write_index(&mut self, work: &mut Work) -> bool {
        let new = &mut work.runs[work.at];
        let rest = &new.run.index[new.index_written..];
        if rest.is_empty() {
            work.at += 1;
            work.phase = Phase::Run;
            return true;
        }
        let first: Vec<Lba> =
            rest.iter().take(RUN_INDEX_ENTRIES).map(|lba| Lba::new(*lba)).collect();
        let number = new.run.number;
        new.index_written += first.len();
        let index = RunIndexBlock { seq: Seq::new(work.seq), run: number, first };
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        index.encode(&self.label.uuid, place.raw().into(), &mut block);
        let at = self.put_meta(work, MetaKind::RunIndex, number, &block);
        work.runs[work.at].run.blocks.push(at);
        true
    }

    pub(super) fn write_body(&mut self, work: &mut Work) -> bool {
        if work.body.is_empty() {
            work.body = self.make_body(work).encode();
        }
        let done = work.body_blocks.len() * BODY_PAYLOAD_BYTES;
        if done >= work.body.len() {
            self.send_open(Stream::Meta);
            work.last_seq = self.log.seq();
            self.flushes.want(work.last_seq);
            work.phase = Phase::Sync;
            return true;
        }
        let payload =
            work.body[done..].chunks(BODY_PAYLOAD_BYTES).next().unwrap_or_default().to_vec();
        let part = u32_from(work.body_blocks.len());
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        BodyBlock { seq: Seq::new(work.seq), index: part, payload: &payload }.encode(
            &self.label.uuid,
            place.raw().into(),
            &mut block,
        );
        let at = self.put_meta(work, MetaKind::Body, part.into(), &block);
        work.body_blocks.push(at);
        true
    }

    pub(super) fn make_body(&self, work: &Work) -> Body {
        let runs = self.checkpoint.runs().list.iter().chain(work.runs.iter().map(|new| &new.run));
        let pages = u64_from(self.map.pages());
        let runs = runs.filter(|run| !run.is_swept(work.swept, pages));
        let slots: Vec<usize> = work.members.iter().map(|(slot, _)| *slot).collect();
        let exact = self.checkpoint.is_exact();
        let runs =
            runs.map(|run| RunEntry { counted: run.counted || exact, ..describe_run(run, &slots) });
        let runs = runs.filter(|run| run.members > 0);
        let members = work.members.iter().map(|(slot, member)| {
            let directory = self.members.of(*slot).directory.clone();
            Member { directory, ..member.clone() }
        });
        Body {
            seq: Seq::new(work.seq),
            next_epoch: work.next_epoch,
            next_run: self.checkpoint.runs().next_number + u64_from(work.runs.len()),
            next_member: self.members.next_id(),
            logical_blocks: self.layout.geometry().logical_blocks,
            counters: Vec::new(),
            members: members.collect(),
            runs: runs.collect(),
            segments: work.segments.clone(),
            open: work.open.clone(),
            reserve: work.reserve.clone(),
        }
    }
}
