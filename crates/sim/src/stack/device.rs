//! What a volume lies on in the simulator: a block namespace, zones, or both.

use onefold_nand::NullMedia;
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsError, ZnsMedia, ZnsStats, ZoneAction};
use onefold_ssd::{Completion, HostStats, Ssd};
use onefold_units::{CauseCounts, Nanos, Op, ZoneId};
use onefold_volume::ZoneReport;

use super::command::{DeviceError, manage_zone, report_of, submit_blocks, submit_zones};
use super::concatenated::Concatenated;
use crate::SimError;
use crate::drive::Counters;
use crate::series::Windowed;

/// A device below a volume.
pub(crate) enum Device {
    Blocks(Box<Ssd<NullMedia>>),
    Zones(Box<Zns<NullMedia>>),
    Concatenated(Box<Concatenated>),
}

impl Device {
    /// Zones, and a regular device before them if there is one.
    pub(crate) fn on_zones(
        zones: &ZnsConfig,
        regular: Option<Ssd<NullMedia>>,
    ) -> Result<Self, SimError> {
        let zns = Zns::new(*zones, ZnsMedia::NULL)?;
        Ok(match regular {
            Some(regular) => Self::Concatenated(Box::new(Concatenated::new(regular, zns))),
            None => Self::Zones(Box::new(zns)),
        })
    }

    pub(crate) fn set_timed(&mut self, timed: bool) {
        match self {
            Self::Blocks(ssd) => ssd.set_timed(timed),
            Self::Zones(zns) => zns.set_timed(timed),
            Self::Concatenated(both) => both.set_timed(timed),
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
            Self::Concatenated(both) => both.submit(now, (op, stream), at, blocks),
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
            Self::Concatenated(both) => both.manage(now, zone, action),
        }
    }

    /// Blocks of 4 KiB.
    pub(crate) fn blocks(&self) -> u64 {
        match self {
            Self::Blocks(ssd) => ssd.capacity() / 4096,
            Self::Zones(zns) => {
                u64::from(zns.config().all_zones()) * u64::from(zns.config().zone_blocks)
            }
            Self::Concatenated(both) => both.blocks(),
        }
    }

    /// Kind of the device in results.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Blocks(_) => "ssd",
            Self::Zones(_) => "zns",
            Self::Concatenated(_) => "ssd, zns",
        }
    }

    /// Bytes of flash.
    pub(crate) fn raw_bytes(&self) -> u64 {
        let ssd = self.ssd().map_or(0, |ssd| ssd.config().geometry.raw_bytes());
        ssd + self.zns().map_or(0, |zns| zns.config().geometry.raw_bytes())
    }

    /// Erases of its superblocks, or of the sets of flash blocks of its zones.
    pub(crate) fn wear(&self) -> Vec<u64> {
        let ssd = self.ssd().map(|ssd| {
            let wear = ssd.ftl().wear();
            [u64::from(wear.min), u64::from(wear.max)]
        });
        let zns = self.zns().into_iter().flat_map(Zns::wear).map(u64::from);
        ssd.into_iter().flatten().chain(zns).collect()
    }

    /// Whether its own books balance.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        if let Some(ssd) = self.ssd() {
            ssd.ftl().check().map_err(|violation| SimError::Law(violation.to_string()))?;
        }
        self.zns().map_or(Ok(()), |zns| zns.check().map_err(SimError::Law))
    }

    /// Blocks of a zone, if it has zones.
    pub(crate) fn zone_blocks(&self) -> Option<u32> {
        self.zns().map(|zns| zns.config().zone_blocks)
    }

    /// The block namespace, alone or before zones.
    pub(crate) fn ssd(&self) -> Option<&Ssd<NullMedia>> {
        match self {
            Self::Blocks(ssd) => Some(ssd),
            Self::Zones(_) => None,
            Self::Concatenated(both) => Some(&both.regular),
        }
    }

    /// The zoned namespace, alone or behind blocks.
    pub(crate) fn zns(&self) -> Option<&Zns<NullMedia>> {
        match self {
            Self::Blocks(_) => None,
            Self::Zones(zns) => Some(zns),
            Self::Concatenated(both) => Some(&both.zns),
        }
    }

    /// What zones it has, if it has any.
    pub(crate) fn report(&self) -> Option<ZoneReport> {
        match self {
            Self::Blocks(_) => None,
            Self::Zones(zns) => Some(report_of(zns)),
            Self::Concatenated(both) => Some(both.report()),
        }
    }

    /// What it has counted so far, that of the other kind at zero.
    pub(crate) fn counters(&self) -> (Counters, ZnsStats) {
        let host = *self.host_stats();
        match self {
            Self::Blocks(ssd) => (Counters::of(ssd), ZnsStats::default()),
            Self::Zones(zns) => (Counters { host, ..Counters::default() }, zns.stats()),
            Self::Concatenated(both) => {
                let ftl = both.regular.ftl().stats();
                (Counters { ftl, host, ..Counters::default() }, both.zns.stats())
            }
        }
    }

    /// What it was asked for.
    pub(crate) fn host_stats(&self) -> &HostStats {
        match self {
            Self::Blocks(ssd) => ssd.host_stats(),
            Self::Zones(zns) => zns.host_stats(),
            Self::Concatenated(both) => &both.host,
        }
    }

    /// Blocks of what it maps as one; a zone is written in blocks.
    pub(crate) fn pages_per_unit(&self) -> u64 {
        match self {
            Self::Blocks(ssd) => ssd.config().geometry.pages_per_unit(),
            Self::Zones(_) | Self::Concatenated(_) => 1,
        }
    }

    /// The block namespace, if it is one.
    pub(crate) fn blocks_mut(&mut self) -> Option<&mut Ssd<NullMedia>> {
        match self {
            Self::Blocks(ssd) => Some(ssd),
            Self::Zones(_) | Self::Concatenated(_) => None,
        }
    }
}

impl Windowed for Device {
    fn programs(&self) -> CauseCounts {
        match self {
            Self::Blocks(ssd) => Windowed::programs(&**ssd),
            Self::Zones(zns) => Windowed::programs(&**zns),
            Self::Concatenated(both) => Windowed::programs(&**both),
        }
    }

    fn erases(&self) -> u64 {
        match self {
            Self::Blocks(ssd) => Windowed::erases(&**ssd),
            Self::Zones(zns) => Windowed::erases(&**zns),
            Self::Concatenated(both) => Windowed::erases(&**both),
        }
    }

    fn free(&self) -> u32 {
        match self {
            Self::Blocks(ssd) => Windowed::free(&**ssd),
            Self::Zones(zns) => Windowed::free(&**zns),
            Self::Concatenated(both) => Windowed::free(&**both),
        }
    }
}
