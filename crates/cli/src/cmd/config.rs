//! `onefold config`.

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::CliError;
use crate::output::Global;

/// Subcommands of `onefold config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {}

impl Config {
    /// Runs the command.
    pub(crate) fn run(self, _global: &Global) -> Result<ExitCode, CliError> {
        match self {}
    }
}
