//! `onefold crash explore`.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use onefold_crash::{Disk, Log};
use onefold_try::TryError;
use onefold_try::explore::{Amount, Checks, Report, Search, Shard, explore};
use onefold_try::room::{FileSystem, Place, keep_mounts_private};
use onefold_try::{junit, tape};

use super::report::{self, Context};
use super::watched::Watched;
use super::{LogArgs, Opened};
use crate::cmd::r#try::parse_time;
use crate::error::{CliError, Exit};
use crate::output::{Global, Named};

/// Options of `onefold crash explore`.
#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// The tape
    #[arg(value_name = "TAPE", required_unless_present = "log", conflicts_with = "log")]
    tape: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
    /// What a shell does in each mounted state: exit code 0 if it is good. `ONEFOLD_STDOUT` and `ONEFOLD_MARKS` are files of what had
    /// been promised, `ONEFOLD_STATE` is the state, and `ONEFOLD_DEVICE` its disk
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Time that one check has
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    timeout: Duration,
    /// File system: ext4, xfs, btrfs, f2fs or none [default: the one that is found]
    #[arg(long, value_name = "NAME")]
    fs: Option<FileSystem>,
    /// Options of mount [default: those of the tape]
    #[arg(long, value_name = "OPTIONS")]
    mount: Option<String>,
    /// How many states: a number, spread evenly over the log, or all but those by chance
    #[arg(long, value_name = "NUMBER|all", default_value = "1000", value_parser = parse_amount)]
    states: Amount,
    /// States at a time [default: twice the processors]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
    /// Only this part of the states, such as 2/8: others can be tried elsewhere
    #[arg(long, value_name = "PART/PARTS", default_value = "1/1", value_parser = parse_shard)]
    shard: Shard,
    /// No power cut before this entry or mark [default: the start of the program]
    #[arg(long, value_name = "ENTRY|MARK")]
    from: Option<String>,
    /// Write an image of each finding into this folder
    #[arg(long, value_name = "DIRECTORY")]
    keep_failing: Option<PathBuf>,
}

pub(crate) fn parse_amount(text: &str) -> Result<Amount, String> {
    match text {
        "all" => Ok(Amount::All),
        _ => match text.parse() {
            Ok(most) => Ok(Amount::Most(most)),
            Err(_) => Err("expected a number, or all".to_owned()),
        },
    }
}

fn parse_shard(text: &str) -> Result<Shard, String> {
    let parts = text
        .split_once('/')
        .and_then(|(number, of)| Shard::new(number.parse().ok()?, of.parse().ok()?));
    parts.ok_or_else(|| "expected a part and the number of parts, such as 1/8 to 8/8".to_owned())
}

impl Explore {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let opened = self.log.open(self.tape.as_ref(), global)?;
        let since = self.since(&opened)?;
        for left in Place::clean_up() {
            global.say(format_args!("removed what a run left that was killed: {}", left.display()));
        }
        let checks = self.checks(&opened, global);
        checks.fs.expect_usable(false)?;
        if checks.fs != FileSystem::None {
            keep_mounts_private()?;
        }
        let promises = opened.promises()?;
        let owners = opened.owners()?;
        let watched = Watched::new(self.states, global);
        let search = Search {
            checks,
            amount: self.states,
            shard: self.shard,
            jobs: self.jobs.unwrap_or_else(default_jobs),
            since,
            seed: global.seed,
            name_of: &|entry, bytes| owners.as_ref()?.name_of(entry, bytes),
            progress: &|tried, failing| watched.told(tried, failing),
        };
        global.interrupt.leaves("the states that were tried so far are not reported");
        let found = global.interrupt.softly(|stop| explore(&opened.log, &promises, &search, stop));
        watched.end();
        let report = found?;
        let context = Context {
            log: &opened.log,
            named: Some(&opened.named),
            checks: &search.checks,
            shard: self.shard,
            seed: global.seed,
        };
        let text = match global.named {
            Some(Named::Json) => format!("{:#}\n", report::json(&report, &context)),
            Some(Named::Junit) => junit::document(&[report.suite()]),
            _ => report::table(&report, &context),
        };
        global.emit(&text)?;
        if let Some(folder) = &self.keep_failing {
            keep(&report, &opened.log, folder)?;
        }
        Ok(match (report.is_interrupted, report.failing.is_empty()) {
            (true, _) => global.interrupt.code(),
            (false, true) => ExitCode::SUCCESS,
            (false, false) => Exit::PowerCut.into(),
        })
    }

    fn checks(&self, opened: &Opened, global: &Global) -> Checks {
        let fs = opened.file_system(self.fs);
        if fs == FileSystem::None && self.check.is_none() {
            global.say("there is no file system and no --check: no state can fail");
        } else if self.check.is_none() {
            global
                .say(format_args!("no --check: only mounting and `{}` count", fs.check_command()));
        }
        Checks {
            fs,
            mount: opened.mount_options(self.mount.as_ref()),
            command: self.check.clone(),
            timeout: self.timeout,
        }
    }

    /// Position from which on power cuts are of interest.
    fn since(&self, opened: &Opened) -> Result<usize, CliError> {
        let log = &opened.log;
        let Some(text) = &self.from else {
            let program = opened.tape.as_ref().and_then(|tape| tape.about().program.as_ref());
            return Ok(program.map_or(0, |program| log.behind(program.began_entry)));
        };
        if let Ok(entry) = text.parse() {
            return Ok(log.behind(entry));
        }
        let mark = (0..log.events().len()).find(|event| log.mark(*event) == Some(text));
        mark.map(|event| event + 1).ok_or_else(|| {
            let text = format!("--from is `{text}`: the log has no such mark, and it is no number");
            CliError::new(Exit::Usage, "usage::from", text)
        })
    }
}

pub(crate) fn default_jobs() -> NonZeroUsize {
    let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    processors.saturating_add(processors.get())
}

/// Writes an image of each finding.
pub(crate) fn keep(report: &Report, log: &Arc<Log>, folder: &Path) -> Result<(), CliError> {
    let failed = |source| TryError::Io { action: "create", path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    for finding in &report.findings {
        let state = onefold_crash::State::parse(&finding.state, log)?;
        let path = folder.join(format!("{}.img", finding.state));
        tape::copy(&Disk::new(Arc::clone(log), &state), &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_parts_are_read() {
        assert_eq!(parse_amount("all"), Ok(Amount::All));
        assert_eq!(parse_amount("7"), Ok(Amount::Most(7)));
        assert!(parse_amount("x").is_err());
        assert_eq!(parse_shard("2/8").unwrap().parts(), (2, 8));
        for text in ["0/8", "9/8", "1", "a/b"] {
            assert!(parse_shard(text).is_err(), "{text}");
        }
    }
}
