//! The results as one table: a row per point and tenant, a typed column per axis and per number, empty where nothing was measured.

use std::collections::BTreeMap;
use std::fmt::Write;

use onefold_config::Typed;
use onefold_sim::result::{ColumnKind, columns, measured};

use crate::row::{AccessRow, AreaHitsRow, Latency, ratio};
use crate::{Coordinate, Row, TenantRow};

/// A value, or nothing.
pub(super) type Cell = Option<Typed>;

/// The results, column by column.
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
}

/// One column with its cells.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) cells: Vec<Cell>,
}

/// A line: a point and one of its tenants, if it has any.
struct Line<'a> {
    row: &'a Row,
    tenant: Option<&'a TenantRow>,
    /// What a run of the simulator measured, by name.
    measured: BTreeMap<String, serde_json::Value>,
}

type OfRow = (&'static str, ColumnKind, fn(&Row) -> Cell);
type OfTenant = (&'static str, ColumnKind, fn(&TenantRow) -> Cell);

use ColumnKind::{Count, Flag, Real, Text};

/// What is known of every point.
const OF_ROW: &[OfRow] = &[
    ("key", Text, |row| text(&row.key)),
    ("label", Text, |row| text(&row.label)),
    ("bound", Flag, |row| Some(Typed::Flag(row.bound))),
    ("seed", Count, |row| count(row.seed)),
    ("error", Text, |row| row.error.as_deref().and_then(text)),
    ("scale", Real, |row| real(row.scale)),
    ("version", Text, |row| text(&row.onefold.version)),
    ("commit", Text, |row| text(&row.onefold.commit)),
    ("cpu_s", Real, |row| real(row.cpu_s)),
];
/// What is known of a buffer.
const OF_BUFFER: &[OfRow] = &[
    ("slots", Count, |row| count(row.slots.into())),
    ("lookups", Count, |row| count(row.lookups)),
];
/// What is known of each tenant of a buffer.
const OF_TENANT: &[OfTenant] = &[
    ("tenant", Text, |tenant| text(&tenant.name)),
    ("target", Flag, |tenant| Some(Typed::Flag(tenant.target))),
    ("read_requests", Count, |tenant| count(tenant.reads.requests)),
    ("read_full_hits", Count, |tenant| count(tenant.reads.full_hits)),
    ("read_pages", Count, |tenant| count(tenant.reads.pages)),
    ("read_hits", Count, |tenant| count(tenant.reads.hits)),
    ("read_bytes_hit", Count, |tenant| count(tenant.reads.bytes_hit)),
    ("write_requests", Count, |tenant| count(tenant.writes.requests)),
    ("write_full_hits", Count, |tenant| count(tenant.writes.full_hits)),
    ("write_pages", Count, |tenant| count(tenant.writes.pages)),
    ("write_hits", Count, |tenant| count(tenant.writes.hits)),
    ("write_bytes_hit", Count, |tenant| count(tenant.writes.bytes_hit)),
    ("hit_ratio", Real, hit_ratio),
    ("trim_requests", Count, |tenant| count(tenant.trim_requests)),
    ("trim_pages", Count, |tenant| count(tenant.trim_pages)),
    ("flash_reads", Count, |tenant| count(tenant.flash_reads)),
    ("pad_reads", Count, |tenant| count(tenant.pad_reads)),
    ("pages_programmed", Count, |tenant| count(tenant.pages_programmed)),
    ("programs", Count, |tenant| count(tenant.programs)),
    ("short_programs", Count, |tenant| count(tenant.short_programs)),
    ("overwritten", Count, |tenant| count(tenant.overwritten)),
    ("trim_discards", Count, |tenant| count(tenant.trim_discards)),
    ("dirty", Count, |tenant| count(tenant.dirty)),
    ("read_hits_by_area", Text, |tenant| by_area(tenant, |area| area.reads)),
    ("write_hits_by_area", Text, |tenant| by_area(tenant, |area| area.writes)),
    ("read_latency_ns", Real, |tenant| mean(&tenant.latency_ns.read)),
    ("write_latency_ns", Real, |tenant| mean(&tenant.latency_ns.write)),
];

#[expect(clippy::unnecessary_wraps, reason = "a cell, as those of columns that can be empty")]
fn text(text: impl Into<String>) -> Cell {
    Some(Typed::Text(text.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn count(count: u64) -> Cell {
    Some(Typed::Count(count))
}

#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn real(number: f64) -> Cell {
    Some(Typed::Real(number))
}

fn mean(latency: &Latency) -> Cell {
    (latency.requests > 0).then_some(Typed::Real(latency.mean))
}

/// Hits by area of the policy, such as `baw=3;sorb=17`; nothing if there are no areas.
fn by_area(tenant: &TenantRow, hits: fn(&AreaHitsRow) -> u64) -> Cell {
    let one = |area: &AreaHitsRow| format!("{}={}", area.name, hits(area));
    let all: Vec<String> = tenant.area_hits.iter().map(one).collect();
    (!all.is_empty()).then(|| Typed::Text(all.join(";")))
}

fn hit_ratio(tenant: &TenantRow) -> Cell {
    let sum = |of: fn(&AccessRow) -> u64| of(&tenant.reads).saturating_add(of(&tenant.writes));
    let (hits, pages) = (sum(|access| access.hits), sum(|access| access.pages));
    (pages > 0).then(|| Typed::Real(ratio(hits, pages)))
}

impl Table {
    /// All columns of what the rows are: numbers of buffers, of runs of the simulator, or of both.
    pub(super) fn new(rows: &[Row]) -> Self {
        let lines: Vec<Line<'_>> = rows.iter().flat_map(lines).collect();
        let mut table = Self { columns: Vec::new() };
        let (key, rest) = OF_ROW.split_at(1);
        table.of_row(&lines, key, |_| true);
        table.axes(&lines);
        table.of_row(&lines, rest, |_| true);
        let is_run = |row: &Row| row.result.is_some();
        if !rows.iter().all(is_run) {
            table.of_row(&lines, OF_BUFFER, |row| row.error.is_none() && !is_run(row));
        }
        if lines.iter().any(|line| line.tenant.is_some()) {
            for (name, kind, value) in OF_TENANT {
                let of = |line: &Line<'_>| {
                    let measured = line.row.error.is_none();
                    line.tenant.filter(|_| measured).and_then(value)
                };
                table.push(name, *kind, lines.iter().map(of).collect());
            }
        }
        if rows.iter().any(is_run) {
            for column in columns() {
                let cells = lines.iter().map(|line| line.value(&column.name, column.kind));
                table.push(&column.name, column.kind, cells.collect());
            }
        }
        table
    }

    /// Adds a column; a name that is there has its meaning already.
    fn push(&mut self, name: &str, kind: ColumnKind, cells: Vec<Cell>) {
        if !self.columns.iter().any(|column| column.name == name) {
            self.columns.push(Column { name: name.to_owned(), kind, cells });
        }
    }

    fn of_row(&mut self, lines: &[Line<'_>], columns: &[OfRow], is_known: impl Fn(&Row) -> bool) {
        for (name, kind, value) in columns {
            let of = |line: &Line<'_>| Some(line.row).filter(|row| is_known(row)).and_then(value);
            self.push(name, *kind, lines.iter().map(of).collect());
        }
    }

    /// A column per axis, in their order.
    fn axes(&mut self, lines: &[Line<'_>]) {
        let mut names: Vec<&str> = Vec::new();
        for one in lines.iter().flat_map(|line| &line.row.axes) {
            if one.axis != "seed" && !names.contains(&one.axis.as_str()) {
                names.push(&one.axis);
            }
        }
        for name in names {
            let on = |line: &Line<'_>| line.row.axes.iter().find(|one| one.axis == name).cloned();
            let values: Vec<Option<Coordinate>> = lines.iter().map(on).collect();
            let kind = kind_of(values.iter().flatten().map(|one| &one.value));
            let cell = |one: Option<Coordinate>| one.map(|one| cast(one, kind));
            self.push(name, kind, values.into_iter().map(cell).collect());
        }
    }
}

/// What all values of an axis are.
fn kind_of<'a>(values: impl Iterator<Item = &'a Typed>) -> ColumnKind {
    let kinds = values.map(|value| match value {
        Typed::Flag(_) => Flag,
        Typed::Count(_) => Count,
        Typed::Real(_) => Real,
        Typed::Text(_) => Text,
    });
    let both = |a, b| match (a, b) {
        (a, b) if a == b => a,
        (Count, Real) | (Real, Count) => Real,
        _ => Text,
    };
    kinds.reduce(both).unwrap_or(Text)
}

fn cast(one: Coordinate, kind: ColumnKind) -> Typed {
    match (one.value, kind) {
        (Typed::Count(count), Real) => Typed::Real(onefold_units::convert::float(count)),
        (_, Text) => Typed::Text(one.text),
        (value, _) => value,
    }
}

fn lines(row: &Row) -> Vec<Line<'_>> {
    let measured = row.result.as_ref().map(|run| measured(run)).unwrap_or_default();
    if row.tenants.is_empty() {
        return vec![Line { row, tenant: None, measured }];
    }
    let of = |tenant| Line { row, tenant: Some(tenant), measured: measured.clone() };
    row.tenants.iter().map(of).collect()
}

impl Line<'_> {
    fn value(&self, name: &str, kind: ColumnKind) -> Cell {
        let value = self.measured.get(name)?;
        match kind {
            Count => value.as_u64().map(Typed::Count),
            Real => value.as_f64().map(Typed::Real),
            Flag => value.as_bool().map(Typed::Flag),
            Text => value.as_str().map(|text| Typed::Text(text.to_owned())),
        }
    }
}

const INTRODUCTION: &str = "\
# Columns of the results of studies

<!-- Generated from the table of columns: ONEFOLD_BLESS=1 cargo test -p onefold-study -->

`results.csv` and `results.parquet` have one row per point, and per tenant of a buffer. Besides the
columns below there is one for each axis of the study, with its name: sizes in bytes, times in
nanoseconds, shares as parts of 1. A cell is empty (null) where nothing was measured.

Numbers of a run of the simulator have the names of its JSON; [results.md](results.md) says what they mean.
";

/// The columns of any study as a table of the documentation: name and type.
#[must_use]
pub fn columns_markdown() -> String {
    let name = |kind| match kind {
        Text => "text",
        Count => "count",
        Real => "number",
        Flag => "truth value",
    };
    let mut out = INTRODUCTION.to_owned();
    let mut section = |title: &str, all: Vec<(&str, ColumnKind)>| {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n## {title}\n\n| column | type |\n|---|---|\n");
        for (column, kind) in all {
            let _ = writeln!(out, "| `{column}` | {} |", name(kind));
        }
    };
    let of_row = |all: &'static [OfRow]| all.iter().map(|(name, kind, _)| (*name, *kind));
    section("Every point", of_row(OF_ROW).collect());
    let tenants = OF_TENANT.iter().map(|(name, kind, _)| (*name, *kind));
    section("A buffer and its tenants", of_row(OF_BUFFER).chain(tenants).collect());
    let run = columns().iter().map(|column| (column.name.as_str(), column.kind));
    section("A run of the simulator", run.collect());
    out
}
