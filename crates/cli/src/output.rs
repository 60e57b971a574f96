//! Options every command has, and where its output goes: data on stdout, the rest on stderr.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::error::{CliError, Exit, written};
use crate::interrupt::Interrupt;
use crate::replace::{Made, Replaced};

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// One JSON object with a `schema` key.
    Json,
}

/// When to colour messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// How to print the result: table or json. Where a trace is read, also its format (such as
    /// `msr` or `mqsim:time=us`) if it should not be detected; may be given twice
    #[arg(long = "format", global = true, value_name = "FORMAT")]
    pub(crate) formats: Vec<String>,
    /// Write the result here instead of standard output. A file that is there is replaced if it is empty, or an older result of
    /// the same command in JSON or HTML
    #[arg(short = 'o', long = "output", global = true, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Lose what is there: in the file of -o, or on what the command overwrites
    #[arg(long, global = true)]
    pub(crate) force: bool,
    /// Seed of everything random; printed in every result
    #[arg(long, global = true, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Say more on standard error (repeat for more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Say only errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Colour of messages
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(crate) color: Colour,
    /// What SIGINT and SIGTERM do.
    #[arg(skip)]
    pub(crate) interrupt: Interrupt,
}

impl Global {
    /// How to print the result.
    pub(crate) fn format(&self) -> Format {
        let json = self.formats.iter().rev().find(|name| is_output_format(name));
        if json.is_some_and(|name| name == "json") { Format::Json } else { Format::Table }
    }

    /// The trace format the user named, if any; the trace reader judges the name.
    pub(crate) fn trace_format(&self) -> Option<&str> {
        self.formats.iter().rev().find(|name| !is_output_format(name)).map(String::as_str)
    }

    /// Refuses a trace format on a command that reads no trace.
    pub(crate) fn expect_no_trace_format(&self) -> Result<(), CliError> {
        self.trace_format().map_or(Ok(()), |name| {
            Err(CliError::new(
                Exit::Usage,
                "usage::format",
                format!("--format is `{name}`, expected table or json"),
            ))
        })
    }

    /// Whether messages on standard error are coloured.
    pub(crate) fn colour_on_stderr(&self) -> bool {
        match self.color {
            Colour::Auto => io::stderr().is_terminal(),
            Colour::Always => true,
            Colour::Never => false,
        }
    }

    /// Whether a progress bar would help: a person is watching and did not ask for silence.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Prints one line on standard error unless `--quiet`.
    pub(crate) fn say(&self, line: impl std::fmt::Display) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }

    /// Sends log records of the libraries to standard error.
    pub(crate) fn start_logging(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => tracing::Level::ERROR,
            (false, 0) => tracing::Level::WARN,
            (false, 1) => tracing::Level::INFO,
            (false, _) => tracing::Level::DEBUG,
        };
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(io::stderr)
            .with_ansi(self.colour_on_stderr())
            .with_target(false)
            .init();
    }

    /// Writes the result to standard output, or to the file of `-o` in one step, so that a reader
    /// never sees half of it.
    pub(crate) fn emit(&self, text: &str) -> Result<(), CliError> {
        let Some(path) = &self.output else { return Self::print(text) };
        let made = Made::of(text.as_bytes());
        match Replaced::of(path, self.force, |old| Some(old) == made.as_ref()) {
            Ok(place) => place.write(text, &self.interrupt),
            Err(refused) => {
                // It may have taken hours: it goes where nothing is lost.
                Self::print(text)?;
                Err(refused)
            }
        }
    }

    /// Refuses a file of `-o` that no result can replace, before there is one. Which result it will be is not known yet.
    pub(crate) fn expect_output(&self) -> Result<(), CliError> {
        let Some(path) = &self.output else { return Ok(()) };
        let is_json = self.formats.iter().any(|format| format == "json");
        let may_go = |old: &Made| is_json == matches!(old, Made::Json(_));
        Replaced::of(path, self.force, may_go).map(drop)
    }

    /// Writes the result to standard output, for commands whose `-o` names something else.
    pub(crate) fn print(text: &str) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()), "standard output")
    }
}

fn is_output_format(name: &str) -> bool {
    matches!(name, "table" | "json")
}
