//! Moving live blocks: they are read from the victim and appended to the `clean` stream.

use onefold_format::checksum;
use onefold_format::volume::CleanRecord;
use onefold_units::LogSegmentId;
use onefold_units::convert::index;

use crate::cleaner::moves::Move;
use crate::cleaner::walk::Found;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::limits::BLOCK;
use crate::log::{BatchId, Stream};
use crate::packs::unpack;
use crate::pending::Purpose;
use crate::snapshots::Held;
use crate::volume::Volume;

/// Most blocks of one read.
const MOVE_BLOCKS_MAX: usize = 32;

impl Volume {
    /// Reads the next live blocks of the batch at hand that lie side by side.
    pub(super) fn begin_move(&mut self, at: usize) -> bool {
        let mut blocks: Vec<Found> = Vec::new();
        while let Some(found) = self.cleaner.walk_at(at).next_found() {
            let Some(held) = self.is_held(found.lba, found.birth, found.at) else {
                return self.read_move(blocks, false);
            };
            let live = held == Held::Yes;
            let block = |found: &Found| self.layout.block_of(found.at).raw();
            let ahead = blocks.last().map(|last| block(&found).wrapping_sub(block(last)));
            let beside = ahead.is_none_or(|ahead| ahead <= 1);
            if live && (!beside || blocks.len() >= MOVE_BLOCKS_MAX) {
                return self.read_move(blocks, false);
            }
            if live {
                blocks.push(found);
            }
            self.cleaner.walk_at(at).pass_found(held);
        }
        let some = !blocks.is_empty();
        self.read_move(blocks, false);
        some || !self.cleaner.walk_at(at).has_blocks()
    }

    /// Whether there was anything to read.
    fn read_move(&mut self, blocks: Vec<Found>, again: bool) -> bool {
        let Some(first) = blocks.first().copied() else { return false };
        let victim = self.layout.segment_of(first.at);
        let [first, last] =
            [first, blocks[blocks.len() - 1]].map(|one| self.layout.block_of(one.at));
        let count = last.raw() - first.raw() + 1;
        let Some(slot) = self.cleaner.begin_move(victim, blocks, again) else { return false };
        self.stats.clean_read += u64::from(count);
        self.ask(IoKind::Read, Purpose::CleanData(slot), first, count);
        true
    }

    /// Blocks of the victim were read.
    pub(crate) fn clean_data_over(
        &mut self,
        slot: usize,
        buffer: Buffer,
        result: Result<(), IoFailed>,
    ) {
        let Some(mut ready) = self.cleaner.take_move(slot) else { return };
        let buffer = self.unpacked(ready.blocks(), buffer);
        if !ready.is_again() && (result.is_err() || self.is_damaged(ready.blocks(), &buffer)) {
            // Each one by itself: those beside the one that cannot be read are good, and one that is damaged may have been misread.
            let victim = self.victim_of(&ready);
            for found in ready.into_blocks() {
                self.read_move(vec![found], true);
            }
            self.cleaner.end_move(victim);
            return;
        }
        ready.fill(buffer, result.is_err());
        self.cleaner.push_ready(ready);
    }

    /// A buffer with one block after the other, of which one with their packs was read. What cannot be unpacked stays as it is: it does not
    /// fit its checksum wherever it lies.
    fn unpacked(&self, blocks: &[Found], read: Buffer) -> Buffer {
        let slots = || blocks.iter().map(|found| self.layout.split(found.at));
        if read.bytes().is_empty() || !slots().any(|(_, slot)| slot.is_packed()) {
            return read;
        }
        let first = slots().next().map_or(0, |(block, _)| block.raw());
        let mut all = Buffer::new(blocks.len() * BLOCK);
        for ((block, slot), out) in slots().zip(all.bytes_mut().chunks_mut(BLOCK)) {
            let from = index(block.raw() - first) * BLOCK;
            let bytes = &read.bytes()[from..from + BLOCK];
            if !unpack(bytes, slot, out) {
                out.copy_from_slice(bytes);
            }
        }
        all
    }

    /// Whether some block does not fit its checksum.
    fn is_damaged(&self, blocks: &[Found], buffer: &Buffer) -> bool {
        let mut read = blocks.iter().zip(buffer.bytes().chunks(BLOCK));
        self.options.verify && read.any(|(found, bytes)| checksum(bytes) != found.crc)
    }

    pub(super) fn victim_of(&self, of: &Move) -> Option<LogSegmentId> {
        of.blocks().first().map(|found| self.layout.segment_of(found.at))
    }

    /// Appends what was read, as far as there is room, and as far as it can be looked up who has it, unless it waits for padding. Whether a page
    /// of the map is waited for.
    pub(super) fn append_ready(&mut self) -> bool {
        if self.waits_for_padding() {
            return false;
        }
        while let Some(mut ready) = self.cleaner.next_ready() {
            self.match_batch(false);
            while let Some(found) = ready.next() {
                if !self.can_append(Stream::Clean, 1) {
                    self.cleaner.put_back(ready);
                    return false;
                }
                let Some(held) = self.is_held(found.lba, found.birth, found.at) else {
                    self.cleaner.put_back(ready);
                    return true;
                };
                if held == Held::Unread || ready.is_lost() {
                    self.cleaner.miss(self.victim_of(&ready));
                }
                let live = held == Held::Yes;
                if live {
                    self.append_copy(found, ready.bytes(), ready.is_lost());
                } else {
                    self.stats.clean_wasted += 1;
                }
                self.cleaner.pace_mut().pay();
                ready.pass();
            }
            self.cleaner.end_move(self.victim_of(&ready));
        }
        false
    }

    fn append_copy(&mut self, found: Found, bytes: Option<&[u8]>, lost: bool) {
        if lost {
            // It stays where it is (`crate::cleaner`, invariant 4).
            return;
        }
        let (id, slot) = self.append_record(found);
        if let (Some(bytes), true) = (bytes, self.options.bytes) {
            self.log.batch_mut(id).block_mut(slot).copy_from_slice(bytes);
        }
        self.send_full(id);
    }

    /// Gives a block its place in a batch, which the map points to from now on. Its checksum is the recorded one, whatever
    /// the block holds (invariant 3).
    pub(crate) fn append_record(&mut self, found: Found) -> (BatchId, usize) {
        let id = self.batch_with_room(Stream::Clean);
        (id, self.append_record_to(id, found))
    }

    /// The same in a batch that has room. Gives its index among the blocks of the batch.
    pub(super) fn append_record_to(&mut self, id: BatchId, found: Found) -> usize {
        let Found { lba, birth, at: source, crc } = found;
        let batch = self.log.batch_mut(id);
        let (at, slot) = (batch.next_location(), index(batch.stored()));
        batch.add_whole();
        batch.records.clean.push(CleanRecord { lba, birth, crc, source });
        self.point_elsewhere(lba, source, at);
        let stream = self.segments.of(self.layout.segment_of(source)).stream;
        self.stats.journal_copied += u64::from(stream.is_journal());
        self.gain(at);
        self.lose(source);
        slot
    }
}
