//! Figures of lines: one plot per workload and size, with a line for each device or policy.

use onefold_sim::report::Markup;
use onefold_sim::report::plot::{Axis, Line, LinePlot};

use super::Data;
use super::value::place_name;
use crate::Study;
use crate::file::Workload;

pub(super) const HALF: (f64, f64) = (510.0, 300.0);

/// The hatch of a policy, the same in all figures.
pub(super) fn hatch(study: &Study, label: &str) -> usize {
    study.policies.iter().position(|policy| policy.label == label).unwrap_or_default()
}

/// An axis that ends at the greatest number on it.
pub(super) type AxisTo<'a> = &'a dyn Fn(f64) -> Axis;

/// The plots of a figure, with their titles. `line` makes that of a label, `None` if it has none.
pub(super) fn plots(
    study: &Study,
    data: &Data,
    size: (f64, f64),
    (x, y): (AxisTo<'_>, AxisTo<'_>),
    line: impl Fn((&Workload, u64), &String) -> Option<Line>,
) -> Vec<(String, LinePlot)> {
    let of_place = |(workload, bytes): (&Workload, u64)| {
        let of_label = |label: &String| line((workload, bytes), label);
        let lines: Vec<Line> = data.policies.iter().filter_map(of_label).collect();
        let title = place_name(&workload.label, bytes);
        let points = || lines.iter().flat_map(|line| &line.points);
        let greatest = |values: &mut dyn Iterator<Item = f64>| values.fold(1.0, f64::max);
        let x = x(greatest(&mut points().map(|at| at.0)));
        let y = y(greatest(&mut points().filter_map(|at| at.1)));
        let name = format!("{}: {title}", data.title());
        (!lines.is_empty()).then_some((title, LinePlot { title: name, size, x, y, lines }))
    };
    let figure = &data.figure;
    study.places(&figure.workloads, &figure.sizes).into_iter().filter_map(of_place).collect()
}

/// Draws them side by side; `tell` says what a point is.
pub(super) fn draw(
    page: &mut Markup,
    plots: Vec<(String, LinePlot)>,
    tell: impl Fn(f64, f64) -> String,
) {
    page.within("div", &[("class", &"panels")], |page| {
        for (title, plot) in plots {
            page.within("div", &[("class", &"panel")], |page| {
                page.element("h3", &[], &title);
                plot.draw(page, &tell);
            });
        }
    });
}
