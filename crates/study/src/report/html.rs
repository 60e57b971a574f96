//! The figures as one self-contained HTML page.

use onefold_config::size_text;
use onefold_sim::report::plot::{
    Axis, Group as Bars, GroupedPlot, Level, hatch_swatch, line_swatch,
};
use onefold_sim::report::{Markup, html as page};
use onefold_sim::result::{duration, significant};

use super::{Data, Group, Point};
use crate::Study;
use crate::file::FigureKind;

/// Size of a plot in pixels.
const SIZE: (f64, f64) = (1040.0, 320.0);
/// Groups in one plot; more go into further plots below.
const GROUPS: usize = 10;

/// All figures as one page: plots with tooltips, and the numbers below each.
#[must_use]
pub fn html(study: &Study, figures: &[Data]) -> String {
    page(&study.name, |page| {
        page.within("header", &[], |head| {
            head.element("p", &[("class", &"kicker")], "Onefold study");
            head.element("h1", &[], &study.name);
            head.element("p", &[("class", &"note")], &study.description);
            head.element("p", &[("class", &"note")], &facts(study));
        });
        for data in figures {
            figure(page, data);
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

fn figure(page: &mut Markup, data: &Data) {
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
            for groups in data.groups.chunks(GROUPS) {
                plot(page, data, groups);
            }
        }
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

fn plot(page: &mut Markup, data: &Data, groups: &[Group]) {
    let values = data.groups.iter().flat_map(|group| group.policies.iter().chain(&group.bounds));
    let highest = values.filter_map(Point::value).fold(0.0, f64::max);
    let several = data.groups.iter().any(|group| group.workload != data.groups[0].workload);
    let level = |group: &Group, name: &str, series, point: &Point| {
        let height = point.value()?;
        let size = size_text(group.size_bytes);
        let tip = format!("{name}, {}, {size}: {}", group.workload, number(data, height));
        Some(Level { series, height, tip })
    };
    let bars = |group: &Group| {
        let numbered =
            |(series, (name, point)): (usize, (&String, &Point))| level(group, name, series, point);
        let size = size_text(group.size_bytes);
        let label = if several { format!("{} {size}", group.workload) } else { size };
        Bars {
            label,
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
    let metric = data.figure.metric;
    let y = match &data.figure.baseline {
        Some(label) => Axis::number(&format!("relative to {label}"), highest),
        None if metric.is_share() => Axis::share(metric.title(), highest),
        None if metric.is_time() => Axis::time(metric.title(), highest),
        None => Axis::number(metric.title(), highest),
    };
    let title = data.title();
    GroupedPlot { title, size: SIZE, y, groups: groups.iter().map(bars).collect() }.draw(page);
}

/// A number of the figure as text.
pub(super) fn number(data: &Data, value: f64) -> String {
    let metric = data.figure.metric;
    match data.figure.baseline {
        Some(_) => significant(value, 3),
        None if metric.is_share() => format!("{:.2}", value * 100.0),
        None if metric.is_time() => duration(value),
        None => significant(value, 4),
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
