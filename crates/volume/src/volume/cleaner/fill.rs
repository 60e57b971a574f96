//! Blocks that the cleaner has to move in place of padding.
//!
//! A batch of the host that is flushed early is padded to the unit in which the device maps what it stores, because the device programs
//! all of it anyway. What the cleaner has read and not yet appended can lie there instead, and costs nothing then.
//!
//! 1. Only a block that is as its checksum says: a damaged one would make a batch of the host one that is not whole (`crate::recovery::replay`).
//! 2. Not in journals: their log segments are empty after a lap, and would not be with anything else in them.
//! 3. Only while there are no snapshots and clones: a log segment of the host's streams has nothing that is older than itself, which tells
//!    who can share it (`crate::snapshots`).
//! 4. While nobody is short of log segments, what was read waits for padding ([`Volume::waits_for_padding`]). It never makes the host wait.
//! 5. It asks for no map page: room for one would be made by a page that the write needs which is being taken.

use onefold_format::checksum;
use onefold_format::volume::{BatchRecords, CleanRecord};
use onefold_units::convert::index;

use crate::cleaner::moves::Move;
use crate::log::{BatchId, Stream};
use crate::packs::MOVED_BYTES;
use crate::snapshots::Held;
use crate::volume::Volume;

/// What became of a block that was to fill padding.
enum Filled {
    /// It lies in the batch.
    Yes,
    /// It is live no more.
    Dead,
    /// It is left to the cleaner's own batches.
    No,
}

impl Volume {
    /// Whether blocks that were read to be moved wait for padding: that is only while there are log segments for the host, and while the
    /// cleaner is not far behind it.
    pub(super) fn waits_for_padding(&self) -> bool {
        let pads = self.layout.geometry().unit_blocks > 1 && self.members.is_alone();
        let least = (self.low() + self.reserve()).div_ceil(2);
        let short = self.free_soon() < least || self.takeable(Stream::User) == 0;
        let leaves = self.is_evacuating() || self.segments.has_leaving(self.now);
        pads && !short && !leaves && !self.is_behind() && !self.holds_up()
    }

    /// Whether what waits keeps a victim from being used again: one that is empty by now, or in which a write failed.
    fn holds_up(&self) -> bool {
        self.cleaner.walks().any(|walk| {
            let victim = self.segments.of(walk.segment());
            victim.live() == 0 || victim.errors.failed
        })
    }

    /// Puts blocks that wait to be moved where a batch of the host that is about to be sent would be padded.
    pub(crate) fn fill_padding(&mut self, id: BatchId) {
        let batch = self.log.batch(id);
        let takes = matches!(batch.stream, Stream::User | Stream::Hot) && !batch.is_empty();
        if !takes || !self.members.is_alone() {
            return;
        }
        let padding = index(self.log.extent(&self.layout, id) - 1 - batch.stored());
        let bytes = if batch.packed.is_some() { MOVED_BYTES } else { CleanRecord::BYTES };
        let records = BatchRecords::Data.max() - index(batch.records.blocks());
        for _ in 0..padding.min(records).min(batch.header_room() / bytes) {
            if !self.fill_one(id) {
                return;
            }
        }
    }

    /// Whether a block was there for it.
    fn fill_one(&mut self, id: BatchId) -> bool {
        while let Some(mut ready) = self.cleaner.next_ready() {
            let filled = self.fill_with(id, &ready);
            if !matches!(filled, Filled::No) {
                ready.pass();
            }
            if ready.next().is_some() {
                self.cleaner.put_back(ready);
            } else {
                self.cleaner.end_move(self.victim_of(&ready));
            }
            match filled {
                Filled::Yes => return true,
                Filled::No => return false,
                Filled::Dead => {}
            }
        }
        false
    }

    fn fill_with(&mut self, id: BatchId, ready: &Move) -> Filled {
        let Some(found) = ready.next().filter(|_| !ready.is_lost()) else { return Filled::No };
        match self.look_who_holds(found.lba, found.birth, found.at) {
            Ok(Held::Yes) => {}
            Ok(Held::No) => {
                self.stats.clean_wasted += 1;
                self.cleaner.pace_mut().pay_debt();
                return Filled::Dead;
            }
            Ok(Held::Unread) | Err(_) => return Filled::No,
        }
        let bytes = ready.bytes();
        if self.options.bytes && bytes.is_none_or(|bytes| checksum(bytes) != found.crc) {
            return Filled::No;
        }
        let slot = self.append_record_to(id, found);
        if let (Some(bytes), true) = (bytes, self.options.bytes) {
            self.log.batch_mut(id).block_mut(slot).copy_from_slice(bytes);
        }
        self.stats.filled += 1;
        self.cleaner.pace_mut().pay_debt();
        Filled::Yes
    }
}
