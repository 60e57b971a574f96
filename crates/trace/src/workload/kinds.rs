//! One door to every kind of workload.

use std::fmt;

use super::Pattern;
use super::bench::{Bench, BenchGenerator, BenchWorkload};
use super::ext4::{Ext4Generator, Ext4Mode, Ext4Workload};
use super::generate::PatternGenerator;
use super::like::{LikeGenerator, LikeWorkload};
use super::lsm::{Lsm, LsmGenerator, LsmPhase};
use super::pages::{PageGenerator, PageVolume};
use super::spec::{Pacing, PatternWorkload};
use super::sqlite::{SqliteFill, SqliteGenerator, SqliteWorkload};
use super::values::nearest;
use super::{Request, WorkloadError};

/// A checked workload specification: what to do, independent of the device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Workload {
    /// An access pattern and its keys.
    Pattern(PatternWorkload),
    /// A look-alike of a volume.
    Like(LikeWorkload),
    /// A look-alike in whole pages.
    Pages(PageVolume),
    /// A log-structured merge tree.
    Lsm(Box<Lsm>),
    /// A look-alike of a benchmark.
    Bench(BenchWorkload),
    /// A file on ext4.
    Ext4(Box<Ext4Workload>),
    /// A database of `SQLite` in WAL mode.
    Sqlite(SqliteWorkload),
}

impl Workload {
    /// Reads a specification such as `randwrite,bs=4KiB,qd=32,requests=10M`.
    ///
    /// ```
    /// use onefold_trace::workload::Workload;
    ///
    /// let workload = Workload::parse("randread,qd=8,requests=2").unwrap();
    /// assert_eq!(
    ///     workload.canonical(),
    ///     "randread,bs=4KiB,align=4KiB,range=0-100%,dist=uniform,qd=8,requests=2"
    /// );
    /// let mut requests = workload.instantiate(1 << 30, 42).unwrap();
    /// assert_eq!(requests.by_ref().count(), 2);
    ///
    /// let error = Workload::parse("randread,qdepth=8").unwrap_err();
    /// assert!(error.to_string().starts_with("unknown workload key `qdepth`"));
    /// ```
    pub fn parse(spec: &str) -> Result<Self, WorkloadError> {
        let mut words = spec.split(',').map(str::trim);
        let kind = words.next().unwrap_or_default();
        if kind.is_empty() {
            return Err(WorkloadError::Empty);
        }
        if let Some(pattern) = Pattern::ALL.into_iter().find(|pattern| pattern.name() == kind) {
            return PatternWorkload::parse(pattern, words).map(Self::Pattern);
        }
        if let Some(like) = LikeWorkload::named(kind) {
            return like.parse(words).map(Self::Like);
        }
        if PageVolume::names().any(|name| name == kind) {
            return PageVolume::parse(spec).map(Self::Pages);
        }
        if LsmPhase::ALL.into_iter().any(|phase| phase.name() == kind) {
            return Lsm::parse(spec).map(|lsm| Self::Lsm(Box::new(lsm)));
        }
        if let Some(bench) = Bench::named(kind) {
            return BenchWorkload::parse(bench, words).map(Self::Bench);
        }
        if let Some(mode) = Ext4Mode::named(kind) {
            return Ext4Workload::parse(mode, words).map(|file| Self::Ext4(Box::new(file)));
        }
        if let Some(fill) = SqliteFill::named(kind) {
            return SqliteWorkload::parse(fill, words).map(Self::Sqlite);
        }
        let known: Vec<_> = Self::names().collect();
        Err(WorkloadError::UnknownPattern {
            found: kind.to_owned(),
            nearest: nearest(kind, &known),
        })
    }

    /// Every word a specification can begin with.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let patterns = Pattern::ALL.into_iter().map(Pattern::name);
        let trees = LsmPhase::ALL.into_iter().map(LsmPhase::name);
        let benches = Bench::ALL.into_iter().map(Bench::name);
        let files = Ext4Mode::ALL.into_iter().map(Ext4Mode::name);
        let databases = SqliteFill::ALL.into_iter().map(SqliteFill::name);
        let volumes = LikeWorkload::names().chain(PageVolume::names());
        patterns.chain(trees).chain(benches).chain(files).chain(databases).chain(volumes)
    }

    /// What the word a specification begins with means, in one line. `None` if it is unknown.
    #[must_use]
    pub fn describe(name: &str) -> Option<String> {
        if let Some(like) = LikeWorkload::named(name) {
            return Some(like.description());
        }
        if PageVolume::names().any(|known| known == name) {
            return Some(
                "look-alike of an MSR volume for buffer studies: pages, no times".to_owned(),
            );
        }
        if let Some(bench) = Bench::named(name) {
            return Some(bench.description().to_owned());
        }
        if let Some(mode) = Ext4Mode::named(name) {
            return Some(mode.description().to_owned());
        }
        if let Some(fill) = SqliteFill::named(name) {
            return Some(fill.description().to_owned());
        }
        let pattern = Pattern::ALL.into_iter().find(|pattern| pattern.name() == name);
        let tree = LsmPhase::ALL.into_iter().find(|phase| phase.name() == name);
        let text = match (pattern, tree) {
            (Some(pattern), _) => pattern.description(),
            (None, Some(LsmPhase::Load)) => "a key-value store on a merge tree is loaded",
            (None, Some(LsmPhase::Run)) => "a loaded key-value store is updated and read",
            (None, None) => return None,
        };
        Some(text.to_owned())
    }

    /// The size of device the workload is made for, in bytes. `None` if it goes with any.
    #[must_use]
    pub fn natural_bytes(&self) -> Option<u64> {
        match self {
            Self::Pattern(_) | Self::Bench(_) | Self::Ext4(_) | Self::Sqlite(_) => None,
            Self::Like(workload) => Some(workload.natural_bytes()),
            Self::Pages(workload) => Some(workload.natural_bytes()),
            Self::Lsm(workload) => Some(workload.natural_bytes()),
        }
    }

    /// Fits the workload to a device of `device_bytes` bytes. `seed` is used unless the
    /// specification has its own.
    pub fn instantiate(&self, device_bytes: u64, seed: u64) -> Result<Generator, WorkloadError> {
        Ok(Generator(match self {
            Self::Pattern(workload) => {
                Kind::Pattern(Box::new(workload.instantiate(device_bytes, seed)?))
            }
            Self::Like(workload) => Kind::Like(Box::new(workload.instantiate(device_bytes, seed)?)),
            Self::Pages(workload) => {
                Kind::Pages(Box::new(workload.instantiate(device_bytes, seed)?))
            }
            Self::Lsm(workload) => Kind::Lsm(Box::new(workload.instantiate(device_bytes, seed)?)),
            Self::Bench(workload) => {
                Kind::Bench(Box::new(workload.instantiate(device_bytes, seed)?))
            }
            Self::Ext4(workload) => Kind::Ext4(Box::new(workload.instantiate(device_bytes, seed)?)),
            Self::Sqlite(workload) => {
                Kind::Sqlite(Box::new(workload.instantiate(device_bytes, seed)?))
            }
        }))
    }

    /// Whether some of its requests are remaps.
    #[must_use]
    pub const fn has_remaps(&self) -> bool {
        match self {
            Self::Pattern(workload) => workload.remap().is_some(),
            Self::Sqlite(workload) => workload.has_remaps(),
            _ => false,
        }
    }

    /// Closed loop with its depth, or open loop.
    #[must_use]
    pub const fn pacing(&self) -> Pacing {
        match self {
            Self::Pattern(workload) => workload.pacing(),
            Self::Like(_) => Pacing::Timed,
            Self::Pages(_) | Self::Lsm(_) => Pacing::Closed { depth: 1 },
            Self::Bench(workload) => workload.pacing(),
            Self::Ext4(workload) => workload.pacing(),
            Self::Sqlite(workload) => workload.pacing(),
        }
    }

    /// The specification with every default that applies written out. It parses to an equal
    /// workload, and two equal workloads have equal strings: the form for results.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(workload) => workload.fmt(f),
            Self::Like(workload) => workload.fmt(f),
            Self::Pages(workload) => workload.fmt(f),
            Self::Lsm(workload) => workload.fmt(f),
            Self::Bench(workload) => workload.fmt(f),
            Self::Ext4(workload) => workload.fmt(f),
            Self::Sqlite(workload) => workload.fmt(f),
        }
    }
}

impl std::str::FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(spec: &str) -> Result<Self, WorkloadError> {
        Self::parse(spec)
    }
}

/// Produces the requests of a [`Workload`]. Batches and single requests can be mixed: the sequence
/// is the same.
#[derive(Clone, Debug)]
pub struct Generator(Kind);

/// Every kind of generator; matched once per batch.
#[derive(Clone, Debug)]
enum Kind {
    Pattern(Box<PatternGenerator>),
    Like(Box<LikeGenerator>),
    Pages(Box<PageGenerator>),
    Lsm(Box<LsmGenerator>),
    Bench(Box<BenchGenerator>),
    Ext4(Box<Ext4Generator>),
    Sqlite(Box<SqliteGenerator>),
}

impl Generator {
    /// End of the addresses it uses, in bytes, where that is less than the device it was made for.
    #[must_use]
    pub fn end_bytes(&self) -> Option<u64> {
        match &self.0 {
            Kind::Pattern(generator) => Some(generator.start_bytes() + generator.length_bytes()),
            Kind::Bench(generator) => Some(generator.end_bytes()),
            Kind::Ext4(generator) => Some(generator.end_bytes()),
            Kind::Sqlite(generator) => Some(generator.end_bytes()),
            Kind::Like(_) | Kind::Pages(_) | Kind::Lsm(_) => None,
        }
    }

    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end of the workload.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        match &mut self.0 {
            Kind::Pattern(generator) => generator.fill(out),
            Kind::Like(generator) => generator.fill(out),
            Kind::Pages(generator) => generator.fill(out),
            Kind::Lsm(generator) => generator.fill(out),
            Kind::Bench(generator) => generator.fill(out),
            Kind::Ext4(generator) => generator.fill(out),
            Kind::Sqlite(generator) => generator.fill(out),
        }
    }
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let mut one = [Request::EMPTY];
        (self.fill(&mut one) == 1).then_some(one[0])
    }
}
