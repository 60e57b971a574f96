//! `onefold ssd`.

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::CliError;
use crate::output::Global;

/// Subcommands of `onefold ssd`.
#[derive(Debug, Subcommand)]
pub(crate) enum Ssd {}

impl Ssd {
    /// Runs the command.
    pub(crate) fn run(self, _global: &Global) -> Result<ExitCode, CliError> {
        match self {}
    }
}
