//! `onefold mark`.

use std::process::ExitCode;

use clap::Args;

use crate::error::CliError;

/// Options of `onefold mark`.
#[derive(Debug, Args)]
pub(crate) struct Mark {
    /// What is promised from now on, one line of at most 479 bytes
    #[arg(value_name = "TEXT")]
    text: String,
}

impl Mark {
    pub(crate) fn run(&self) -> Result<ExitCode, CliError> {
        onefold_try::run::mark(&self.text)?;
        Ok(ExitCode::SUCCESS)
    }
}
