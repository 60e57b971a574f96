//! Zones that go out of service while the volume is used (invariant 6 of [`crate::volume`]).

use onefold_units::ZoneId;
use onefold_units::convert::u64_from;

use crate::geometry::{Geometry, ZoneKind};
use crate::io::{Io, IoKind};
use crate::volume::Volume;
use crate::zones::{Condition, Role};

impl Volume {
    /// A device could not do something.
    pub(crate) fn io_failed(&mut self, io: &Io) {
        let zone = self.geometry.zone_at(Geometry::at(io.device), io.at);
        let sequential = zone.filter(|zone| self.geometry.kind(*zone) == ZoneKind::Sequential);
        match (io.kind, sequential) {
            (IoKind::Read, _) => {}
            (IoKind::Write | IoKind::Reset, Some(zone)) => self.put_out_of_service(zone),
            _ => self.freeze(),
        }
    }

    fn put_out_of_service(&mut self, id: ZoneId) {
        let zone = self.zones.get_mut(id);
        if zone.condition == Condition::Good {
            zone.condition = Condition::ReadOnly;
            self.stats.failed_zones += 1;
            if self.zones.get(id).is_ailing() {
                self.ailing.push(id);
            }
            self.changes += 1;
        }
    }

    /// A zone that cannot be used is in no list any more.
    pub(crate) fn retire(&mut self, id: ZoneId) {
        self.zones.get_mut(id).role = Role::None;
        self.changes += 1;
    }

    /// A part that its data zone did not take begins again, which leads it to the buffer: nothing was valid in its place.
    pub(crate) fn redirect(&mut self, number: u64) {
        let Some(mut part) = self.parts.remove(&number) else { return };
        part.ios -= 1;
        self.not_appended(&mut part);
        if let Some(zone) = part.zone {
            self.invalidate(zone, part.offset..part.offset + part.blocks);
        }
        self.put_back(number, part);
    }

    /// A data zone that has to leave its sequential zone: the pinned journal's, or one out of service. One that is offline can
    /// do so when nothing in it is valid any more.
    pub(crate) fn displaced(&mut self, device: usize) -> Option<ZoneId> {
        let zones = &self.zones;
        self.ailing.retain(|id| zones.get(*id).is_ailing());
        let can_leave = |id: &ZoneId| {
            let zone = zones.get(*id);
            zone.condition != Condition::Offline || zone.weight == 0 && zone.partner.is_some()
        };
        let ailing = self.ailing.iter().copied().filter(can_leave);
        let here = |id: &ZoneId| Geometry::at(zones.get(*id).device) == device;
        self.misplaced_journal().into_iter().chain(ailing).find(here)
    }

    /// What could not be read out of a zone that is out of service stays there, as if it were offline.
    pub(crate) fn give_up(&mut self, id: ZoneId) {
        let zone = self.zones.get_mut(id);
        if zone.condition == Condition::ReadOnly {
            zone.condition = Condition::Offline;
        }
    }

    /// Mapped zones that are out of service: they cannot be written, and of some the data cannot be read.
    #[must_use]
    pub fn zones_out_of_service(&self) -> u64 {
        u64_from(self.ailing.iter().filter(|id| self.zones.get(**id).is_ailing()).count())
    }
}
