//! Requests to the backing that are under way.

use std::collections::VecDeque;

use onefold_units::convert::{index, u32_from};
use onefold_units::{Location, LogSegmentId};

use crate::io::{Buffer, Io, IoId, IoKind};
use crate::limits::BLOCK;
use crate::log::BatchId;
use crate::zones::ZoneStatus;

/// What a request to the backing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A batch; the buffer is that of the batch.
    Batch(BatchId),
    /// The blocks of a batch whose header is still to be written.
    Remap(BatchId),
    /// Makes batches up to a number durable.
    Flush { covers: u64 },
    /// The root of a checkpoint.
    Root,
    /// The zone that the root goes to.
    RootReset,
    /// The zone of the last root takes no more, as the next one could not be written there.
    RootFinish,
    /// The zone of a copy of the label.
    LabelReset,
    /// A copy of the label.
    Label,
    /// The zone of a copy of the label takes no more.
    LabelFinish,
    /// Makes a copy of the label durable.
    LabelFlush,
    /// A log segment that was given back: a trim, or the reset of its zone.
    Trim(LogSegmentId),
    /// The zone of a log segment takes no more.
    Finish(LogSegmentId),
    /// The same, after it failed.
    FinishAgain(LogSegmentId),
    /// Parts that map pages are made from; the number is that of the request among those.
    Load(u64),
    /// The next header of a log segment that is cleaned.
    CleanHeader(LogSegmentId),
    /// Blocks that are moved; the number is that of the move.
    CleanData(usize),
    /// What is compared with its checksums.
    Scrub,
    /// A copy of the label that was damaged, with its place in the list of what was found.
    ScrubLabel(Option<usize>),
    /// Where the write pointer is, before a write is sent again that failed (`crate::zones`).
    Pointer(IoId),
    /// What lies before the write pointer, likewise.
    Compare(IoId),
}

#[derive(Debug)]
struct Entry {
    io: Io,
    purpose: Purpose,
    buffer: Buffer,
    /// Blocks of a write that are there already, before those that `io` asks for.
    skipped: u32,
    /// What the backing said of a zone.
    told: Option<ZoneStatus>,
}

/// A request that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) io: Io,
    pub(crate) purpose: Purpose,
    pub(crate) buffer: Buffer,
    pub(crate) told: Option<ZoneStatus>,
}

/// All requests under way.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Of reads that ended, for others of the same length.
    spare: Vec<Buffer>,
    /// Those that were not given to the driver yet.
    outbox: VecDeque<IoId>,
}

impl Pending {
    /// Begins a request. A read gets a buffer of its size, but for data where blocks carry no bytes; those of root and label
    /// are set later.
    fn begin(
        &mut self,
        (kind, purpose): (IoKind, Purpose),
        at: Location,
        blocks: u32,
        carries_bytes: bool,
    ) -> IoId {
        let bytes = match (kind, purpose) {
            (_, Purpose::CleanData(_)) if !carries_bytes => 0,
            (IoKind::Read, _) | (_, Purpose::Root | Purpose::Label | Purpose::ScrubLabel(_)) => {
                index(blocks) * BLOCK
            }
            _ => 0,
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32_from(self.entries.len() - 1)
        });
        let io = Io { id: IoId(id), kind, at, blocks };
        let spare = self.spare.pop_if(|spare| kind == IoKind::Read && spare.bytes().len() == bytes);
        let buffer = spare.unwrap_or_else(|| match bytes {
            0 => Buffer::default(),
            bytes => Buffer::new(bytes),
        });
        self.entries[index(id)] = Some(Entry { io, purpose, buffer, skipped: 0, told: None });
        IoId(id)
    }

    fn of(&self, id: IoId) -> &Entry {
        self.entries[index(id.0)].as_ref().expect("a request that is under way")
    }

    fn of_mut(&mut self, id: IoId) -> &mut Entry {
        self.entries[index(id.0)].as_mut().expect("a request that is under way")
    }

    pub(crate) fn io(&self, id: IoId) -> Io {
        self.of(id).io
    }

    pub(crate) fn purpose(&self, id: IoId) -> Purpose {
        self.of(id).purpose
    }

    pub(crate) fn buffer(&self, id: IoId) -> &[u8] {
        self.of(id).buffer.bytes()
    }

    pub(crate) fn buffer_mut(&mut self, id: IoId) -> &mut [u8] {
        self.of_mut(id).buffer.bytes_mut()
    }

    /// Blocks of a write that are not asked for any more.
    pub(crate) fn skipped(&self, id: IoId) -> u32 {
        self.of(id).skipped
    }

    /// The first `blocks` of a write are there. Says how many are left.
    pub(crate) fn skip(&mut self, id: IoId, blocks: u32) -> u32 {
        let entry = self.of_mut(id);
        entry.io.at = Location::new(entry.io.at.raw() + blocks);
        entry.io.blocks -= blocks;
        entry.skipped += blocks;
        entry.io.blocks
    }

    /// What the backing says of the zone of a request.
    pub(crate) fn tell(&mut self, id: IoId, status: ZoneStatus) {
        self.of_mut(id).told = Some(status);
    }

    pub(crate) fn end(&mut self, id: IoId) -> Ended {
        let entry = self.entries[index(id.0)].take().expect("a request that is under way");
        self.free.push(id.0);
        let Entry { io, purpose, buffer, told, .. } = entry;
        Ended { io, purpose, buffer, told }
    }

    /// Keeps the buffer of a read that ended for the next one: new memory costs more than to read into it.
    pub(crate) fn keep_spare(&mut self, buffer: Buffer) {
        self.spare.push(buffer);
    }

    /// Gives back what was kept.
    pub(crate) fn drop_spare(&mut self) {
        self.spare = Vec::new();
    }

    /// Whether there is none.
    pub(crate) fn is_idle(&self) -> bool {
        self.outbox.is_empty() && self.free.len() == self.entries.len()
    }

    /// Asks the backing for something.
    pub(crate) fn ask(
        &mut self,
        what: (IoKind, Purpose),
        at: Location,
        blocks: u32,
        carries_bytes: bool,
    ) -> IoId {
        let id = self.begin(what, at, blocks, carries_bytes);
        self.send(id);
        id
    }

    /// The driver gets a request, perhaps once more.
    pub(crate) fn send(&mut self, id: IoId) {
        self.outbox.push_back(id);
    }

    /// The next one for the driver.
    pub(crate) fn next(&mut self) -> Option<Io> {
        let id = self.outbox.pop_front()?;
        Some(self.io(id))
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::{Location, LogSegmentId};

    use super::{Pending, Purpose};
    use crate::io::{Buffer, IoKind};

    /// A buffer that was kept goes to a read of its length, and to nothing else.
    #[test]
    fn a_spare_is_for_a_read_of_its_length() {
        let at = Location::new(1);
        let mut pending = Pending::default();
        let mut spare = Buffer::new(8192);
        spare.bytes_mut().fill(7);
        pending.keep_spare(spare);
        let mut begin = |kind, purpose, blocks| {
            let id = pending.begin((kind, purpose), at, blocks, true);
            pending.buffer(id).to_vec()
        };
        assert_eq!(begin(IoKind::Write, Purpose::Trim(LogSegmentId::new(0)), 2), []);
        assert_eq!(begin(IoKind::Write, Purpose::Label, 2), [0; 8192]);
        assert_eq!(begin(IoKind::Read, Purpose::Load(0), 1), [0; 4096]);
        assert_eq!(begin(IoKind::Read, Purpose::Load(1), 2), [7; 8192]);
        assert_eq!(begin(IoKind::Read, Purpose::Load(2), 2), [0; 8192]);
    }
}
