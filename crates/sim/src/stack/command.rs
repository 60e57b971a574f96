//! Commands of a volume to one device, and what that says of itself.

use onefold_nand::NullMedia;
use onefold_ssd::zns::{Select, Zns, ZnsError, ZoneAction};
use onefold_ssd::{Command, Completion, Payload, Ssd, SsdError};
use onefold_units::convert::{low32, narrow};
use onefold_units::{Nanos, Op, ZoneId};
use onefold_volume::{ZoneReport, ZoneStatus};

use crate::SimError;

const BLOCK: u64 = 4096;

/// A device refused a request, or failed.
pub(crate) enum DeviceError {
    Blocks(SsdError),
    Zones(ZnsError),
}

impl DeviceError {
    /// Whether flash could not be read, and the command was right.
    pub(crate) const fn is_unreadable(&self) -> bool {
        match self {
            Self::Blocks(error) => error.is_unreadable(),
            Self::Zones(error) => error.is_unreadable(),
        }
    }

    /// For a request of the load.
    pub(crate) fn of_request(self, request: u64, what: String) -> SimError {
        match self {
            Self::Blocks(source) => SimError::Device { request, what, source },
            Self::Zones(source) => SimError::Zone { request, what, source },
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
