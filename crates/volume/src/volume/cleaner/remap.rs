//! Cleaning by remap: the backing lets the blocks of a batch hold what their sources hold, and no data moves.
//!
//! A batch of moved blocks is put together as if they were copied, but for their bytes. When it is sent, the backing remaps
//! its blocks from their sources; then its header is written, and that alone.
//!
//! 1. The sources stay as they are until the batch is complete: a log segment is given back only by a checkpoint that began
//!    when nothing live was in it any more, and that one waits for all batches that were sent before. So until then the
//!    blocks are read where their sources are, and a batch that has to go elsewhere is remapped from there once more.
//! 2. The checksums of the records are those of the victim's headers. Nobody looked at the blocks, so a damaged one stays
//!    damaged by its checksum; none is ever computed from a block that was moved.
//! 3. A header whose blocks did not all get there describes a batch that is not whole (`crate::recovery::replay`, invariant 3): no
//!    flush can have covered it, because the batch is complete when both are over.
//! 4. A batch that the backing cannot remap is *taken back*: the map points at the sources again, and the header keeps the
//!    place and the number of the batch, without records. The next victims are copied, this one among them, so a backing
//!    that always fails is no worse than one that is never asked.

use onefold_format::volume::CleanRecord;
use onefold_units::Location;
use onefold_units::convert::u64_from;

use crate::cleaner::Found;
use crate::config::CleanMove;
use crate::io::{IoFailed, IoId, Relocation};
use crate::log::{BatchId, Stream};
use crate::pending::Purpose;
use crate::snapshots::Held;
use crate::volume::Volume;

/// Victims that are copied after a remap failed. What made it fail may pass, as a full log of remaps does.
const COPIED_AFTER_FAILURE: u32 = 8;

impl Volume {
    /// Whether the blocks of the next victim are moved by remap.
    pub(crate) fn cleaner_remaps(&self) -> bool {
        // What is in a pack cannot be remapped by itself.
        let whole = self.layout.geometry().compress.is_none();
        self.options.clean_move == CleanMove::Remap && self.cleaner.may_remap() && whole
    }

    /// Blocks of the `clean` stream come about in this way from now on: a batch that is being put together in the other way
    /// is sent.
    pub(crate) fn match_batch(&mut self, remaps: bool) {
        self.cleaner.set_remaps(remaps);
        if let Some(open) = self.log.stream(Stream::Clean).open
            && self.log.batch(open).remaps != remaps
        {
            self.send_open(Stream::Clean);
        }
    }

    /// Moves what is live of the blocks of a victim at hand. `false` if that has to wait.
    pub(crate) fn relocate(&mut self, walk: usize) -> bool {
        self.match_batch(true);
        while let Some(found) = self.cleaner.walk_at(walk).next_found() {
            let Some(held) = self.is_held(found.lba, found.birth, found.at) else { return false };
            if held == Held::Yes {
                if !self.can_append(Stream::Clean, 1) {
                    return false;
                }
                self.append_record(found);
                self.cleaner.pace_mut().pay();
            }
            self.cleaner.walk_at(walk).pass_found(held);
        }
        true
    }

    /// What a remap is about ([`crate::IoKind::Remap`]).
    #[must_use]
    pub fn relocations(&self, id: IoId) -> Vec<Relocation> {
        let Purpose::Remap(batch) = self.pending.purpose(id) else { return Vec::new() };
        let batch = self.log.batch(batch);
        let mut list: Vec<Relocation> = Vec::new();
        for (at, record) in (batch.start.raw() + 1..).zip(&batch.records.clean) {
            let (to, from) = (Location::new(at), record.source);
            let follows = |run: &Relocation| {
                run.from.raw() + run.blocks == from.raw() && run.to.raw() + run.blocks == at
            };
            match list.last_mut() {
                // Dead before its batch was sent: nothing has to be there.
                _ if !from.is_block() => {}
                Some(run) if follows(run) => run.blocks += 1,
                _ => list.push(Relocation { to, from, blocks: 1 }),
            }
        }
        list
    }

    /// The backing is through with the blocks of a batch: now its header.
    pub(crate) fn remap_over(&mut self, id: BatchId, result: Result<(), IoFailed>) {
        let blocks = self.log.batch(id).records.blocks();
        if result.is_ok() {
            let records = &self.log.batch(id).records.clean;
            let moved = records.iter().filter(|record| record.source.is_block()).count();
            self.stats.remapped += u64_from(moved);
        } else {
            self.stats.failed_remaps += 1;
            self.cleaner.copy_next(COPIED_AFTER_FAILURE);
            self.take_back(id);
        }
        self.write_batch(id, 1 + blocks);
    }

    /// Invariant 4.
    fn take_back(&mut self, id: BatchId) {
        let batch = self.log.batch_mut(id);
        let start = batch.start.raw();
        let records = std::mem::take(&mut batch.records.clean);
        for (at, record) in (start + 1..).map(Location::new).zip(records) {
            let CleanRecord { lba, birth, crc, source } = record;
            // What the host wrote meanwhile stays.
            if self.point_elsewhere(lba, at, source) > 0 {
                self.lose(at);
                self.gain(source);
                self.revisit(Found { lba, birth, at: source, crc });
            }
        }
        self.checkpoint.spoil();
    }
}
