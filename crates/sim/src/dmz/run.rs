//! The run of a load through a zoned volume, from its setup to its result.

use onefold_config::ZonedVolume;
use onefold_ssd::zns::ZnsConfig;

use super::outcome::{self, Finished};
use super::stack::Stack;
use crate::control::Control;
use crate::cpu::thread_cpu_s;
use crate::gathered::Gathered;
use crate::result::RunResult;
use crate::setup::Setup;
use crate::{SimError, events};

/// Runs a setup with a zoned volume between its load and its devices.
pub(crate) fn simulate(
    setup: &Setup,
    config: &ZonedVolume,
    zns: &ZnsConfig,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(setup, config.logical_bytes, control)?;
    let mut stack = Stack::new(config, zns, setup.seed)?;
    let begin = thread_cpu_s();
    stack.fill(setup.config.precondition().fill, control)?;
    let filled_cpu_s = thread_cpu_s() - begin;
    stack.begin(config.regular_depth);
    let (ran, top) = events::run(&mut stack, tenants, &setup.config.run(), control)?;
    outcome::result(setup, config, Finished { stack, ran, top, filled_cpu_s, gathered })
}
