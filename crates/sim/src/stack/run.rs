//! The run of a load through a stack, from its setup to its result.

use onefold_volume::Geometry;

use super::finished::Finished;
use super::{Port, Stack, outcome};
use crate::control::Control;
use crate::gathered::Gathered;
use crate::precondition::Preconditioned;
use crate::result::RunResult;
use crate::setup::Setup;
use crate::tenant::Tenant;
use crate::{SimError, events};

/// Runs a setup through the layers of a stack, which is empty.
pub(crate) fn simulate(
    setup: &Setup,
    mut stack: Stack,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(setup, stack.caps().blocks * 4096, control)?;
    let preconditioned = stack.precondition(&setup.config.precondition(), setup.seed, control)?;
    run(setup, stack, (tenants, gathered, preconditioned), control)
}

/// Runs a setup on the volume with this label, which is on a drive that was used before.
pub(crate) fn simulate_on(
    setup: &Setup,
    label: &onefold_format::volume::VolumeLabel,
    (mut stack, port): (Stack, Port),
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let (described, config) = setup.config.with_volume(label.mode, Geometry::of(label))?;
    let setup = Setup { config: described, ..setup.clone() };
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(&setup, config.logical_bytes(), control)?;
    stack.set_timed(false);
    stack.open_volume("volume", &config, port)?;
    run(&setup, stack, (tenants, gathered, Preconditioned::default()), control)
}

/// Runs the tenants.
fn run(
    setup: &Setup,
    mut stack: Stack,
    (tenants, gathered, preconditioned): (Vec<Tenant>, Gathered, Preconditioned),
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let run = setup.config.run();
    stack.begin(run.timed)?;
    let (ran, top) = events::run(&mut stack, tenants, &run, control)?;
    outcome::result(setup, Finished { stack, ran, top, preconditioned, gathered })
}
