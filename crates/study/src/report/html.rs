//! A report as one self-contained HTML page.

use onefold_config::size_text;
use onefold_sim::report::plot::{
    Axis, Group as Bars, GroupedPlot, Level, hatch_swatch, line_swatch,
};
use onefold_sim::report::{Markup, html as page};
use onefold_sim::result::significant;

use super::value::shown;
use super::{CheckData, Data, Group, Point, Report, beside};
use crate::Study;
use crate::file::FigureKind;

/// Size of a plot over the whole page, and of one of two side by side, in pixels.
const FULL: (f64, f64) = (1040.0, 320.0);
const HALF: (f64, f64) = (510.0, 300.0);

/// One page: figures as plots with tooltips, the checks and the numbers below each, averages, and all
/// checks with their numbers.
#[must_use]
pub fn html(study: &Study, report: &Report) -> String {
    page(&study.name, |page| {
        page.within("header", &[], |head| {
            head.element("p", &[("class", &"kicker")], "Onefold study");
            head.element("h1", &[], &study.name);
            head.element("p", &[("class", &"note")], &study.description);
            head.element("p", &[("class", &"note")], &facts(study));
        });
        for data in &report.figures {
            figure(page, data, &report.checks);
        }
        for data in &report.headlines {
            beside::headline(page, data);
        }
        if !report.checks.is_empty() {
            beside::checks(page, &report.checks);
        }
    })
}

fn facts(study: &Study) -> String {
    format!(
        "Device {}, entries of {}, flash pages of {}; tables charged: {}; latency model: {}; seed {}.",
        size_text(study.device_bytes),
        size_text(study.entry_bytes.into()),
        size_text(study.flash_page_bytes.into()),
        study.charge.name(),
        study.preset,
        study.seed,
    )
}

fn figure(page: &mut Markup, data: &Data, checks: &[CheckData]) {
    page.within("section", &[("class", &"figure")], |page| {
        page.element("h2", &[], &data.title());
        page.element("p", &[("class", &"note")], &data.figure.note);
        if data.groups.is_empty() {
            page.element(
                "p",
                &[("class", &"empty")],
                "No workload and size is part of this figure.",
            );
            return;
        }
        if data.figure.kind == FigureKind::Bars {
            legend(page, data);
            panels(page, data);
        }
        beside::verdicts(page, checks, &data.figure.checks);
        table(page, data);
    });
}

fn legend(page: &mut Markup, data: &Data) {
    page.within("ul", &[("class", &"legend")], |list| {
        for (series, label) in data.policies.iter().enumerate() {
            list.within("li", &[], |item| {
                hatch_swatch(item, series);
                item.element("span", &[], label);
            });
        }
        for (series, name) in data.bounds.iter().enumerate() {
            list.within("li", &[], |item| {
                line_swatch(item, series);
                item.element("span", &[], name);
            });
        }
    });
}

/// One plot per workload, all with the same axis.
fn panels(page: &mut Markup, data: &Data) {
    let by_workload = || data.groups.chunk_by(|a, b| a.workload == b.workload);
    let alone = by_workload().count() == 1;
    let (class, size) = if alone { ("panels single", FULL) } else { ("panels", HALF) };
    page.within("div", &[("class", &class)], |page| {
        for groups in by_workload() {
            page.within("div", &[("class", &"panel")], |page| {
                page.element("h3", &[], &groups[0].workload);
                plot(page, data, groups, size);
            });
        }
    });
}

fn plot(page: &mut Markup, data: &Data, groups: &[Group], size: (f64, f64)) {
    let level = |group: &Group, name: &str, series, point: &Point| {
        let height = point.value()?;
        let bytes = size_text(group.size_bytes);
        let tip = format!("{name}, {}, {bytes}: {}", group.workload, number(data, height));
        Some(Level { series, height, tip })
    };
    let bars = |group: &Group| {
        let numbered =
            |(series, (name, point)): (usize, (&String, &Point))| level(group, name, series, point);
        Bars {
            label: size_text(group.size_bytes),
            bars: data.policies.iter().zip(&group.policies).enumerate().map(numbered).collect(),
            levels: data
                .bounds
                .iter()
                .zip(&group.bounds)
                .enumerate()
                .filter_map(numbered)
                .collect(),
        }
    };
    let title = format!("{}: {}", data.title(), groups[0].workload);
    let plot =
        GroupedPlot { title, size, y: axis(data), groups: groups.iter().map(bars).collect() };
    plot.draw(page);
}

fn axis(data: &Data) -> Axis {
    let values = data.groups.iter().flat_map(|group| group.policies.iter().chain(&group.bounds));
    let highest = values.filter_map(Point::value).fold(0.0, f64::max);
    let metric = data.figure.metric;
    match &data.figure.baseline {
        Some(label) => Axis::number(&format!("relative to {label}"), highest),
        None if metric.is_share() => Axis::share(metric.title(), highest),
        None if metric.is_time() => Axis::time(metric.title(), highest),
        None => Axis::number(metric.title(), highest),
    }
}

/// A number of the figure as text.
pub(super) fn number(data: &Data, value: f64) -> String {
    match data.figure.baseline {
        Some(_) => significant(value, 3),
        None => shown(data.figure.metric, value),
    }
}

fn table(page: &mut Markup, data: &Data) {
    page.open("div", &[("class", &"scroll")]);
    page.open("table", &[("class", &"many")]);
    let names = || data.policies.iter().chain(&data.bounds);
    page.within("thead", &[], |head| {
        head.within("tr", &[], |row| {
            for name in ["workload", "size"] {
                row.element("th", &[("scope", &"col")], name);
            }
            for name in names() {
                row.element("th", &[("scope", &"col"), ("class", &"number")], name);
            }
        });
    });
    page.open("tbody", &[]);
    let mut before = "";
    for group in &data.groups {
        let class = if group.workload == before { "numbers" } else { "numbers first" };
        before = &group.workload;
        page.within("tr", &[("class", &class)], |row| {
            row.element("th", &[("scope", &"row")], &group.workload);
            row.element("td", &[], &size_text(group.size_bytes));
            for point in group.policies.iter().chain(&group.bounds) {
                cell(row, data, point);
            }
        });
    }
    for _ in 0..3 {
        page.close();
    }
}

fn cell(row: &mut Markup, data: &Data, point: &Point) {
    match point {
        Point::Value(value) => {
            row.element("td", &[("class", &"number")], &number(data, *value));
        }
        Point::Failed(reason) => {
            row.element("td", &[("class", &"number"), ("title", reason)], "failed");
        }
        Point::Nothing => row.element("td", &[("class", &"number")], "-"),
    }
}
