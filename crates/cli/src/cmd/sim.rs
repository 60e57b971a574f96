//! `onefold sim`.

mod latency_log;
mod state_file;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use onefold_config::{Load, REPLAYED};
use onefold_device::{Access, Image, at_rest};
use onefold_sim::result::{Program, RunResult, table};
use onefold_sim::{
    Checkpoint, CheckpointError, Control, Logged, OnRequest, Setup, SimError, Used, simulate,
    simulate_on,
};

use crate::cmd::config::ConfigArgs;
use crate::cmd::ssd;
use crate::cmd::trace::{ReadArgs, trace_error};
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};
use latency_log::LatencyLog;
use onefold_units::numbers;
use state_file::StateFile;

/// Subcommands of `onefold sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// Run a trace or a workload on a modelled SSD, in virtual time
    Run(RunArgs),
}

/// Arguments of `onefold sim run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Go on from the state of the SSD in this image, and through the volume on it if there is one. The image stays as it is
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["config", "preset"])]
    image: Option<PathBuf>,
    /// Capacity that the host sees, such as 8GiB; geometry.blocks is chosen to fit [default: that
    /// of the configuration]
    #[arg(long, value_name = "SIZE", value_parser = ssd::render::parse_size, conflicts_with = "image")]
    size: Option<u64>,
    /// Replay this trace (plain, gzip, zstd or xz), or the requests of a tape
    #[arg(long, visible_alias = "tape", value_name = "FILE", conflicts_with = "workload")]
    trace: Option<PathBuf>,
    /// Run a generated workload, such as "randwrite,bs=4KiB,qd=32,requests=10M"
    #[arg(long, value_name = "SPEC")]
    workload: Option<String>,
    /// What to do with a trace larger than the device [default: run.fit, error]
    #[arg(long, value_enum, value_name = "HOW")]
    fit: Option<FitName>,
    /// Replay a short trace so often, or until-steady: until its write amplification stays, and the last pass counts
    #[arg(long, value_name = "N|until-steady", value_parser = parse_repeat)]
    repeat: Option<String>,
    /// Write a row for each measured request to this new file, as CSV: when it was issued, how long it took, what it waited for
    #[arg(long, value_name = "FILE")]
    latency_log: Option<PathBuf>,
    /// Keep the state of the run in this file: before the first request, and when the run is interrupted. Where the file is there
    /// already, the run goes on from it. It is removed when the run is over
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "latency_log"])]
    checkpoint: Option<PathBuf>,
    /// Keep the state after so many further requests too, such as 100M
    #[arg(long, value_name = "REQUESTS", requires = "checkpoint", value_parser = parse_every)]
    checkpoint_every: Option<u64>,
    #[command(flatten)]
    read: ReadArgs,
}

fn parse_every(text: &str) -> Result<u64, String> {
    let every = numbers::count(text).ok().filter(|every| *every > 0);
    every.ok_or_else(|| format!("found {text:?}, expected a number of requests such as 100M"))
}

/// As a key and its value.
fn parse_repeat(text: &str) -> Result<String, String> {
    if text == "until-steady" {
        return Ok("run.until=steady".to_owned());
    }
    let passes = text.parse::<u32>().ok().filter(|passes| *passes > 0);
    let passes = passes
        .ok_or_else(|| format!("found {text:?}, expected a number of passes or until-steady"))?;
    Ok(format!("run.repeat={passes}"))
}

/// How a trace is brought onto the device.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FitName {
    /// Refuse it
    Error,
    /// Renumber the touched regions of 1 MiB without gaps, whether or not the trace fits
    Compact,
    /// Take offsets modulo the device
    Wrap,
}

impl FitName {
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Compact => "compact",
            Self::Wrap => "wrap",
        }
    }
}

impl Sim {
    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::Run(args) => args.run(global),
        }
    }
}

impl RunArgs {
    fn run(mut self, global: &Global) -> Result<ExitCode, CliError> {
        if let Some(fit) = self.fit {
            self.config.sets.push(format!("run.fit={}", fit.word()));
        }
        self.config.sets.extend(self.repeat.take());
        let image =
            self.image.as_deref().map(|path| ssd::open(path, Access::ReadOnly)).transpose()?;
        let mut config = match &image {
            Some((_, config)) => config.with_sets(&self.config.sets, REPLAYED)?,
            None => self.config.load_of_size(self.size, global)?,
        };
        if let Some(path) = &self.trace {
            config = config.with_load(&Load::Trace(path.clone()));
        } else if let Some(text) = &self.workload {
            config = config.with_load(&Load::Workload(text.clone()));
        }
        if self.trace.is_none() && config.load_of_run().is_none_or(|load| !is_trace(&load)) {
            self.read.expect_no_format()?;
        }
        let trace_options = self.read.options(true)?;
        let setup = Setup { config, trace_options, seed: global.seed, program: program() };
        let used = image.map(|(image, _)| used(&image, &setup)).transpose()?;
        let log = self.latency_log.as_deref().map(LatencyLog::create).transpose()?;
        let take = |path| StateFile::take(path, &global.interrupt);
        let state = self.checkpoint.map(take).transpose()?;
        let every = self.checkpoint_every;
        let checkpoint = state.as_ref().map(|store| Checkpoint { store, every });
        let result = watch(&setup, used, (log.as_ref(), checkpoint), global)?;
        if let Some(log) = log {
            log.finish()?;
        }
        if result.partial {
            global.say("interrupted: the result covers the part that was run and says so");
            if let Some(state) = &state {
                let path = state.path().display();
                global.say(format_args!(
                    "{path} keeps its state: the same command goes on from there"
                ));
            }
        }
        let text = match global.format() {
            Format::Json => {
                for warning in &result.warnings {
                    global.say(format!("warning: {warning}"));
                }
                result.to_json_pretty() + "\n"
            }
            // The table has them.
            Format::Table => table(std::slice::from_ref(&result)),
        };
        global.emit(&text)?;
        if let (Some(state), false) = (&state, result.partial) {
            state.remove().map_err(|error| {
                let text =
                    format!("the result is out, but {} stays: {error}", state.path().display());
                CliError::new(Exit::Failed, "run::checkpoint", text)
            })?;
        }
        Ok(if result.partial { global.interrupt.code() } else { ExitCode::SUCCESS })
    }
}

/// The drive in an image.
fn used(image: &Image, setup: &Setup) -> Result<Used, CliError> {
    if setup.config.zns(setup.seed)?.is_some() {
        let text =
            format!("--image: {} has zones, expected an SSD without", image.path().display());
        return Err(CliError::new(Exit::Usage, "usage::zones", text)
            .help("simulate a new one: --preset with --set namespace.type=zns"));
    }
    let (ssd, mut held) = at_rest(image, &setup.config.ssd(setup.seed)?)?;
    Ok(Used { ssd, read: Box::new(move |block, bytes| held.read_block(block, bytes)) })
}

const fn is_trace(load: &Load) -> bool {
    matches!(load, Load::Trace(_))
}

/// Version and commit of this program.
pub(crate) fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("ONEFOLD_COMMIT").to_owned(),
    }
}

/// Runs with a progress line on a terminal, until the end or Ctrl-C.
fn watch(
    setup: &Setup,
    used: Option<Used>,
    (log, checkpoint): (Option<&LatencyLog>, Option<Checkpoint<'_>>),
    global: &Global,
) -> Result<RunResult, CliError> {
    let bar =
        if global.shows_progress() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} requests, {per_sec}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let say = |line: &str| global.say(line);
    global.interrupt.leaves("nothing was measured yet, so there is no result");
    let late = match checkpoint {
        Some(_) => {
            "the run did not stop in time: the same command goes on from the state that was kept last"
        }
        None => "the run did not stop in time, so what it had measured is lost",
    };
    let progress = |done: u64| {
        bar.set_position(done);
        global.interrupt.leaves(late);
    };
    let result = global.interrupt.softly(|interrupt| {
        let (progress, say) = (Some(&progress as _), Some(&say as _));
        let tell = |request: &Logged<'_>| log.into_iter().for_each(|log| log.row(request));
        let on_request = log.map(|_| &tell as OnRequest<'_>);
        let control = Control {
            interrupt: Some(interrupt),
            progress,
            say,
            on_request,
            checkpoint,
            ..Control::default()
        };
        match used {
            Some(used) => simulate_on(setup, used, &control),
            None => simulate(setup, &control),
        }
    });
    bar.finish_and_clear();
    if matches!(result, Err(SimError::Interrupted)) {
        global.interrupt.end_if_asked();
    }
    Ok(result?)
}

impl From<SimError> for CliError {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Config(error) => error.into(),
            SimError::Trace(error) => trace_error(&error),
            SimError::Build(_) => Self::new(Exit::Infeasible, "config::infeasible", &error),
            SimError::Workload { .. } => Self::new(Exit::Infeasible, "workload::spec", &error)
                .help("see `onefold help sim run` and docs/simulate.md for the workload language"),
            SimError::ContentPages { .. } => {
                Self::new(Exit::Infeasible, "config::content_pages", &error)
            }
            SimError::NoLoad | SimError::TwoLoads => Self::new(Exit::Usage, "run::load", &error),
            SimError::Untimed { .. } => Self::new(Exit::Infeasible, "run::untimed", &error),
            SimError::Remaps { .. } | SimError::TraceRemaps { .. } => {
                Self::new(Exit::Infeasible, "run::remaps", &error)
            }
            SimError::Range { .. } => Self::new(Exit::Infeasible, "run::range", &error),
            SimError::OnlyWarmUp { .. } => Self::new(Exit::Infeasible, "run::warmup", &error),
            SimError::Empty { .. } => Self::new(Exit::BadTrace, "run::empty", &error),
            SimError::Checkpoint(CheckpointError::Io { .. }) => {
                Self::new(Exit::Failed, "run::checkpoint", &error)
            }
            SimError::Checkpoint(_) => Self::new(Exit::Usage, "usage::checkpoint", &error),
            SimError::Device { .. } => Self::new(Exit::Failed, "run::device", &error),
            SimError::BuildZones(_) => Self::new(Exit::Infeasible, "config::namespace", &error),
            SimError::Zone { .. } | SimError::ZoneAlignment { .. } => {
                Self::new(Exit::Failed, "run::zone", &error)
                    .help("zones are written from start to end: use a sequential workload such as `write,bs=128KiB,qd=32`")
            }
            SimError::VolumeMount { .. } => Self::new(Exit::Infeasible, "config::volume", &error),
            SimError::Volume { .. } | SimError::VolumeFailed | SimError::VolumeStuck => {
                Self::new(Exit::Failed, "run::volume", &error)
            }
            _ => Self::new(Exit::Failed, "run::failed", &error),
        }
    }
}
