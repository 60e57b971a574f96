//! Tables over all points: every point with its numbers, the best of each load, and means along an axis.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use onefold_sim::result::{duration, significant};
use onefold_units::convert::{float, u64_from};
use serde::Serialize;

use super::metric::metric;
use crate::file::{Coordinate, Metric, Study};
use crate::{Row, StudyError};

/// What is asked of the points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Numbers to show; those of the study if empty.
    pub metrics: Vec<Metric>,
    /// Points in the order of this number, the best first.
    pub sort: Option<Metric>,
    /// Only the best point of each load by this number, and what cannot be told from it.
    pub best: Option<Metric>,
    /// Means along these axes; all that differ, in a grid of which not only the best is wanted, if empty.
    pub by: Vec<String>,
}

/// The points of a study and means along its axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    /// Axes on which points differ, seeds left out.
    pub axes: Vec<String>,
    /// Numbers that at least one point has.
    pub metrics: Vec<Metric>,
    /// In the order of the study, or of the number that was asked for.
    pub points: Vec<Ranked>,
    /// What the points are sorted by.
    pub sorted_by: Option<Metric>,
    /// Whether only the best of each load are there.
    pub best_only: bool,
    /// Means along axes.
    pub marginals: Vec<Marginal>,
}

/// One point, over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// Name of what runs.
    pub workload: String,
    /// Name of what it runs on.
    pub label: String,
    /// Texts on the axes of the ranking.
    pub axes: Vec<Option<String>>,
    /// One per metric of the ranking.
    pub numbers: Vec<Option<Mean>>,
    /// Why there are no numbers.
    pub error: Option<String>,
    /// What the simulator says against its numbers, of any seed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Of the best of a load: the others whose confidence intervals overlap with its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_told_apart: Vec<String>,
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width of its confidence interval of 95 % (Student's t); `null` with one seed.
    pub half_width: Option<f64>,
    /// Seeds.
    pub seeds: usize,
}

/// Means along one axis: over all points with one of its values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marginal {
    /// The axis.
    pub axis: String,
    /// One per value, in the order of the study.
    pub values: Vec<MarginalValue>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarginalValue {
    /// The value.
    pub value: String,
    /// Points that have it and numbers.
    pub points: usize,
    /// One per metric of the ranking.
    pub numbers: Vec<Option<Mean>>,
}

/// The rows of one point, one for each seed.
struct Point<'a> {
    first: &'a Row,
    rows: Vec<&'a Row>,
}

impl Mean {
    /// The mean of at least one number.
    fn of(numbers: &[f64]) -> Option<Self> {
        let count = numbers.len();
        if count == 0 {
            return None;
        }
        let n = float(u64_from(count));
        let mean = numbers.iter().sum::<f64>() / n;
        let half_width = (count > 1).then(|| {
            let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
            student(count - 1) * (squares / (n - 1.0) / n).sqrt()
        });
        Some(Self { mean, half_width, seeds: count })
    }

    /// Whether the intervals overlap; without intervals nobody knows.
    fn overlaps(&self, other: &Self) -> bool {
        let reach = self.half_width.zip(other.half_width).map(|(own, others)| own + others);
        reach.is_some_and(|reach| (self.mean - other.mean).abs() <= reach)
    }
}

/// Quantile 0.975 of Student's t distribution.
fn student(freedom: usize) -> f64 {
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    T.get(freedom - 1).copied().unwrap_or(1.96)
}

/// Whether a coordinate says what runs, or with which seed, and not on what.
fn is_load(one: &Coordinate) -> bool {
    matches!(one.axis.as_str(), "trace" | "workload")
}

impl Ranking {
    /// Whether points ran with several seeds, so that chance is known.
    pub(super) fn has_intervals(&self) -> bool {
        let numbers = self.points.iter().flat_map(|point| point.numbers.iter().flatten());
        numbers.into_iter().any(|mean| mean.half_width.is_some())
    }

    /// The points of a study as asked for.
    ///
    /// # Errors
    /// There is no such axis.
    pub fn new(study: &Study, rows: &[Row], question: &Question) -> Result<Self, StudyError> {
        let points = points(rows);
        let axes = differing(&points);
        for by in &question.by {
            expect_axis(by, names(&points))?;
        }
        let metrics = metrics(study, question, &points);
        let by: Vec<String> = match (question.by.as_slice(), &study.devices) {
            ([], Some(devices)) if devices.is_grid() && question.best.is_none() => axes.clone(),
            (by, _) => by.to_vec(),
        };
        let marginals = by.iter().map(|axis| marginal(&points, axis, &metrics)).collect();
        let mut ranking = Self {
            points: points.iter().map(|point| point.ranked(&axes, &metrics)).collect(),
            axes,
            metrics,
            sorted_by: question.best.or(question.sort),
            best_only: question.best.is_some(),
            marginals,
        };
        ranking.sort();
        Ok(ranking)
    }

    /// Sorts points within each load, and keeps the best if only they are wanted.
    fn sort(&mut self) {
        let Some(wanted) = self.sorted_by else { return };
        let Some(at) = self.metrics.iter().position(|metric| *metric == wanted) else { return };
        let number = |point: &Ranked| point.numbers[at].map(|mean| mean.mean);
        let loads: Vec<String> = self.points.iter().fold(Vec::new(), |mut loads, point| {
            if !loads.contains(&point.workload) {
                loads.push(point.workload.clone());
            }
            loads
        });
        let load = |point: &Ranked| loads.iter().position(|name| *name == point.workload);
        self.points.sort_by(|a, b| {
            let order = match (number(a), number(b)) {
                (Some(a), Some(b)) if wanted.is_gain() => b.total_cmp(&a),
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            load(a).cmp(&load(b)).then(order)
        });
        if self.best_only {
            self.keep_best(at);
        }
    }

    fn keep_best(&mut self, at: usize) {
        let mut best: Vec<Ranked> = Vec::new();
        for point in std::mem::take(&mut self.points) {
            match best.last_mut().filter(|best| best.workload == point.workload) {
                Some(best) => {
                    if let (Some(first), Some(other)) = (best.numbers[at], point.numbers[at])
                        && first.overlaps(&other)
                    {
                        best.not_told_apart.push(point.label);
                    }
                }
                None => best.push(point),
            }
        }
        self.points = best;
    }
}

/// Rows that differ in their seeds only, together.
fn points(rows: &[Row]) -> Vec<Point<'_>> {
    let same = |a: &Row, b: &Row| {
        (&a.workload, &a.label, a.size_bytes, a.bound)
            == (&b.workload, &b.label, b.size_bytes, b.bound)
    };
    let mut points: Vec<Point<'_>> = Vec::new();
    for row in rows {
        // Seeds of a point stand together.
        match points.last_mut().filter(|point| same(point.first, row)) {
            Some(point) => point.rows.push(row),
            None => points.push(Point { first: row, rows: vec![row] }),
        }
    }
    points
}

/// The axes of points but the seed, in their order.
fn names<'a>(points: &[Point<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for one in points.iter().flat_map(|point| &point.first.axes) {
        if one.axis != "seed" && !names.contains(&one.axis.as_str()) {
            names.push(&one.axis);
        }
    }
    names
}

/// The axes on which points differ, in their order.
fn differing(points: &[Point<'_>]) -> Vec<String> {
    let differs = |axis: &&str| {
        let values: BTreeSet<Option<&str>> = points.iter().map(|point| point.on(axis)).collect();
        values.len() > 1
    };
    names(points).into_iter().filter(differs).map(str::to_owned).collect()
}

fn expect_axis(found: &str, mut known: Vec<&str>) -> Result<(), StudyError> {
    if !known.contains(&"seed") {
        known.push("seed");
    }
    if known.contains(&found) {
        return Ok(());
    }
    Err(StudyError::Axis { found: found.to_owned(), known: known.join(", ") })
}

impl Study {
    /// Refuses what is no axis of a grid, before it runs. What other studies have shows in their rows.
    ///
    /// # Errors
    /// It is none: those there are.
    pub fn expect_axis(&self, name: &str) -> Result<(), StudyError> {
        let devices = self.devices.as_ref().filter(|devices| devices.is_grid());
        devices.map_or(Ok(()), |devices| {
            expect_axis(name, devices.axes.iter().map(String::as_str).collect())
        })
    }
}

/// What tables over all points show if nothing else is asked: what the study says, or what most ask for.
pub(crate) fn usual_metrics(study: &Study) -> Vec<Metric> {
    if !study.metrics.is_empty() {
        return study.metrics.clone();
    }
    if study.devices.is_none() {
        return vec![Metric::TargetHitRatio, Metric::TotalHitRatio, Metric::PagesProgrammed];
    }
    let columns = ["latency_ns.write.mean", "latency_ns.write.p99", "latency_ns.read.p99"];
    let columns = columns.iter().filter_map(|name| Metric::find(name));
    [Metric::Waf].into_iter().chain(columns).chain([Metric::Bandwidth]).collect()
}

/// What is shown: what is asked for, or what the study or most people ask for; only what some point has.
fn metrics(study: &Study, question: &Question, points: &[Point<'_>]) -> Vec<Metric> {
    let asked = match question.metrics.as_slice() {
        [] => usual_metrics(study),
        asked => asked.to_vec(),
    };
    let mut shown: Vec<Metric> = Vec::new();
    let all_failed = points.iter().all(|point| point.first.error.is_some());
    for wanted in question.best.into_iter().chain(question.sort).chain(asked) {
        let is_known = all_failed || points.iter().any(|point| point.mean(wanted).is_some());
        if !shown.contains(&wanted) && is_known {
            shown.push(wanted);
        }
    }
    shown
}

/// Means along an axis. The interval is that over seeds: of the mean of all points of one seed.
fn marginal(points: &[Point<'_>], axis: &str, metrics: &[Metric]) -> Marginal {
    let mut values: Vec<String> = Vec::new();
    for value in rows_on(points, axis).map(|(value, _)| value) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let of_value = |value: String| {
        let rows: Vec<&Row> =
            rows_on(points, axis).filter(|(own, _)| *own == value).map(|(_, row)| row).collect();
        let cells: BTreeSet<_> =
            rows.iter().map(|row| (&row.workload, &row.label, row.size_bytes)).collect();
        let points = cells.len();
        let numbers = metrics.iter().map(|wanted| over_seeds(&rows, *wanted)).collect();
        MarginalValue { value, points, numbers }
    };
    Marginal { axis: axis.to_owned(), values: values.into_iter().map(of_value).collect() }
}

/// Every row with numbers and its value on an axis.
fn rows_on<'a>(points: &'a [Point<'a>], axis: &'a str) -> impl Iterator<Item = (String, &'a Row)> {
    let rows = points.iter().flat_map(|point| point.rows.iter().copied());
    rows.filter(|row| row.error.is_none()).filter_map(move |row| {
        let seed = (axis == "seed").then(|| row.seed.to_string());
        let own = || row.axes.iter().find(|one| one.axis == axis).map(|one| one.text.clone());
        Some((seed.or_else(own)?, row))
    })
}

fn over_seeds(rows: &[&Row], wanted: Metric) -> Option<Mean> {
    let seeds: BTreeSet<u64> = rows.iter().map(|row| row.seed).collect();
    let of_seed = |seed: u64| {
        let of = rows.iter().filter(|row| row.seed == seed);
        let numbers: Vec<f64> = of.filter_map(|row| metric(row, wanted)).collect();
        Mean::of(&numbers).map(|mean| mean.mean)
    };
    let means: Vec<f64> = seeds.into_iter().filter_map(of_seed).collect();
    Mean::of(&means)
}

impl Point<'_> {
    fn on(&self, axis: &str) -> Option<&str> {
        self.first.axes.iter().find(|one| one.axis == axis).map(|one| one.text.as_str())
    }

    /// The mean over seeds; `None` if one of them failed or measured nothing.
    fn mean(&self, wanted: Metric) -> Option<Mean> {
        let number = |row: &&Row| metric(row, wanted).filter(|_| row.error.is_none());
        let numbers: Option<Vec<f64>> = self.rows.iter().map(number).collect();
        Mean::of(&numbers?)
    }

    fn ranked(&self, axes: &[String], metrics: &[Metric]) -> Ranked {
        let load = self.first.axes.iter().find(|one| is_load(one));
        Ranked {
            workload: load.map_or_else(|| self.first.workload.clone(), |one| one.text.clone()),
            label: self.first.label.clone(),
            axes: axes.iter().map(|axis| self.on(axis).map(str::to_owned)).collect(),
            numbers: metrics.iter().map(|wanted| self.mean(*wanted)).collect(),
            error: self.rows.iter().find_map(|row| row.error.clone()),
            warnings: self.rows.iter().find_map(|row| warnings(row)).unwrap_or_default(),
            not_told_apart: Vec::new(),
        }
    }
}

fn warnings(row: &Row) -> Option<Vec<String>> {
    let warnings = &row.result.as_ref()?.warnings;
    (!warnings.is_empty()).then(|| warnings.clone())
}

const PLUS_MINUS: char = '\u{b1}';

/// A mean as text in the unit of its metric, with its interval.
pub(super) fn shown(wanted: Metric, mean: &Mean) -> String {
    let text = super::value::shown(wanted, mean.mean);
    match mean.half_width {
        Some(half) if wanted.is_time() => format!("{text} {PLUS_MINUS} {}", duration(half)),
        Some(half) if wanted.is_share() => format!("{text} {PLUS_MINUS} {:.2}", half * 100.0),
        Some(half) => format!("{text} {PLUS_MINUS} {}", significant(half, 2)),
        None => text,
    }
}

/// By value, for plots.
pub(super) fn highest(marginal: &Marginal, at: usize) -> f64 {
    let means = marginal.values.iter().filter_map(|value| value.numbers[at]);
    means
        .map(|mean| mean.mean)
        .max_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::Mean;

    /// The textbook's: 95 % of five numbers with standard deviation 1.581 are mean +- 1.963.
    #[test]
    fn intervals_are_those_of_student() {
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((mean.mean - 3.0).abs() < 1e-12);
        assert!((mean.half_width.unwrap() - 1.963).abs() < 1e-3);
        assert_eq!(Mean::of(&[7.0]).unwrap().half_width, None);
        assert_eq!(Mean::of(&[]), None);
    }

    #[test]
    fn points_are_told_apart_by_their_intervals() {
        let mean = |mean, half_width| Mean { mean, half_width, seeds: 3 };
        for (a, b, overlap) in [
            ((10.0, Some(1.0)), (11.5, Some(1.0)), true),
            ((10.0, Some(1.0)), (12.5, Some(1.0)), false),
            ((12.5, Some(1.0)), (10.0, Some(1.0)), false),
            ((10.0, None), (10.1, None), false),
        ] {
            assert_eq!(mean(a.0, a.1).overlaps(&mean(b.0, b.1)), overlap, "{a:?} {b:?}");
        }
    }
}
