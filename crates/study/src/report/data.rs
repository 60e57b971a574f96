//! From rows to the numbers of one figure.

use onefold_sim::result::significant;
use serde::Serialize;

use super::value::{mean, rows_of, shown};
use super::with_latency;
use crate::Row;
use crate::file::{Figure, Metric, Study};

/// The numbers of one figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Data {
    /// What it shows.
    pub figure: Figure,
    /// Labels of the policies, in the order of [`Group::policies`].
    pub policies: Vec<String>,
    /// Names of the bounds, in the order of [`Group::bounds`].
    pub bounds: Vec<String>,
    /// One per workload and size that has any result.
    pub groups: Vec<Group>,
}

/// The numbers of one workload and size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Label of the workload.
    pub workload: String,
    /// Size of the buffer in bytes.
    pub size_bytes: u64,
    /// One per policy.
    pub policies: Vec<Point>,
    /// One per bound.
    pub bounds: Vec<Point>,
}

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The metric; divided by that of the baseline if the figure has one.
    Value(f64),
    /// The point failed, with the reason.
    Failed(String),
    /// There is no result, or the metric does not apply.
    Nothing,
}

impl Data {
    /// The title, with the latency model if it has one and with what all numbers are divided by.
    #[must_use]
    pub fn title(&self) -> String {
        let model = self.figure.latency.as_ref();
        let model = model.map_or_else(String::new, |label| format!(" ({label})"));
        let baseline = self.figure.baseline.as_ref();
        let baseline = baseline.map_or_else(String::new, |label| format!(", relative to {label}"));
        format!("{}{model}{baseline}", self.figure.title)
    }
}

impl Point {
    /// The number, if there is one.
    #[must_use]
    pub const fn value(&self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Failed(_) | Self::Nothing => None,
        }
    }
}

pub(super) fn figures(study: &Study, rows: &[Row]) -> Vec<Data> {
    let default = match &study.devices {
        // All its points are in one table.
        Some(devices) if devices.is_grid() && study.figures.is_empty() => return Vec::new(),
        Some(_) => [Metric::Bandwidth, Metric::Waf],
        None => [Metric::TargetHitRatio, Metric::TotalHitRatio],
    };
    let default = default.map(Figure::of);
    let has_target = study.workloads.iter().any(|workload| workload.target().is_some());
    let figures: Vec<&Figure> = if study.figures.is_empty() {
        default.iter().filter(|figure| has_target || !figure.metric.is_of_target()).collect()
    } else {
        study.figures.iter().collect()
    };
    figures.into_iter().map(|figure| data(study, rows, figure)).collect()
}

fn data(study: &Study, rows: &[Row], figure: &Figure) -> Data {
    let rows = &*with_latency(study, rows, figure.latency.as_deref());
    let shown = |name: &String| figure.policies.is_empty() || figure.policies.contains(name);
    let policies: Vec<String> =
        study.policies.iter().map(|policy| policy.label.clone()).filter(shown).collect();
    let bounds = study.bounds.iter().filter(|bound| bound.applies(figure.metric));
    let bounds: Vec<String> = bounds.map(|bound| bound.name().to_owned()).filter(shown).collect();
    let mut groups = Vec::new();
    for (workload, size) in study.places(&figure.workloads, &figure.sizes) {
        let of = |label: &String, bound: bool| rows_of(rows, (&workload.name, size), label, bound);
        let point = |bound: bool| {
            move |label: &String| point(&of(label, bound), figure.metric, baseline(figure, &of))
        };
        let group = Group {
            workload: workload.label.clone(),
            size_bytes: size,
            policies: policies.iter().map(point(false)).collect(),
            bounds: bounds.iter().map(point(true)).collect(),
        };
        let mut points = group.policies.iter().chain(&group.bounds);
        if points.any(|point| *point != Point::Nothing) {
            groups.push(group);
        }
    }
    Data { figure: figure.clone(), policies, bounds, groups }
}

/// What all numbers of a group are divided by; `None` if nothing, or if it is missing.
fn baseline<'a>(figure: &Figure, of: &impl Fn(&String, bool) -> Vec<&'a Row>) -> Result<f64, ()> {
    let Some(label) = &figure.baseline else { return Ok(1.0) };
    let value = mean(&of(label, false), figure.metric);
    let value = value.or_else(|| mean(&of(label, true), figure.metric));
    value.filter(|value| *value > 0.0).ok_or(())
}

fn point(rows: &[&Row], wanted: Metric, baseline: Result<f64, ()>) -> Point {
    if let Some(error) = rows.iter().find_map(|row| row.error.as_ref()) {
        return Point::Failed(error.clone());
    }
    match (mean(rows, wanted), baseline) {
        (Some(value), Ok(baseline)) => Point::Value(value / baseline),
        _ => Point::Nothing,
    }
}

/// A number of the figure as text.
pub(super) fn number(data: &Data, value: f64) -> String {
    match data.figure.baseline {
        Some(_) => significant(value, 3),
        None => shown(data.figure.metric, value),
    }
}
