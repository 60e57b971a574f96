//! `onefold crash`: what a disk can hold after a power cut, and what programs make of it.

pub(crate) mod explore;
mod list;
pub(crate) mod report;
mod show;
pub(crate) mod watched;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use onefold_crash::{Disk, Log, State};
use onefold_device::BlockDevice;
use onefold_try::account::Owners;
use onefold_try::explore::Promises;
use onefold_try::room::FileSystem;
use onefold_try::tape::{self, Tape};

use crate::error::{CliError, Exit};
use crate::output::Global;

/// Subcommands of `onefold crash`.
#[derive(Debug, Subcommand)]
pub(crate) enum Crash {
    /// Count the states of a log by kind, and list their names
    List(list::List),
    /// Mount and check states, and shrink those that fail to the fewest missing requests
    Explore(explore::Explore),
    /// Mount a state at a directory, until a signal comes or somebody unmounts it
    Mount(show::Mount),
    /// Run a shell in a state
    Shell(show::Shell),
    /// Write a state as a sparse image (-o)
    Export(show::Export),
    /// Show a folder with a file for each state, until a signal comes
    Serve(show::Serve),
}

impl Crash {
    /// Whether `-o` names the file of what else goes to standard output.
    pub(crate) const fn prints(&self) -> bool {
        !matches!(self, Self::Export(_))
    }

    /// Whether the result may be one of tests.
    pub(crate) const fn tests(&self) -> bool {
        matches!(self, Self::Explore(_))
    }

    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::List(list) => list.run(global),
            Self::Explore(explore) => explore.run(global),
            Self::Mount(mount) => mount.run(global),
            Self::Shell(shell) => shell.run(global),
            Self::Export(export) => export.run(global),
            Self::Serve(serve) => serve.run(global),
        }
    }
}

/// A log that is no tape, and how states of a log are made.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Instead of a tape: a log of dm-log-writes
    #[arg(long, value_name = "FILE", requires = "base")]
    log: Option<PathBuf>,
    /// The disk as it was when the log began
    #[arg(long, value_name = "IMAGE", requires = "log")]
    base: Option<PathBuf>,
    /// Writes may be torn inside pages, between sectors of this size: that of the log, 512 for a tape
    #[arg(long, value_name = "BYTES")]
    sectors: Option<u64>,
}

/// A log and what is known of it.
#[derive(Debug)]
struct Opened {
    log: Arc<Log>,
    tape: Option<Tape>,
    /// What says which log it is, for commands that show a state of it.
    named: String,
}

impl LogArgs {
    /// Opens the tape, or the log and the disk before it.
    fn open(&self, tape: Option<&PathBuf>, global: &Global) -> Result<Opened, CliError> {
        let (writes, base, tape, named) = match (&self.log, &self.base, tape) {
            (Some(log), Some(base), _) => {
                let named = format!("--log {} --base {}", log.display(), base.display());
                (log.clone(), base.clone(), None, named)
            }
            (_, _, Some(folder)) => {
                let tape = Tape::open(folder)?;
                (tape.writes(), tape.base(), Some(tape), folder.display().to_string())
            }
            _ => {
                let text = "no log: name a tape, or --log FILE and --base IMAGE";
                return Err(CliError::new(Exit::Usage, "usage::log", text));
            }
        };
        let log = match self.sectors {
            Some(_) => Log::open_by_sectors(&writes, &base)?,
            None => Log::open(&writes, &base)?,
        };
        if let Some(bytes) = self.sectors
            && bytes != log.unit_bytes()
        {
            let found = log.unit_bytes();
            let text =
                format!("--sectors is {bytes}, and the sectors of the log have {found} bytes");
            return Err(CliError::new(Exit::Usage, "usage::sectors", text));
        }
        if log.is_cut_short() {
            global.say("the log ends in the middle of an entry, which does not count");
        }
        Ok(Opened { log: Arc::new(log), tape, named })
    }

    /// The same for a command with further arguments behind the tape, of which there are `N`.
    fn open_with<const N: usize>(
        &self,
        words: &[String],
        names: [&str; N],
        global: &Global,
    ) -> Result<(Opened, [String; N]), CliError> {
        let (tape, rest) = match (&self.log, words.split_first()) {
            (None, Some((tape, rest))) => (Some(PathBuf::from(tape)), rest),
            _ => (None, words),
        };
        let Ok(rest) = <[String; N]>::try_from(rest.to_vec()) else {
            let tape = if self.log.is_some() { "" } else { "TAPE " };
            let text =
                format!("found {} arguments, expected {tape}{}", words.len(), names.join(" "));
            return Err(CliError::new(Exit::Usage, "usage::arguments", text));
        };
        Ok((self.open(tape.as_ref(), global)?, rest))
    }
}

impl Opened {
    /// What the program promised, if it was run for a tape, and the marks.
    fn promises(&self) -> Result<Promises, CliError> {
        let Some(tape) = &self.tape else { return Ok(Promises::new(&self.log, &[], None)) };
        let ended = tape.about().program.as_ref().and_then(|program| program.ended_entry);
        Ok(Promises::new(&self.log, &tape.printed()?, ended))
    }

    /// Which file had which bytes, if `onefold try` kept the tape.
    fn owners(&self) -> Result<Option<Owners>, CliError> {
        let Some(tape) = &self.tape else { return Ok(None) };
        Ok(tape.kept(tape::OWNERS)?)
    }

    /// The file system in the last state, or the one that was named.
    fn file_system(&self, named: Option<FileSystem>) -> FileSystem {
        let last = State::missing(self.log.events().len(), Vec::new());
        let disk = Disk::new(Arc::clone(&self.log), &last);
        named.unwrap_or_else(|| FileSystem::detect(|at, bytes| disk.read(at, bytes).is_ok()))
    }

    /// Options of mount: those that were named, or those of the tape.
    fn mount_options(&self, named: Option<&String>) -> String {
        let of_tape = || self.tape.as_ref()?.about().file_system.as_ref()?.mount.clone();
        named.cloned().or_else(of_tape).unwrap_or_default()
    }

    /// The state of a name.
    fn state(&self, name: &str) -> Result<State, CliError> {
        Ok(State::parse(name, &self.log)?)
    }
}
