//! The journal zone set: which blocks are appended to it, where they lie, and which of them have to move (zoned.md, section 5).

use std::ops::Range;

use onefold_units::convert::{narrow, u32_from};
use onefold_units::{Nanos, ZoneId};

use crate::block_map::{BlockMap, Stream};

/// Where the journal goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Placement {
    /// As any other data.
    #[default]
    Chunks,
    /// To pinned chunks.
    Pinned,
    /// To sequential zones, so many of each stream at most. A chunk with blocks of it is pinned until the ring has come around, if
    /// all chunks may be (`pins`).
    Appended { log: u32, hot: u32, pins: bool },
}

/// The search for blocks that do not belong in the set.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// When it begins.
    at: Nanos,
    /// Where to look next.
    next: u64,
    /// One was found.
    found: bool,
}

impl Sweep {
    const fn new(at: Nanos) -> Self {
        Self { at, next: 0, found: false }
    }
}

/// What is being written anew.
#[derive(Clone, Copy, Debug)]
struct Rewrite {
    /// The request for it.
    request: u64,
    /// The zone that is emptied, if it is one.
    zone: Option<ZoneId>,
}

/// Blocks that do not belong in the set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swept {
    pub(crate) lba: u64,
    pub(crate) blocks: u32,
    /// None was found before.
    pub(crate) is_first: bool,
}

/// The journal zone set.
#[derive(Debug)]
pub(crate) struct JournalSet {
    placement: Placement,
    /// Blocks that are appended, and to what: in order and apart.
    spans: Vec<(Range<u64>, Stream)>,
    pub(crate) map: BlockMap,
    /// Most zones it may have, so that reclaim can always free one.
    zones_max: u32,
    /// The search for blocks that lie in the set and do not belong there.
    sweep: Option<Sweep>,
    rewrite: Option<Rewrite>,
}

impl JournalSet {
    pub(crate) fn new(map: BlockMap, zones_max: u32) -> Self {
        let (placement, spans) = (Placement::Chunks, Vec::new());
        Self { placement, spans, map, zones_max, sweep: None, rewrite: None }
    }

    /// The journal was found, moved or lost: these blocks of it are appended from now on. What lies in the set and does not belong
    /// there is looked for at `sweep_at`.
    pub(crate) fn place(
        &mut self,
        placement: Placement,
        spans: Vec<(Range<u64>, Stream)>,
        sweep_at: Nanos,
    ) {
        self.placement = placement;
        self.spans = spans;
        if self.appends() {
            // What is under way may need more zones than the ring does.
            self.map.reserve(self.zones_max);
        }
        self.sweep = (!self.map.is_empty()).then(|| Sweep::new(sweep_at));
    }

    pub(crate) const fn placement(&self) -> Placement {
        self.placement
    }

    /// Whether blocks are appended to its zones.
    pub(crate) const fn appends(&self) -> bool {
        matches!(self.placement, Placement::Appended { .. })
    }

    /// Most zones it may have.
    pub(crate) const fn zones_max(&self) -> u32 {
        self.zones_max
    }

    /// The stream that a block is appended to, and how many from it on, at most `blocks`, are alike.
    pub(crate) fn stream(&self, lba: u64, blocks: u32) -> (Option<Stream>, u32) {
        let next = self.spans.partition_point(|(range, _)| range.end <= lba);
        let until = |end: u64| narrow((end - lba).min(blocks.into()));
        match self.spans.get(next) {
            Some((range, stream)) if range.start <= lba => (Some(*stream), until(range.end)),
            Some((range, _)) => (None, until(range.start)),
            None => (None, blocks),
        }
    }

    /// Whether it may take another zone. While blocks are appended there is a slot for it.
    pub(crate) fn may_grow(&self) -> bool {
        u32_from(self.map.zones().len()) < self.zones_max
    }

    /// Zones of a stream from which on what is left in the oldest one moves to the head. Requests come out of order, so a ring has
    /// twice the zones that it needs if these are there; what comes too late makes it use them, and is not copied.
    ///
    /// Differs from zoned.md, section 5, where that is as many as it needs.
    pub(crate) fn zones_most(&self, stream: Stream) -> u32 {
        match (self.placement, stream) {
            (Placement::Appended { log, hot, .. }, Stream::Log) => {
                (2 * log).min(self.zones_max - hot - 1).max(log)
            }
            (Placement::Appended { hot, .. }, Stream::Hot) => hot,
            _ => 0,
        }
    }

    /// When the search begins, if it has to wait.
    pub(crate) fn sweep_due(&self, now: Nanos) -> Option<Nanos> {
        self.sweep.map(|sweep| sweep.at).filter(|at| *at > now)
    }

    /// The search begins at its first block, at this time.
    pub(crate) const fn sweep_at(&mut self, at: Nanos) {
        self.sweep = Some(Sweep::new(at));
    }

    /// A block from `lba` on may lie in the set and not belong there.
    pub(crate) fn sweep_from(&mut self, lba: u64, now: Nanos) {
        let sweep = self.sweep.get_or_insert_with(|| Sweep { next: lba, ..Sweep::new(now) });
        sweep.next = sweep.next.min(lba);
    }

    /// The next blocks that do not belong in the set, at most as many as can be moved at once from a block on.
    pub(crate) fn next_swept(&mut self, now: Nanos, movable: impl Fn(u64) -> u32) -> Option<Swept> {
        let mut sweep = self.sweep.filter(|sweep| sweep.at <= now)?;
        loop {
            let Some(lba) = self.map.next(sweep.next) else {
                self.sweep = None;
                return None;
            };
            let (stream, alike) = self.stream(lba, movable(lba));
            let (_, blocks) = self.map.run(lba, alike);
            sweep.next = lba + u64::from(blocks);
            if stream.is_none() {
                let is_first = !std::mem::replace(&mut sweep.found, true);
                self.sweep = Some(sweep);
                return Some(Swept { lba, blocks, is_first });
            }
        }
    }

    /// Blocks are written anew by this request of the volume to itself; `zone` is the zone that is emptied so, if it is one.
    pub(crate) const fn begin_rewrite(&mut self, request: u64, zone: Option<ZoneId>) {
        self.rewrite = Some(Rewrite { request, zone });
    }

    /// Whether blocks are being written anew.
    pub(crate) const fn is_rewriting(&self) -> bool {
        self.rewrite.is_some()
    }

    /// Whether it is this request that writes blocks anew.
    pub(crate) fn is_rewritten_by(&self, request: u64) -> bool {
        self.rewrite.is_some_and(|rewrite| rewrite.request == request)
    }

    /// Whether a block that was to be written anew still has to be: the host may have been faster.
    pub(crate) fn has_to_move(&self, lba: u64) -> bool {
        let Some((zone, _)) = self.map.place(lba) else { return false };
        let emptied = self.rewrite.and_then(|rewrite| rewrite.zone);
        emptied == Some(zone) || self.stream(lba, 1).0.is_none()
    }

    /// The request that writes blocks anew is over. Gives the zone that it was to empty.
    pub(crate) fn end_rewrite(&mut self) -> Option<ZoneId> {
        self.rewrite.take().and_then(|rewrite| rewrite.zone)
    }
}
