//! `onefold report`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::error::CliError;
use crate::output::Global;

/// Arguments of `onefold report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Results of `onefold sim run --format json`
    #[arg(required = true, value_name = "RUN.json")]
    runs: Vec<PathBuf>,
}

impl Report {
    /// Runs the command.
    pub(crate) fn run(self, _global: &Global) -> Result<ExitCode, CliError> {
        Ok(ExitCode::SUCCESS)
    }
}
