//! `onefold trace convert` and `onefold trace sample`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_trace::{Losses, Record};
use onefold_tracefile::{OutputFormat, TraceSource, create};
use onefold_units::PAGE_BYTES;

use super::options::{ReadArgs, time};
use super::trace_error;
use crate::error::{CliError, Exit};
use crate::output::Global;
use crate::replace::{Replaced, part_of};

/// Options of `trace convert`.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Trace file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    to: Target,
    #[command(flatten)]
    read: ReadArgs,
}

/// Options of `trace sample`.
#[derive(Debug, Args)]
pub(crate) struct Sample {
    /// Trace file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    to: Target,
    /// Leave out requests before this time from the first request
    #[arg(long, default_value = "0s", value_name = "TIME")]
    from: String,
    /// Leave out requests at and after this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Keep the requests that start on one in so many pages, chosen by a hash of the address
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = every)]
    every: u64,
    #[command(flatten)]
    read: ReadArgs,
}

fn every(text: &str) -> Result<u64, String> {
    let count = onefold_units::numbers::count(text).ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("found {text:?}, expected a number from 1 on"))
}

/// Where the new trace goes.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// Format to write: oft, onefold-csv, msr, fio-iolog, mqsim, ssdsim or parquet
    #[arg(long, value_name = "FORMAT")]
    to: String,
}

impl Target {
    fn format(&self) -> Result<OutputFormat, CliError> {
        Self::named(&self.to)
    }

    /// The format of that name.
    pub(super) fn named(name: &str) -> Result<OutputFormat, CliError> {
        OutputFormat::from_name(name).ok_or_else(|| {
            let names = OutputFormat::names();
            let text = format!("--to is `{name}`, expected one of {names}");
            CliError::new(Exit::Usage, "usage::to", text)
        })
    }
}

impl Convert {
    pub(crate) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        rewrite(&self.file, self.to.format()?, &self.read, global, |_| true)
    }
}

impl Sample {
    pub(crate) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let from = time("--from", &self.from)?;
        let until = match &self.until {
            Some(text) => time("--until", text)?,
            None => u64::MAX,
        };
        let (every, seed) = (self.every, global.seed);
        rewrite(&self.file, self.to.format()?, &self.read, global, |record| {
            (from..until).contains(&record.t_ns) && chosen(record, every, seed)
        })
    }
}

/// Whether the page a request starts on is in the sample. Sampling by page and not by request keeps
/// rewrites and reuse distances.
fn chosen(record: &Record, every: u64, seed: u64) -> bool {
    if every == 1 || record.len == 0 {
        return true;
    }
    let page = record.offset / PAGE_BYTES;
    onefold_units::Rng::fork(seed, page).below(every) == 0
}

/// The file of `-o`; a trace is not written to a terminal.
pub(super) fn output(global: &Global) -> Result<&Path, CliError> {
    let path = global.output.as_deref().ok_or_else(|| {
        CliError::new(Exit::Usage, "usage::output", "-o is missing, expected a file to write")
            .help("for example -o trace.oft, or trace.csv.zst to compress it")
    })?;
    // A trace does not say which command made it, and a recording cannot be made again.
    match Replaced::of(path, global.force, |_| false)? {
        Replaced::File(_) => Ok(path),
        Replaced::Stream(_) => {
            let text = format!("-o names {}, which is no regular file", path.display());
            Err(CliError::new(Exit::Usage, "output::foreign", text))
        }
    }
}

/// Tells what the format could not hold.
pub(super) fn report(global: &Global, path: &Path, requests: u64, losses: &Losses) {
    global.say(format_args!("{}: {requests} requests", path.display()));
    for line in losses.lines() {
        global.say(format_args!("lost: {line}"));
    }
}

fn rewrite(
    file: &Path,
    format: OutputFormat,
    read: &ReadArgs,
    global: &Global,
    keep: impl Fn(&Record) -> bool,
) -> Result<ExitCode, CliError> {
    let path = output(global)?;
    global
        .interrupt
        .leaves("the new trace was not whole and is gone; what was there before is as it was");
    let options = read.options(!format.keeps_devices())?;
    let failed = |error| trace_error(&error);
    let mut source = TraceSource::open(file, &options).map_err(failed)?;
    global.say(&source.meta().interpretation);
    if source.meta().devices.len() > 1 && !format.keeps_devices() {
        global.say("lost: devices, which now lie one after another in one address space");
    }
    let mut writer = create(path, format, source.meta(), &read.words()).map_err(failed)?;
    let _unfinished = global.interrupt.unfinished(&part_of(path));
    let mut requests = 0_u64;
    let mut batch = Vec::new();
    while source.next_batch(&mut batch).map_err(failed)? {
        for record in batch.iter().filter(|record| keep(record)) {
            writer.push(record).map_err(failed)?;
            requests += 1;
        }
    }
    if requests == 0 {
        return Err(CliError::new(
            Exit::Failed,
            "trace::nothing_left",
            format!("{}: no request is in the sample", file.display()),
        ));
    }
    let losses = writer.finish().map_err(failed)?;
    report(global, path, requests, &losses);
    Ok(ExitCode::SUCCESS)
}
