//! What goes wrong with tapes and trials, as a user meets it.

use onefold_crash::CrashError;
use onefold_try::TryError;
use onefold_try::account::drives::ListError;
use onefold_try::account::{BudgetError, DrivesError};

use crate::error::{CliError, Exit};

impl From<TryError> for CliError {
    fn from(error: TryError) -> Self {
        let (exit, code) = match error {
            TryError::Serve(error) => return error.into(),
            TryError::Log(error) => return error.into(),
            TryError::Crash(error) => return error.into(),
            TryError::TapeExists { .. } | TryError::NoTape { .. } => (Exit::Usage, "tape::folder"),
            TryError::NotRoot { .. } => (Exit::Usage, "try::root"),
            TryError::NoTool { .. } => (Exit::Failed, "try::tool"),
            TryError::UnknownFileSystem { .. } => (Exit::Usage, "try::file_system"),
            TryError::NoProgram { .. } => (Exit::NotFound, "try::program"),
            TryError::NothingToRun | TryError::NotTried => (Exit::Usage, "try::nothing"),
            TryError::Mark { .. } => (Exit::Usage, "try::mark"),
            TryError::FailsAnyway { .. } => (Exit::Failed, "crash::check"),
            TryError::Prepare { .. } => (Exit::Failed, "try::prepare"),
            TryError::About { .. } | TryError::Printed { .. } => (Exit::Failed, "tape::damaged"),
            _ => (Exit::Failed, "try::failed"),
        };
        Self::new(exit, code, error)
    }
}

impl From<CrashError> for CliError {
    fn from(error: CrashError) -> Self {
        let (exit, code) = match error {
            CrashError::Log(error) => return error.into(),
            CrashError::Name { .. } => (Exit::Usage, "crash::state"),
            CrashError::Beyond { .. } => (Exit::Usage, "crash::base"),
            _ => (Exit::Failed, "crash::failed"),
        };
        Self::new(exit, code, error)
    }
}

impl From<ListError> for CliError {
    fn from(error: ListError) -> Self {
        Self::new(Exit::Usage, "try::drives", error)
    }
}

impl From<BudgetError> for CliError {
    fn from(error: BudgetError) -> Self {
        Self::new(Exit::Usage, "try::budget", error)
    }
}

impl From<DrivesError> for CliError {
    fn from(error: DrivesError) -> Self {
        Self::new(Exit::Infeasible, "try::drives", error)
    }
}
