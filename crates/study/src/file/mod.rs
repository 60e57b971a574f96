//! The study file: what is to be compared.

mod area;
mod axis;
mod check;
mod devices;
mod figure;
mod grid;
mod headline;
mod latency;
mod lists;
mod parse;
mod parse_published;
mod published;
mod reader;
mod show;
mod written;

use std::path::PathBuf;

use onefold_buffer::{BufferConfig, Charge, LRU, PolicySpec};
use onefold_units::convert::narrow;

use crate::latency::{LatencyChoice, LatencyModel};

pub use area::{Accessed, AreaRatio};
pub use axis::{Coordinate, OWN_AXES};
pub use check::{Check, Claim, Comparison, Term, Verdict};
pub use devices::{Base, DeviceChoice, DeviceLoad, Devices};
pub use figure::{Figure, FigureKind, Metric};
pub use headline::Headline;
pub(crate) use parse::scaled;
pub use published::{Published, PublishedRange};
pub use written::{GridText, keep_grid};

/// A grid of policies, sizes and workloads.
#[derive(Clone, Debug)]
pub struct Study {
    /// The file.
    pub path: PathBuf,
    /// Name, without spaces around it.
    pub name: String,
    /// What it is about, in words.
    pub description: String,
    /// Bytes the host can address.
    pub device_bytes: u64,
    /// Bytes of a buffer entry.
    pub entry_bytes: u32,
    /// Bytes of a flash page.
    pub flash_page_bytes: u32,
    /// Sizes of the buffer in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Policies in the order of figures.
    pub policies: Vec<PolicyChoice>,
    /// Bounds to compare with.
    pub bounds: Vec<Bound>,
    /// What the tables of a policy cost.
    pub charge: Charge,
    /// Whether flushes have to program.
    pub volatile: bool,
    /// Preset whose geometry and times the latency model takes.
    pub preset: String,
    /// How long requests take, in as many ways as wanted; the first is the one that is meant where
    /// none is named.
    pub latencies: Vec<LatencyChoice>,
    /// Time of one look-up in a table of a policy, in nanoseconds.
    pub look_up_ns: u64,
    /// Seed of every generator without its own.
    pub seed: u64,
    /// Runs of each point of a study of devices, with this seed and those after it; numbers are means over them.
    pub seeds: u64,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The figures of the report.
    pub figures: Vec<Figure>,
    /// Averages that stand next to published ones.
    pub headlines: Vec<Headline>,
    /// What the results must show.
    pub checks: Vec<Check>,
    /// What tables over all points show; what most ask for if empty.
    pub metrics: Vec<Metric>,
    /// What is compared if the points are runs of the simulator; policies are their labels then.
    pub devices: Option<Devices>,
}

/// A policy or device and its name in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyChoice {
    /// What it is.
    pub subject: Subject,
    /// The name.
    pub label: String,
}

/// What no policy of the same size can beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// LRU over the requests of the target alone: no bound, but what isolation would give.
    Alone,
    /// MIN over the requests of the target alone: bounds its hits under every policy.
    MinAlone,
    /// MIN that may refuse a page: bounds the hits of all tenants together.
    MinBypass,
    /// MIN that admits every page.
    Min,
    /// Least pages programmed by any policy.
    MinW,
}

impl Bound {
    /// Every bound.
    pub const ALL: [Self; 5] =
        [Self::Alone, Self::MinAlone, Self::MinBypass, Self::Min, Self::MinW];

    /// Name in study files, results and figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::MinAlone => "min-alone",
            Self::MinBypass => "min-bypass",
            Self::Min => "min",
            Self::MinW => "min-w",
        }
    }

    /// What it is, for the reader of a figure.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Alone => {
                "LRU with the target's requests alone: no bound, but what isolation would give"
            }
            Self::MinAlone => "MIN with the target's requests alone: no policy hits more of them",
            Self::MinBypass => "MIN that may refuse a page: no policy hits more",
            Self::Min => "MIN that admits every page",
            Self::MinW => "the least that any policy programs",
        }
    }

    /// Whether only the requests of the target count.
    #[must_use]
    pub const fn is_of_target(self) -> bool {
        matches!(self, Self::Alone | Self::MinAlone)
    }

    /// Whether the future has to be known: the requests are kept in memory.
    #[must_use]
    pub const fn is_offline(self) -> bool {
        !matches!(self, Self::Alone)
    }

    /// Whether it says something about a metric.
    #[must_use]
    pub const fn applies(self, metric: Metric) -> bool {
        match self {
            // They have other areas than policies, or none.
            _ if matches!(metric, Metric::Area(_)) => false,
            // Those of latencies are no bounds, but what perfect foresight of hits would give.
            Self::Alone | Self::MinAlone => metric.is_of_target(),
            Self::MinW => matches!(metric, Metric::PagesProgrammed | Metric::Absorption),
            Self::MinBypass => matches!(metric, Metric::TotalHitRatio),
            Self::Min => matches!(metric, Metric::TotalHitRatio | Metric::TotalLatency),
        }
    }
}

/// What one point of the grid runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// A policy.
    Policy(PolicySpec),
    /// A policy whose buffer and tables are empty when counting begins, as after a start of the drive: what was learnt in the warm-up
    /// is lost.
    Empty(PolicySpec),
    /// A bound.
    Bound(Bound),
    /// A device of a study of devices, by its number.
    Device(u16),
}

impl Subject {
    /// Whether it is a bound.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        matches!(self, Self::Bound(_))
    }
}

/// The text by which results know it.
impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Policy(spec) => spec.fmt(f),
            Self::Empty(spec) => write!(f, "{spec}, empty"),
            Self::Bound(bound) => f.write_str(bound.name()),
            Self::Device(number) => write!(f, "device {number}"),
        }
    }
}

/// One mix of sources.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Short name, such as `W3`.
    pub name: String,
    /// Name in figures.
    pub label: String,
    /// Sizes it is run with, out of those of the study; all if empty.
    pub sizes: Vec<u64>,
    /// The sources; the position is the number of the tenant.
    pub sources: Vec<Source>,
}

impl Workload {
    /// The tenant whose hit ratio is the question.
    #[must_use]
    pub fn target(&self) -> Option<u8> {
        let target = self.sources.iter().position(|source| source.is_target)?;
        u8::try_from(target).ok()
    }

    /// Whether it is run with a size of the study.
    #[must_use]
    pub fn has_size(&self, bytes: u64) -> bool {
        self.sizes.is_empty() || self.sizes.contains(&bytes)
    }
}

/// One tenant of a workload.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name in results.
    pub name: String,
    /// Where its requests come from.
    pub input: Input,
    /// Its share of the bytes read and written, in millionths of any unit.
    pub share: u64,
    /// Where its addresses start on the device, in bytes.
    pub offset: u64,
    /// Bytes of address space it has; to the end of what it addresses if `None`.
    pub size: Option<u64>,
    /// Bytes read and written after which it ends; what it has if `None`.
    pub limit: Option<u64>,
    /// What it sends before anything is counted.
    pub warm_up: WarmUp,
    /// Whether its hit ratio is the question.
    pub is_target: bool,
}

/// Where requests come from.
#[derive(Clone, Debug)]
pub enum Input {
    /// A generator.
    Workload(Box<onefold_trace::workload::Workload>),
    /// A trace file.
    Trace {
        /// The file.
        path: PathBuf,
        /// How it is read.
        options: Box<onefold_tracefile::Options>,
    },
}

/// What a source sends before anything is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// The first so many bytes read and written.
    Bytes(u64),
    /// What the generator calls its load phase.
    Load,
}

impl WarmUp {
    /// Nothing.
    pub const NONE: Self = Self::Bytes(0);
}

impl Study {
    /// The buffer of one point.
    #[must_use]
    pub const fn buffer(&self, policy: PolicySpec, bytes: u64) -> BufferConfig {
        BufferConfig { policy, bytes, charge: self.charge, volatile: self.volatile }
    }

    /// The buffer of a bound: its tables are free.
    #[must_use]
    pub fn buffer_of_bound(&self, bytes: u64) -> BufferConfig {
        let policy = PolicySpec::new(&LRU);
        BufferConfig { policy, bytes, charge: Charge::None, volatile: self.volatile }
    }

    /// Entries of the device.
    #[must_use]
    pub fn device_entries(&self) -> u32 {
        narrow(self.device_bytes / u64::from(self.entry_bytes))
    }

    /// Whether rows keep the series of their runs: a figure, an average or a check needs it.
    pub(crate) fn keeps_series(&self) -> bool {
        let figures = self.figures.iter().map(|one| one.metric);
        let headlines = self.headlines.iter().map(|one| one.metric);
        let checks = self.checks.iter().map(|one| one.metric);
        let mut all = figures.chain(headlines).chain(checks).chain(self.metrics.iter().copied());
        all.any(Metric::is_of_series)
            || self.figures.iter().any(|figure| figure.kind == FigureKind::Series)
    }

    /// Whether latencies are those of the `service` model and no other.
    pub(crate) fn has_default_latency(&self) -> bool {
        let models = self.latencies.iter().map(|choice| choice.model);
        models.eq([LatencyModel::default()])
    }

    /// What is run, in the order of results.
    pub fn subjects(&self) -> impl Iterator<Item = Subject> {
        let policies = self.policies.iter().map(|policy| policy.subject);
        policies.chain(self.bounds.iter().copied().map(Subject::Bound))
    }

    /// What a workload is run with, in the order of results.
    #[must_use]
    pub fn points(&self, workload: &Workload) -> Vec<(Subject, u64)> {
        let sizes = || self.sizes.iter().filter(|size| workload.has_size(**size));
        let at = self.workloads.iter().position(|other| other.name == workload.name);
        let is_point = |subject: &Subject| match (&self.devices, subject) {
            (Some(devices), Subject::Device(device)) => {
                at.is_some_and(|load| devices.is_point(load, (*device).into()))
            }
            _ => true,
        };
        let subjects = self.subjects().filter(is_point);
        subjects.flat_map(|subject| sizes().map(move |size| (subject, *size))).collect()
    }

    /// Where a point lies, on the axes of the study in their order.
    #[must_use]
    pub fn coordinates(
        &self,
        workload: &Workload,
        (subject, bytes): (&Subject, u64),
        seed: u64,
    ) -> Vec<Coordinate> {
        let (name, label) = (&workload.name, self.label(subject));
        match (&self.devices, subject) {
            (Some(devices), Subject::Device(device)) if devices.is_grid() => {
                let load = self.workloads.iter().position(|other| other.name == *name);
                devices.coordinates(load.unwrap_or_default(), (*device).into(), seed)
            }
            (Some(devices), Subject::Device(_)) => vec![
                Coordinate::text("workload", name),
                Coordinate::text("device", &label),
                Coordinate::size(&devices.size_key, bytes),
            ],
            _ => vec![
                Coordinate::text("workload", name),
                Coordinate::text("policy", &subject.to_string()),
                Coordinate::size("size_bytes", bytes),
            ],
        }
    }

    /// The chosen workloads, each with those of the chosen sizes that it is run with; empty lists mean
    /// all.
    #[must_use]
    pub fn places(&self, workloads: &[String], sizes: &[u64]) -> Vec<(&Workload, u64)> {
        let chosen =
            |workload: &&Workload| workloads.is_empty() || workloads.contains(&workload.name);
        let sizes_of = |workload: &Workload| {
            let own = |size: &u64| workload.has_size(*size);
            let asked = |size: &u64| sizes.is_empty() || sizes.contains(size);
            self.sizes.iter().copied().filter(|size| own(size) && asked(size)).collect::<Vec<u64>>()
        };
        let with_sizes =
            |workload| sizes_of(workload).into_iter().map(move |size| (workload, size));
        self.workloads.iter().filter(chosen).flat_map(with_sizes).collect()
    }

    /// The name of a subject in figures.
    #[must_use]
    pub fn label(&self, subject: &Subject) -> String {
        let chosen = match subject {
            Subject::Device(number) => self.policies.get(usize::from(*number)),
            _ => self.policies.iter().find(|policy| policy.subject == *subject),
        };
        chosen.map_or_else(|| subject.to_string(), |policy| policy.label.clone())
    }
}
