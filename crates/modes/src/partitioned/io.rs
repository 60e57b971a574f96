//! Requests to the backing that are under way, and reads of the host that hold blocks.

use std::collections::VecDeque;
use std::ops::Range;

use onefold_units::Location;
use onefold_units::convert::{index, u32_from};
use onefold_volume::parts::bytes_of;
use onefold_volume::{Buffer, Io, IoId, IoKind};

/// What a request to the backing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Data of the host; the block of its run.
    Data(u32),
    Flush,
    /// One that the host asked for, with its tag; where the layer does not flush by itself.
    HostFlush(u64),
    /// The log block of a transaction.
    Log,
    /// A piece of a table or of the catalog.
    Table,
    Root,
    /// A piece of a table that leaves memory; the partition.
    Leave(usize),
    /// A piece of a table that comes back; its first block.
    Load {
        number: usize,
        first: u32,
    },
    /// Freed space.
    Trim,
    /// A block that the cleaner moves; the number of the move.
    MoveRead(usize),
    MoveWrite(usize),
}

#[derive(Debug)]
struct Entry {
    io: Io,
    purpose: Purpose,
    buffer: Buffer,
}

#[derive(Debug, Default)]
pub(super) struct Ios {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    outbox: VecDeque<IoId>,
    /// Blocks that reads of the host take from the backing.
    pins: Vec<Range<u32>>,
}

impl Ios {
    /// Begins a request with the bytes of a write; a read gets room for its own.
    pub(super) fn begin(
        &mut self,
        (kind, purpose): (IoKind, Purpose),
        at: u32,
        blocks: u32,
        buffer: Buffer,
    ) -> IoId {
        let buffer = if kind == IoKind::Read { Buffer::new(bytes_of(blocks)) } else { buffer };
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32_from(self.entries.len() - 1)
        });
        let io = Io { id: IoId::new(id), kind, at: Location::new(at), blocks };
        self.entries[index(id)] = Some(Entry { io, purpose, buffer });
        IoId::new(id)
    }

    /// Begins a request and queues it.
    pub(super) fn ask(&mut self, what: (IoKind, Purpose), at: u32, blocks: u32, buffer: Buffer) {
        let id = self.begin(what, at, blocks, buffer);
        self.outbox.push_back(id);
    }

    /// The next queued request that changes no block the host reads.
    pub(super) fn next(&mut self) -> Option<Io> {
        let free = |id: &IoId| {
            let io = self.io(*id);
            let changes = matches!(io.kind, IoKind::Write | IoKind::Trim);
            !(changes && self.is_pinned(&(io.at.raw()..io.at.raw() + io.blocks)))
        };
        let at = self.outbox.iter().position(free)?;
        self.outbox.remove(at).map(|id| self.io(id))
    }

    fn of(&self, id: IoId) -> &Entry {
        self.entries[index(id.number())].as_ref().expect("a request that is under way")
    }

    /// Queues a request once more.
    pub(super) fn again(&mut self, id: IoId) {
        self.outbox.push_back(id);
    }

    pub(super) fn purpose(&self, id: IoId) -> Purpose {
        self.of(id).purpose
    }

    pub(super) fn io(&self, id: IoId) -> Io {
        self.of(id).io
    }

    pub(super) fn buffer(&self, id: IoId) -> &[u8] {
        self.of(id).buffer.bytes()
    }

    pub(super) fn buffer_mut(&mut self, id: IoId) -> &mut [u8] {
        self.entries[index(id.number())]
            .as_mut()
            .expect("a request that is under way")
            .buffer
            .bytes_mut()
    }

    pub(super) fn end(&mut self, id: IoId) -> (Purpose, Buffer) {
        let entry = self.entries[index(id.number())].take().expect("a request that is under way");
        self.free.push(id.number());
        (entry.purpose, entry.buffer)
    }

    /// Whether there is none, queued or given out.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }

    pub(super) fn pin(&mut self, blocks: Range<u32>) {
        self.pins.push(blocks);
    }

    pub(super) fn unpin(&mut self, blocks: &Range<u32>) {
        if let Some(at) = self.pins.iter().position(|pin| pin == blocks) {
            self.pins.swap_remove(at);
        }
    }

    pub(super) fn is_pinned(&self, blocks: &Range<u32>) -> bool {
        self.pins.iter().any(|pin| pin.start < blocks.end && blocks.start < pin.end)
    }
}
