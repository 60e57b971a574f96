//! `onefold volume advise`: whether a volume would help.
//!
//! The load runs twice on a model of the drive, alone and through the volume that `volume create` would make there, and the bytes that
//! flash programs decide (`verdict`). What is measured, what the device says and what is assumed are told apart.

mod compare;
mod hints;
mod load;
mod look;
mod model;
mod probe;
mod report;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onefold_config::Config;
use onefold_device::Access;
use onefold_units::PAGE_BYTES;

use crate::cmd::config::ConfigArgs;
use crate::cmd::ssd::{self, render};
use crate::cmd::trace::ReadArgs;
use crate::error::{CliError, Exit};
use crate::output::Global;
use compare::{Compared, Planned, State, Wanted, compare};
use load::Load;
use look::{Measuring, Seen, Sourced};
use model::Model;
use report::Advice;

/// Share of the log that holds data, unless it is said.
const UTILISATION: f64 = 0.7;

/// Other shares that are tried.
const OTHERS: [f64; 3] = [0.5, 0.7, 0.85];

/// Shares this close to the one that was asked for say nothing new.
const CLOSE: f64 = 0.075;

/// Keys that the options and the comparison itself set.
const OURS: [(&str, &str); 8] = [
    ("precondition.", "--utilisation and --overwritten say what it holds"),
    ("run.repeat", "a trace is replayed as often as it takes"),
    ("run.until", "a trace is replayed as often as it takes"),
    ("run.fit", "regions that a trace does not touch are left out where that is needed"),
    ("volume.mode", "it is run with a volume and without"),
    ("volume.op", "use --op"),
    ("volume.log_segment", "use --segment"),
    ("volume.unit", "use --unit"),
];

/// Options of `onefold volume advise`.
#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// The device or file that a volume would lie on, or an image made by `onefold ssd create`
    #[arg(value_name = "PATH", required_unless_present_any = ["preset", "config"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Capacity of the modelled drive [default: that of the configuration, made smaller so that it is simulated in seconds]
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    size: Option<u64>,
    #[command(flatten)]
    measuring: Measuring,
    /// What is to be written: a recording of it
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    trace: Option<PathBuf>,
    /// What is to be written, as of `sim run`; over the data unless it names a range
    #[arg(long, value_name = "SPEC")]
    workload: Option<String>,
    /// Share of the log that holds data before; the drive alone holds as much
    #[arg(long, value_name = "SHARE", default_value_t = UTILISATION, value_parser = parse_share)]
    utilisation: f64,
    /// How often that data was overwritten before, at random; 0 is a new drive
    #[arg(long, value_name = "TIMES", default_value_t = 2.0, value_parser = parse_times)]
    overwritten: f64,
    /// Share of the log space that stays free, as of `volume create` [default: 0.2, or what --utilisation leaves]
    #[arg(long, value_name = "SHARE", value_parser = parse_op)]
    op: Option<f64>,
    /// Size of a log segment, as of `volume create`
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    segment: Option<u64>,
    /// The smallest write that the drive does not pad, as of `volume create`; also what a drive maps that does not tell
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    unit: Option<u64>,
    #[command(flatten)]
    read: ReadArgs,
}

fn parse_share(text: &str) -> Result<f64, String> {
    render::parse_share(text, 0.01..=0.98)
}

fn parse_op(text: &str) -> Result<f64, String> {
    render::parse_share(text, 0.02..=0.95)
}

fn parse_times(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok().filter(|times| (0.0..=20.0).contains(times));
    times.ok_or_else(|| format!("found {text:?}, expected a number from 0 to 20"))
}

/// What is judged: a model, and what was seen of the drive that it stands for.
struct Subject {
    model: Model,
    seen: Option<Seen>,
    unit: Option<Sourced>,
}

impl Advise {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        self.refuse_ours()?;
        let load = self.load(global)?;
        let subject = self.subject(global)?;
        let wanted = Wanted {
            op: self.op,
            segment_bytes: self.segment,
            unit_bytes: self.unit.or_else(|| subject.unit.map(|(bytes, _)| bytes)),
        };
        let exported =
            |config: &Config| Ok(Planned::new(config, &wanted, self.utilisation)?.exported());
        let model = subject.model.fitted(load.needed_bytes(), exported)?;
        let state = State { utilisation: self.utilisation, overwritten: self.overwritten };
        let others = if model.is_small()? { self.others() } else { Vec::new() };
        global.say(format_args!("simulating {}", model.described()?));
        let run = |state| compare(&model.config, (&wanted, &load, state), global.seed);
        let (asked, others) = side_by_side(run, state, others);
        let asked = asked?;
        let advice = Advice {
            subject: self.name(),
            model,
            seen: subject.seen,
            unit: subject.unit,
            load,
            asked,
            others,
        };
        global.emit(&advice.text(global.format())?)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses keys that would be overruled.
    fn refuse_ours(&self) -> Result<(), CliError> {
        for set in &self.config.sets {
            let ours = OURS.iter().find(|(key, _)| set.trim_start().starts_with(key));
            if let Some((_, instead)) = ours {
                let text = format!("--set {set} is not for `volume advise`: {instead}");
                return Err(CliError::new(Exit::Usage, "volume::set", text));
            }
        }
        Ok(())
    }

    fn load(&self, global: &Global) -> Result<Load, CliError> {
        let Some(path) = &self.trace else {
            self.read.expect_no_format()?;
            return Load::generated(self.workload.as_deref());
        };
        let load = Load::trace(path, self.read.options(true)?)?;
        if let Load::Trace(trace) = &load {
            global.say(&trace.interpretation);
        }
        Ok(load)
    }

    /// The states that are tried beside the one that was asked for: what would change the verdict.
    fn others(&self) -> Vec<State> {
        let far = |share: &f64| (share - self.utilisation).abs() > CLOSE;
        let fuller = OTHERS.into_iter().filter(far);
        let fuller = fuller.filter(|share| self.op.is_none_or(|op| share + op <= 1.0));
        let mut states: Vec<State> = fuller
            .map(|utilisation| State { utilisation, overwritten: self.overwritten })
            .collect();
        if self.overwritten > 0.0 {
            states.push(State { utilisation: self.utilisation, overwritten: 0.0 });
        }
        states
    }

    fn subject(&self, global: &Global) -> Result<Subject, CliError> {
        let modelled = |model| Subject { model, seen: None, unit: None };
        match &self.path {
            None => {
                self.measuring.expect_none("what --preset or --config names")?;
                Ok(modelled(self.configured(global)?))
            }
            Some(path) if super::is_ssd_image(path) => {
                self.measuring.expect_none("an image")?;
                Ok(modelled(self.of_image(path)?))
            }
            Some(path) => self.of_device(path, global),
        }
    }

    /// The drive of `--preset`, `--config`, `--set` and `--size`.
    fn configured(&self, global: &Global) -> Result<Model, CliError> {
        let named = match (&self.config.preset, &self.config.config) {
            (Some(preset), _) => format!("preset {preset}"),
            (None, Some(file)) => file.display().to_string(),
            (None, None) => "preset s1".to_owned(),
        };
        let sets = self.config.sets.join(", ");
        let from = if sets.is_empty() { named } else { format!("{named} with {sets}") };
        let model = Model::new(self.config.load_of_size(self.size, global)?, from)?;
        Ok(if self.size.is_some() { model.sized() } else { model })
    }

    fn of_image(&self, path: &Path) -> Result<Model, CliError> {
        let given = [
            ("--preset", self.config.preset.is_some()),
            ("--config", self.config.config.is_some()),
            ("--size", self.size.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
            let text =
                format!("{option} is not for {}, an image with a drive of its own", path.display());
            return Err(CliError::new(Exit::Usage, "volume::model", text)
                .help(format!("leave out {option}, or PATH")));
        }
        let (_, config) = ssd::open(path, Access::ReadOnly)?;
        let config = config.with_sets(&self.config.sets, onefold_config::REPLAYED)?;
        let from =
            format!("the drive of this image ({}), in the state that is told", config.name());
        Ok(Model::new(config, from)?.sized())
    }

    /// A device of which no model is known: a preset stands for it.
    fn of_device(&self, path: &Path, global: &Global) -> Result<Subject, CliError> {
        let seen = self.measuring.look(path, global)?;
        let told = self.unit.map(|bytes| (bytes, "as told")).or_else(|| seen.unit());
        let unit =
            told.unwrap_or((PAGE_BYTES, "neither told nor measured, as `volume create` takes it"));
        let is_named = self.config.preset.is_some() || self.config.config.is_some();
        let model = if is_named {
            self.configured(global)?.standing()
        } else if self.config.sets.is_empty() && self.size.is_none() {
            Model::assumed(unit.0, seen.hints.is_zoned())?
        } else {
            let text = format!("--set and --size change a model, and {} has none", path.display());
            return Err(CliError::new(Exit::Usage, "volume::model", text)
                .help("name one: --preset tlc, --preset qlc-16k"));
        };
        Ok(Subject { model, seen: Some(seen), unit: Some(unit) })
    }

    fn name(&self) -> String {
        match (&self.path, &self.config.preset, &self.config.config) {
            (Some(path), ..) => path.display().to_string(),
            (None, Some(preset), _) => format!("preset {preset}"),
            (None, None, file) => {
                file.as_deref().map(Path::display).map_or_else(String::new, |file| file.to_string())
            }
        }
    }
}

/// Another state, and what it came to.
type Tried = (State, Result<Compared, CliError>);

/// Compares in all states at once, a thread for each.
fn side_by_side(
    run: impl Fn(State) -> Result<Compared, CliError> + Sync,
    asked: State,
    others: Vec<State>,
) -> (Result<Compared, CliError>, Vec<Tried>) {
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> =
            others.into_iter().map(|state| (state, scope.spawn(move || run(state)))).collect();
        let asked = run(asked);
        let ended = |(state, thread): (State, std::thread::ScopedJoinHandle<'_, _>)| {
            let panicked = |panic| std::panic::resume_unwind(panic);
            (state, thread.join().unwrap_or_else(panicked))
        };
        (asked, threads.into_iter().map(ended).collect())
    })
}
