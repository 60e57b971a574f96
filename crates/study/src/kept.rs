//! The numbers of a study as a small table: a row per point, with what its figures, averages and checks use.
//!
//! The table is CSV and depends on nothing but the numbers: no times, no commit, no version. So it can
//! be kept in a repository, and equal runs make equal text. [`read`] gives rows that a report can be
//! made of; [`verify`](crate::verify) runs some of the points again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::file::{Devices, FigureKind, Metric, Study};
use crate::numbers::{JournalPath, Kept};
use crate::report::{journal_path, metric_of, shown_figures, usual_metrics, with_latency};
use crate::run::{Job, Options, jobs, stored_at};
use crate::series::Windows;
use crate::{Program, Results, Row, StudyError};

/// Columns before the numbers.
const PLACE: [&str; 6] = ["workload", "label", "size_bytes", "seed", "point", "error"];
/// The columns of the zones that a journal went through, and of the windows of a run.
const PATH: &str = "journal_path";
const SERIES: &str = "series";
/// Characters of a digest that the table has.
const DIGITS: usize = 16;

/// A table that was read.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The rows of the points that the study has now, in its order.
    pub rows: Vec<Row>,
    /// Columns that figures, averages or checks use and the table does not have.
    pub absent: Vec<String>,
    /// Rows that belong to no point of the study as it is now.
    pub strangers: usize,
    /// Points of the study that have no row.
    pub missing: usize,
}

/// A number that a report uses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    metric: Metric,
    latency: Option<String>,
}

/// The numbers that a study shows or judges, each once, in the order of their names.
pub(crate) fn columns(study: &Study) -> Vec<Column> {
    let shown = shown_figures(study);
    let figures = shown.iter().map(|one| (one.metric, &one.latency));
    let headlines = study.headlines.iter().map(|one| (one.metric, &one.latency));
    let checks = study.checks.iter().map(|one| (one.metric, &one.latency));
    let is_grid = study.devices.as_ref().is_some_and(Devices::is_grid);
    let tables = if is_grid { usual_metrics(study) } else { study.metrics.clone() };
    let metrics = tables.iter().map(|metric| (*metric, &None));
    let column = |(metric, latency): (Metric, &Option<String>)| {
        // The first model is the one that is meant where none is named.
        let other =
            |label: &&String| study.latencies.iter().skip(1).any(|choice| choice.label == **label);
        let latency = latency.as_ref().filter(other).cloned();
        let end = latency.as_ref().map_or_else(String::new, |label| format!("[{label}]"));
        Column { name: format!("{}{end}", metric.name()), metric, latency }
    };
    let all = figures.chain(headlines).chain(checks).chain(metrics).map(column);
    let by_name: BTreeMap<String, Column> = all.map(|one| (one.name.clone(), one)).collect();
    by_name.into_values().collect()
}

/// The cells of a row: its numbers as text, empty where there is none.
pub(crate) fn cells(study: &Study, columns: &[Column], row: &Row) -> Vec<String> {
    let number = |column: &Column| {
        let rows = std::slice::from_ref(row);
        let rows = with_latency(study, rows, column.latency.as_deref());
        let value = if row.error.is_some() { None } else { metric_of(&rows[0], column.metric) };
        // The shortest text that means this number and no other.
        value.map_or_else(String::new, |value| value.to_string())
    };
    columns.iter().map(number).collect()
}

/// Whether a figure of that kind draws a line for the point of a row: one of the first seed.
fn is_drawn(study: &Study, row: &Row, kind: FigureKind) -> bool {
    let figures = study.figures.iter().filter(|figure| figure.kind == kind);
    let shows = |names: &[String], name: &String| names.is_empty() || names.contains(name);
    row.seed == study.seed
        && figures.into_iter().any(|figure| {
            shows(&figure.workloads, &row.workload) && shows(&figure.policies, &row.label)
        })
}

/// The columns of lines that figures draw, and the cell of each.
fn line_columns(study: &Study) -> Vec<(&'static str, FigureKind, CellOf)> {
    let path = |row: &Row| journal_path(row).map(|path| path.text());
    let series = |row: &Row| row.windows().map(|windows| windows.text());
    let all: [(&'static str, FigureKind, CellOf); 2] =
        [(PATH, FigureKind::Zones, path), (SERIES, FigureKind::Series, series)];
    let is_shown = |kind: FigureKind| study.figures.iter().any(|figure| figure.kind == kind);
    all.into_iter().filter(|(_, kind, _)| is_shown(*kind)).collect()
}

/// A line of a point as text; `None` if it has none.
type CellOf = fn(&Row) -> Option<String>;

/// The options with which digests do not depend on the program: a table outlives versions.
pub(crate) fn timeless(options: &Options) -> Options {
    Options { program: Program::default(), ..options.clone() }
}

/// The digest of a point as the table has it.
pub(crate) fn short(key: &str) -> &str {
    key.get(..DIGITS).unwrap_or(key)
}

/// The table of the results in a folder, and how many points of the study it lacks.
///
/// # Errors
/// The study does not fit its traces, or the results cannot be read.
pub fn table(study: &Study, options: &Options) -> Result<(String, usize), StudyError> {
    let results = Results::read(&options.folder)?;
    let (own, plain) = (jobs(study, options)?, jobs(study, &timeless(options))?);
    let columns = columns(study);
    let lines = line_columns(study);
    let names = columns.iter().map(|column| column.name.as_str());
    let line_names = lines.iter().map(|(name, ..)| *name);
    let head: Vec<&str> = PLACE.into_iter().chain(names).chain(line_names).collect();
    let mut file = ::csv::Writer::from_writer(Vec::new());
    let mut missing = 0;
    // Writing to memory cannot fail.
    let _ = file.write_record(head);
    let points = |job: &Job<'_>| job.points.len();
    for (job, plain) in own.iter().zip(&plain) {
        for at in 0..points(job) {
            let Some(row) = stored_at(study, job, at, &results) else {
                missing += 1;
                continue;
            };
            let line = |(_, kind, cell): &(&str, FigureKind, CellOf)| {
                let drawn = is_drawn(study, &row, *kind).then(|| cell(&row));
                drawn.flatten().unwrap_or_default()
            };
            let drawn = lines.iter().map(line);
            let place = [
                row.workload.clone(),
                row.label.clone(),
                row.size_bytes.to_string(),
                row.seed.to_string(),
                short(&plain.points[at].key).to_owned(),
                row.error.clone().unwrap_or_default(),
            ];
            let cells = cells(study, &columns, &row);
            let _ = file.write_record(place.into_iter().chain(cells).chain(drawn));
        }
    }
    let text = file.into_inner().unwrap_or_default();
    Ok((String::from_utf8_lossy(&text).into_owned(), missing))
}

/// A line of a table by the name of its columns.
type Line = BTreeMap<String, String>;

/// Reads a table that [`table`] made.
///
/// # Errors
/// There is no such file, or a line of it is none of such a table.
pub fn read(study: &Study, options: &Options, path: &Path) -> Result<Table, StudyError> {
    let failed = |source| StudyError::Results { path: path.to_path_buf(), action: "read", source };
    let text = fs::read_to_string(path).map_err(failed)?;
    let lines = lines(path, &text)?;
    let columns = columns(study);
    let head = text.lines().next().unwrap_or_default();
    let known: BTreeSet<&str> = head.split(',').collect();
    let absent = columns.iter().filter(|column| !known.contains(column.name.as_str()));
    let mut table =
        Table { absent: absent.map(|column| column.name.clone()).collect(), ..Table::default() };
    let mut own = BTreeSet::new();
    for job in &jobs(study, &timeless(options))? {
        for point in &job.points {
            let Some((number, line)) = lines.get(short(&point.key)) else {
                table.missing += 1;
                continue;
            };
            own.insert(short(&point.key).to_owned());
            let kept = kept(path, *number, line, &columns)?;
            let row = Row {
                key: point.key.clone(),
                size_bytes: point.bytes,
                seed: point.seed,
                scale: options.scale,
                error: line.get("error").filter(|error| !error.is_empty()).cloned(),
                kept: Some(Box::new(kept)),
                ..Row::default()
            };
            table.rows.push(row.named(study, job.workload, &point.subject));
        }
    }
    // Rows of workloads and policies that nobody asked for are no strangers.
    if !options.is_part() {
        table.strangers = lines.len() - own.len();
    }
    Ok(table)
}

/// The lines of a table by the digest of their points, each with its number.
fn lines(path: &Path, text: &str) -> Result<BTreeMap<String, (usize, Line)>, StudyError> {
    let damaged =
        |line, message: String| StudyError::NoTable { path: path.to_path_buf(), line, message };
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| damaged(1, error.to_string()))?.clone();
    if let Some(name) = PLACE.iter().find(|name| !head.iter().any(|other| other == **name)) {
        return Err(damaged(1, format!("no column `{name}`")));
    }
    let mut lines = BTreeMap::new();
    for (record, number) in reader.into_records().zip(2..) {
        let record = record.map_err(|error| damaged(number, error.to_string()))?;
        let cells = head.iter().zip(&record).map(|(name, cell)| (name.to_owned(), cell.to_owned()));
        let line: Line = cells.collect();
        lines.insert(line["point"].clone(), (number, line));
    }
    Ok(lines)
}

fn kept(path: &Path, number: usize, line: &Line, columns: &[Column]) -> Result<Kept, StudyError> {
    let damaged = |name: &str, cell: &str, expected: &str| StudyError::NoTable {
        path: path.to_path_buf(),
        line: number,
        message: format!("{name} is `{cell}`, expected {expected}"),
    };
    let mut kept = Kept::default();
    for column in columns {
        let Some(cell) = line.get(&column.name).filter(|cell| !cell.is_empty()) else { continue };
        let value = cell.parse().ok().filter(|value: &f64| value.is_finite());
        let value = value.ok_or_else(|| damaged(&column.name, cell, "a number"))?;
        kept.numbers.insert(column.name.clone(), value);
    }
    if let Some(cell) = line.get(PATH).filter(|cell| !cell.is_empty()) {
        let zones = JournalPath::parse(cell);
        kept.path = Some(zones.ok_or_else(|| damaged(PATH, cell, "zones such as `0>17 5000`"))?);
    }
    if let Some(cell) = line.get(SERIES).filter(|cell| !cell.is_empty()) {
        let windows = Windows::parse(cell);
        kept.windows =
            Some(windows.ok_or_else(|| damaged(SERIES, cell, "windows of seven numbers"))?);
    }
    Ok(kept)
}
