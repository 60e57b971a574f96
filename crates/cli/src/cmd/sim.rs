//! `onefold sim`.

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::CliError;
use crate::output::Global;

/// Subcommands of `onefold sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum Sim {}

impl Sim {
    /// Runs the command.
    pub(crate) fn run(self, _global: &Global) -> Result<ExitCode, CliError> {
        match self {}
    }
}
