//! Errors as a user meets them: what, where, which limit, what to do, and the exit code.

use std::io;
use std::process::ExitCode;

use miette::{GraphicalReportHandler, GraphicalTheme, miette};

pub(crate) use crate::exit::Exit;

/// One error message with its code, help and exit code.
#[derive(Debug)]
pub(crate) struct CliError {
    exit: Exit,
    code: &'static str,
    message: String,
    help: Option<String>,
}

impl CliError {
    /// An error of the stable `code`, such as `config::unknown_key`.
    pub(crate) fn new(exit: Exit, code: &'static str, message: impl std::fmt::Display) -> Self {
        Self { exit, code, message: message.to_string(), help: None }
    }

    /// Adds what to do about it.
    pub(crate) fn help(mut self, help: impl std::fmt::Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    /// The same error with the message of what it happened to.
    pub(crate) fn message_of(mut self, error: &impl std::fmt::Display) -> Self {
        self.message = error.to_string();
        self
    }

    /// The same error with another exit code, where a command has codes of its own.
    pub(crate) fn exit_with(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// What happened, in one sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the error on standard error and gives the exit code.
    pub(crate) fn report(&self, colour: bool) -> ExitCode {
        let report = match &self.help {
            Some(help) => miette!(code = self.code, help = help.clone(), "{}", self.message),
            None => miette!(code = self.code, "{}", self.message),
        };
        let theme =
            if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
        match handler.render_report(&mut text, report.as_ref()) {
            Ok(()) => eprint!("{text}"),
            Err(_) => eprintln!("{}: {}", self.code, self.message),
        }
        self.exit.into()
    }
}

/// The error of a result that could not be written to `place`, unless nobody wanted it.
pub(crate) fn written(written: io::Result<()>, place: &str) -> Result<(), CliError> {
    match written {
        // A closed pipe (`| head`) is the reader's choice, not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError::new(
            Exit::Failed,
            "output::write",
            format!("cannot write the result to {place}: {error}"),
        )),
        Ok(()) => Ok(()),
    }
}
