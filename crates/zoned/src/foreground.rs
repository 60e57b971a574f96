//! What a part of a request does (zoned.md, section 3, "Foreground request").

use onefold_units::ZoneId;
use onefold_units::convert::index;

use crate::device_io::Purpose;
use crate::geometry::Geometry;
use crate::io::{Failure, IoFailed, IoKind};
use crate::queues::{Begun, Kind, Part};
use crate::stats::WaitReason;
use crate::volume::Volume;
use crate::zones::{Condition, Role};

impl Volume {
    /// Begins a part, whose number is `number` from now on.
    pub(crate) fn begin(&mut self, number: u64, part: &mut Part) -> Begun {
        if self.damaged.contains(&part.chunk) {
            return Begun::Failed(Failure::Damaged);
        }
        let zone = if let Some(zone) = part.zone {
            zone
        } else if let Some(begun) = self.begin_in_set(number, part) {
            return begun;
        } else {
            match self.enter(part) {
                Ok(Some(zone)) => zone,
                Ok(None) => return Begun::Yes,
                Err(reason) => return Begun::Sleep(reason),
            }
        };
        match part.kind {
            Kind::Read | Kind::Rewrite => self.begin_read(number, part, zone),
            Kind::Write => return self.begin_write(number, part, zone),
            Kind::Discard => self.discard(part, zone),
        }
        Begun::Yes
    }

    /// Makes a part active in the data zone of its chunk; `None` if it needs none.
    fn enter(&mut self, part: &mut Part) -> Result<Option<ZoneId>, WaitReason> {
        let zone = match self.meta.entry(part.chunk).data {
            Some(zone) => zone,
            None if part.kind != Kind::Write => return Ok(None),
            None => {
                let zone = self.take_zone().ok_or(WaitReason::FreeZone)?;
                self.map_data(zone, part.chunk);
                zone
            }
        };
        // What reclaim was doing when the volume froze is never done: the zone still has its blocks.
        if self.zones.get(zone).locked && !self.frozen {
            self.zones.get_mut(zone).terminate = true;
            return Err(WaitReason::Reclaim);
        }
        self.zones.get_mut(zone).active += 1;
        part.zone = Some(zone);
        self.zones.rotate(zone);
        if let Some(buffer) = self.zones.get(zone).partner {
            self.zones.rotate(buffer);
        }
        self.note_access(Geometry::at(self.zones.get(zone).device));
        Ok(Some(zone))
    }

    /// A zone for new data of a chunk. Whoever asks for one has reclaim looked after.
    pub(crate) fn take_zone(&mut self) -> Option<ZoneId> {
        self.schedule_reclaim();
        let zone = self.zones.take_for_chunk();
        if zone.is_none() {
            self.rest.cache_gave_out();
        }
        zone
    }

    fn begin_read(&mut self, number: u64, part: &mut Part, data: ZoneId) {
        let buffer = self.zones.get(data).partner;
        let wp = self.zones.get(data).wp;
        let end = part.offset + part.blocks;
        let limit = if self.zones.get(data).is_sequential() { wp.min(end) } else { end };
        let mut at = part.offset;
        while at < end {
            let mut source = None;
            let mut len = end - at;
            if at < limit {
                let (valid, run) = self.meta.run(data, at..limit);
                source = valid.then_some(data);
                len = run;
            }
            if let Some(buffer) = buffer.filter(|_| source.is_none()) {
                let (valid, run) = self.meta.run(buffer, at..at + len);
                source = valid.then_some(buffer);
                len = run;
            }
            if let Some(source) = source {
                let zone = self.zones.get(source);
                let place = (zone.device, zone.start + u64::from(at), len);
                let to = part.at + at - part.offset;
                self.stats.devices[index(zone.device)].read += u64::from(len);
                part.ios += 1;
                let purpose = Purpose::PartRead { part: number, at: to };
                self.ask(IoKind::Read, place, purpose, Vec::new());
            }
            at += len;
        }
    }

    fn begin_write(&mut self, number: u64, part: &mut Part, data: ZoneId) -> Begun {
        let zone = self.zones.get(data);
        let good = zone.condition == Condition::Good;
        if !good && !zone.is_sequential() {
            return Begun::Failed(Failure::Device(IoFailed::Error));
        }
        let direct = !zone.is_sequential() || good && zone.wp == part.offset;
        let target = if direct {
            data
        } else {
            let Some(buffer) = zone.partner.or_else(|| self.take_zone()) else {
                return Begun::Sleep(WaitReason::FreeZone);
            };
            if self.zones.get(buffer).role != Role::Buffer {
                self.map_buffer(data, buffer);
            }
            buffer
        };
        let zone = self.zones.get_mut(target);
        if zone.is_sequential() {
            zone.wp += part.blocks;
        }
        // Nobody frees it meanwhile, though it may have no valid block yet.
        zone.active += 1;
        part.target = Some(target);
        let (device, start) = (zone.device, zone.start);
        self.count_written(part, target);
        part.ios += 1;
        self.writes_under_way += 1;
        let bytes = self.queues.bytes(part);
        let place = (device, start + u64::from(part.offset), part.blocks);
        self.ask(IoKind::Write, place, Purpose::PartWrite { part: number }, bytes);
        Begun::Yes
    }

    /// A part is written, or cannot be.
    pub(crate) fn part_written(&mut self, number: u64, result: Result<(), IoFailed>) {
        let Some((part, target)) = self.queues.take_target(number) else { return };
        let zone = target.or_else(|| part.zone.filter(|_| part.appended_at.is_some()));
        let is_refused = result.is_err()
            && !self.frozen
            && zone.is_some_and(|zone| self.zones.get(zone).is_sequential());
        if let Some(target) = target {
            self.zones.get_mut(target).active -= 1;
            if result.is_ok() {
                self.written(&part, target);
            }
        }
        if is_refused {
            self.redirect(number);
            return;
        }
        if result.is_ok() {
            self.appended(&part);
        } else if part.appended_at.is_some() {
            self.count_dying(&part, false);
        }
        self.part_io_over(number, result);
    }

    /// A part is in a zone of its chunk, and nowhere else any more.
    pub(crate) fn written(&mut self, part: &Part, target: ZoneId) {
        let blocks = part.offset..part.offset + part.blocks;
        let entry = self.meta.entry(part.chunk);
        self.validate(target, blocks.clone());
        let zones = [entry.data, entry.buffer].into_iter().flatten();
        for other in zones.filter(|zone| *zone != target) {
            self.invalidate(other, blocks.clone());
        }
        self.forget(part);
    }

    fn discard(&mut self, part: &Part, data: ZoneId) {
        let blocks = part.offset..part.offset + part.blocks;
        self.invalidate(data, blocks.clone());
        if let Some(buffer) = self.zones.get(data).partner {
            self.invalidate(buffer, blocks);
        }
    }

    /// A part is no longer active in its data zone: zones without valid blocks are given back.
    pub(crate) fn leave(&mut self, data: ZoneId) {
        let zone = self.zones.get_mut(data);
        zone.active -= 1;
        let chunk = zone.chunk;
        if zone.role == Role::Journal {
            self.close_set_zone(data);
        } else {
            self.free_if_empty(data);
            self.unpin_if_left(chunk);
        }
        self.changes += 1;
    }

    /// Gives back the zones of a chunk that have no valid block, unless reclaim has the chunk.
    pub(crate) fn free_if_empty(&mut self, data: ZoneId) {
        let zone = self.zones.get(data);
        if zone.locked {
            return;
        }
        let (chunk, idle, weight) = (zone.chunk, zone.active == 0, zone.weight);
        let mut buffer = zone.partner;
        let is_empty = |zone: &ZoneId| self.zones.get(*zone).weight == 0;
        let is_idle = |zone: &ZoneId| self.zones.get(*zone).active == 0;
        if let Some(empty) = buffer.filter(is_empty).filter(is_idle) {
            self.unmap(empty);
            self.release(empty);
            buffer = None;
        }
        if idle && buffer.is_none() && weight == 0 && !self.pinned.contains(&chunk) {
            self.unmap(data);
            self.release(data);
        }
    }
}
