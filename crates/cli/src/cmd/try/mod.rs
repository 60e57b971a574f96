//! `onefold try`: what a program does to flash, and which power cuts it survives.

mod failure;
mod looks;
mod mark;
mod result;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Args;
use onefold_config::Age;
use onefold_sim::SimError;
use onefold_tracefile::TraceFileError;
use onefold_try::account::files::attribute;
use onefold_try::account::{Account, Budget, Drive, DriveCost, Replay, SCHEMA, drives};
use onefold_try::explore::{Amount, Checks, Promises, Search, Shard, explore};
use onefold_try::room::{FileSystem, Place, keep_mounts_private};
use onefold_try::run::{self, End, Plan, Ran};
use onefold_try::tape;
use onefold_units::numbers;

use crate::cmd::crash::explore::{default_jobs, keep, parse_amount};
use crate::cmd::crash::watched::Watched;
use crate::cmd::sim;
use crate::cmd::ssd::render;
use crate::error::CliError;
use crate::output::Global;
use crate::replace::{Made, Replaced};
use looks::{Known, Looks};
use result::{Cuts, Tried};

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
    /// How many states after power cuts to look at, spread evenly over the run, or all but those by chance; 0: none
    #[arg(long, value_name = "N|all", default_value = "1000", value_parser = parse_amount)]
    states: Amount,
    /// Write an image of each finding into this folder
    #[arg(long, value_name = "DIRECTORY")]
    keep_failing: Option<PathBuf>,
    /// Drives on which the requests are replayed: names of presets, all or none [default: tlc,qlc-16k,tlc-plp]
    #[arg(long, value_name = "LIST")]
    drives: Option<String>,
    /// State of the drives before
    #[arg(long, value_name = "SPEC", default_value = "fill=0.9,overwrite=1.0", value_parser = Age::from_str)]
    age: Age,
    /// Each drive behind a volume as well
    #[arg(long)]
    volume: bool,
    /// What has to hold, such as nand<=2GiB@qlc-16k, waf<=1.5, fs<=1GiB, flushes<=100 or life>=5y (may be given several times)
    #[arg(long, value_name = "EXPRESSION", value_parser = Budget::from_str)]
    budget: Vec<Budget>,
    /// Write a page with pictures into this file as well
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// States at a time [default: twice the processors]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Keep the tape in this new folder
    #[arg(long, value_name = "DIRECTORY")]
    tape: Option<PathBuf>,
    /// How long the program may run, and each check
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    timeout: Duration,
    /// The program and its arguments. It runs in the file system; `ONEFOLD_DIR` is its folder, `ONEFOLD_DEVICE` its disk
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

impl Try {
    pub(crate) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let drives = drives::parse(self.drives.as_deref())?;
        self.expect_budgets(&drives)?;
        self.expect_report(global)?;
        self.fs.expect_usable(true)?;
        for left in Place::clean_up() {
            global.say(format_args!("removed what a run left that was killed: {}", left.display()));
        }
        if self.fs != FileSystem::None {
            keep_mounts_private()?;
        }
        let place = Place::new()?;
        let tried = self.run_in(&place, &drives, global);
        // Whoever is asked to end leaves nothing.
        drop(place);
        global.interrupt.end_if_asked();
        tried
    }

    fn run_in(
        &self,
        place: &Place,
        drives: &[Drive],
        global: &Global,
    ) -> Result<ExitCode, CliError> {
        let folder = self.tape.clone().unwrap_or_else(|| place.path("program.tape"));
        let mut looks = Looks::default();
        global.interrupt.leaves("the program was ended, and nothing is left of its disk");
        let ran = global.interrupt.softly(|stop| {
            run::run(&self.plan(&folder, global), place, stop, &mut |folder, entry| {
                looks.look(folder, entry);
            })
        })?;
        if global.interrupt.is_asked() {
            return Ok(global.interrupt.code());
        }
        Self::tell(&ran.end, global);
        let known = looks.finish(&ran.tape.base());
        let account = self.account(&ran, &known, drives, global)?;
        if self.tape.is_some() {
            ran.tape.keep(tape::OWNERS, &known.by_entry)?;
            ran.tape.keep(tape::ACCOUNT, &account)?;
        }
        let cuts = self.cut(&ran, &known, global)?;
        let named = self.tape.as_ref().map(|folder| folder.display().to_string());
        let tried = Tried { ran: &ran, account, cuts, tape: named, seed: global.seed };
        global.emit(&tried.text(global))?;
        if let Some(path) = &self.report {
            Self::page(path, global)?.write(&tried.html(), &global.interrupt)?;
        }
        Ok(tried.code())
    }

    /// Refuses budgets about drives that are not simulated.
    fn expect_budgets(&self, drives: &[Drive]) -> Result<(), CliError> {
        let with =
            drives.iter().filter(|_| self.volume).map(|drive| format!("{}+volume", drive.name));
        let labels: Vec<String> =
            drives.iter().map(|drive| drive.name.clone()).chain(with).collect();
        for budget in &self.budget {
            budget.expect_among(&labels)?;
        }
        Ok(())
    }

    /// Where the page goes.
    fn page(path: &Path, global: &Global) -> Result<Replaced, CliError> {
        Replaced::of(path, global.force, |old| *old == Made::Report)
    }

    /// Refuses a place where the page cannot go, before there is one.
    fn expect_report(&self, global: &Global) -> Result<(), CliError> {
        self.report.as_ref().map_or(Ok(()), |path| Self::page(path, global).map(drop))
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

    /// What it wrote, hop by hop.
    fn account(
        &self,
        ran: &Ran,
        known: &Known,
        drives: &[Drive],
        global: &Global,
    ) -> Result<Account, CliError> {
        let program = ran.tape.about().program.clone().unwrap_or_default();
        let requests = ran.tape.requests();
        let seconds = program.seconds.unwrap_or_default();
        let file_system = match attribute(&requests, &known.by_time) {
            Ok((file_system, _)) => Some(file_system),
            Err(TraceFileError::Empty { .. }) => {
                global.say("the program asked the disk for nothing");
                None
            }
            Err(error) => return Err(SimError::from(error).into()),
        };
        let drives = if file_system.is_some() { drives } else { &[] };
        let mut account = Account {
            schema: SCHEMA.to_owned(),
            onefold: sim::program(),
            seed: global.seed,
            command: self.command.clone(),
            seconds,
            disk_bytes: self.size,
            age: self.age.to_string(),
            program: program.dirtied_bytes,
            file_system,
            drives: self.costs(&requests, seconds, drives, global)?,
            budgets: Vec::new(),
        };
        account.judge(&self.budget);
        Ok(account)
    }

    /// What drives program for it.
    fn costs(
        &self,
        requests: &Path,
        seconds: f64,
        drives: &[Drive],
        global: &Global,
    ) -> Result<Vec<DriveCost>, CliError> {
        let replay = Replay {
            requests,
            disk_bytes: self.size,
            seconds,
            age: self.age,
            volume: self.volume,
            seed: global.seed,
            program: sim::program(),
        };
        let threads = available_parallelism().map_or(1, NonZeroUsize::get);
        let costs =
            global.interrupt.softly(|stop| drives::run(drives, &replay, threads, Some(stop)));
        Ok(costs?)
    }

    /// Cuts the power, if there is something to look at afterwards.
    fn cut(&self, ran: &Ran, known: &Known, global: &Global) -> Result<Option<Cuts>, CliError> {
        let is_unchecked = self.fs == FileSystem::None && self.check.is_none();
        if self.states == Amount::Most(0) || is_unchecked {
            return Ok(None);
        }
        let log = Arc::new(ran.tape.log()?);
        let program = ran.tape.about().program.clone().unwrap_or_default();
        let promises = Promises::new(&log, &ran.tape.printed()?, program.ended_entry);
        let checks = Checks {
            fs: self.fs,
            mount: self.mount.clone(),
            command: self.check.clone(),
            timeout: self.timeout,
        };
        let watched = Watched::new(self.states, global);
        let search = Search {
            checks: checks.clone(),
            amount: self.states,
            shard: Shard::WHOLE,
            jobs: self.jobs.unwrap_or_else(default_jobs),
            since: log.behind(program.began_entry),
            seed: global.seed,
            name_of: &|entry, bytes| known.name_of(entry, bytes),
            progress: &|tried, failing| watched.told(tried, failing),
        };
        let report = global.interrupt.softly(|stop| explore(&log, &promises, &search, stop));
        watched.end();
        let report = report?;
        if let Some(folder) = &self.keep_failing {
            keep(&report, &log, folder)?;
        }
        Ok(Some(Cuts { report, checks, log }))
    }

    /// What was not as it should be.
    fn tell(end: &End, global: &Global) {
        if end.is_late {
            global.say("the program ran longer than --timeout, and was killed");
        }
        if end.left > 0 {
            global.say(format_args!("{} processes that the program left were ended", end.left));
        }
        if end.is_full {
            global.say(
                "the disk was full: the program saw ENOSPC, or nearly so; --size makes it larger",
            );
        }
        if let Err(error) = &end.unmounted {
            global.say(error);
        }
    }
}
