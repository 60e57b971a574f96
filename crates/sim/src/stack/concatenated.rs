//! A regular device and a zoned one below one volume: the space of the regular one comes first, as conventional zones.

use onefold_nand::NullMedia;
use onefold_ssd::zns::{Zns, ZnsError, ZoneAction};
use onefold_ssd::{Completion, HostStats, Ssd};
use onefold_units::{CauseCounts, Nanos, Op, ZoneId, ZoneState};
use onefold_volume::{ZoneReport, ZoneStatus};

use super::command::{self, DeviceError};
use crate::series::{Windowed, add};

const BLOCK: u64 = 4096;

/// Two devices in one address space.
pub(crate) struct Concatenated {
    pub(crate) regular: Ssd<NullMedia>,
    pub(crate) zns: Zns<NullMedia>,
    /// What they were asked for, a flush of both twice.
    pub(crate) host: HostStats,
}

impl Concatenated {
    pub(crate) fn new(regular: Ssd<NullMedia>, zns: Zns<NullMedia>) -> Self {
        Self { regular, zns, host: HostStats::default() }
    }

    /// Blocks of both.
    pub(crate) fn blocks(&self) -> u64 {
        let zones = self.pieces() + u64::from(self.zns.config().all_zones());
        zones * u64::from(self.zns.config().zone_blocks)
    }

    /// Conventional zones.
    fn pieces(&self) -> u64 {
        self.regular.capacity() / BLOCK / u64::from(self.zns.config().zone_blocks)
    }

    pub(crate) fn submit(
        &mut self,
        now: Nanos,
        (op, stream): (Op, u16),
        at: u64,
        blocks: u64,
    ) -> Result<Completion, DeviceError> {
        self.host.count(op, blocks);
        let border = self.pieces() * u64::from(self.zns.config().zone_blocks);
        if op == Op::Flush {
            self.host.count(op, 0);
            let regular = command::submit_blocks(&mut self.regular, now, (op, 0), 0, 0)?;
            let zoned = command::submit_zones(&mut self.zns, now, op, 0, 0)?;
            return Ok(if regular.at > zoned.at { regular } else { zoned });
        }
        match at.checked_sub(border) {
            None => command::submit_blocks(&mut self.regular, now, (op, stream), at, blocks),
            Some(at) => command::submit_zones(&mut self.zns, now, op, at, blocks),
        }
    }

    pub(crate) fn manage(
        &mut self,
        now: Nanos,
        zone: ZoneId,
        action: ZoneAction,
    ) -> Result<Completion, DeviceError> {
        match u64::from(zone.raw()).checked_sub(self.pieces()) {
            Some(zone) => {
                let zone = ZoneId::new(onefold_units::convert::narrow(zone));
                command::manage_zone(&mut self.zns, now, zone, action)
            }
            None => {
                Err(DeviceError::Zones(ZnsError::InvalidField { what: "a zone is conventional" }))
            }
        }
    }

    pub(crate) fn report(&self) -> ZoneReport {
        let zoned = command::report_of(&self.zns);
        let capacity = zoned.zone_blocks;
        let piece = ZoneStatus::conventional(ZoneState::NotWritePointer, capacity);
        let pieces = (0..self.pieces()).map(|_| piece);
        ZoneReport { zones: pieces.chain(zoned.zones).collect(), ..zoned }
    }

    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.regular.set_timed(timed);
        self.zns.set_timed(timed);
    }
}

/// Pages of both devices, empty zones of the zoned one.
impl Windowed for Concatenated {
    fn programs(&self) -> CauseCounts {
        let mut sum = self.regular.ftl().stats().programs;
        add(&mut sum, &self.zns.stats().programs);
        sum
    }

    fn erases(&self) -> u64 {
        self.regular.ftl().stats().erases + self.zns.stats().erases
    }

    fn free(&self) -> u32 {
        self.zns.free()
    }
}
