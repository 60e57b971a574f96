//! What `serve` does with the journals of file systems.

use clap::{Args, ValueEnum};
use onefold_device::{DmzOptions, Journals};
use onefold_journal::Setting;
use onefold_zoned::{JournalMode, Options};

use crate::error::{CliError, Exit};

/// What becomes of the journal of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// It is data
    Off,
    /// Policy dmz: its chunk stays in the cache (Choi 2022)
    One,
    /// It has log segments of its own; policy dmz: sequential zones, or its chunks stay in the cache while that has room
    Set,
}

/// Options about journals.
#[derive(Debug, Args)]
pub(super) struct Journal {
    /// What becomes of the journals of the file systems on it [default: set in mode log on zones, else off]
    #[arg(long, value_enum, value_name = "MODE")]
    journal: Option<Mode>,
    /// Where journals are, in bytes, such as 448MiB-512MiB, the end not included [default: found by reading and watching]
    #[arg(long, value_name = "A-B", value_parser = parse_ranges)]
    journal_range: Option<Setting>,
}

fn parse_ranges(text: &str) -> Result<Setting, String> {
    Setting::parse(text).map_err(|error| error.to_string())
}

fn refused(text: &'static str) -> CliError {
    CliError::new(Exit::Usage, "volume::journal", text)
}

impl Journal {
    /// For a volume of policy `dmz`.
    pub(super) fn of_dmz(&self) -> DmzOptions {
        let journal = match self.journal {
            None | Some(Mode::Off) => JournalMode::Off,
            Some(Mode::One) => JournalMode::One,
            Some(Mode::Set) => JournalMode::Set,
        };
        // Without a mode nobody needs to know where the journal is.
        let found = if journal == JournalMode::Off { Setting::Off } else { Setting::Detect };
        let ranges = self.journal_range.clone().unwrap_or(found);
        DmzOptions {
            engine: Options { journal, ..Options::default() },
            ranges,
            ..DmzOptions::default()
        }
    }

    /// For a volume of a mode.
    pub(super) fn of_log(&self) -> Result<Journals, CliError> {
        match (self.journal, &self.journal_range) {
            (None, None) => Ok(Journals::OnZones),
            (None | Some(Mode::Set), Some(ranges)) => Ok(Journals::Set(ranges.clone())),
            (Some(Mode::Set), None) => Ok(Journals::Set(Setting::Detect)),
            (Some(Mode::Off), None) => Ok(Journals::Off),
            (Some(Mode::Off), Some(_)) => Err(refused("--journal-range needs --journal set")),
            (Some(Mode::One), _) => Err(refused(
                "--journal one is of policy dmz, and this is a volume of another kind: use set or off",
            )),
        }
    }
}
