//! Blocks of the journal zone set that are written anew: what the journal has left goes back to its chunks, and what is left in
//! the oldest zone of a stream that is at its limit moves to the head (zoned.md, section 5).
//!
//! It is one request of the volume to itself at a time. Its parts wait like those of the host, so nothing changes their blocks
//! meanwhile; they read, and then they are writes, which go where their blocks belong.

use onefold_units::convert::u32_from;
use onefold_units::{Nanos, ZoneId};

use crate::block_map::Stream;
use crate::chunks::{Kind, Part};
use crate::quarantine::AGAIN;
use crate::volume::Volume;

/// The search for blocks that do not belong in the set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    /// When it begins.
    at: Nanos,
    /// Where to look next.
    next: u64,
    /// One was found.
    found: bool,
}

impl Sweep {
    pub(crate) const fn new(at: Nanos) -> Self {
        Self { at, next: 0, found: false }
    }
}

/// What is being written anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewrite {
    /// The request for it.
    pub(crate) request: u64,
    /// The zone that is emptied, if it is one.
    zone: Option<ZoneId>,
}

impl Volume {
    /// Begins to write blocks anew, if there are any.
    pub(crate) fn step_rewrite(&mut self) -> bool {
        if self.frozen || self.closing || self.set.rewrite.is_some() {
            return false;
        }
        let swept = self.next_swept().map(|(lba, blocks)| (lba, blocks, None));
        let Some((lba, blocks, zone)) = swept.or_else(|| self.next_left()) else { return false };
        let request = self.number();
        self.set.rewrite = Some(Rewrite { request, zone });
        self.ask_self(request, Kind::Rewrite, lba, blocks);
        true
    }

    /// What was read is written to where it belongs.
    pub(crate) fn write_anew(&mut self, number: u64, mut part: Part) {
        if let Some(zone) = part.zone.take() {
            self.leave(zone);
        }
        part.kind = Kind::Write;
        self.put_back(number, part);
    }

    /// When the search begins, if it has to wait.
    pub(crate) fn sweep_due(&self) -> Option<Nanos> {
        self.set.sweep.map(|sweep| sweep.at).filter(|at| *at > self.now)
    }

    /// A block from `lba` on may lie in the set and not belong there.
    pub(crate) fn sweep_from(&mut self, lba: u64) {
        let now = self.now;
        let sweep = self.set.sweep.get_or_insert_with(|| Sweep { next: lba, ..Sweep::new(now) });
        sweep.next = sweep.next.min(lba);
    }

    /// The next blocks that do not belong in the set: the first one, and how many.
    fn next_swept(&mut self) -> Option<(u64, u32)> {
        let mut sweep = self.set.sweep.filter(|sweep| sweep.at <= self.now)?;
        let mut found = None;
        while found.is_none() {
            let Some(lba) = self.set.map.next(sweep.next) else {
                self.set.sweep = None;
                return None;
            };
            let blocks = self.movable(lba);
            let (stream, alike) = self.set.stream(lba, blocks);
            let (_, together) = self.set.map.run(lba, alike);
            sweep.next = lba + u64::from(together);
            found = stream.is_none().then_some((lba, together));
        }
        self.stats.journal_demotions += u64::from(!sweep.found);
        sweep.found = true;
        self.set.sweep = Some(sweep);
        found
    }

    /// What is left in the oldest zone of a stream that has too many: the first blocks, and the zone. Requests do not come to
    /// the set exactly in the order of the ring, so those behind get time until half of the head is written.
    fn next_left(&mut self) -> Option<(u64, u32, Option<ZoneId>)> {
        for stream in [Stream::Hot, Stream::Log] {
            let (behind, most) = (self.behind_head(stream), self.set.zones_most(stream));
            let Some(zone) = behind.first().copied() else { continue };
            if most == 0 || u32_from(behind.len()) < most || self.is_young(stream) {
                continue;
            }
            let Some(run) = self.meta.first_valid(zone, 0..self.geometry.zone_blocks()) else {
                continue;
            };
            let Some(lba) = self.set.map.block_at((zone, run.start)) else { continue };
            let blocks = self.movable(lba).min(run.end - run.start);
            return Some((lba, self.set.map.run(lba, blocks).1, Some(zone)));
        }
        None
    }

    /// Whether the head of a stream, if it has one, is written to less than its half.
    fn is_young(&self, stream: Stream) -> bool {
        let written = self.set_head(stream).map(|head| self.zones.get(head).wp);
        written.is_none_or(|written| written < self.geometry.zone_blocks() / 2)
    }

    /// Most blocks from `lba` on that are moved at once: they are of one chunk.
    fn movable(&self, lba: u64) -> u32 {
        let zone_blocks = u64::from(self.geometry.zone_blocks());
        let left = onefold_units::convert::narrow(zone_blocks - lba % zone_blocks);
        left.min(self.options.copy_blocks.max(1))
    }

    /// Whether a block that was to be written anew still has to be: the host may have been faster.
    pub(crate) fn has_to_move(&self, lba: u64) -> bool {
        let Some((zone, _)) = self.set.map.place(lba) else { return false };
        let emptied = self.set.rewrite.and_then(|rewrite| rewrite.zone);
        emptied == Some(zone) || self.set.stream(lba, 1).0.is_none()
    }

    /// Whether a part is one of blocks that are written anew.
    pub(crate) fn is_rewritten(&self, part: &Part) -> bool {
        self.set.rewrite.is_some_and(|rewrite| rewrite.request == part.request)
    }

    /// They are written, or cannot be read: then they stay, and it is tried again later.
    pub(crate) fn rewritten(&mut self, request: u64, is_done: bool) -> bool {
        let rewrite = self.set.rewrite.filter(|rewrite| rewrite.request == request);
        let Some(Rewrite { zone, .. }) = rewrite else { return false };
        self.set.rewrite = None;
        match zone.filter(|_| !is_done) {
            Some(zone) => self.quarantine.bar(zone, self.now),
            None if !is_done => self.set.sweep = Some(Sweep::new(self.now + AGAIN)),
            None => {}
        }
        true
    }
}
