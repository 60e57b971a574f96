//! Putting a checkpoint into the `meta` stream, block by block.

use onefold_format::checksum;
use onefold_format::volume::{
    BODY_PAYLOAD_BYTES, Body, BodyBlock, DIRECTORY_ENTRIES, DirectoryBlock, DirectoryEntry,
    DirectoryPlace, Extent, Member, MetaKind, MetaRecord, PAGE_ENTRIES, RUN_BLOCK_RECORDS,
    RUN_INDEX_ENTRIES, RunBlock, RunEntry, RunIndexBlock, VolumeName, encode_page,
};
use onefold_units::convert::{index, u32_from, u64_from};
use onefold_units::{Lba, Location, Seq};

use super::{Phase, Work};
use crate::log::{BLOCK, Stream};
use crate::runs::Run;
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
        let Some((page, entries)) = work.pages.pop_front() else {
            work.phase = Phase::Directory;
            return true;
        };
        let old = self.map.image(page);
        let image = match entries {
            None => DirectoryEntry::ABSENT,
            Some(entries) => {
                let mut block = [0; BLOCK];
                let mut words = [0; PAGE_ENTRIES];
                let mut put = |volume: &mut Self,
                               kind,
                               block: &mut [u8; BLOCK],
                               words: &[u32; PAGE_ENTRIES]| {
                    encode_page(words, block);
                    (volume.put_meta(work, kind, u64_from(page), block), checksum(block))
                };
                words
                    .iter_mut()
                    .zip(entries.iter())
                    .for_each(|(word, entry)| *word = entry.at.raw());
                let (at, page_crc) = put(self, MetaKind::Page, &mut block, &words);
                words.iter_mut().zip(entries.iter()).for_each(|(word, entry)| *word = entry.crc);
                let (sums, sums_crc) = put(self, MetaKind::Sums, &mut block, &words);
                DirectoryEntry { page: at, page_crc, sums, sums_crc }
            }
        };
        work.replaced.extend([old.page, old.sums].into_iter().filter(|at| at.is_block()));
        work.old_images.push((page, old));
        self.map.set_image(page, image, false);
        true
    }

    pub(super) fn write_directory(&mut self, work: &mut Work) -> bool {
        let Some(at) = work.directories.pop_front() else {
            work.phase = Phase::Run;
            return true;
        };
        let mut entries = Box::new([DirectoryEntry::ABSENT; DIRECTORY_ENTRIES]);
        for (entry, page) in entries.iter_mut().zip(at * DIRECTORY_ENTRIES..self.map.len()) {
            *entry = self.map.image(page);
        }
        let directory =
            DirectoryBlock { seq: Seq::new(work.seq), index: u32_from(at), member: 0, entries };
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        directory.encode(&self.uuid, place.raw().into(), &mut block);
        let location = self.put_meta(work, MetaKind::Directory, u64_from(at), &block);
        let old = self.checkpoint.directory[at];
        self.checkpoint.directory[at] = DirectoryPlace { location, crc: checksum(&block) };
        work.old_directory.push((at, old));
        work.replaced.extend(Some(old.location).filter(|at| at.is_block()));
        true
    }

    pub(super) fn write_run(&mut self, work: &mut Work) -> bool {
        let rest = &work.records[work.written..];
        if rest.is_empty() {
            work.phase = Phase::Index;
            return true;
        }
        let records = rest[..rest.len().min(RUN_BLOCK_RECORDS)].to_vec();
        let (first, count) = (records[0].lba, records.len());
        let run = RunBlock { seq: Seq::new(work.seq), run: work.run.number, records };
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        run.encode(&self.uuid, place.raw().into(), &mut block);
        let at = self.put_meta(work, MetaKind::Run, work.run.number, &block);
        work.run.blocks.push(at);
        work.run.index.push(first.raw());
        work.written += count;
        true
    }

    pub(super) fn write_index(&mut self, work: &mut Work) -> bool {
        let rest = &work.run.index[work.index_written..];
        if rest.is_empty() {
            work.phase = Phase::Body;
            return true;
        }
        let first: Vec<Lba> =
            rest.iter().take(RUN_INDEX_ENTRIES).map(|lba| Lba::new(*lba)).collect();
        work.index_written += first.len();
        let index = RunIndexBlock { seq: Seq::new(work.seq), run: work.run.number, first };
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        index.encode(&self.uuid, place.raw().into(), &mut block);
        let at = self.put_meta(work, MetaKind::RunIndex, work.run.number, &block);
        work.run.blocks.push(at);
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
            work.phase = Phase::Settle;
            return true;
        }
        let payload =
            work.body[done..].chunks(BODY_PAYLOAD_BYTES).next().unwrap_or_default().to_vec();
        let part = u32_from(work.body_blocks.len());
        let mut block = [0; BLOCK];
        let place = self.meta_place();
        BodyBlock { seq: Seq::new(work.seq), index: part, payload: &payload }.encode(
            &self.uuid,
            place.raw().into(),
            &mut block,
        );
        let at = self.put_meta(work, MetaKind::Body, part.into(), &block);
        work.body_blocks.push(at);
        true
    }

    pub(super) fn make_body(&self, work: &Work) -> Body {
        let mut runs: Vec<RunEntry> = self
            .checkpoint
            .runs
            .list
            .iter()
            .filter(|run| !self.is_swept(run, work.swept))
            .map(describe_run)
            .collect();
        if work.run.records > 0 {
            runs.push(describe_run(&work.run));
        }
        let logical_blocks = self.layout.geometry().logical_blocks;
        let member = Member {
            id: 0,
            parent: 0,
            flags: 0,
            birth: 0,
            seq: Seq::new(work.seq),
            logical_blocks,
            mapped: 0,
            name: VolumeName::default(),
            directory: self.checkpoint.directory.clone(),
        };
        Body {
            seq: Seq::new(work.seq),
            next_epoch: work.next_epoch,
            next_run: self.checkpoint.runs.next_number + 1,
            next_member: 1,
            logical_blocks,
            counters: Vec::new(),
            members: vec![member],
            runs,
            segments: work.segments.clone(),
            open: work.open.clone(),
            reserve: work.reserve.clone(),
        }
    }

    /// Invariant 3.
    pub(super) fn is_swept(&self, run: &Run, swept: u64) -> bool {
        run.counted && swept >= run.swept + u64_from(self.map.len())
    }
}

pub(super) fn describe_run(run: &Run) -> RunEntry {
    let data = run.index.len();
    RunEntry {
        number: run.number,
        member: 0,
        records: run.records,
        counted: run.counted,
        data_blocks: u32_from(data),
        index_blocks: u32_from(run.blocks.len() - data),
        extents: extents(&run.blocks),
    }
}

/// Blocks in order as extents.
pub(super) fn extents(locations: &[Location]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for at in locations {
        match extents.last_mut() {
            Some(last) if last.location.raw() + last.blocks == at.raw() => last.blocks += 1,
            _ => extents.push(Extent { location: *at, blocks: 1 }),
        }
    }
    extents
}
