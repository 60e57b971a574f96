//! Options every command has, and where its output goes: data on stdout, the rest on stderr.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onefold_trace::FormatSpec;

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

/// What `--format` may be: a [`Format`], a page with pictures where a command draws some, or `JUnit` where it tests something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Table,
    Json,
    Html,
    Junit,
}

impl Named {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "table" => Ok(Self::Table),
            "json" => Ok(Self::Json),
            "html" => Ok(Self::Html),
            "junit" => Ok(Self::Junit),
            trace if FormatSpec::parse(trace).is_ok() => {
                Err(format!("the format of a trace is named by --trace-format {trace}"))
            }
            _ => Err("expected table, json, html or junit".to_owned()),
        }
    }
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
    /// How to print the result: table, json, html where a command draws pictures, or junit where it tests something [default:
    /// table, html for reports]
    #[arg(long = "format", global = true, value_name = "FORMAT", value_parser = Named::parse)]
    pub(crate) named: Option<Named>,
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
    /// Say only errors: neither messages nor a table on standard output. A result that was asked for with --format json or html, or
    /// with -o, is written
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
        if self.named == Some(Named::Json) { Format::Json } else { Format::Table }
    }

    /// Refuses a page of pictures where there are none.
    pub(crate) fn expect_no_pictures(&self) -> Result<(), CliError> {
        if self.named != Some(Named::Html) {
            return Ok(());
        }
        let text = "--format is `html`, expected table or json: this command draws no pictures";
        Err(CliError::new(Exit::Usage, "usage::format", text))
    }

    /// Refuses a result of tests where there are none.
    pub(crate) fn expect_no_tests(&self) -> Result<(), CliError> {
        if self.named != Some(Named::Junit) {
            return Ok(());
        }
        let text = "--format is `junit`, expected table or json: this command tests nothing";
        Err(CliError::new(Exit::Usage, "usage::format", text))
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

    /// Writes a result of [`Global::format`]; see [`Global::write`]. With `--quiet` there is no table on standard output.
    pub(crate) fn emit(&self, text: &str) -> Result<(), CliError> {
        let is_table = self.format() == Format::Table && self.named != Some(Named::Junit);
        let is_unwanted = self.quiet && is_table && self.output.is_none();
        if is_unwanted { Ok(()) } else { self.write(text) }
    }

    /// Refuses a page of HTML that would pour on a terminal, before there is one.
    pub(crate) fn expect_page_can_go(&self) -> Result<(), CliError> {
        self.expect_no_terminal(io::stdout().is_terminal())
    }

    fn expect_no_terminal(&self, is_terminal: bool) -> Result<(), CliError> {
        if self.output.is_some() || !is_terminal {
            return Ok(());
        }
        let text = "the result is a page of HTML, and standard output is a terminal";
        Err(CliError::new(Exit::Usage, "usage::terminal", text)
            .help("name a file, such as -o report.html, or take --format table"))
    }

    /// Writes the result to standard output, or to the file of `-o` in one step, so that a reader
    /// never sees half of it.
    pub(crate) fn write(&self, text: &str) -> Result<(), CliError> {
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
        let is_json = self.named == Some(Named::Json);
        let may_go = |old: &Made| is_json == matches!(old, Made::Json(_));
        Replaced::of(path, self.force, may_go).map(drop)
    }

    /// Writes the result to standard output, for commands whose `-o` names something else.
    pub(crate) fn print(text: &str) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()), "standard output")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Global, Named};

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        global: Global,
    }

    #[test]
    fn a_page_is_not_poured_on_a_terminal() {
        let global =
            |arguments: &[&str]| Only::parse_from([&["onefold"], arguments].concat()).global;
        assert!(global(&[]).expect_no_terminal(true).is_err());
        assert!(global(&[]).expect_no_terminal(false).is_ok());
        assert!(global(&["-o", "page.html"]).expect_no_terminal(true).is_ok());
    }

    #[test]
    fn formats_of_traces_have_another_name() {
        assert_eq!(Named::parse("json"), Ok(Named::Json));
        assert!(
            Named::parse("mqsim:time=us").unwrap_err().contains("--trace-format mqsim:time=us")
        );
        assert!(Named::parse("yaml").unwrap_err().contains("expected table"));
    }
}
