//! What a metadata flush writes, and what follows from it; [`crate::flush`] has the order.

use onefold_units::convert::u64_from;

use crate::device_io::Purpose;
use crate::flush::{Content, Step};
use crate::geometry::Geometry;
use crate::io::{Failure, IoFailed, IoKind};
use crate::meta::Stored;
use crate::stats::Sent;
use crate::volume::Volume;

impl Volume {
    /// Reports a request done when everything reported done until now is durable, map and validity included.
    pub(crate) fn flush_for_write(&mut self, request: u64) {
        if self.frozen {
            self.request_over(request, Err(Failure::ReadOnly));
        } else {
            self.flush.wait(request);
        }
    }

    /// Takes the next step of a flush, if it can.
    pub(crate) fn step_flush(&mut self) -> bool {
        if self.frozen {
            return false;
        }
        // The kernel target flushes while writes are under way, whose blocks are valid already.
        let is_drained = self.writes_under_way == 0 || self.options.kernel_flush;
        let Some(step) = self.flush.step(self.now, is_drained) else { return false };
        self.take_step(step);
        true
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Drain => {}
            Step::Begin => {
                let content = self.take_dirty();
                let first = self.flush.begin(std::mem::take(&mut self.held), content);
                self.take_step(first);
            }
            Step::WriteBlocks(set) => self.write_blocks(set),
            Step::FlushDevices { all } => self.flush_devices(all),
            Step::WriteRoot(set) => self.write_root(set),
            Step::End => self.end_flush(),
        }
    }

    /// What a flush that begins now has to write, if it is anything.
    fn take_dirty(&mut self) -> Option<Content> {
        let mut blocks = self.meta.take_dirty();
        let (journal, is_reshaped) = self.set.map.take_dirty();
        let behind = self.layout.metadata_blocks;
        blocks.extend(journal.into_iter().map(|(block, bytes)| (behind + block, bytes)));
        if blocks.is_empty() && !is_reshaped && !self.sums.is_new() {
            return None;
        }
        self.stats.metadata_flushes += 1;
        let journal_blocks = self.set.map.blocks();
        let (tables, sums) = self.sums.update(&blocks, behind + journal_blocks);
        blocks.extend(tables);
        Some(Content { blocks, journal_blocks, sums })
    }

    fn write_blocks(&mut self, set: u32) {
        let first = self.layout.set_block(&self.geometry, set);
        let count = self.flush.content().blocks.len();
        for at in 0..count {
            let (block, bytes) = &self.flush.content().blocks[at];
            let place = (0, first + u64::from(*block), 1);
            let bytes = if self.options.bytes { bytes.clone() } else { Vec::new() };
            self.ask_for_flush(IoKind::Write, place, bytes);
        }
        self.stats.count(0, Sent::Map, u64_from(count));
    }

    fn write_root(&mut self, set: u32) {
        let Content { journal_blocks, sums, .. } = self.flush.content();
        let (generation, journal_blocks) = (self.generation + 1, *journal_blocks);
        let stored = Stored { generation, journal_blocks, sums: sums.clone() };
        let root = self.identity.root(&self.geometry, &self.layout, set, stored);
        let bytes = if self.options.bytes { root.encode().to_vec() } else { Vec::new() };
        let first = self.layout.set_block(&self.geometry, set);
        self.stats.count(0, Sent::Label, 1);
        self.ask_for_flush(IoKind::Write, (0, first, 1), bytes);
    }

    /// Flushes the device of the metadata, and with `all` every other one with something to make durable. The kernel target
    /// never flushes those (zoned.md, section 3, "Durability").
    fn flush_devices(&mut self, all: bool) {
        self.ask_for_flush(IoKind::Flush, (0, 0, 0), Vec::new());
        for device in 1..self.geometry.devices() {
            if all && self.ios.is_unflushed(device) && !self.options.kernel_flush {
                self.ask_for_flush(IoKind::Flush, (Geometry::number(device), 0, 0), Vec::new());
            }
        }
    }

    fn ask_for_flush(&mut self, kind: IoKind, place: (u32, u64, u32), bytes: Vec<u8>) {
        self.flush.io_begun();
        self.ask(kind, place, Purpose::Flush, bytes);
    }

    pub(crate) fn flush_io_over(&mut self, result: Result<(), IoFailed>) {
        // What failed froze the volume.
        if result.is_ok() {
            self.flush.io_over();
        }
    }

    fn end_flush(&mut self) {
        let ended = self.flush.end(self.now);
        if ended.is_new {
            self.generation += 1;
        }
        for request in ended.covered {
            self.request_over(request, Ok(()));
        }
        for zone in ended.freed {
            self.free_now(zone);
        }
        self.changes += 1;
        self.queues.ready_all();
    }

    /// Those who wait for a flush are told why they wait in vain.
    pub(crate) fn fail_flushes(&mut self, failure: Failure) {
        for request in self.flush.take_waiting() {
            self.request_over(request, Err(failure));
        }
    }

    /// Whether nothing waits for being flushed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_dirty = self.meta.is_dirty() || self.set.map.is_dirty() || self.sums.is_new();
        self.flush.is_idle() && !is_dirty && self.held.is_empty()
    }

    /// Generation of the metadata that is stored.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }
}
