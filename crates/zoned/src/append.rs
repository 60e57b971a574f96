//! Journal blocks in sequential zones (zoned.md, section 5).
//!
//! Two streams: the ring of the journal, and what of it is rewritten at any time. A write goes to the head of its stream, the last
//! zone of it, at the write pointer; when it is there, the block map says so and the old block is not valid any more. Until then
//! the old one counts, so a write that fails takes nothing away. A zone that is full and has no valid block is given back like
//! any other: it is reset when durable metadata is without it.

use onefold_units::ZoneId;
use onefold_units::convert::{index, u64_from};

use crate::block_map::Stream;
use crate::device_io::Purpose;
use crate::geometry::Geometry;
use crate::io::IoKind;
use crate::queues::{Begun, Kind, Part};
use crate::stats::{Sent, WaitReason};
use crate::volume::Volume;
use crate::zones::{Condition, Role};

impl Volume {
    /// Leaves of a part that begins what is alike to the journal zone set; the rest begins after it.
    pub(crate) fn cut(&mut self, part: &mut Part) {
        let blocks = if part.zone.is_some() { part.blocks } else { self.uniform(part) };
        if blocks < part.blocks {
            self.queues.shorten(part, blocks);
        }
    }

    /// How many blocks from the first one of a part on begin alike: they go to one stream, or lie in one zone of the set, or
    /// have nothing to do with it.
    fn uniform(&self, part: &Part) -> u32 {
        let lba = self.lba(part.chunk, part.offset);
        if part.kind != Kind::Write {
            return if self.set.map.is_empty() {
                part.blocks
            } else {
                self.set.map.run(lba, part.blocks).1
            };
        }
        let (stream, blocks) = self.set.stream(lba, part.blocks);
        let stream = stream.filter(|_| !self.rests(part));
        let Some(head) = stream.and_then(|stream| self.set_head(stream)) else { return blocks };
        blocks.min(self.geometry.zone_blocks() - self.zones.get(head).wp)
    }

    /// Begins a part that has to do with the set; `None` if it has not.
    pub(crate) fn begin_in_set(&mut self, number: u64, part: &mut Part) -> Option<Begun> {
        let lba = self.lba(part.chunk, part.offset);
        match part.kind {
            Kind::Write => {
                let stream = self.set.stream(lba, 1).0.filter(|_| !self.rests(part))?;
                self.append(number, part, stream)
            }
            Kind::Rewrite if !self.set.has_to_move(lba) => Some(Begun::Yes),
            Kind::Read | Kind::Rewrite => {
                let (zone, at) = self.set.map.place(lba)?;
                self.read_from_set(number, part, (zone, at));
                Some(Begun::Yes)
            }
            Kind::Discard => {
                self.set.map.place(lba)?;
                self.forget(part);
                Some(Begun::Yes)
            }
        }
    }

    fn read_from_set(&mut self, number: u64, part: &mut Part, (id, at): (ZoneId, u32)) {
        let zone = self.zones.get_mut(id);
        zone.active += 1;
        let (device, place) = (zone.device, zone.start + u64::from(at));
        self.note_access(Geometry::at(device));
        let stats = &mut self.stats.devices[index(device)];
        let count =
            if part.kind == Kind::Read { &mut stats.read } else { &mut stats.read_for_copying };
        *count += u64::from(part.blocks);
        part.zone = Some(id);
        part.ios += 1;
        let purpose = Purpose::PartRead { part: number, at: part.at };
        self.ask(IoKind::Read, (device, place, part.blocks), purpose, Vec::new());
    }

    /// Writes a part to the head of a stream; `None` if no zone can be had for it, so that it goes to its chunk.
    fn append(&mut self, number: u64, part: &mut Part, stream: Stream) -> Option<Begun> {
        let head = match self.set_head(stream) {
            Some(head) => head,
            None if !self.set.may_grow() => return None,
            None => match self.zones.take_for_journal() {
                Some(zone) => {
                    self.zones.get_mut(zone).role = Role::Journal;
                    self.set.map.open(zone, stream);
                    zone
                }
                None if self.will_free() => return Some(Begun::Sleep(WaitReason::FreeZone)),
                None => return None,
            },
        };
        let zone = self.zones.get_mut(head);
        let (device, start, at) = (zone.device, zone.start, zone.wp);
        zone.active += 1;
        zone.wp += part.blocks;
        (part.zone, part.appended_at) = (Some(head), Some(at));
        part.ios += 1;
        self.count_dying(part, true);
        if stream == Stream::Log && !self.is_rewritten(part) {
            self.stats.note_journal(self.now, head);
        }
        let cause = if self.is_rewritten(part) {
            Sent::JournalCopied
        } else {
            self.count_for_rest(part.blocks.into(), part.blocks.into());
            Sent::JournalAppended
        };
        self.stats.count(device, cause, part.blocks.into());
        self.note_access(Geometry::at(device));
        self.writes_under_way += 1;
        let bytes = self.queues.bytes(part);
        let place = (device, start + u64::from(at), part.blocks);
        self.ask(IoKind::Write, place, Purpose::PartWrite { part: number }, bytes);
        Some(Begun::Yes)
    }

    /// The zone that a stream is appended to: its last one, unless that is full or out of service.
    #[must_use]
    pub fn set_head(&self, stream: Stream) -> Option<ZoneId> {
        if !self.set.appends() {
            return None;
        }
        let last = self.set.map.zones().iter().rev().find(|one| one.stream == stream)?;
        let zone = self.zones.get(last.zone);
        let takes = zone.condition == Condition::Good && zone.wp < self.geometry.zone_blocks();
        takes.then_some(last.zone)
    }

    /// Whether a sequential zone was given back that will be free when metadata without it is durable, or is being reset.
    fn will_free(&self) -> bool {
        self.held.iter().any(|zone| self.zones.get(*zone).is_sequential())
            || self.ios.is_resetting()
    }

    /// Valid blocks that a write under way takes the place of are as good as gone.
    pub(crate) fn count_dying(&mut self, part: &Part, begins: bool) {
        let lba = self.lba(part.chunk, part.offset);
        for lba in lba..lba + u64::from(part.blocks) {
            let Some((zone, _)) = self.set.map.place(lba) else { continue };
            if let Some(zone) = self.set.map.zone_mut(zone) {
                zone.dying = if begins { zone.dying + 1 } else { zone.dying - 1 };
            }
        }
    }

    /// What was appended is there: it lies nowhere else any more.
    pub(crate) fn appended(&mut self, part: &Part) {
        let (Some(zone), Some(at)) = (part.zone, part.appended_at) else { return };
        self.count_dying(part, false);
        let blocks = part.offset..part.offset + part.blocks;
        let entry = self.meta.entry(part.chunk);
        if let Some(data) = entry.data {
            self.invalidate(data, blocks.clone());
            if let Some(buffer) = entry.buffer {
                self.invalidate(buffer, blocks.clone());
            }
            self.free_if_empty(data);
            self.unpin_if_left(part.chunk);
        }
        for (after, offset) in (0..).zip(blocks) {
            let lba = self.lba(part.chunk, offset);
            let spot = (zone, at + after);
            if let Some(old) = self.set.map.put(lba, spot) {
                self.drop_spot(old);
            }
        }
        self.validate(zone, at..at + part.blocks);
        // The journal may have been said to be elsewhere when this was on its way.
        let lba = self.lba(part.chunk, part.offset);
        let (stream, alike) = self.set.stream(lba, part.blocks);
        if stream.is_none() || alike < part.blocks {
            self.set.sweep_from(lba, self.now);
        }
    }

    /// What was to be appended is not there.
    pub(crate) fn not_appended(&mut self, part: &mut Part) {
        if part.appended_at.take().is_some() {
            self.count_dying(part, false);
            if let Some(zone) = part.zone.take() {
                self.leave(zone);
            }
        }
    }

    /// Blocks of a part lie in the set no more.
    pub(crate) fn forget(&mut self, part: &Part) {
        if self.set.map.is_empty() {
            return;
        }
        let lba = self.lba(part.chunk, part.offset);
        for lba in lba..lba + u64::from(part.blocks) {
            if let Some(old) = self.set.map.take(lba) {
                self.drop_spot(old);
            }
        }
    }

    fn drop_spot(&mut self, (zone, at): (ZoneId, u32)) {
        self.invalidate(zone, at..at + 1);
        self.close_set_zone(zone);
    }

    /// Gives back a zone of the set that has no valid block, is not the head of its stream, and is not in use.
    pub(crate) fn close_set_zone(&mut self, id: ZoneId) {
        let zone = self.zones.get(id);
        let is_over = zone.role == Role::Journal && zone.active == 0 && zone.weight == 0;
        let is_head = [Stream::Log, Stream::Hot].iter().any(|one| self.set_head(*one) == Some(id));
        if !is_over || is_head {
            return;
        }
        self.set.map.close(id);
        self.zones.get_mut(id).role = Role::Held;
        self.release(id);
        self.changes += 1;
        self.drop_map_if_empty();
    }

    /// Gives back every zone of the set that can be.
    pub(crate) fn close_set_zones(&mut self) {
        let zones: Vec<ZoneId> = self.set.map.zones().iter().map(|one| one.zone).collect();
        for zone in zones {
            self.close_set_zone(zone);
        }
        self.drop_map_if_empty();
    }

    /// A journal that is gone leaves the format of the kernel behind.
    fn drop_map_if_empty(&mut self) {
        if !self.set.appends() && self.set.map.zones().is_empty() {
            self.set.map.drop_if_empty();
            self.flush.want(self.set.map.is_dirty());
        }
    }

    /// Zones of a stream with blocks that nothing under way takes the place of, the head apart, oldest first.
    pub(crate) fn behind_head(&self, stream: Stream) -> Vec<ZoneId> {
        let head = self.set_head(stream);
        let zones = self.set.map.zones().iter();
        let behind = zones.filter(|one| {
            one.stream == stream
                && Some(one.zone) != head
                && self.zones.get(one.zone).weight > one.dying
        });
        behind.map(|one| one.zone).filter(|zone| !self.quarantine.is_barred(*zone)).collect()
    }

    /// Zones of the set by stream.
    #[must_use]
    pub fn set_zones(&self, stream: Stream) -> u64 {
        u64_from(self.set.map.zones().iter().filter(|one| one.stream == stream).count())
    }
}
