//! From rows to the numbers of one figure.

use onefold_sim::result::significant;
use serde::Serialize;

use super::value::{mean, rows_of, shown};
use super::with_latency;
use crate::Row;
use crate::file::{Figure, Metric, PublishedRange, Study};

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
    /// Name of the workload.
    pub name: String,
    /// Label of the workload.
    pub workload: String,
    /// Size of the buffer in bytes.
    pub size_bytes: u64,
    /// One per policy.
    pub policies: Vec<Point>,
    /// One per bound.
    pub bounds: Vec<Point>,
    /// What the figure of the paper shows, one per policy; empty if nothing of this group was published.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Option<PublishedRange>>,
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
    /// Whether a group of it has published numbers.
    #[must_use]
    pub fn has_published(&self) -> bool {
        self.groups.iter().any(|group| !group.published.is_empty())
    }

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

/// The figures of a study, or those that one without figures gets.
pub(crate) fn shown_figures(study: &Study) -> Vec<Figure> {
    if !study.figures.is_empty() {
        return study.figures.clone();
    }
    let default = match &study.devices {
        // All its points are in one table.
        Some(devices) if devices.is_grid() => return Vec::new(),
        Some(_) => [Metric::Bandwidth, Metric::Waf],
        None => [Metric::TargetHitRatio, Metric::TotalHitRatio],
    };
    let has_target = study.workloads.iter().any(|workload| workload.target().is_some());
    let applies = |figure: &Figure| has_target || !figure.metric.is_of_target();
    default.map(Figure::of).into_iter().filter(applies).collect()
}

pub(super) fn figures(study: &Study, rows: &[Row], figures: &[Figure]) -> Vec<Data> {
    figures.iter().map(|figure| data(study, rows, figure)).collect()
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
            name: workload.name.clone(),
            workload: workload.label.clone(),
            size_bytes: size,
            policies: policies.iter().map(point(false)).collect(),
            bounds: bounds.iter().map(point(true)).collect(),
            published: published(figure, (&workload.name, size), &policies),
        };
        let mut points = group.policies.iter().chain(&group.bounds);
        if points.any(|point| *point != Point::Nothing) {
            groups.push(group);
        }
    }
    Data { figure: figure.clone(), policies, bounds, groups }
}

/// What was published of a group, one per policy; empty if nothing was.
fn published(
    figure: &Figure,
    (workload, size): (&str, u64),
    policies: &[String],
) -> Vec<Option<PublishedRange>> {
    let of = |policy: &String| {
        let mut all = figure.published.iter();
        all.find(|one| one.is_about(workload, size, policy)).map(|one| one.range)
    };
    let found: Vec<_> = policies.iter().map(of).collect();
    if found.iter().all(Option::is_none) { Vec::new() } else { found }
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

/// A published number in the form of the figure's own: `1.30`, `1.07 to 1.64`, `at most 48.5`.
pub(super) fn range_text(data: &Data, range: PublishedRange) -> String {
    match (range.from, range.to) {
        (Some(from), Some(to)) if range.exact().is_none() => {
            format!("{} to {}", number(data, from), number(data, to))
        }
        (Some(value), Some(_)) => number(data, value),
        (Some(from), None) => format!("at least {}", number(data, from)),
        (None, Some(to)) => format!("at most {}", number(data, to)),
        (None, None) => "-".to_owned(),
    }
}

/// A number of the figure as text.
pub(super) fn number(data: &Data, value: f64) -> String {
    match data.figure.baseline {
        Some(_) => significant(value, 3),
        None => shown(data.figure.metric, value),
    }
}
