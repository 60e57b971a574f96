//! `onefold try`: what a program does to flash, and which power cuts it survives.

mod failure;
mod mark;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Args;
use onefold_try::explore::{Amount, Checks, Promises, Search, Shard, explore};
use onefold_try::room::{FileSystem, Place, keep_mounts_private};
use onefold_try::run::{self, Plan, Ran};
use onefold_units::numbers;

use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::Global;

pub(crate) use mark::Mark;

/// Options of `onefold try`.
#[derive(Debug, Args)]
pub(crate) struct Try {
    /// File system of the disk: ext4, xfs, btrfs, f2fs or none. Mounting one needs root
    #[arg(long, value_name = "NAME", default_value = "ext4")]
    fs: FileSystem,
    /// Options of its mkfs
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    mkfs: String,
    /// Options of mount
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    mount: String,
    /// Size of the disk
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = render::parse_size)]
    size: u64,
    /// What a shell does on the disk before the tape begins: install, load
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Cut the power, and run this in a shell in each state that the disk can be in: exit code 0 means that all is well
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// How many states to look at, or all that can be counted; 0: no power cuts
    #[arg(long, value_name = "N|all", default_value = "1000", value_parser = parse_states)]
    states: Amount,
    /// Threads [default: as many as processors]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Keep the tape in this new folder
    #[arg(long, value_name = "DIRECTORY")]
    tape: Option<PathBuf>,
    /// How long the program may run, and each check
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    timeout: Duration,
    /// The program and its arguments. It runs in the file system, and has ONEFOLD_DIR, ONEFOLD_DEVICE and ONEFOLD_TRY in its environment
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let nanos = numbers::time(text)
        .map_err(|error| format!("found {text:?}, {error}; expected a time, such as 90s or 10m"))?;
    if nanos == 0 {
        Err("expected more than nothing".to_owned())
    } else {
        Ok(Duration::from_nanos(nanos))
    }
}

fn parse_states(text: &str) -> Result<Amount, String> {
    if text == "all" {
        return Ok(Amount::All);
    }
    let expected = |error| format!("found {text:?}, {error}; expected a number of states, or all");
    Ok(Amount::First(numbers::count(text).map_err(expected)?))
}

impl Try {
    pub(crate) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        self.fs.expect_usable(true)?;
        for left in Place::clean_up() {
            global.say(format_args!("removed what a run left that was killed: {}", left.display()));
        }
        keep_mounts_private()?;
        let place = Place::new()?;
        let folder = self.tape.clone().unwrap_or_else(|| place.path("program.tape"));
        let plan = self.plan(&folder, global);
        let ran = global.interrupt.softly(|stop| run::run(&plan, stop, &mut |_, _| {}));
        global.interrupt.end_if_asked();
        let ran = ran?;
        Self::tell(&ran, global);
        self.cut(&ran, global)?;
        Ok(code(&ran))
    }

    fn plan(&self, folder: &Path, global: &Global) -> Plan {
        Plan {
            file_system: self.fs,
            mkfs: self.mkfs.clone(),
            mount: self.mount.clone(),
            bytes: self.size,
            prepare: self.prepare.clone(),
            command: self.command.clone(),
            tape: folder.to_owned(),
            seed: global.seed,
            timeout: Some(self.timeout),
            is_shown: !global.quiet,
        }
    }

    /// Cuts the power.
    fn cut(&self, ran: &Ran, global: &Global) -> Result<(), CliError> {
        let log = Arc::new(ran.tape.log()?);
        let program = ran.tape.about().program.clone().unwrap_or_default();
        let promises = Promises::new(&log, &ran.tape.printed()?, program.ended_entry);
        let search = Search {
            checks: Checks {
                fs: self.fs,
                mount: self.mount.clone(),
                command: self.check.clone(),
                timeout: self.timeout,
            },
            amount: self.states,
            shard: Shard::WHOLE,
            jobs: self.jobs.or_else(|| available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN),
            since: log.behind(program.began_entry),
            seed: global.seed,
            name_of: &|_, _| None,
            progress: &|_, _| {},
        };
        let report = global.interrupt.softly(|stop| explore(&log, &promises, &search, stop))?;
        println!("{} states, {:?}, {} failing, {:.1} s", report.states, report.checked, report.failing.len(), report.seconds);
        for finding in &report.findings {
            println!("{} ({} states, {})", finding.sentence(), finding.states.len(), finding.state);
        }
        Ok(())
    }

    /// What was not as it should be.
    fn tell(ran: &Ran, global: &Global) {
        if ran.is_late {
            global.say("the program ran longer than --timeout, and was killed");
        }
        if ran.left > 0 {
            global.say(format_args!("{} processes that the program left were ended", ran.left));
        }
        if ran.is_full {
            global.say(
                "the disk was full: the program saw ENOSPC, or nearly so; --size makes it larger",
            );
        }
        if let Err(error) = &ran.unmounted {
            global.say(error);
        }
    }
}

/// The program's own code is passed on, as a shell would.
fn code(ran: &Ran) -> ExitCode {
    let program = ran.tape.about().program.clone().unwrap_or_default();
    let signal = program.signal.map(|signal| 128 + signal);
    let code = program.exit_code.or(signal).unwrap_or(0);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
