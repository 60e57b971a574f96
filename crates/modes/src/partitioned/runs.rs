//! Data of the host on its way to the backing.
//!
//! What lies side by side and was not sent becomes one request, as the block layer merges (Han
//! 2021, sec. III-B), unless `Options::merge` says not to. Reads of blocks that are on their way are served from here.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use onefold_format::volume::BLOCK_BYTES;
use onefold_units::convert::index;
use onefold_volume::{Buffer, Io, IoId, IoKind};

use super::io::{Ios, Purpose};

/// Requests with data that are under way at once; what comes meanwhile is merged.
const DEPTH: usize = 32;

/// Blocks of a merged request at most: 1 MiB.
const RUN_BLOCKS_MAX: u32 = 256;

/// The piece of a request of the host in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Its transaction.
    pub(super) seq: u64,
    pub(super) request: u32,
}

#[derive(Debug)]
struct Run {
    blocks: u32,
    /// Until it is sent, and again where sending failed.
    data: Vec<u8>,
    sent: Option<IoId>,
    pieces: Vec<Piece>,
}

#[derive(Debug, Default)]
pub(super) struct Runs {
    /// By first block.
    list: BTreeMap<u32, Run>,
    queue: VecDeque<u32>,
    flying: usize,
}

impl Runs {
    /// Takes data for blocks that lie side by side; with `merge` for the request before it as well.
    pub(super) fn push(&mut self, at: Range<u32>, data: Option<&[u8]>, piece: Piece, merge: bool) {
        let blocks = at.end - at.start;
        let bytes = data.unwrap_or_default();
        if merge
            && let Some(last) = self.queue.back()
            && let Some(run) = self.list.get_mut(last)
            && last + run.blocks == at.start
            && run.blocks + blocks <= RUN_BLOCKS_MAX
        {
            run.blocks += blocks;
            run.data.extend_from_slice(bytes);
            run.pieces.push(piece);
            return;
        }
        let run = Run { blocks, data: bytes.to_vec(), sent: None, pieces: vec![piece] };
        self.list.insert(at.start, run);
        self.queue.push_back(at.start);
    }

    /// Sends the next run.
    pub(super) fn next(&mut self, ios: &mut Ios) -> Option<Io> {
        if self.flying >= DEPTH {
            return None;
        }
        let free = |at: &u32| {
            let end = at + self.list.get(at).map_or(0, |run| run.blocks);
            !ios.is_pinned(&(*at..end))
        };
        let place = self.queue.iter().position(free)?;
        let at = self.queue.remove(place)?;
        let run = self.list.get_mut(&at)?;
        let bytes = std::mem::take(&mut run.data);
        let mut buffer = Buffer::default();
        if !bytes.is_empty() {
            buffer = Buffer::new(bytes.len());
            buffer.bytes_mut().copy_from_slice(&bytes);
        }
        let id = ios.begin((IoKind::Write, Purpose::Data(at)), at, run.blocks, buffer);
        run.sent = Some(id);
        self.flying += 1;
        Some(ios.io(id))
    }

    /// A run was sent. One that failed stays, so that it can be read.
    pub(super) fn over(&mut self, at: u32, buffer: &Buffer, failed: bool) -> Vec<Piece> {
        self.flying -= 1;
        if failed {
            let Some(run) = self.list.get_mut(&at) else { return Vec::new() };
            run.data = buffer.bytes().to_vec();
            run.sent = None;
            return std::mem::take(&mut run.pieces);
        }
        self.list.remove(&at).map(|run| run.pieces).unwrap_or_default()
    }

    /// Nothing is sent any more. Gives what waited; its data can still be read.
    pub(super) fn give_up(&mut self) -> Vec<Piece> {
        let waiting = std::mem::take(&mut self.queue);
        let list = &mut self.list;
        let pieces = |at: &u32| list.get_mut(at).map(|run| std::mem::take(&mut run.pieces));
        waiting.iter().filter_map(pieces).flatten().collect()
    }

    /// The bytes of a block that is on its way. Empty where blocks carry none.
    pub(super) fn block<'a>(&'a self, ios: &'a Ios, at: u32) -> Option<&'a [u8]> {
        let (first, run) = self.list.range(..=at).next_back()?;
        let offset = at - first;
        if offset >= run.blocks {
            return None;
        }
        let bytes = run.sent.map_or(&run.data[..], |id| ios.buffer(id));
        let from = index(offset) * BLOCK_BYTES;
        Some(bytes.get(from..from + BLOCK_BYTES).unwrap_or_default())
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
