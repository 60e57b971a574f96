//! The state machine of zones: who may become what, and which resources that takes (zoned.md section 2).
//!
//! ```text
//! empty -> implicitly or explicitly open <-> closed -> full -> empty        any -> read only -> offline
//! ```
//!
//! Conventional zones have no write pointer; they can only become read only and offline.
//!
//! 1. Active zones are the open and the closed ones; there are never more than `max_active`. Open zones are the
//!    implicitly and the explicitly open ones; there are never more than `max_open`.
//! 2. A command that is refused changes no zone.
//! 3. The write pointer of a zone only grows, until the zone is reset.

use std::collections::BTreeMap;

use onefold_units::ZoneId;
pub use onefold_units::ZoneState;
use onefold_units::convert::{index, u32_from};

use super::{ZnsConfig, ZnsError, ZoneAction, ZoneLimits};

#[derive(Clone, Copy, Debug)]
struct Zone {
    state: ZoneState,
    /// 4 KiB blocks written since the last reset.
    written: u32,
    /// Place of an implicitly open zone among those.
    opened: u64,
}

/// The states and write pointers of all zones.
#[derive(Clone, Debug)]
pub(crate) struct ZoneTable {
    zones: Vec<Zone>,
    /// Conventional zones, which come first.
    conventional: u32,
    limits: ZoneLimits,
    /// 4 KiB blocks of addresses of a zone, which a conventional one takes.
    size: u32,
    /// 4 KiB blocks that a sequential zone takes.
    capacity: u32,
    open: u32,
    active: u32,
    /// Implicitly open zones, the one opened first in front.
    implicit: BTreeMap<u64, ZoneId>,
    next_opened: u64,
}

impl ZoneTable {
    /// Empty zones behind conventional ones.
    pub(crate) fn new(config: &ZnsConfig) -> Self {
        let zone = |state| Zone { state, written: 0, opened: 0 };
        let conventional = config.conventional_zones();
        let mut zones = vec![zone(ZoneState::Empty); index(config.all_zones())];
        zones[..index(conventional)].fill(zone(ZoneState::NotWritePointer));
        Self {
            zones,
            conventional,
            limits: config.limits,
            size: config.zone_blocks,
            capacity: config.capacity_blocks,
            open: 0,
            active: 0,
            implicit: BTreeMap::new(),
            next_opened: 0,
        }
    }

    pub(crate) fn state(&self, id: ZoneId) -> ZoneState {
        self.zones[id.index()].state
    }

    pub(crate) fn written(&self, id: ZoneId) -> u32 {
        self.zones[id.index()].written
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ZoneId> + use<> {
        (0..u32_from(self.zones.len())).map(ZoneId::new)
    }

    /// Zones with write pointers.
    pub(crate) fn sequential(&self) -> impl Iterator<Item = ZoneId> + use<> {
        (self.conventional..u32_from(self.zones.len())).map(ZoneId::new)
    }

    pub(crate) const fn is_conventional(&self, id: ZoneId) -> bool {
        id.raw() < self.conventional
    }

    /// Blocks that a zone takes.
    pub(crate) const fn capacity(&self, id: ZoneId) -> u32 {
        if self.is_conventional(id) { self.size } else { self.capacity }
    }

    /// Open and active zones.
    pub(crate) const fn resources(&self) -> (u32, u32) {
        (self.open, self.active)
    }

    /// Whether `blocks` can be written at block `at` of a zone; `None` stands for its write pointer. The order of the
    /// checks is that of QEMU's device.
    pub(crate) fn check_write(
        &self,
        id: ZoneId,
        at: Option<u32>,
        blocks: u32,
    ) -> Result<(), ZnsError> {
        let Zone { state, written, .. } = self.zones[id.index()];
        match state {
            ZoneState::Full => return Err(ZnsError::ZoneIsFull { zone: id }),
            ZoneState::ReadOnly => return Err(ZnsError::ZoneIsReadOnly { zone: id }),
            ZoneState::Offline => return Err(ZnsError::ZoneIsOffline { zone: id }),
            _ => {}
        }
        let begin = match at {
            None if self.is_conventional(id) => {
                let what = "an append to a conventional zone, expected one with a write pointer";
                return Err(ZnsError::InvalidField { what });
            }
            Some(at) if self.is_conventional(id) => at,
            Some(at) if at != written => {
                return Err(ZnsError::ZoneInvalidWrite { zone: id, at, write_pointer: written });
            }
            _ => written,
        };
        let limit = self.capacity(id);
        if blocks > limit - begin {
            let end = u64::from(begin) + u64::from(blocks);
            return Err(ZnsError::ZoneBoundary { zone: id, end, limit });
        }
        Ok(())
    }

    /// Opens a zone for a write that [`ZoneTable::check_write`] allows.
    pub(crate) fn open_for_write(&mut self, id: ZoneId) -> Result<Opened, ZnsError> {
        if self.state(id).is_open() {
            return Ok(Opened::Was);
        }
        let victim = self.make_room(id)?;
        self.set(id, ZoneState::ImplicitlyOpen);
        Ok(Opened::Now { closed: victim })
    }

    /// Opens a zone for good.
    pub(crate) fn open(&mut self, id: ZoneId) -> Result<Opened, ZnsError> {
        match self.state(id) {
            ZoneState::ExplicitlyOpen => Ok(Opened::Was),
            ZoneState::ImplicitlyOpen => {
                self.set(id, ZoneState::ExplicitlyOpen);
                Ok(Opened::Was)
            }
            ZoneState::Empty | ZoneState::Closed => {
                let victim = self.make_room(id)?;
                self.set(id, ZoneState::ExplicitlyOpen);
                Ok(Opened::Now { closed: victim })
            }
            state => Err(invalid(id, ZoneAction::Open, state)),
        }
    }

    /// Makes sure that one more zone can be open (invariant 1), and says which zone was closed for it: the implicitly
    /// open one that was opened first.
    fn make_room(&mut self, id: ZoneId) -> Result<Option<ZoneId>, ZnsError> {
        let is_new = !self.state(id).is_active();
        if let Some(max) = self.limits.max_active
            && is_new
            && self.active >= max
        {
            return Err(ZnsError::TooManyActiveZones { max });
        }
        let Some(max) = self.limits.max_open.filter(|max| self.open >= *max) else {
            return Ok(None);
        };
        let Some((_, &victim)) = self.implicit.first_key_value() else {
            return Err(ZnsError::TooManyOpenZones { max });
        };
        self.set(victim, ZoneState::Closed);
        Ok(Some(victim))
    }

    /// Closes a zone.
    pub(crate) fn close(&mut self, id: ZoneId) -> Result<(), ZnsError> {
        match self.state(id) {
            ZoneState::Closed => Ok(()),
            state if state.is_open() => {
                self.set(id, ZoneState::Closed);
                Ok(())
            }
            state => Err(invalid(id, ZoneAction::Close, state)),
        }
    }

    /// Whether an action can be applied to a zone, resources aside.
    pub(crate) fn check(&self, id: ZoneId, action: ZoneAction) -> Result<(), ZnsError> {
        if self.is_conventional(id) {
            // As ZBC has it; NVMe knows no conventional zones.
            let what = "an action on a conventional zone, expected one with a write pointer";
            return Err(ZnsError::InvalidField { what });
        }
        let state = self.state(id);
        let legal = match action {
            ZoneAction::Open => state.is_active() || state == ZoneState::Empty,
            ZoneAction::Close => state.is_active(),
            ZoneAction::Finish | ZoneAction::Reset => {
                !matches!(state, ZoneState::ReadOnly | ZoneState::Offline)
            }
            ZoneAction::Offline => matches!(state, ZoneState::ReadOnly | ZoneState::Offline),
        };
        if legal { Ok(()) } else { Err(invalid(id, action, state)) }
    }

    /// `blocks` were written. At its capacity a zone is full.
    pub(crate) fn advance(&mut self, id: ZoneId, blocks: u32) {
        let zone = &mut self.zones[id.index()];
        zone.written += blocks;
        assert!(zone.written <= self.capacity, "{id:?} is written past its capacity");
        if zone.written == self.capacity {
            self.set(id, ZoneState::Full);
        }
    }

    /// Nothing is written any more.
    pub(crate) fn empty(&mut self, id: ZoneId) {
        self.set(id, ZoneState::Empty);
        self.zones[id.index()].written = 0;
    }

    /// The zone as recovery found it.
    pub(crate) fn restore(&mut self, id: ZoneId, state: ZoneState, written: u32) {
        self.set(id, state);
        self.zones[id.index()].written = written;
    }

    /// Puts a zone into a state that was judged before.
    pub(crate) fn set(&mut self, id: ZoneId, state: ZoneState) {
        let zone = &mut self.zones[id.index()];
        let before = zone.state;
        zone.state = state;
        if before == ZoneState::ImplicitlyOpen {
            self.implicit.remove(&zone.opened);
        }
        if state == ZoneState::ImplicitlyOpen {
            zone.opened = self.next_opened;
            self.next_opened += 1;
            self.implicit.insert(zone.opened, id);
        }
        self.open = self.open + u32::from(state.is_open()) - u32::from(before.is_open());
        self.active = self.active + u32::from(state.is_active()) - u32::from(before.is_active());
    }
}

/// What opening a zone did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// It was open.
    Was,
    /// It is open now, and another one was closed for it.
    Now {
        /// Which one.
        closed: Option<ZoneId>,
    },
}

const fn invalid(zone: ZoneId, action: ZoneAction, state: ZoneState) -> ZnsError {
    ZnsError::ZoneInvalidTransition { zone, action, state }
}
