//! A number of devices over virtual time (Wu 2022, Fig. 8), one plot per workload and size.

use onefold_sim::report::Markup;
use onefold_sim::report::plot::{Axis, Line, LinePlot};
use onefold_sim::result::{duration, significant};

use super::Data;
use super::value::{place_name, rows_of};
use super::zones::{HALF, hatch};
use crate::file::Workload;
use crate::{Row, Study};

/// One plot per workload and size, with a line for each device: those of the first seed.
pub(super) fn draw(page: &mut Markup, study: &Study, rows: &[Row], data: &Data) {
    page.within("div", &[("class", &"panels")], |page| {
        for (title, plot) in plots(study, rows, data, HALF) {
            page.within("div", &[("class", &"panel")], |page| {
                page.element("h3", &[], &title);
                plot.draw(page, |ns, value| {
                    format!("{} at {}", significant(value, 4), duration(ns))
                });
            });
        }
    });
}

/// The plots of [`draw`], with their titles.
pub(super) fn plots(
    study: &Study,
    rows: &[Row],
    data: &Data,
    size: (f64, f64),
) -> Vec<(String, LinePlot)> {
    let figure = &data.figure;
    let of_place = |(workload, bytes): (&Workload, u64)| {
        let line = |label: &String| {
            let rows = rows_of(rows, (&workload.name, bytes), label, false);
            let points = rows.first()?.windows()?.line(figure.metric);
            Some(Line { label: label.clone(), style: hatch(study, label), points })
        };
        let lines: Vec<Line> = data.policies.iter().filter_map(line).collect();
        let title = place_name(&workload.label, bytes);
        let name = format!("{}: {title}", data.figure.title);
        (!lines.is_empty()).then(|| (title, plot(name, figure.metric.title(), lines, size)))
    };
    study.places(&figure.workloads, &figure.sizes).into_iter().filter_map(of_place).collect()
}

fn plot(title: String, value: &str, lines: Vec<Line>, size: (f64, f64)) -> LinePlot {
    let points = || lines.iter().flat_map(|line| &line.points);
    let greatest = |values: &mut dyn Iterator<Item = f64>| values.fold(1.0, f64::max);
    LinePlot {
        title,
        size,
        x: Axis::time_span("virtual time", greatest(&mut points().map(|at| at.0))),
        y: Axis::number(value, greatest(&mut points().filter_map(|at| at.1))),
        lines,
    }
}
