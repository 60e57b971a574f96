//! Blocks of the journal zone set that are written anew: what the journal has left goes back to its chunks, and what is left in
//! the oldest zone of a stream that is at its limit moves to the head (zoned.md, section 5).
//!
//! It is one request of the volume to itself at a time. Its parts wait like those of the host, so nothing changes their blocks
//! meanwhile; they read, and then they are writes, which go where their blocks belong.

use onefold_units::ZoneId;
use onefold_units::convert::{narrow, u32_from};

use crate::block_map::Stream;
use crate::io::bytes_of;
use crate::quarantine::AGAIN;
use crate::queues::{HostRequest, Kind, Part};
use crate::volume::Volume;

impl Volume {
    /// Begins to write blocks anew, if there are any.
    pub(crate) fn step_rewrite(&mut self) -> bool {
        if self.frozen || self.closing || self.set.is_rewriting() {
            return false;
        }
        let Some((lba, blocks, zone)) = self.next_swept().or_else(|| self.next_left()) else {
            return false;
        };
        let data = if self.options.bytes { vec![0; bytes_of(blocks)] } else { Vec::new() };
        let request = self.queues.add(HostRequest::new(0, data));
        self.queues.cut(request, Kind::Rewrite, lba, blocks);
        self.set.begin_rewrite(request, zone);
        true
    }

    /// What was read is written to where it belongs.
    pub(crate) fn write_anew(&mut self, mut part: Part) {
        if let Some(zone) = part.zone.take() {
            self.leave(zone);
        }
        part.kind = Kind::Write;
        self.queues.put_back(part);
    }

    /// The next blocks that do not belong in the set: the first one, and how many. They are of no zone in particular.
    fn next_swept(&mut self) -> Option<(u64, u32, Option<ZoneId>)> {
        let (zone_blocks, most) = (self.geometry.zone_blocks(), self.options.copy_blocks.max(1));
        let swept = self.set.next_swept(self.now, |lba| movable(lba, zone_blocks, most))?;
        self.stats.journal_demotions += u64::from(swept.is_first);
        Some((swept.lba, swept.blocks, None))
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
            let (zone_blocks, copied) =
                (self.geometry.zone_blocks(), self.options.copy_blocks.max(1));
            let blocks = movable(lba, zone_blocks, copied).min(run.end - run.start);
            return Some((lba, self.set.map.run(lba, blocks).1, Some(zone)));
        }
        None
    }

    /// Whether the head of a stream, if it has one, is written to less than its half.
    fn is_young(&self, stream: Stream) -> bool {
        let written = self.set_head(stream).map(|head| self.zones.get(head).wp);
        written.is_none_or(|written| written < self.geometry.zone_blocks() / 2)
    }

    /// Whether a part is one of blocks that are written anew.
    pub(crate) fn is_rewritten(&self, part: &Part) -> bool {
        self.set.is_rewritten_by(part.request)
    }

    /// They are written, or cannot be read: then they stay, and it is tried again later.
    pub(crate) fn rewritten(&mut self, request: u64, is_done: bool) -> bool {
        if !self.set.is_rewritten_by(request) {
            return false;
        }
        match self.set.end_rewrite() {
            _ if is_done => {}
            Some(zone) => self.quarantine.bar(zone, self.now),
            None => self.set.sweep_at(self.now + AGAIN),
        }
        true
    }
}

/// Most blocks from `lba` on that are moved at once, which are of one chunk.
fn movable(lba: u64, zone_blocks: u32, most: u32) -> u32 {
    let zone_blocks = u64::from(zone_blocks);
    narrow((zone_blocks - lba % zone_blocks).min(most.into()))
}
