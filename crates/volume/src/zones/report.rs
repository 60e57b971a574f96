//! What a zoned backing says of itself (zoned.md, section 2).

use onefold_units::convert::index;
use onefold_units::{ZoneId, ZoneState};

use super::ZoneError;

/// A zone as the backing reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneStatus {
    /// It has no write pointer: its blocks are written anywhere, it is never reset or finished, and takes none of the open or active
    /// zones. Its state is full, read-only or offline.
    pub conventional: bool,
    /// Where it is in its life.
    pub state: ZoneState,
    /// Blocks behind its start that were written: where the next write has to begin. Nothing where the zone is full, read-only or
    /// offline, as the backing does not say it then.
    pub written: u32,
    /// Blocks that can be written, from its start on.
    pub capacity: u32,
}

/// All zones of a backing. Zone `n` begins at block `n * zone_blocks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Addresses of a zone in blocks of 4 KiB.
    pub zone_blocks: u32,
    /// Zones that may be open at once; `None`: all.
    pub max_open: Option<u32>,
    /// Zones that may be open or closed at once, that is written in part; `None`: all.
    pub max_active: Option<u32>,
    /// The zones in order.
    pub zones: Vec<ZoneStatus>,
}

impl ZoneStatus {
    /// What a zone is that the backing does not tell of.
    const NONE: Self =
        Self { conventional: false, state: ZoneState::Offline, written: 0, capacity: 0 };

    /// A conventional zone: one that is in service counts as full, as it has no write pointer.
    #[must_use]
    pub const fn conventional(state: ZoneState, capacity: u32) -> Self {
        let state = match state {
            ZoneState::ReadOnly | ZoneState::Offline => state,
            _ => ZoneState::Full,
        };
        Self { conventional: true, state, written: 0, capacity }
    }

    /// Blocks that may hold something.
    pub(crate) const fn end(&self) -> u32 {
        match self.state {
            ZoneState::Full | ZoneState::ReadOnly => self.capacity,
            ZoneState::Offline => 0,
            _ => self.written,
        }
    }

    /// Whether it has to be reset before it is written from its start.
    pub(crate) const fn has_to_be_reset(&self) -> bool {
        self.is_writable() && !self.conventional && !matches!(self.state, ZoneState::Empty)
    }

    /// Whether it can be written, now or after a reset.
    pub(crate) const fn is_writable(&self) -> bool {
        !matches!(self.state, ZoneState::ReadOnly | ZoneState::Offline)
    }
}

impl ZoneReport {
    /// One zone; offline if there is none with that number.
    #[must_use]
    pub fn status(&self, zone: u32) -> ZoneStatus {
        self.zones.get(index(zone)).copied().unwrap_or(ZoneStatus::NONE)
    }

    /// Zones with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ZoneId, ZoneStatus)> + '_ {
        (0..).map(ZoneId::new).zip(self.zones.iter().copied())
    }

    /// Zones that may be written in part at once; `None`: all.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        self.max_open.into_iter().chain(self.max_active).min()
    }

    /// Zones that hold something, which making a volume would destroy. Conventional ones do not say whether they do.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.zones.iter().filter(|zone| zone.has_to_be_reset()).count()
    }

    /// What each zone takes at least, in blocks: conventional ones may take more than the others.
    ///
    /// # Errors
    /// The first zone that takes something else than those before it.
    pub fn capacity(&self) -> Result<u32, ZoneError> {
        let sequential = || self.zones.iter().filter(|zone| !zone.conventional);
        let expected = sequential().chain(&self.zones).next().map_or(0, |zone| zone.capacity);
        let differs = |zone: &ZoneStatus| {
            if zone.conventional { zone.capacity < expected } else { zone.capacity != expected }
        };
        match self.iter().find(|(_, status)| differs(status)) {
            None => Ok(expected),
            Some((zone, status)) => {
                Err(ZoneError::Capacity { zone, found: status.capacity, expected })
            }
        }
    }
}
