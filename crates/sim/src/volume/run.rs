//! The run of a load through a volume, from its setup to its result.

use onefold_config::Volume as VolumeConfig;
use onefold_format::volume::VolumeLabel;
use onefold_volume::{Geometry, Volume};

use super::below::Below;
use super::device::Device;
use super::stack::Stack;
use super::{Both, VolumeRun, VolumeSpace};
use crate::control::Control;
use crate::gathered::Gathered;
use crate::precondition::{Preconditioned, precondition};
use crate::result::RunResult;
use crate::setup::Setup;
use crate::tenant::Tenant;
use crate::{SimError, drive, events, zoned};

/// Runs a setup with a volume between its load and the device.
pub(crate) fn simulate(
    setup: &Setup,
    config: &VolumeConfig,
    device: Device,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(setup, config.logical_bytes(), control)?;
    let mut stack = Stack::new(config, device)?;
    let preconditioned =
        precondition(&mut stack, &setup.config.precondition(), setup.seed, control)?;
    run(setup, config, stack, (tenants, gathered, preconditioned), control)
}

/// Runs a setup on the volume with this label, which is on a device that was used before.
pub(crate) fn simulate_on(
    setup: &Setup,
    label: &VolumeLabel,
    mut below: Below,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let (described, config) = setup.config.with_volume(label.mode, Geometry::of(label))?;
    let setup = Setup { config: described, ..setup.clone() };
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(&setup, config.logical_bytes(), control)?;
    below.device.set_timed(false);
    let stack = Stack::open(&config, below)?;
    run(&setup, &config, stack, (tenants, gathered, Preconditioned::default()), control)
}

/// Runs the tenants on a volume.
fn run(
    setup: &Setup,
    config: &VolumeConfig,
    mut stack: Stack,
    (tenants, gathered, preconditioned): (Vec<Tenant>, Gathered, Preconditioned),
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let run = setup.config.run();
    stack.begin(run.timed);
    let (ran, top) = events::run(&mut stack, tenants, &run, control)?;
    let host = top.host;
    let device_host = stack.device_host().since(&ran.baseline.device.host);
    let volume = VolumeRun {
        config: config.clone(),
        stats: stack.volume.stats().since(&ran.baseline.volume),
        top,
        space: VolumeSpace::of(&*stack.volume),
        journal_segments: stack.volume.as_log().map_or(0, Volume::journal_segments),
    };
    let (counted, rest) = ran.split();
    let (zns, regular) = match stack.below.into_device() {
        Device::Blocks(ssd) => {
            let (ssd, ran) = (*ssd, rest.with(counted.device));
            let volume = Some(volume);
            let finished = drive::Finished { ssd, ran, preconditioned, gathered, volume };
            return drive::result(setup, finished);
        }
        Device::Zones(zns) => (*zns, None),
        Device::Both(both) => {
            let Both { regular, zns, .. } = *both;
            let ftl = regular.ftl().stats().since(&counted.device.ftl);
            (zns, Some(zoned::Regular { ssd: regular, ftl }))
        }
    };
    let finished = zoned::Finished {
        stats: zns.stats().since(&counted.zns),
        host,
        executed: volume.top.executed,
        bytes: config.logical_bytes(),
        zns,
        regular,
        ran: rest,
        preconditioned,
        gathered,
        volume: Some((volume, device_host)),
    };
    zoned::result(setup, finished)
}
