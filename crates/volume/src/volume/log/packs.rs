//! Packing a batch that is about to be sent (`crate::packs`).

use onefold_units::Location;
use onefold_units::convert::{index, u64_from};

use crate::log::{BatchId, Stream};
use crate::packs::MOVED_BYTES;
use crate::volume::Volume;

impl Volume {
    /// Compresses what a batch that is about to be sent has, where that saves room.
    pub(crate) fn pack(&mut self, id: BatchId) {
        let batch = self.log.batch(id);
        let takes = matches!(batch.stream, Stream::User | Stream::Hot | Stream::Clean);
        let Some(codec) = self.layout.geometry().compress.filter(|_| self.packs() && takes) else {
            return;
        };
        if batch.remaps || batch.records.blocks() == 0 {
            return;
        }
        // What may fill the padding needs records as well.
        let unit = index(self.layout.geometry().unit_blocks);
        let kept = if batch.stream.is_user() { (unit - 1) * MOVED_BYTES } else { 0 };
        let Some(packed) = self.log.batch_mut(id).pack(codec, kept) else { return };
        self.stats.packed += u64_from(packed);
        let batch = self.log.batch(id);
        let start = batch.start.raw();
        let from = (start + 1..).map(Location::new);
        let to = (0..).map(|at| batch.place(at).at(start));
        // In order: blocks that are not packed move to places that others before them have left.
        let moves: Vec<_> = batch.records.lbas().zip(from).zip(to).collect();
        self.move_all(moves);
    }

    /// Whether blocks are compressed.
    pub(crate) fn packs(&self) -> bool {
        self.layout.geometry().compress.is_some() && self.options.bytes
    }

    /// Sends a batch that is full: when it is packed there may be room for the next one in its log segment.
    pub(crate) fn send_full(&mut self, id: BatchId) {
        if self.packs() && self.log.batch(id).seq.is_none() && self.log.batch(id).room() == 0 {
            self.send(id);
        }
    }
}
