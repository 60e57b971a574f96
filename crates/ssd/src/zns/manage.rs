//! Zone management: open, close, finish, reset, offline.

use onefold_format::ZoneCondition;
use onefold_nand::{Grant, Media};
use onefold_units::{Nanos, ZoneId};

use super::device::{Zns, at_once, host_work};
use super::state::ZoneTable;
use super::{Select, ZnsError, ZoneAction, ZoneState};
use crate::Completion;
use crate::times::join;

impl<M: Media> Zns<M> {
    /// Applies an action to a zone, or to every zone that it changes.
    ///
    /// # Errors
    /// [`ZnsError::ZoneInvalidTransition`] and the limits of open and active zones change nothing. A reset whose erase fails
    /// ends in [`ZnsError::ZoneIsOffline`] if the device has no blocks left for the zone.
    pub fn manage(
        &mut self,
        now: Nanos,
        select: Select,
        action: ZoneAction,
    ) -> Result<Completion, ZnsError> {
        let zones = match select {
            Select::One(zone) => {
                self.check_action(zone, action)?;
                vec![zone]
            }
            Select::All => self.selected(action)?,
        };
        let ready = self.nand.timelines_mut().command(now, 0);
        let mut all = at_once(ready);
        for zone in zones {
            all = join(all, self.apply(now, ready, zone, action)?);
        }
        Ok(Completion { at: all.done, delay: all.delay })
    }

    /// The zones that an action on all of them changes.
    fn selected(&self, action: ZoneAction) -> Result<Vec<ZoneId>, ZnsError> {
        let changes = |zone: &ZoneId| {
            let state = self.table.state(*zone);
            match action {
                ZoneAction::Open => state == ZoneState::Closed,
                ZoneAction::Close => state.is_open(),
                ZoneAction::Finish => state.is_active(),
                ZoneAction::Reset => state.is_active() || state == ZoneState::Full,
                ZoneAction::Offline => state == ZoneState::ReadOnly,
            }
        };
        let zones: Vec<_> = self.table.sequential().filter(changes).collect();
        if action == ZoneAction::Open
            && let Some(max) = self.config.limits.max_open
            && zones.len() + count(&self.table, ZoneState::ExplicitlyOpen)
                > onefold_units::convert::index(max)
        {
            return Err(ZnsError::TooManyOpenZones { max });
        }
        Ok(zones)
    }

    fn apply(
        &mut self,
        now: Nanos,
        ready: Nanos,
        zone: ZoneId,
        action: ZoneAction,
    ) -> Result<Grant, ZnsError> {
        let at = host_work(now, ready);
        match action {
            ZoneAction::Open => {
                let opened = self.table.open(zone)?;
                self.count_opened(opened, false);
            }
            ZoneAction::Close => self.table.close(zone)?,
            ZoneAction::Finish if self.table.state(zone) != ZoneState::Full => {
                let grant = self.pad(at, zone)?;
                self.table.set(zone, ZoneState::Full);
                self.data[zone.index()].condition = ZoneCondition::Finished;
                self.record_zone(zone)?;
                self.unflushed.insert(zone);
                self.stats.finishes += 1;
                return Ok(grant);
            }
            ZoneAction::Reset if self.table.state(zone) != ZoneState::Empty => {
                self.stats.resets += 1;
                return self.empty(now, ready, zone, ZoneCondition::Writable);
            }
            ZoneAction::Offline if self.table.state(zone) != ZoneState::Offline => {
                return self.empty(now, ready, zone, ZoneCondition::Offline);
            }
            ZoneAction::Finish | ZoneAction::Reset | ZoneAction::Offline => {}
        }
        Ok(at_once(ready))
    }

    /// Drops the data of a zone, and erases its blocks.
    fn empty(
        &mut self,
        now: Nanos,
        ready: Nanos,
        zone: ZoneId,
        condition: ZoneCondition,
    ) -> Result<Grant, ZnsError> {
        self.unstage(zone);
        let data = &mut self.data[zone.index()];
        let set = data.set.take();
        data.condition = condition;
        data.resets += 1;
        data.whole = 0;
        data.bytes.clear();
        data.in_flight.clear();
        self.table.empty(zone);
        if condition == ZoneCondition::Offline {
            self.table.set(zone, ZoneState::Offline);
        }
        self.record_zone(zone)?;
        let Some(set) = set else { return Ok(at_once(ready)) };
        let grant = self.erase_set(host_work(now, ready), set)?;
        self.check_supply(zone)?;
        Ok(grant)
    }

    /// After blocks failed: every zone in service must be able to get a set. The one that lost its own has to go.
    fn check_supply(&mut self, zone: ZoneId) -> Result<(), ZnsError> {
        let in_service = self.table.sequential().count() - count(&self.table, ZoneState::Offline);
        let good = onefold_units::convert::index(self.layout.sets() - self.sets.bad());
        if in_service <= good || self.table.state(zone) == ZoneState::Offline {
            return Ok(());
        }
        self.give_up(zone, ZoneCondition::Offline)?;
        Err(ZnsError::ZoneIsOffline { zone })
    }

    /// A fault of the device: from now on a zone can only be read, or not even that.
    ///
    /// # Errors
    /// There is no such zone, or it is offline already; and what the medium reported.
    pub fn fail_zone(&mut self, zone: ZoneId, offline: bool) -> Result<(), ZnsError> {
        self.locate(self.start(zone), 1)?;
        if self.table.state(zone) == ZoneState::Offline {
            return Err(ZnsError::ZoneIsOffline { zone });
        }
        let condition = if offline { ZoneCondition::Offline } else { ZoneCondition::ReadOnly };
        self.give_up(zone, condition)
    }
}

fn count(table: &ZoneTable, state: ZoneState) -> usize {
    table.sequential().filter(|zone| table.state(*zone) == state).count()
}
