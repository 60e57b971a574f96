//! Running a study: what is missing, workload by workload.

mod devices;
mod offline;
mod traces;
mod work;
mod workers;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::file::{Study, Subject, Workload};
use crate::key::key;
use crate::latency::{Device, Timer};
use crate::stream::{Mix, Plan};
use crate::summary::Summary;
use crate::{Program, Results, Row, StudyError, export};
use work::{WarmUps, Work};

/// What to run and where to keep it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Worker threads.
    pub threads: usize,
    /// Names of the workloads, which make a part of the study; all if empty.
    pub only: Vec<String>,
    /// Labels of the policies and names of the bounds, likewise; all if empty.
    pub policies: Vec<String>,
    /// Part of every workload to run, above 0 and at most 1.
    pub scale: f64,
    /// Most memory for the requests of one workload, which bounds need all at once.
    pub memory_bytes: u64,
    /// Folder of the results.
    pub folder: PathBuf,
    /// The program, for the results.
    pub program: Program,
}

impl Options {
    /// Everything, on all processors, with at most 4 GiB for the requests of bounds.
    ///
    /// Points that are in the folder are not computed again, also if a policy of another program
    /// changed meanwhile.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            only: Vec::new(),
            policies: Vec::new(),
            scale: 1.0,
            memory_bytes: 4 << 30,
            folder: folder.into(),
            program: Program {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: String::new(),
            },
        }
    }
}

impl Options {
    /// Whether only some workloads or policies are meant.
    #[must_use]
    pub const fn is_part(&self) -> bool {
        !(self.only.is_empty() && self.policies.is_empty())
    }

    /// Whether a workload is meant, by its name.
    pub(crate) fn has_workload(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|other| other == name)
    }

    /// Whether a policy, device or bound is meant, by its name in figures.
    pub(crate) fn has_policy(&self, label: &str) -> bool {
        self.policies.is_empty() || self.policies.iter().any(|other| other == label)
    }
}

/// How a run is watched and stopped.
#[derive(Clone, Copy, Default)]
pub struct Control<'a> {
    /// Set by Ctrl-C.
    pub interrupt: Option<&'a AtomicBool>,
    /// Called after every block of requests.
    pub progress: Option<&'a dyn Fn(&Progress<'_>)>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The workload.
    pub workload: &'a str,
    /// Its number, from 1.
    pub number: usize,
    /// Workloads to run.
    pub of: usize,
    /// Requests so far, with the warm-up.
    pub requests: u64,
    /// Bytes read and written so far, warm-up not counted.
    pub bytes: u64,
    /// Bytes in all, if known.
    pub bytes_total: Option<u64>,
}

/// One workload and the digests of its points.
pub(crate) struct Job<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) plan: Plan,
    pub(crate) points: Vec<Point>,
}

/// One point of the grid.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) subject: Subject,
    pub(crate) bytes: u64,
    /// Of the generators without their own.
    pub(crate) seed: u64,
    pub(crate) key: String,
}

impl Point {
    /// Whether both are the same policy or bound of the same size, whatever their workloads.
    pub(crate) fn is_cell_of(&self, other: &Self) -> bool {
        self.subject == other.subject && self.bytes == other.bytes
    }
}

/// The chosen workloads, checked: every source was opened once.
pub(crate) fn jobs<'a>(study: &'a Study, options: &Options) -> Result<Vec<Job<'a>>, StudyError> {
    if !(options.scale > 0.0 && options.scale <= 1.0) {
        return Err(StudyError::Scale { found: options.scale });
    }
    let labels: Vec<String> = study.subjects().map(|subject| study.label(&subject)).collect();
    if let Some(found) = options.policies.iter().find(|label| !labels.contains(label)) {
        return Err(StudyError::Policy { found: found.clone(), known: labels.join(", ") });
    }
    let named = |name: &String| study.workloads.iter().any(|workload| workload.name == *name);
    if let Some(found) = options.only.iter().find(|name| !named(name)) {
        let known: Vec<&str> = study.workloads.iter().map(|w| w.name.as_str()).collect();
        return Err(StudyError::Only { found: found.clone(), known: known.join(", ") });
    }
    let chosen = |workload: &&Workload| options.has_workload(&workload.name);
    if let Some(devices) = &study.devices {
        if options.scale < 1.0 {
            return Err(StudyError::ScaleOfDevices);
        }
        let all = study.workloads.iter().enumerate().filter(|(_, workload)| chosen(workload));
        return all.map(|at| devices::job(study, devices, at, options)).collect();
    }
    let device = Device::new(study)?;
    let job = |workload: &'a Workload| {
        let (_, plan) = Mix::open(study, workload, options.scale)?;
        let point = |(subject, bytes)| {
            let key = key(study, &device, &plan, (&subject, bytes), &options.program.version);
            Point { subject, bytes, seed: study.seed, key }
        };
        let wanted = |(subject, _): &(Subject, u64)| options.has_policy(&study.label(subject));
        let points = study.points(workload).into_iter().filter(wanted).map(point).collect();
        Ok(Job { workload, plan, points })
    };
    study.workloads.iter().filter(chosen).map(job).collect()
}

/// The stored rows of the points that have numbers or an error, with the names of the study.
pub(crate) fn stored(study: &Study, jobs: &[Job<'_>], results: &Results) -> Vec<Row> {
    let places = jobs.iter().flat_map(|job| (0..job.points.len()).map(move |at| (job, at)));
    places.filter_map(|(job, at)| stored_at(study, job, at, results)).collect()
}

/// The stored row of one point of a job, with the names of the study.
pub(crate) fn stored_at(study: &Study, job: &Job<'_>, at: usize, results: &Results) -> Option<Row> {
    let point = &job.points[at];
    let row = results.get(&point.key)?.clone();
    // One run may stand for several sizes.
    let row = Row { size_bytes: point.bytes, ..row };
    let policy = row.policy.clone();
    let row = row.named(study, job.workload, &point.subject);
    Some(if study.devices.is_some() { Row { policy, ..row } } else { row })
}

/// Computes the points of the study that have no result yet, or only an error.
///
/// A warm-up that several workloads have in common runs once, and each goes on from a copy of its end.
/// Results are appended when a workload is finished; an interrupted one leaves nothing behind.
pub fn run(study: &Study, options: &Options, control: &Control<'_>) -> Result<Summary, StudyError> {
    let jobs = jobs(study, options)?;
    let mut results = Results::open(&options.folder)?;
    let mut summary = compute(study, &jobs, options, control, &mut results)?;
    summary.rows = stored(study, &jobs, &results);
    export::write(study, &options.folder, &options.program, &summary)?;
    Ok(summary)
}

/// Computes the points of some jobs that have no result yet, and adds them to the results.
pub(crate) fn compute(
    study: &Study,
    jobs: &[Job<'_>],
    options: &Options,
    control: &Control<'_>,
    results: &mut Results,
) -> Result<Summary, StudyError> {
    if let Some(devices) = &study.devices {
        return devices::compute(study, devices, jobs, (options, control), results);
    }
    let device = Device::new(study)?;
    let sizes = device.sizes(study);
    let timers: Vec<Timer> =
        study.latencies.iter().map(|choice| Timer::new(device, choice.model)).collect();
    let mut summary = Summary::default();
    let mut warm_ups = WarmUps::new();
    for (at, job) in jobs.iter().enumerate() {
        let missing = missing(job, results);
        summary.found += job.points.len() - missing.len();
        if missing.is_empty() {
            continue;
        }
        let interrupted = control.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed));
        let rows = if summary.partial || interrupted {
            None
        } else {
            let is_sharer = |later: &&Job<'_>| {
                job.plan.warm_up.is_some() && later.plan.warm_up == job.plan.warm_up
            };
            let sharers = jobs[at + 1..].iter().filter(is_sharer);
            let later: Vec<&Point> =
                sharers.flat_map(|later| self::missing(later, results)).collect();
            let place = (at + 1, jobs.len());
            let work = Work { study, sizes, timers: &timers, job, options, control, place };
            work.run(&missing, &later, &mut warm_ups)?
        };
        let Some(rows) = rows else {
            summary.partial = true;
            summary.left += missing.len();
            continue;
        };
        summary.computed += rows.len();
        let news = rows.into_iter().filter(|row| results.get(&row.key) != Some(row));
        results.append(news.collect())?;
    }
    Ok(summary)
}

/// The points of a workload that have no result yet, or only an error.
fn missing<'a>(job: &'a Job<'_>, results: &Results) -> Vec<&'a Point> {
    let is_done = |point: &Point| results.get(&point.key).is_some_and(|row| row.error.is_none());
    job.points.iter().filter(|point| !is_done(point)).collect()
}
