//! Chunks and their zones, as stored and in memory.

use std::ops::Range;

use onefold_format::DmzMapEntry;
use onefold_units::ZoneId;

use crate::device_io::Purpose;
use crate::io::IoKind;
use crate::volume::Volume;
use crate::zones::{Condition, Role};

impl Volume {
    /// `zone` becomes the data zone of a chunk without a buffer.
    pub(crate) fn map_data(&mut self, zone: ZoneId, chunk: u32) {
        self.zones.map(zone, Role::Data, chunk, None);
        self.meta.set_entry(chunk, DmzMapEntry { data: Some(zone), buffer: None });
        self.changes += 1;
    }

    /// `buffer` becomes the buffer zone of the chunk of `data`.
    pub(crate) fn map_buffer(&mut self, data: ZoneId, buffer: ZoneId) {
        let chunk = self.zones.get(data).chunk;
        self.zones.map(buffer, Role::Buffer, chunk, Some(data));
        self.zones.get_mut(data).partner = Some(buffer);
        self.meta.set_entry(chunk, DmzMapEntry { data: Some(data), buffer: Some(buffer) });
        self.changes += 1;
    }

    /// A chunk loses its buffer zone, or its data zone, which must have no buffer then.
    pub(crate) fn unmap(&mut self, zone: ZoneId) {
        let found = self.zones.get(zone);
        let chunk = found.chunk;
        let data = found.partner.filter(|_| found.role == Role::Buffer);
        assert!(found.role == Role::Buffer || found.partner.is_none(), "invariant 2 of zones");
        self.zones.unmap(zone);
        self.meta.set_entry(chunk, DmzMapEntry { data, buffer: None });
    }

    pub(crate) fn validate(&mut self, zone: ZoneId, blocks: Range<u32>) {
        let changed = self.meta.set_valid(zone, blocks, true);
        self.zones.get_mut(zone).weight += changed;
    }

    pub(crate) fn invalidate(&mut self, zone: ZoneId, blocks: Range<u32>) {
        let changed = self.meta.set_valid(zone, blocks, false);
        self.zones.get_mut(zone).weight -= changed;
    }

    /// Gives back a zone that was unmapped.
    ///
    /// Differs from the kernel target, which resets it or gives it to another chunk at once: until the metadata that unmaps it is
    /// durable, a power cut brings the old map back, and what the map points to has to be there. Zones are held until the next
    /// metadata flush, unless `kernel_flush` asks for the kernel's order.
    pub(crate) fn release(&mut self, zone: ZoneId) {
        let all = 0..self.geometry.zone_blocks();
        self.invalidate(zone, all);
        if self.options.kernel_flush {
            self.free_now(zone);
        } else {
            self.held.push(zone);
        }
    }

    /// Resets a zone that needs it; then it is free.
    pub(crate) fn free_now(&mut self, id: ZoneId) {
        let zone = self.zones.get(id);
        match zone.condition {
            Condition::ReadOnly | Condition::Offline => self.retire(id),
            Condition::Suspect => self.rest_zone(id),
            Condition::Good if zone.is_sequential() && zone.wp > 0 => self.ask_for_reset(id),
            Condition::Good => self.zone_free(id),
        }
    }

    pub(crate) fn ask_for_reset(&mut self, id: ZoneId) {
        let zone = self.zones.get(id);
        let (device, start) = (zone.device, zone.start);
        self.ask(IoKind::Reset, (device, start, 0), Purpose::Reset(id), Vec::new());
    }

    /// A zone can be used again: those who wait for one are woken, oldest first.
    pub(crate) fn zone_free(&mut self, zone: ZoneId) {
        let found = self.zones.get_mut(zone);
        found.wp = 0;
        found.condition = Condition::Good;
        self.zones.put_free(zone);
        self.rest.cache_has_room(self.zones.room(0));
        self.changes += 1;
        for chunk in self.queues.take_zone_waiters() {
            self.wake(chunk);
        }
    }

    pub(crate) fn reset_over(&mut self, zone: ZoneId) {
        let device = self.zones.get(zone).device;
        self.stats.devices[crate::geometry::Geometry::at(device)].resets += 1;
        self.quarantine.came_back(self.now);
        self.zone_free(zone);
    }
}
