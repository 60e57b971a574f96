//! `onefold volume write-log`: what `serve --write-log` keeps, or dm-log-writes of Linux.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use onefold_device::{Logged, VolumeError, WriteLogError, WriteLogReader};
use serde_json::{Value, json};

use crate::cmd::control;
use crate::cmd::ssd::render;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Subcommands of `onefold volume write-log`.
#[derive(Debug, Subcommand)]
pub(crate) enum WriteLogs {
    /// List the entries of a log
    List {
        /// The log
        #[arg(value_name = "LOG")]
        log: PathBuf,
    },
    /// Do what a log says, in its order, to a copy of what it was kept of
    Replay(Replay),
    /// Mark this moment in the log of a volume that is served
    Mark(Mark),
}

/// Options of `onefold volume write-log replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// A file, a block device or an image: what the volume lay on was like this when the log began. Without --force it has to
    /// read as zeroes
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// First entry, counted from 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from_entry: u64,
    /// Last entry [default: the last one of the log]
    #[arg(long, value_name = "NUMBER", conflicts_with = "to_mark")]
    to_entry: Option<u64>,
    /// End with the first mark that has this text
    #[arg(long, value_name = "TEXT")]
    to_mark: Option<String>,
}

/// Options of `onefold volume write-log mark`.
#[derive(Debug, Args)]
pub(crate) struct Mark {
    /// What the volume lies on
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// What to find it by, at most 479 bytes
    #[arg(value_name = "TEXT")]
    text: String,
    /// Unix socket of its server [default: PATH.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl WriteLogs {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::List { log } => list(&mut WriteLogReader::open(log)?, global)?,
            Self::Replay(replay) => replay.run(global)?,
            Self::Mark(mark) => mark.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(log: &mut WriteLogReader, global: &Global) -> Result<(), CliError> {
    let mut entries = Vec::new();
    while let Some(logged) = log.read_next()? {
        entries.push(logged);
    }
    let text = match global.format() {
        Format::Json => {
            let value = json!({
                "schema": "onefold.volume.write_log/1",
                "sector_bytes": log.sector_bytes(),
                "entries": entries.iter().map(describe).collect::<Value>(),
            });
            format!("{value:#}\n")
        }
        Format::Table => entries.iter().map(line).collect(),
    };
    global.emit(&text)
}

fn flags(logged: &Logged) -> Vec<&'static str> {
    logged.entry.flag_names().collect()
}

fn describe(logged: &Logged) -> Value {
    json!({
        "entry": logged.number,
        "flags": flags(logged),
        "offset": logged.offset(),
        "bytes": logged.len(),
        "mark": logged.mark,
    })
}

/// One line of the table.
fn line(logged: &Logged) -> String {
    let mut what = flags(logged);
    if !logged.is_empty() && !logged.entry.is_discard() {
        what.insert(0, "write");
    }
    let range = if logged.is_empty() {
        String::new()
    } else {
        format!(" {} at {}", logged.len(), logged.offset())
    };
    let text = logged.mark.as_ref().map_or_else(String::new, |text| format!(" {text:?}"));
    format!("{}: {}{range}{text}\n", logged.number, what.join(", "))
}

impl Replay {
    fn run(&self, global: &Global) -> Result<(), CliError> {
        let mut log = WriteLogReader::open(&self.log)?;
        let last = match (&self.to_mark, self.to_entry) {
            (Some(text), _) => log.find_mark(text, self.from_entry)?,
            (None, Some(number)) => number,
            // A log without entries has none to refuse.
            (None, None) => log.entries().max(1) - 1,
        };
        if last < self.from_entry {
            let text = format!("entries {} to {last}; expected some", self.from_entry);
            return Err(CliError::new(Exit::Usage, "volume::write_log", text));
        }
        let target = super::open_device(&self.target, true, global)?;
        // What entries overwrite is not looked at one by one: they are many, and most of them are where others are.
        if !global.force
            && let Some(what) = target.contents(&[])
        {
            return Err(VolumeError::Holds { what }.into());
        }
        let done = target.replay(&mut log, self.from_entry..=last);
        let closed = target.close();
        // What kept it from being replayed matters more.
        let done = done?;
        closed?;
        global.say(format_args!(
            "{}: {} entries, {} written, {} discarded",
            self.target.display(),
            done.entries,
            render::size(done.written),
            render::size(done.discarded),
        ));
        Ok(())
    }
}

impl Mark {
    fn run(&self) -> Result<(), CliError> {
        let Some(server) = super::server_of(&self.path, self.control.as_deref()) else {
            return Err(WriteLogError::NotKept.into());
        };
        control::request(&server, json!({"cmd": "mark", "text": self.text})).map(drop)
    }
}

impl From<WriteLogError> for CliError {
    fn from(error: WriteLogError) -> Self {
        let (exit, help) = match &error {
            WriteLogError::Exists { .. }
            | WriteLogError::NoEntry { .. }
            | WriteLogError::NoMark { .. }
            | WriteLogError::Outside { .. }
            | WriteLogError::Text { .. }
            | WriteLogError::NotKept
            | WriteLogError::Untold(_) => (Exit::Usage, None),
            WriteLogError::Cut { .. } | WriteLogError::Entry { .. } => {
                (Exit::Failed, Some("--to-entry replays what comes before"))
            }
            _ => (Exit::Failed, None),
        };
        let error = Self::new(exit, "volume::write_log", error);
        match help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}
