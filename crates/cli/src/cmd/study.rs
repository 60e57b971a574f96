//! `onefold study`.

mod grid;
mod kept;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use onefold_study::{
    Control, Fault, Options, Program, Progress, Row, Status, Study as File, StudyError, Summary,
    report,
    report::{Question, Report},
    run, status,
};
use onefold_units::convert::{float, floor_u64, u64_from};

use crate::cmd::ssd::render;
use crate::cmd::trace::trace_error;
use crate::error::{CliError, Exit};
use crate::output::{Format, Global, Named};

/// Subcommands of `onefold study`.
#[derive(Debug, Subcommand)]
pub(crate) enum Study {
    /// Run what is missing of a grid of buffer policies, sizes and workloads; -o names the folder of
    /// the results
    Run(RunArgs),
    /// Run the simulator at every point of a grid of presets, keys, loads and seeds, and show all points; -o names the folder of
    /// the results [default: grid-results]
    Grid(grid::GridArgs),
    /// Say what of a study is done, what is left, and how long that will take
    Status(Common),
    /// Draw the figures of a study as one HTML page, or print them (--format table or json)
    Report(ReportArgs),
    /// Write the numbers that figures, averages and checks use as a small table, which --results of report, check and verify reads
    Export(Common),
    /// Run a sample of points again and compare it with a table of `export`; exit code 1 if a number is another
    Verify(kept::VerifyArgs),
    /// Compare the results with what the study says they must show; exit code 1 if a check comes out
    /// otherwise or lacks numbers
    Check(Common),
}

/// Arguments of every subcommand.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The study file
    #[arg(value_name = "STUDY.toml")]
    study: PathBuf,
    /// Folder of the results [default: the name of the study file with -results]; report, check and verify also take a table that
    /// `export` wrote
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Only this workload (may be given often); averages and checks that need others are left out, and so with --policy
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only this policy or bound, by its label (may be given often)
    #[arg(long = "policy", value_name = "LABEL")]
    policies: Vec<String>,
    /// Part of every workload that is run, such as 0.01; address ranges stay whole
    #[arg(long, default_value_t = 1.0, value_name = "PART", value_parser = parse_part)]
    scale: f64,
}

/// What is asked of all points.
#[derive(Debug, Args)]
pub(crate) struct QuestionArgs {
    /// Show this number of every point, such as waf or `latency_ns.write.p99` (may be given often) [default: `metrics` of the study]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// List the points of each load by this number, the best first
    #[arg(long, value_name = "NAME", conflicts_with = "best")]
    sort: Option<String>,
    /// Only the best point of each load by this number, and those that cannot be told from it
    #[arg(long, value_name = "NAME")]
    best: Option<String>,
    /// Means along this axis (may be given often)
    #[arg(long, value_name = "AXIS")]
    by: Vec<String>,
}

impl QuestionArgs {
    const fn is_asked(&self) -> bool {
        let nothing = self.metrics.is_empty() && self.by.is_empty();
        !nothing || self.sort.is_some() || self.best.is_some()
    }

    fn question(&self, study: &File) -> Result<Question, CliError> {
        let metric = |option: &str, name: &String| {
            study.metric(name).map_err(|problem| {
                let text = format!("--{option} is `{name}`, {problem}");
                CliError::new(Exit::Usage, "study::metric", text)
            })
        };
        for axis in &self.by {
            study.expect_axis(axis)?;
        }
        Ok(Question {
            metrics: self
                .metrics
                .iter()
                .map(|one| metric("metric", one))
                .collect::<Result<_, _>>()?,
            sort: self.sort.as_ref().map(|one| metric("sort", one)).transpose()?,
            best: self.best.as_ref().map(|one| metric("best", one)).transpose()?,
            by: self.by.clone(),
        })
    }

    /// What the rows say: the answer to what was asked, or the figures of the part of the study that is meant.
    fn report(&self, study: &File, options: &Options, rows: &[Row]) -> Result<Report, CliError> {
        if !self.is_asked() {
            return Ok(Report::of_part(study, options, rows));
        }
        Ok(Report::answer(study, rows, &self.question(study)?)?)
    }
}

/// Arguments of `onefold study report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    question: QuestionArgs,
    /// Write each figure that is drawn as an SVG file into this folder; the page itself only with -o
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
}

/// Arguments of `onefold study run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    question: QuestionArgs,
    /// Threads that run policies [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Most memory for the requests of one workload, which bounds such as min-alone keep
    #[arg(long, default_value = "4GiB", value_name = "SIZE", value_parser = render::parse_size)]
    memory: u64,
}

fn parse_part(text: &str) -> Result<f64, String> {
    let part = onefold_units::numbers::real(text);
    part.ok_or_else(|| format!("found {text:?}, expected a number such as 0.01, or a percentage"))
}

impl Study {
    /// Whether `-o` names the file of the result; else it is a folder.
    pub(crate) const fn prints(&self) -> bool {
        !matches!(self, Self::Run(_) | Self::Grid(_))
    }

    /// Whether the result may be a page of HTML.
    pub(crate) const fn draws(&self) -> bool {
        matches!(self, Self::Report(_))
    }

    /// Runs the command.
    pub(crate) fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        match self {
            Self::Run(args) => args.run(global),
            Self::Grid(args) => args.run(global),
            Self::Status(common) => common.status(global),
            Self::Report(args) => args.run(global),
            Self::Export(common) => common.export(global),
            Self::Verify(args) => args.run(global),
            Self::Check(common) => common.check(global),
        }
    }
}

impl Common {
    /// The study, and what of it is meant.
    fn load(&self, global: &Global) -> Result<(File, Options), CliError> {
        let mut study = File::load(&self.study)?;
        if global.seed != 0 {
            study.seed = global.seed;
        }
        let folder = self.results.clone().unwrap_or_else(|| grid::results_of(&self.study));
        let options = Options {
            only: self.only.clone(),
            policies: self.policies.clone(),
            scale: self.scale,
            program: program(),
            ..Options::new(folder)
        };
        Ok((study, options))
    }

    fn status(&self, global: &Global) -> Result<ExitCode, CliError> {
        self.expect_folder("a table does not say what is left to run")?;
        let (study, options) = self.load(global)?;
        let status = status(&study, &options)?;
        let text = match global.format() {
            Format::Json => json(&status),
            Format::Table => status_table(&status),
        };
        global.emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The study, what of it is meant, and the results of that, of which there are some.
    fn results(&self, global: &Global) -> Result<(File, Options, Vec<Row>), CliError> {
        let (study, options) = self.load(global)?;
        let (rows, place) = match &self.results {
            Some(path) if kept::is_table(path) => {
                (kept::read(path, (&study, &options), global)?.rows, path)
            }
            _ => (onefold_study::rows(&study, &options)?, &options.folder),
        };
        if rows.is_empty() {
            let text = format!("no results of this study are in {}", place.display());
            return Err(CliError::new(Exit::Failed, "study::no_results", text)
                .help("`onefold study run` first, or name their folder with --results"));
        }
        Ok((study, options, rows))
    }

    fn check(&self, global: &Global) -> Result<ExitCode, CliError> {
        let (study, options, rows) = self.results(global)?;
        if study.checks.is_empty() {
            let text = format!("{} has no [[check]]", study.path.display());
            return Err(CliError::new(Exit::Infeasible, "study::no_checks", text)
                .help("add claims about its numbers, as studies/orderings.toml has"));
        }
        let Report { checks, left_out, .. } = Report::of_part(&study, &options, &rows);
        let left_out = left_out.of_checks();
        if checks.is_empty() {
            let text = format!("no check is left: {left_out}");
            return Err(CliError::new(Exit::Usage, "study::no_checks", text)
                .help("name more workloads and policies, or none"));
        }
        if !left_out.is_nothing() {
            global.say(left_out);
        }
        global.emit(&match global.format() {
            Format::Json => json(&checks),
            Format::Table => report::checks_text(&checks),
        })?;
        let others: Vec<&str> = checks
            .iter()
            .filter(|data| !data.is_as_expected())
            .map(|data| data.check.id.as_str())
            .collect();
        if others.is_empty() {
            global.say(format_args!("all {} checks come out as expected", checks.len()));
            return Ok(ExitCode::SUCCESS);
        }
        let text = format!(
            "{} of {} checks do not come out as expected: {}",
            others.len(),
            checks.len(),
            others.join(", ")
        );
        Err(CliError::new(Exit::Failed, "study::check", text))
    }
}

impl ReportArgs {
    fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        // What is asked on the command line is read there.
        let is_read_there = self.question.is_asked() && global.output.is_none();
        let is_drawn = self.figures.is_some() && global.output.is_none();
        let is_page = global.named == Some(Named::Html)
            || global.named.is_none() && !is_read_there && !is_drawn;
        if is_page {
            global.expect_page_can_go()?;
        }
        let (study, options, rows) = self.common.results(global)?;
        let report = self.question.report(&study, &options, &rows)?;
        if let Some(folder) = &self.figures {
            kept::draw(folder, (&study, &rows, &report), global)?;
        }
        if is_page {
            global.write(&report::html(&study, &rows, &report))?;
        } else if !is_drawn || global.named.is_some() {
            global.emit(&match global.format() {
                Format::Table => report::text(&report),
                Format::Json => json(&report),
            })?;
        }
        if let Some(path) = &global.output {
            global.say(format_args!("report of {} points: {}", rows.len(), path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RunArgs {
    fn run(self, global: &Global) -> Result<ExitCode, CliError> {
        self.common.expect_folder("a run keeps more than a table has")?;
        let (study, mut options) = self.common.load(global)?;
        self.question.question(&study)?;
        if let Some(folder) = &global.output {
            if self.common.results.is_some() {
                let text = "both -o and --results name the folder of the results, expected one";
                return Err(CliError::new(Exit::Usage, "usage::output", text));
            }
            options.folder.clone_from(folder);
        }
        options.memory_bytes = self.memory;
        carry_out(&study, &with_threads(options, self.threads), &self.question, global)
    }
}

/// Runs what is missing and prints what all points say.
fn carry_out(
    study: &File,
    options: &Options,
    question: &QuestionArgs,
    global: &Global,
) -> Result<ExitCode, CliError> {
    let summary = watch(study, options, global)?;
    tell(&summary, options, global);
    let text = match global.format() {
        Format::Json => json(&summary.to_json(study, &options.program)),
        Format::Table => report::text(&question.report(study, options, &summary.rows)?),
    };
    // -o is the folder here: the result itself goes to standard output.
    if !(global.quiet && global.format() == Format::Table) {
        Global::print(&text)?;
    }
    // Some points of a wide grid cannot be built, and say so; a study of which none can is a mistake.
    let failed = summary.rows.iter().filter(|row| row.error.is_some()).count();
    let is_in_vain = failed > 0 && failed == summary.rows.len();
    Ok(match (summary.partial, is_in_vain) {
        (true, _) => global.interrupt.code(),
        (false, true) => Exit::Failed.into(),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// With as many threads, if somebody says how many.
fn with_threads(options: Options, threads: Option<u16>) -> Options {
    Options { threads: threads.map_or(options.threads, usize::from), ..options }
}

fn tell(summary: &Summary, options: &Options, global: &Global) {
    let failed = summary.rows.iter().filter(|row| row.error.is_some()).count();
    let (computed, found) = (summary.computed, summary.found);
    global.say(format_args!(
        "{computed} points computed ({failed} failed), {found} were there: {}",
        options.folder.display()
    ));
    if summary.partial {
        let left = summary.left;
        global.say(format_args!(
            "interrupted: {left} points are left; the same command goes on from here"
        ));
    }
}

fn program() -> Program {
    let program = crate::cmd::sim::program();
    Program { version: program.version, commit: program.commit }
}

/// Time between two lines of progress where nobody watches a terminal.
const LINE_EVERY: Duration = Duration::from_mins(1);

/// Runs with a progress bar on a terminal, or a line a minute elsewhere, until the end or Ctrl-C.
fn watch(study: &File, options: &Options, global: &Global) -> Result<Summary, CliError> {
    let bar = if global.shows_progress() { ProgressBar::new(1000) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let begun = Instant::now();
    let watched = std::cell::RefCell::new((0, begun));
    let (last, done) = (Mutex::new(String::new()), mpsc::channel::<()>());
    let show = |progress: &Progress<'_>| {
        let mut watched = watched.borrow_mut();
        if watched.0 != progress.number {
            *watched = (progress.number, Instant::now());
        }
        let (share, text) = if study.devices.is_some() {
            let share = float(u64_from(progress.number)) / float(u64_from(progress.of.max(1)));
            (Some(share), points_message(progress, share, begun.elapsed()))
        } else {
            let share =
                progress.bytes_total.map(|total| float(progress.bytes) / float(total.max(1)));
            (share, message(progress, share, watched.1.elapsed()))
        };
        bar.set_position(floor_u64(share.unwrap_or(0.0).min(1.0) * 1000.0));
        if let Ok(mut last) = last.lock() {
            last.clone_from(&text);
        }
        bar.set_message(text);
    };
    global.interrupt.leaves("finished points are kept; the same command goes on from here");
    let summary = thread::scope(|scope| {
        let (ended, ends) = done;
        if !global.shows_progress() {
            let last = &last;
            scope.spawn(move || lines(last, &ends, global));
        }
        let summary = global.interrupt.softly(|interrupt| {
            let control = Control { interrupt: Some(interrupt), progress: Some(&show) };
            run(study, options, &control).map_err(CliError::from)
        });
        drop(ended);
        summary
    });
    bar.finish_and_clear();
    summary
}

/// Says where the run stands every minute, until it ends.
fn lines(last: &Mutex<String>, ends: &mpsc::Receiver<()>, global: &Global) {
    while ends.recv_timeout(LINE_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        match last.lock() {
            Ok(text) if !text.is_empty() => global.say(&*text),
            _ => global.say("nothing is finished yet"),
        }
    }
}

/// `12 of 54 points: 1,234,567 requests, 3 minutes left`.
fn points_message(progress: &Progress<'_>, share: f64, elapsed: Duration) -> String {
    let Progress { number, of, requests, .. } = *progress;
    let requests = onefold_sim::result::count(requests);
    let left = elapsed.as_secs_f64() * (1.0 - share) / share.max(1e-9);
    let left = HumanDuration(Duration::from_secs_f64(left.clamp(0.0, 1e9)));
    format!("{number} of {of} points: {requests} requests, {left} left")
}

/// `W3 (3 of 14): 12.3 GiB, 1,234,567 requests, 2.1 M requests/s, 12 seconds left`.
fn message(progress: &Progress<'_>, share: Option<f64>, elapsed: Duration) -> String {
    let Progress { workload, number, of, requests, bytes, .. } = *progress;
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let rate = floor_u64(float(requests) / seconds);
    let mut text = format!(
        "{workload} ({number} of {of}): {}, {} requests, {} per second",
        onefold_sim::result::bytes(bytes),
        onefold_sim::result::count(requests),
        onefold_sim::result::count(rate),
    );
    if let Some(share) = share.filter(|share| *share > 0.001) {
        let left = seconds * (1.0 - share).max(0.0) / share;
        let left = HumanDuration(Duration::from_secs_f64(left.min(1e9)));
        // Writing to a string cannot fail.
        let _ = write!(text, ", {left} left");
    }
    text
}

fn status_table(status: &Status) -> String {
    let mut text =
        format!("{:16} {:>6} {:>6} {:>6}  CPU time left\n", "workload", "done", "failed", "left");
    // Writing to a string cannot fail.
    for workload in &status.workloads {
        let left = match workload.left_cpu_s {
            Some(seconds) => HumanDuration(Duration::from_secs_f64(seconds)).to_string(),
            None => "-".to_owned(),
        };
        let (done, failed, missing) = (workload.done, workload.failed, workload.left);
        let _ = writeln!(text, "{:16} {done:>6} {failed:>6} {missing:>6}  {left}", workload.name);
    }
    if status.strangers > 0 {
        let _ = writeln!(
            text,
            "{} stored results belong to other versions of the study",
            status.strangers
        );
    }
    if status.other_commits > 0 {
        let _ = writeln!(
            text,
            "{} results were computed by other commits of onefold",
            status.other_commits
        );
    }
    text
}

fn json(value: &impl serde::Serialize) -> String {
    // Results are made of numbers and texts, which always have a JSON form.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        if let StudyError::Trace { source, .. } = &error {
            let plain = trace_error(source);
            return plain.message_of(&error);
        }
        let exit = match error.fault() {
            Fault::Usage => Exit::Usage,
            Fault::Study => Exit::Infeasible,
            Fault::Trace => Exit::BadTrace,
            Fault::Busy => Exit::Busy,
            Fault::Run => Exit::Failed,
        };
        let shown = Self::new(exit, error.code(), &error);
        match error.help() {
            Some(help) => shown.help(help),
            None => shown,
        }
    }
}
