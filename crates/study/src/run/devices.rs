//! Points that are runs of the simulator, several at a time.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use onefold_config::{Config, Load};
use onefold_sim::result::{LatencyCcdf, Program, RunResult, Series, Superblocks};
use onefold_sim::{Control as SimControl, OpenTrace, Setup, SimError, simulate, with_room};
use onefold_tracefile::{Options as TraceOptions, TraceSource};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::index64;
use serde_json::json;

use super::traces::Traces;
use super::{Control, Job, Options, Point, Progress, Summary};
use crate::file::{Devices, Study, Subject, Workload};
use crate::key::digest;
use crate::stream::Plan;
use crate::{Results, Row, SCHEMA, StudyError};

/// Version of what a row keeps of a result.
const ROW: u32 = 2;

/// One workload and the digests of its points.
pub(super) fn job<'a>(
    study: &'a Study,
    devices: &Devices,
    (at, workload): (usize, &'a Workload),
    options: &Options,
) -> Result<Job<'a>, StudyError> {
    let trace = trace_of(devices, at, workload)?;
    let mut points = Vec::new();
    for (subject, bytes) in study.points(workload) {
        let Subject::Device(device) = subject else { continue };
        if !options.has_policy(&study.label(&subject)) {
            continue;
        }
        let config = devices.config((at, device.into()), bytes)?;
        for seed in seeds(study, devices, (at, device.into())) {
            let mut identity = json!({
                "schema": SCHEMA,
                // Rows of another form have other numbers.
                "row": ROW,
                "version": options.program.version,
                "config": identity(&config),
                "trace": trace,
                "seed": seed,
            });
            if study.keeps_series() {
                identity["series"] = json!(true);
            }
            let key = digest(&identity);
            points.push(Point { subject, bytes, seed, key });
        }
    }
    Ok(Job { workload, plan: Plan::none(), points })
}

/// The seeds that a point is run with.
fn seeds(study: &Study, devices: &Devices, (load, device): (usize, usize)) -> Vec<u64> {
    let own = devices.seeds(load, device);
    if !own.is_empty() {
        return own.to_vec();
    }
    // A trace is the same for every seed; a grid says that it wants several all the same.
    let is_trace = matches!(devices.loads[load].load, Some(Load::Trace(_)));
    let count = if is_trace && !devices.is_grid() { 1 } else { study.seeds };
    (study.seed..).take(index64(count)).collect()
}

/// Keys that are younger than tables of results, at the values with which a drive is as it was before
/// them. They do not count, so that a table outlives a new key.
const AS_BEFORE: [&str; 2] = ["zeroes = \"program\"", "scope = \"auto\""];

/// The configuration without its name and without the path of its trace, of which the digest counts.
fn identity(config: &Config) -> String {
    let counts = |line: &&str| {
        !line.starts_with("name =") && !line.starts_with("trace =") && !AS_BEFORE.contains(line)
    };
    config.to_toml().lines().filter(counts).collect::<Vec<&str>>().join("\n")
}

/// Digest of the trace of a workload, if it has one.
fn trace_of(
    devices: &Devices,
    at: usize,
    workload: &Workload,
) -> Result<Option<String>, StudyError> {
    let Some(Load::Trace(path)) = &devices.loads[at].load else { return Ok(None) };
    let trace = TraceSource::open(path, &TraceOptions::default()).map_err(|source| {
        StudyError::Trace { workload: workload.name.clone(), source: Box::new(source) }
    })?;
    Ok(Some(trace.meta().sha256.clone()))
}

/// A point to be run.
struct Task<'a> {
    workload: &'a Workload,
    point: &'a Point,
    config: Config,
    /// Whether it may get more blocks.
    may_grow: bool,
}

/// Runs the missing points; each is stored as soon as it is done.
pub(super) fn compute(
    study: &Study,
    devices: &Devices,
    jobs: &[Job<'_>],
    (options, control): (&Options, &Control<'_>),
    results: &mut Results,
) -> Result<Summary, StudyError> {
    let mut summary = Summary::default();
    let tasks = tasks(study, devices, jobs, results, &mut summary)?;
    let (count, interrupt) = (tasks.len(), control.interrupt);
    let next = AtomicUsize::new(0);
    let traces = Traces::default();
    let shared = Shared { study, devices, options, interrupt, tasks, next, traces };
    let (sender, rows) = channel();
    thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, count.max(1)) {
            let (shared, sender) = (&shared, sender.clone());
            scope.spawn(move || shared.work(&sender));
        }
        drop(sender);
        let (mut requests, mut bytes) = (0, 0);
        for (task, row) in rows {
            if let Some(run) = &row.result {
                requests += run.host.requests();
                bytes += (run.host.read_pages + run.host.write_pages) * PAGE_BYTES;
            }
            results.append(vec![row])?;
            summary.computed += 1;
            if let Some(show) = control.progress {
                let workload = &shared.tasks[task].workload.label;
                let (number, of) = (summary.computed, count);
                show(&Progress { workload, number, of, requests, bytes, bytes_total: None });
            }
        }
        Ok::<(), StudyError>(())
    })?;
    summary.left = count - summary.computed;
    summary.partial = summary.left > 0;
    Ok(summary)
}

/// The points without numbers, each digest once, and the count of the others.
fn tasks<'a>(
    study: &'a Study,
    devices: &Devices,
    jobs: &'a [Job<'a>],
    results: &Results,
    summary: &mut Summary,
) -> Result<Vec<Task<'a>>, StudyError> {
    let mut keys = BTreeSet::new();
    let mut tasks = Vec::new();
    for job in jobs {
        for point in &job.points {
            if !keys.insert(&point.key) {
                continue;
            }
            if results.get(&point.key).is_some_and(|row| row.error.is_none()) {
                summary.found += 1;
                continue;
            }
            let Subject::Device(device) = point.subject else { continue };
            let same = |workload: &Workload| workload.name == job.workload.name;
            let load = study.workloads.iter().position(same).unwrap_or_default();
            let at = (load, device.into());
            let (config, may_grow) = (devices.config(at, point.bytes)?, devices.may_grow(at));
            tasks.push(Task { workload: job.workload, point, config, may_grow });
        }
    }
    Ok(tasks)
}

/// What the workers share.
struct Shared<'a> {
    study: &'a Study,
    devices: &'a Devices,
    options: &'a Options,
    interrupt: Option<&'a AtomicBool>,
    tasks: Vec<Task<'a>>,
    /// The next task to be taken.
    next: AtomicUsize,
    /// The traces of the tasks under way.
    traces: Traces,
}

impl Shared<'_> {
    /// Takes tasks until there are none, or somebody interrupts.
    fn work(&self, done: &Sender<(usize, Row)>) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(at) else { return };
            if self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return;
            }
            let Some(row) = self.row(task) else { return };
            // Nobody listens any more if storing failed.
            let _ = done.send((at, row));
        }
    }

    /// Runs one point. `None` if it was interrupted.
    fn row(&self, task: &Task<'_>) -> Option<Row> {
        let Options { program, .. } = self.options;
        let mut row = Row {
            key: task.point.key.clone(),
            size_bytes: task.point.bytes,
            scale: 1.0,
            seed: task.point.seed,
            onefold: program.clone(),
            ..Row::default()
        };
        let subject = &task.point.subject;
        row = row.named(self.study, task.workload, subject);
        row.policy = text_of(self.devices, subject);
        let program = Program { version: program.version.clone(), commit: program.commit.clone() };
        let open = |path: &Path, options: &TraceOptions| self.traces.open(path, options);
        let (interrupt, open_trace) = (self.interrupt, Some(&open as OpenTrace<'_>));
        let control = SimControl { interrupt, open_trace, ..SimControl::default() };
        match catch_unwind(AssertUnwindSafe(|| task.simulate(program, &control))) {
            Ok(Ok(run)) if run.partial => return None,
            Ok(Err(SimError::Interrupted)) => return None,
            Ok(Ok(run)) => {
                row.requests = run.host.requests();
                row.cpu_s = run.cpu_s + run.precondition.as_ref().map_or(0.0, |pre| pre.cpu_s);
                row.result = Some(Box::new(kept(run, self.study.keeps_series())));
            }
            Ok(Err(error)) => row.error = Some(error.to_string()),
            Err(_) => row.error = Some("a bug in the simulator".to_owned()),
        }
        Some(row)
    }
}

impl Task<'_> {
    fn simulate(&self, program: Program, control: &SimControl<'_>) -> Result<RunResult, SimError> {
        let (config, seed) = (self.config.clone(), self.point.seed);
        let config = if self.may_grow { with_room(config, seed)?.0 } else { config };
        let trace_options = TraceOptions::default();
        simulate(&Setup { config, trace_options, seed, program }, control)
    }
}

/// What a row keeps of a result.
fn kept(run: RunResult, with_series: bool) -> RunResult {
    let series = if with_series { run.series } else { Series::default() };
    RunResult {
        config: serde_json::Value::Null,
        latency_ccdf: LatencyCcdf::default(),
        series,
        superblocks: Superblocks::default(),
        ..run
    }
}

fn text_of(devices: &Devices, subject: &Subject) -> String {
    match subject {
        Subject::Device(device) => devices.text((*device).into()),
        other => other.to_string(),
    }
}
