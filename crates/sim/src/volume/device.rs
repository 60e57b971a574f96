//! What a volume lies on in the simulator: a block namespace, zones, or both.

use onefold_nand::NullMedia;
use onefold_ssd::zns::{Select, Zns, ZnsConfig, ZnsError, ZnsMedia, ZnsStats, ZoneAction};
use onefold_ssd::{Command, Completion, HostStats, Payload, Ssd, SsdError};
use onefold_units::convert::{low32, narrow};
use onefold_units::{CauseCounts, Nanos, Op, ZoneId};
use onefold_volume::{ZoneReport, ZoneStatus};

use super::both::Both;
use crate::SimError;
use crate::engine::Baseline;
use crate::series::Windowed;

const BLOCK: u64 = 4096;

/// A device below a volume.
pub(crate) enum Device {
    Blocks(Box<Ssd<NullMedia>>),
    Zones(Box<Zns<NullMedia>>),
    Both(Box<Both>),
}

/// A device refused a request, or failed.
pub(crate) enum DeviceError {
    Blocks(SsdError),
    Zones(ZnsError),
}

impl DeviceError {
    /// For a request of the load.
    pub(crate) fn of_request(self, request: u64, what: String) -> SimError {
        match self {
            Self::Blocks(source) => SimError::Device { request, what, source },
            Self::Zones(source) => SimError::Zone { request, what, source },
        }
    }
}

impl Device {
    /// Zones, and a regular device before them if there is one.
    pub(crate) fn on_zones(
        zones: &ZnsConfig,
        regular: Option<Ssd<NullMedia>>,
    ) -> Result<Self, SimError> {
        let zns = Zns::new(*zones, ZnsMedia::NULL)?;
        Ok(match regular {
            Some(regular) => Self::Both(Box::new(Both::new(regular, zns))),
            None => Self::Zones(Box::new(zns)),
        })
    }

    pub(crate) fn set_timed(&mut self, timed: bool) {
        match self {
            Self::Blocks(ssd) => ssd.set_timed(timed),
            Self::Zones(zns) => zns.set_timed(timed),
            Self::Both(both) => both.set_timed(timed),
        }
    }

    /// Carries out a command over blocks.
    pub(crate) fn submit(
        &mut self,
        now: Nanos,
        (op, stream): (Op, u16),
        at: u64,
        blocks: u64,
    ) -> Result<Completion, DeviceError> {
        match self {
            Self::Blocks(ssd) => submit_blocks(ssd, now, (op, stream), at, blocks),
            Self::Zones(zns) => submit_zones(zns, now, op, at, blocks),
            Self::Both(both) => both.submit(now, (op, stream), at, blocks),
        }
    }

    /// Resets or finishes a zone.
    pub(crate) fn manage(
        &mut self,
        now: Nanos,
        zone: ZoneId,
        action: ZoneAction,
    ) -> Result<Completion, DeviceError> {
        match self {
            Self::Blocks(_) => {
                let error = ZnsError::InvalidField { what: "it has no zones" };
                Err(DeviceError::Zones(error))
            }
            Self::Zones(zns) => manage_zone(zns, now, zone, action),
            Self::Both(both) => both.manage(now, zone, action),
        }
    }

    /// What zones it has, if it has any.
    pub(crate) fn report(&self) -> Option<ZoneReport> {
        match self {
            Self::Blocks(_) => None,
            Self::Zones(zns) => Some(report_of(zns)),
            Self::Both(both) => Some(both.report()),
        }
    }

    /// What it has counted so far, that of the other kind at zero.
    pub(crate) fn baseline(&self, now: u64) -> (Baseline, ZnsStats) {
        let baseline = Baseline { host: *self.host_stats(), at: now, ..Baseline::default() };
        match self {
            Self::Blocks(ssd) => {
                let ftl = ssd.ftl();
                let (remap, dedup) = (ftl.remap_stats(), ssd.dedup_stats());
                let buffer = ssd.buffer_stats();
                let counted = Baseline { ftl: ftl.stats(), remap, dedup, buffer, ..baseline };
                (counted, ZnsStats::default())
            }
            Self::Zones(zns) => (baseline, zns.stats()),
            Self::Both(both) => {
                let counted = Baseline { ftl: both.regular.ftl().stats(), ..baseline };
                (counted, both.zns.stats())
            }
        }
    }

    /// What it was asked for.
    pub(crate) fn host_stats(&self) -> &HostStats {
        match self {
            Self::Blocks(ssd) => ssd.host_stats(),
            Self::Zones(zns) => zns.host_stats(),
            Self::Both(both) => &both.host,
        }
    }

    /// Blocks of what it maps as one; a zone is written in blocks.
    pub(crate) fn pages_per_unit(&self) -> u64 {
        match self {
            Self::Blocks(ssd) => ssd.config().geometry.pages_per_unit(),
            Self::Zones(_) | Self::Both(_) => 1,
        }
    }

    /// The block namespace, if it is one.
    pub(crate) fn blocks_mut(&mut self) -> Option<&mut Ssd<NullMedia>> {
        match self {
            Self::Blocks(ssd) => Some(ssd),
            Self::Zones(_) | Self::Both(_) => None,
        }
    }
}

impl Windowed for Device {
    fn programs(&self) -> CauseCounts {
        match self {
            Self::Blocks(ssd) => Windowed::programs(&**ssd),
            Self::Zones(zns) => Windowed::programs(&**zns),
            Self::Both(both) => Windowed::programs(&**both),
        }
    }

    fn free(&self) -> u32 {
        match self {
            Self::Blocks(ssd) => Windowed::free(&**ssd),
            Self::Zones(zns) => Windowed::free(&**zns),
            Self::Both(both) => Windowed::free(&**both),
        }
    }
}

pub(super) fn submit_blocks(
    ssd: &mut Ssd<NullMedia>,
    now: Nanos,
    (op, stream): (Op, u16),
    at: u64,
    blocks: u64,
) -> Result<Completion, DeviceError> {
    let command = Command { stream, ..Command::new(op, at * BLOCK, blocks * BLOCK) };
    ssd.submit(now, &command, Payload::None).map_err(DeviceError::Blocks)
}

pub(super) fn submit_zones(
    zns: &mut Zns<NullMedia>,
    now: Nanos,
    op: Op,
    at: u64,
    blocks: u64,
) -> Result<Completion, DeviceError> {
    let blocks = narrow(blocks);
    let done = match op {
        Op::Read => zns.read(now, at, blocks, &mut []),
        Op::Write => zns.write(now, at, blocks, false, &Payload::None),
        Op::Flush => zns.flush(now),
        Op::Trim | Op::WriteZeroes => zns.deallocate(now, at, blocks),
    };
    done.map_err(DeviceError::Zones)
}

pub(super) fn manage_zone(
    zns: &mut Zns<NullMedia>,
    now: Nanos,
    zone: ZoneId,
    action: ZoneAction,
) -> Result<Completion, DeviceError> {
    zns.manage(now, Select::One(zone), action).map_err(DeviceError::Zones)
}

pub(super) fn report_of(zns: &Zns<NullMedia>) -> ZoneReport {
    let config = zns.config();
    let status = |zone: u32| {
        let info = zns.zone(ZoneId::new(zone))?;
        let written = info.write_pointer.map_or(0, |at| low32(at - info.start));
        if info.conventional {
            return Some(ZoneStatus::conventional(info.state, info.capacity));
        }
        Some(ZoneStatus {
            conventional: false,
            state: info.state,
            written,
            capacity: info.capacity,
        })
    };
    ZoneReport {
        zone_blocks: config.zone_blocks,
        max_open: config.limits.max_open,
        max_active: config.limits.max_active,
        zones: (0..config.all_zones()).filter_map(status).collect(),
    }
}
