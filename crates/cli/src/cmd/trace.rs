//! `onefold trace`.

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::CliError;
use crate::output::Global;

/// Subcommands of `onefold trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum Trace {}

impl Trace {
    /// Runs the command.
    pub(crate) fn run(self, _global: &Global) -> Result<ExitCode, CliError> {
        match self {}
    }
}
