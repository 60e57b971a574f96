//! A number of devices over virtual time (Wu 2022, Fig. 8), one plot per workload and size.

use onefold_sim::report::Markup;
use onefold_sim::report::plot::{Axis, Line, LinePlot};
use onefold_sim::result::{duration, significant};

use super::Data;
use super::line_plots::{self, HALF, hatch};
use super::value::rows_of;
use crate::file::Workload;
use crate::{Row, Study};

/// One plot per workload and size, with a line for each device: those of the first seed.
pub(super) fn draw(page: &mut Markup, study: &Study, rows: &[Row], data: &Data) {
    line_plots::draw(page, plots(study, rows, data, HALF), |ns, value| {
        format!("{} at {}", significant(value, 4), duration(ns))
    });
}

/// The plots of [`draw`], with their titles.
pub(super) fn plots(
    study: &Study,
    rows: &[Row],
    data: &Data,
    size: (f64, f64),
) -> Vec<(String, LinePlot)> {
    let metric = data.figure.metric;
    let time = |end: f64| Axis::time_span("virtual time", end);
    let value = |end: f64| Axis::number(metric.title(), end);
    let line = |(workload, bytes): (&Workload, u64), label: &String| {
        let rows = rows_of(rows, (&workload.name, bytes), label, false);
        let points = rows.first()?.windows()?.line(metric);
        Some(Line { label: label.clone(), style: hatch(study, label), points })
    };
    line_plots::plots(study, data, size, (&time, &value), line)
}
