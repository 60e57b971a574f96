//! Zones that fail while the volume is used (invariant 6 of [`crate::volume`]).
//!
//! 1. A sequential zone that refused a write, however often it was sent, is suspect: where its write pointer is, nobody knows. It
//!    takes nothing more. What it holds can be read, and moves to the cache.
//! 2. When it is empty, it rests: a second after the first failure, four times as long after each further one, a minute at
//!    most. Then it is reset and used again. So it is with a zone that could not be reset.
//! 3. A chunk or a journal zone of which something could not be read or copied is left alone by reclaim for a minute. Nothing of
//!    it is given up ([`crate::quarantine`]).

use onefold_units::ZoneId;
use onefold_units::convert::u64_from;

use crate::geometry::{Geometry, ZoneKind};
use crate::io::{Io, IoKind};
use crate::volume::Volume;
use crate::zones::{Condition, Role};

impl Volume {
    /// A device could not do something, however often it was asked.
    pub(crate) fn io_failed(&mut self, io: &Io) {
        let zone = self.geometry.zone_at(Geometry::at(io.device), io.at);
        let sequential = zone.filter(|zone| self.geometry.kind(*zone) == ZoneKind::Sequential);
        match (io.kind, sequential) {
            (IoKind::Flush, _) => self.freeze(),
            (IoKind::Write | IoKind::Reset, Some(zone)) => self.suspect(zone),
            _ => {}
        }
    }

    fn suspect(&mut self, id: ZoneId) {
        let zone = self.zones.get_mut(id);
        if zone.condition == Condition::Good {
            zone.condition = Condition::Suspect;
            zone.strikes = zone.strikes.saturating_add(1);
            self.stats.failed_zones += 1;
            if self.zones.get(id).is_ailing() {
                self.ailing.push(id);
            }
            self.changes += 1;
        }
    }

    /// An empty zone rests before it is reset (invariant 2).
    pub(crate) fn rest_zone(&mut self, id: ZoneId) {
        self.quarantine.rest(id, self.zones.get(id).strikes, self.now);
    }

    pub(crate) fn reset_failed(&mut self, id: ZoneId) {
        let zone = self.zones.get_mut(id);
        zone.condition = Condition::Good;
        self.suspect(id);
        self.rest_zone(id);
    }

    /// Looks again at what was left alone long enough.
    pub(crate) fn step_quarantine(&mut self) {
        if self.frozen || self.closing {
            return;
        }
        while let Some(zone) = self.quarantine.next_rested(self.now) {
            self.ask_for_reset(zone);
        }
        if self.quarantine.unbar(self.now) {
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
        let Some(mut part) = self.queues.stop(number) else { return };
        part.ios -= 1;
        self.not_appended(&mut part);
        self.queues.put_back(part);
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
        let here = |id: &ZoneId| {
            let zone = zones.get(*id);
            let is_damaged = self.damaged.contains(&zone.chunk);
            Geometry::at(zone.device) == device && !self.quarantine.is_barred(*id) && !is_damaged
        };
        self.misplaced_journal().into_iter().chain(ailing).find(here)
    }

    /// Mapped zones that take nothing now: what they hold moves to the cache if it can be read.
    #[must_use]
    pub fn zones_out_of_service(&self) -> u64 {
        u64_from(self.ailing.iter().filter(|id| self.zones.get(**id).is_ailing()).count())
    }
}
