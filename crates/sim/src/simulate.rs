//! A run from its configuration to its result: which layers and devices it is on.

use onefold_config::{Place, PlaceKind};
use onefold_nand::NullMedia;
use onefold_ssd::Ssd;
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsMedia};

use crate::checkpoint::CheckpointError;
use crate::control::Control;
use crate::result::RunResult;
use crate::setup::Setup;
use crate::stack::{self, Device, Stack};
use crate::used::Used;
use crate::{SimError, doubts, drive, zoned};

/// Runs a setup in virtual time.
///
/// # Errors
/// The configuration, a trace or a workload is wrong, or the device failed.
pub fn simulate(setup: &Setup, control: &Control<'_>) -> Result<RunResult, SimError> {
    run(setup, control).map(|result| doubted(setup, result))
}

/// With what speaks against its numbers.
fn doubted(setup: &Setup, mut result: RunResult) -> RunResult {
    let doubts = doubts::of_result(setup, &result);
    result.warnings.extend(doubts);
    result
}

fn run(setup: &Setup, control: &Control<'_>) -> Result<RunResult, SimError> {
    if control.checkpoint.is_some() && !is_one_drive(setup)? {
        return Err(CheckpointError::Unsupported.into());
    }
    if let Some(config) = setup.config.stack(setup.seed)? {
        return stack::simulate(setup, build(&config)?, control);
    }
    if let Some(config) = setup.config.zns(setup.seed)? {
        return on_zones(setup, &config, control);
    }
    let ssd = Ssd::new(setup.config.ssd(setup.seed)?, NullMedia)?;
    if let Some(config) = setup.config.volume()? {
        return on_device(setup, &config, Device::Blocks(Box::new(ssd)), control);
    }
    let wanted = setup.config.precondition();
    drive::simulate(setup, ssd, Some(&wanted), control)
}

/// Whether it is on one drive with a block namespace and nothing else.
fn is_one_drive(setup: &Setup) -> Result<bool, SimError> {
    let Setup { config, seed, .. } = setup;
    Ok(config.stack(*seed)?.is_none() && config.zns(*seed)?.is_none() && config.volume()?.is_none())
}

/// The layers and devices of `[[stack]]`, empty.
fn build(config: &onefold_config::Stack) -> Result<Stack, SimError> {
    let mut stack = Stack::default();
    for Place { name, kind, on } in &config.places {
        match kind {
            PlaceKind::Ssd(ssd) => {
                let ssd = Ssd::new(**ssd, NullMedia)?;
                stack.add_device(name, Device::Blocks(Box::new(ssd)));
            }
            PlaceKind::Zns(zns) => {
                let zns = Zns::new(**zns, ZnsMedia::NULL)?;
                stack.add_device(name, Device::Zones(Box::new(zns)));
            }
            PlaceKind::Volume(volume) => _ = stack.add_volume(name, volume, on[0])?,
            PlaceKind::Zoned(zoned) => _ = stack.add_zoned(name, zoned, on)?,
        }
    }
    Ok(stack)
}

/// A load on zones, or on a volume on them.
fn on_zones(
    setup: &Setup,
    zones: &ZnsConfig,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    if let Some(config) = setup.config.zoned_volume()? {
        let mut stack = Stack::default();
        let mut below = Vec::new();
        if let Some(regular) = &config.regular {
            let regular = Ssd::new(regular.ssd(setup.seed)?, NullMedia)?;
            below.push(stack.add_device("regular", Device::Blocks(Box::new(regular))));
        }
        let zns = Zns::new(*zones, ZnsMedia::NULL)?;
        below.push(stack.add_device("zoned", Device::Zones(Box::new(zns))));
        stack.add_zoned("volume", &config, &below)?;
        return stack::simulate(setup, stack, control);
    }
    let Some(config) = setup.config.volume()? else {
        return zoned::simulate(setup, zones, control);
    };
    let regular = match setup.config.regular_of_log()? {
        Some(regular) => Some(Ssd::new(regular.ssd(setup.seed)?, NullMedia)?),
        None => None,
    };
    on_device(setup, &config, Device::on_zones(zones, regular)?, control)
}

/// A load on a volume on a device.
fn on_device(
    setup: &Setup,
    config: &onefold_config::Volume,
    device: Device,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut stack = Stack::default();
    let below = stack.add_device("device", device);
    stack.add_volume("volume", config, below)?;
    stack::simulate(setup, stack, control)
}

/// Runs a setup in virtual time on a drive that was used before, and on the volume on it if there
/// is one at its beginning. There is no preconditioning.
///
/// # Errors
/// As [`simulate`]; or there is a damaged volume, or one that compresses.
pub fn simulate_on(
    setup: &Setup,
    used: Used,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    if control.checkpoint.is_some() {
        return Err(CheckpointError::Unsupported.into());
    }
    let (stack, port, label) = Stack::used(used)?;
    let result = match label {
        Some(label) => stack::simulate_on(setup, &label, (stack, port), control),
        None => match stack.into_drive() {
            Some(ssd) => drive::simulate(setup, ssd, None, control),
            None => unreachable!("a drive without zones"),
        },
    };
    result.map(|result| doubted(setup, result))
}
