//! What a run through a volume comes to, on any kind of device.

use onefold_volume::Volume;

use super::device::Device;
use super::load::Load;
use super::run::Runner;
use super::{Both, VolumeRun, VolumeSpace};
use crate::engine::{Finished, Gathered, Setup};
use crate::precondition::Preconditioned;
use crate::result::RunResult;
use crate::{SimError, outcome, zoned};

/// What is known beside the run itself.
pub(super) struct Rest {
    pub(super) preconditioned: Preconditioned,
    pub(super) cpu_s: f64,
    pub(super) gathered: Gathered,
}

/// Builds the result of a run.
pub(super) fn finish(setup: &Setup, runner: Runner, rest: Rest) -> Result<RunResult, SimError> {
    let Runner { stack, config, loads, series, measured, executed, partial, .. } = runner;
    let Rest { preconditioned, cpu_s, gathered } = rest;
    let device_host = stack.device_host().since(&measured.baseline.host);
    let space = VolumeSpace::of(&*stack.volume);
    let bytes = config.logical_bytes();
    let volume = VolumeRun {
        config,
        stats: stack.volume.stats().since(&measured.volume),
        host: measured.host,
        executed,
        stalls: measured.stalls,
        space,
        journal_segments: stack.volume.as_log().map_or(0, Volume::journal_segments),
    };
    let tenants = loads.into_iter().map(Load::finish).collect();
    let (zns, regular) = match stack.below.device {
        Device::Blocks(ssd) => {
            let finished = Finished {
                ssd: *ssd,
                tenants,
                series,
                baseline: measured.baseline,
                preconditioned,
                partial,
                cpu_s,
                warnings: gathered.warnings,
                trace: gathered.trace,
                volume: Some(volume),
            };
            return outcome::result(setup, finished);
        }
        Device::Zones(zns) => (*zns, None),
        Device::Both(both) => {
            let Both { regular, zns, .. } = *both;
            let ftl = regular.ftl().stats().since(&measured.baseline.ftl);
            (zns, Some(zoned::Regular { ssd: regular, ftl }))
        }
    };
    let run = zoned::Finished {
        stats: zns.stats().since(&measured.zns),
        host: measured.host,
        executed,
        bytes,
        zns,
        regular,
        tenants,
        series,
        at: measured.baseline.at,
        partial,
        preconditioned,
        cpu_s,
        gathered,
        volume: Some((volume, device_host)),
    };
    zoned::result(setup, run)
}
