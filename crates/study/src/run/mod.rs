//! Running a study: what is missing, workload by workload.

mod offline;
mod workers;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cell::Cell;
use crate::file::{Bound, Study, Subject, Workload};
use crate::key::key;
use crate::service::Service;
use crate::stream::{Mix, Plan};
use crate::{Program, Results, Row, StudyError, TenantRow, export};
use offline::Kept;

/// What to run and where to keep it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Worker threads.
    pub threads: usize,
    /// Names of the workloads; all if empty.
    pub only: Vec<String>,
    /// Labels of the policies and names of the bounds; all if empty.
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

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Every point of the chosen workloads that has a result, in the order of the study.
    pub rows: Vec<Row>,
    /// Points computed now.
    pub computed: usize,
    /// Points that were there already.
    pub found: usize,
    /// Points without a result because the run was interrupted.
    pub left: usize,
    /// Whether the run was interrupted.
    pub partial: bool,
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
    pub(crate) key: String,
}

/// The chosen workloads, checked: every source was opened once.
pub(crate) fn jobs<'a>(
    study: &'a Study,
    service: &Service,
    options: &Options,
) -> Result<Vec<Job<'a>>, StudyError> {
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
    let chosen =
        |workload: &&Workload| options.only.is_empty() || options.only.contains(&workload.name);
    let job = |workload: &'a Workload| {
        let (_, plan) = Mix::open(study, workload, options.scale)?;
        let point = |(subject, bytes)| {
            let key = key(study, service, &plan, (&subject, bytes), &options.program.version);
            Point { subject, bytes, key }
        };
        let wanted = |(subject, _): &(Subject, u64)| {
            options.policies.is_empty() || options.policies.contains(&study.label(subject))
        };
        let points = study.points(workload).into_iter().filter(wanted).map(point).collect();
        Ok(Job { workload, plan, points })
    };
    study.workloads.iter().filter(chosen).map(job).collect()
}

/// The stored rows of the points that have numbers or an error, with the names of the study.
pub(crate) fn stored(study: &Study, jobs: &[Job<'_>], results: &Results) -> Vec<Row> {
    let row = |job: &Job<'_>, point: &Point| {
        let row = results.get(&point.key)?.clone();
        Some(row.named(job.workload, &point.subject, study.label(&point.subject)))
    };
    jobs.iter().flat_map(|job| job.points.iter().filter_map(move |point| row(job, point))).collect()
}

/// Computes the points of the study that have no result yet, or only an error.
///
/// Results are appended when a workload is finished; an interrupted one leaves nothing behind.
pub fn run(study: &Study, options: &Options, control: &Control<'_>) -> Result<Summary, StudyError> {
    let service = Service::new(study)?;
    let jobs = jobs(study, &service, options)?;
    let mut results = Results::open(&options.folder)?;
    let mut summary = Summary::default();
    let is_done = |results: &Results, point: &Point| {
        results.get(&point.key).is_some_and(|row| row.error.is_none())
    };
    for (number, job) in (1..).zip(&jobs) {
        let missing: Vec<&Point> =
            job.points.iter().filter(|point| !is_done(&results, point)).collect();
        summary.found += job.points.len() - missing.len();
        if missing.is_empty() {
            continue;
        }
        let interrupted = control.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed));
        let place = (number, jobs.len());
        let rows = if summary.partial || interrupted {
            None
        } else {
            Work { study, service: &service, job, options, control, place }.run(&missing)?
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
    summary.rows = stored(study, &jobs, &results);
    export::write(study, &options.folder, &options.program, &summary)?;
    Ok(summary)
}

/// One workload to be run through its missing points.
struct Work<'a> {
    study: &'a Study,
    service: &'a Service,
    job: &'a Job<'a>,
    options: &'a Options,
    control: &'a Control<'a>,
    /// Number of the workload, from 1, and how many there are.
    place: (usize, usize),
}

impl Work<'_> {
    /// The rows of the missing points in their order. `None` if it was interrupted.
    fn run(&self, missing: &[&Point]) -> Result<Option<Vec<Row>>, StudyError> {
        let Self { study, job, options, .. } = self;
        let is_offline =
            |point: &Point| matches!(point.subject, Subject::Bound(b) if b.is_offline());
        let (later, now): (Vec<&Point>, Vec<&Point>) =
            missing.iter().copied().partition(|point| is_offline(point));
        let target = job.workload.target();
        let cell = |point: &&Point| Cell::new(study, &point.subject, target, self.row(point));
        let cells: Vec<Cell> = now.iter().map(cell).collect();
        let asks = |point: &&Point| matches!(point.subject, Subject::Policy(p) if p.asks_ftl());
        let mut kept = self.keepers(&later);
        let cells = if later.is_empty() && !cells.iter().any(Cell::is_alive) {
            Some(cells)
        } else {
            let mut pass = workers::Pass {
                service: self.service,
                threads: options.threads,
                map_entries: now.iter().any(asks).then(|| study.device_entries()),
                kept: &mut kept,
                interrupt: self.control.interrupt,
                progress: &|mix| self.tell(mix),
            };
            let (mix, _) = Mix::open(study, job.workload, options.scale)?;
            workers::pass(&mut pass, mix, cells)?
        };
        let Some(cells) = cells else { return Ok(None) };
        let mut rows: Vec<Row> =
            cells.into_iter().map(|cell| cell.finish(study.entry_bytes)).collect();
        for bound in Bound::ALL {
            let of_bound = later.iter().filter(|point| point.subject == Subject::Bound(bound));
            let mut own: Vec<Row> = of_bound.map(|point| self.row(point)).collect();
            if let Some(kept) =
                kept.iter().find(|kept| kept.is_for(bound)).filter(|_| !own.is_empty())
            {
                offline::compute(kept, bound, &mut own, study.entry_bytes, options.threads);
            }
            rows.append(&mut own);
        }
        let place = |row: &Row| missing.iter().position(|point| point.key == row.key);
        rows.sort_by_key(place);
        Ok(Some(rows))
    }

    /// Who keeps the requests: for bounds of the target, and for those of all tenants.
    fn keepers(&self, later: &[&Point]) -> Vec<Kept> {
        let needed = |of_target| {
            later.iter().any(
                |point| matches!(point.subject, Subject::Bound(b) if b.is_of_target() == of_target),
            )
        };
        let (entries, limit) = (self.study.device_entries(), self.options.memory_bytes);
        let kept = |only| Kept::new(only, entries, limit);
        let target =
            self.job.workload.target().filter(|_| needed(true)).map(|only| kept(Some(only)));
        target.into_iter().chain(needed(false).then(|| kept(None))).collect()
    }

    /// The row of a point, without numbers.
    fn row(&self, point: &Point) -> Row {
        let Self { study, job, options, .. } = self;
        let row = Row {
            key: point.key.clone(),
            size_bytes: point.bytes,
            scale: options.scale,
            seed: study.seed,
            onefold: options.program.clone(),
            tenants: vec![TenantRow::default(); job.workload.sources.len()],
            ..Row::default()
        };
        row.named(job.workload, &point.subject, study.label(&point.subject))
    }

    fn tell(&self, mix: &Mix) {
        if let Some(show) = self.control.progress {
            show(&Progress {
                workload: &self.job.workload.label,
                number: self.place.0,
                of: self.place.1,
                requests: mix.requests,
                bytes: mix.sent,
                bytes_total: self.job.plan.bytes,
            });
        }
    }
}
