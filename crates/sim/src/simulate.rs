//! A run from its configuration to its result: which layers and devices it is on.

use onefold_nand::NullMedia;
use onefold_ssd::Ssd;

use crate::control::Control;
use crate::result::RunResult;
use crate::setup::Setup;
use crate::used::Used;
use crate::{SimError, dmz, drive, volume, zoned};

/// Runs a setup in virtual time.
///
/// # Errors
/// The configuration, a trace or a workload is wrong, or the device failed.
pub fn simulate(setup: &Setup, control: &Control<'_>) -> Result<RunResult, SimError> {
    if let Some(config) = setup.config.zns(setup.seed)? {
        if let Some(volume) = setup.config.zoned_volume()? {
            return dmz::simulate(setup, &volume, &config, control);
        }
        return match setup.config.volume()? {
            Some(volume) => {
                let regular = match setup.config.regular_of_log()? {
                    Some(regular) => Some(Ssd::new(regular.ssd(setup.seed)?, NullMedia)?),
                    None => None,
                };
                let device = volume::Device::on_zones(&config, regular)?;
                volume::simulate(setup, &volume, device, control)
            }
            None => zoned::simulate(setup, &config, control),
        };
    }
    let ssd = Ssd::new(setup.config.ssd(setup.seed)?, NullMedia)?;
    if let Some(config) = setup.config.volume()? {
        return volume::simulate(setup, &config, volume::Device::Blocks(Box::new(ssd)), control);
    }
    let wanted = setup.config.precondition();
    drive::simulate(setup, ssd, Some(&wanted), control)
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
    let mut below = volume::Below::used(used);
    match below.label()? {
        Some(label) => volume::simulate_on(setup, &label, below, control),
        None => match below.into_device() {
            volume::Device::Blocks(ssd) => drive::simulate(setup, *ssd, None, control),
            _ => unreachable!("a drive without zones"),
        },
    }
}
