//! What a volume lies on in the simulator: a block namespace or zones.

use onefold_nand::NullMedia;
use onefold_ssd::zns::{Select, Zns, ZnsError, ZnsStats, ZoneAction};
use onefold_ssd::{Command, Completion, HostStats, Payload, Ssd, SsdError};
use onefold_units::convert::{low32, narrow};
use onefold_units::{CauseCounts, Nanos, Op, ZoneId};
use onefold_volume::{ZoneReport, ZoneStatus};

use crate::SimError;
use crate::engine::Baseline;
use crate::series::Windowed;

const BLOCK: u64 = 4096;

/// A device below a volume.
pub(crate) enum Device {
    Blocks(Box<Ssd<NullMedia>>),
    Zones(Box<Zns<NullMedia>>),
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
    pub(crate) fn set_timed(&mut self, timed: bool) {
        match self {
            Self::Blocks(ssd) => ssd.set_timed(timed),
            Self::Zones(zns) => zns.set_timed(timed),
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
            Self::Blocks(ssd) => {
                let command = Command { stream, ..Command::new(op, at * BLOCK, blocks * BLOCK) };
                ssd.submit(now, &command, Payload::None).map_err(DeviceError::Blocks)
            }
            Self::Zones(zns) => {
                let blocks = narrow(blocks);
                let done = match op {
                    Op::Read => zns.read(now, at, blocks, &mut []),
                    Op::Write => zns.write(now, at, blocks, false, &Payload::None),
                    Op::Flush => zns.flush(now),
                    Op::Trim | Op::WriteZeroes => zns.deallocate(now, at, blocks),
                };
                done.map_err(DeviceError::Zones)
            }
        }
    }

    /// Resets or finishes a zone.
    pub(crate) fn manage(
        &mut self,
        now: Nanos,
        zone: ZoneId,
        action: ZoneAction,
    ) -> Result<Completion, DeviceError> {
        let Self::Zones(zns) = self else {
            let error = ZnsError::InvalidField { what: "it has no zones" };
            return Err(DeviceError::Zones(error));
        };
        zns.manage(now, Select::One(zone), action).map_err(DeviceError::Zones)
    }

    /// What zones it has, if it has any.
    pub(crate) fn report(&self) -> Option<ZoneReport> {
        let Self::Zones(zns) = self else { return None };
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
        Some(ZoneReport {
            zone_blocks: config.zone_blocks,
            max_open: config.limits.max_open,
            max_active: config.limits.max_active,
            zones: (0..config.all_zones()).filter_map(status).collect(),
        })
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
        }
    }

    /// What it was asked for.
    pub(crate) fn host_stats(&self) -> &HostStats {
        match self {
            Self::Blocks(ssd) => ssd.host_stats(),
            Self::Zones(zns) => zns.host_stats(),
        }
    }

    /// Blocks of what it maps as one; a zone is written in blocks.
    pub(crate) fn pages_per_unit(&self) -> u64 {
        match self {
            Self::Blocks(ssd) => ssd.config().geometry.pages_per_unit(),
            Self::Zones(_) => 1,
        }
    }

    /// The block namespace, if it is one.
    pub(crate) fn blocks_mut(&mut self) -> Option<&mut Ssd<NullMedia>> {
        match self {
            Self::Blocks(ssd) => Some(ssd),
            Self::Zones(_) => None,
        }
    }
}

impl Windowed for Device {
    fn programs(&self) -> CauseCounts {
        match self {
            Self::Blocks(ssd) => Windowed::programs(&**ssd),
            Self::Zones(zns) => Windowed::programs(&**zns),
        }
    }

    fn free(&self) -> u32 {
        match self {
            Self::Blocks(ssd) => Windowed::free(&**ssd),
            Self::Zones(zns) => Windowed::free(&**zns),
        }
    }
}
