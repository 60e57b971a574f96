//! A report as one self-contained HTML page.

use onefold_config::size_text;
use onefold_sim::report::plot::{
    Axis, Group as Bars, GroupedPlot, Level, hatch_swatch, line_swatch,
};
use onefold_sim::report::{Markup, html as page};
use onefold_sim::result::significant;

use super::data::number;
use super::text::failures;
use super::value::{place_name, size_name};
use super::zones::{HALF, hatch};
use super::{CheckData, Data, Group, Point, Report, beside, ranking_tables, zones};
use crate::file::FigureKind;
use crate::{Row, Study};

/// A plot whose highest value is below this share of the highest of its figure gets an axis of its
/// own: its bars could not be read otherwise.
const FLAT: f64 = 0.25;
/// Size of a plot over the whole page, and of one of two side by side, in pixels.
const FULL: (f64, f64) = (1040.0, 320.0);

/// One page: figures as plots with tooltips, the checks and the numbers below each, averages, and all
/// checks with their numbers.
#[must_use]
pub fn html(study: &Study, rows: &[Row], report: &Report) -> String {
    page(&study.name, |page| {
        page.within("header", &[], |head| {
            head.element("p", &[("class", &"kicker")], "Onefold study");
            head.element("h1", &[], &study.name);
            head.element("p", &[("class", &"note")], &study.description);
            head.element("p", &[("class", &"note")], &facts(study, rows));
            if !study.bounds.is_empty() {
                let names = study.bounds.iter().map(|bound| (bound.name(), bound.about()));
                let names: Vec<String> =
                    names.map(|(name, about)| format!("{name} ({about})")).collect();
                let text = format!("Lines across the bars: {}.", names.join(", "));
                head.element("p", &[("class", &"note")], &text);
            }
        });
        if let Some(ranking) = &report.ranking {
            ranking_tables::html(page, ranking);
        }
        for data in &report.figures {
            figure(page, (study, rows), data, &report.checks);
        }
        for data in &report.headlines {
            beside::headline(page, data);
        }
        if !report.checks.is_empty() {
            beside::checks(page, &report.checks);
        }
    })
}

fn facts(study: &Study, rows: &[Row]) -> String {
    let scale = rows.first().map_or(1.0, |row| row.scale);
    let part = if scale < 1.0 {
        format!("Only {} % of every workload was run. ", significant(scale * 100.0, 2))
    } else {
        String::new()
    };
    if let Some(devices) = &study.devices {
        let made = if devices.is_grid() {
            format!("A grid of {}", devices.axes.join(", "))
        } else {
            format!(
                "Devices made of preset {}; sizes are those of {}",
                study.preset, devices.size_key
            )
        };
        return format!(
            "{made}; for all points {}; each is a run of the simulator in virtual time; seed {}; \
             onefold {}.",
            if devices.sets.is_empty() { "no changes".to_owned() } else { devices.sets.join(", ") },
            study.seed,
            rows.first().map_or("", |row| row.onefold.version.as_str()),
        );
    }
    let version = rows.first().map_or("", |row| row.onefold.version.as_str());
    format!(
        "{part}Device {}, entries of {}, flash pages of {}; tables charged: {}; latencies with the \
         times of {}; seed {}; onefold {version}.",
        size_text(study.device_bytes),
        size_text(study.entry_bytes.into()),
        size_text(study.flash_page_bytes.into()),
        study.charge.name(),
        study.preset,
        study.seed,
    )
}

fn figure(page: &mut Markup, (study, rows): (&Study, &[Row]), data: &Data, checks: &[CheckData]) {
    page.within("section", &[("class", &"figure")], |page| {
        page.element("h2", &[], &data.title());
        if !data.figure.note.is_empty() {
            page.element("p", &[("class", &"note")], &data.figure.note);
        }
        if data.groups.is_empty() {
            page.element(
                "p",
                &[("class", &"empty")],
                "No workload and size is part of this figure.",
            );
            return;
        }
        match data.figure.kind {
            FigureKind::Bars => {
                legend(page, study, data);
                panels(page, study, data);
            }
            FigureKind::Zones => {
                line_legend(page, study, data);
                zones::draw(page, study, rows, data);
            }
            FigureKind::Table => {}
        }
        beside::verdicts(page, checks, &data.figure.checks);
        table(page, data);
        for reason in failures(data, &data.groups) {
            page.element("p", &[("class", &"note")], &reason);
        }
    });
}

/// The line of a bound, the same in all figures.
fn stroke(study: &Study, name: &str) -> usize {
    study.bounds.iter().position(|bound| bound.name() == name).unwrap_or_default()
}

fn legend(page: &mut Markup, study: &Study, data: &Data) {
    page.within("ul", &[("class", &"legend")], |list| {
        for label in &data.policies {
            list.within("li", &[], |item| {
                hatch_swatch(item, hatch(study, label));
                item.element("span", &[], label);
            });
        }
        for name in &data.bounds {
            list.within("li", &[], |item| {
                line_swatch(item, stroke(study, name));
                item.element("span", &[], name);
            });
        }
    });
}

/// The lines of devices.
fn line_legend(page: &mut Markup, study: &Study, data: &Data) {
    page.within("ul", &[("class", &"legend")], |list| {
        for label in &data.policies {
            list.within("li", &[], |item| {
                line_swatch(item, hatch(study, label));
                item.element("span", &[], label);
            });
        }
    });
}

/// One plot per workload, with the same axis for all whose bars can then be read.
fn panels(page: &mut Markup, study: &Study, data: &Data) {
    let by_workload = || data.groups.chunk_by(|a, b| a.workload == b.workload);
    let alone = by_workload().count() == 1;
    let (class, size) = if alone { ("panels single", FULL) } else { ("panels", HALF) };
    page.within("div", &[("class", &class)], |page| {
        for groups in by_workload() {
            page.within("div", &[("class", &"panel")], |page| {
                let (own, all) = (highest(data, groups), highest(data, &data.groups));
                let flat = own < all * FLAT;
                let scale = if flat { " (its own scale)" } else { "" };
                page.element("h3", &[], &format!("{}{scale}", groups[0].workload));
                let y = axis(data, if flat { own } else { all });
                plot(page, (study, data), groups, size, y);
            });
        }
    });
}

fn plot(
    page: &mut Markup,
    (study, data): (&Study, &Data),
    groups: &[Group],
    size: (f64, f64),
    y: Axis,
) {
    let level = |group: &Group, name: &str, series, point: &Point| {
        let height = point.value()?;
        let place = place_name(&group.workload, group.size_bytes);
        let tip = format!("{name}, {place}: {}", number(data, height));
        Some(Level { series, height, tip })
    };
    let bars = |group: &Group| {
        let policies = data.policies.iter().zip(&group.policies);
        let bounds = data.bounds.iter().zip(&group.bounds);
        Bars {
            label: size_name(group.size_bytes),
            bars: policies
                .map(|(name, point)| level(group, name, hatch(study, name), point))
                .collect(),
            levels: bounds
                .filter_map(|(name, point)| level(group, name, stroke(study, name), point))
                .collect(),
        }
    };
    let title = format!("{}: {}", data.title(), groups[0].workload);
    let x_title = study.devices.as_ref().map_or("buffer size", |devices| &devices.size_key);
    let plot = GroupedPlot {
        title,
        size,
        x_title: x_title.to_owned(),
        y,
        reference: data.figure.baseline.is_some().then_some(1.0),
        groups: groups.iter().map(bars).collect(),
    };
    plot.draw(page);
}

/// The highest value of some groups, at least the reference of a figure with a baseline.
fn highest(data: &Data, groups: &[Group]) -> f64 {
    let values = groups.iter().flat_map(|group| group.policies.iter().chain(&group.bounds));
    let least = if data.figure.baseline.is_some() { 1.0 } else { 0.0 };
    values.filter_map(Point::value).fold(least, f64::max)
}

fn axis(data: &Data, highest: f64) -> Axis {
    let metric = data.figure.metric;
    match &data.figure.baseline {
        Some(label) => Axis::number(&format!("relative to {label}"), highest),
        None if metric.is_share() => Axis::share(metric.title(), highest),
        None if metric.is_time() => Axis::time(metric.title(), highest),
        None => Axis::number(metric.title(), highest),
    }
}

/// What the numbers of the table are.
fn unit(data: &Data) -> String {
    let metric = data.figure.metric;
    match &data.figure.baseline {
        Some(label) => format!("{} / that of {label}", metric.title()),
        None if metric.is_share() => format!("{} (%)", metric.title()),
        None => metric.title().to_owned(),
    }
}

fn table(page: &mut Markup, data: &Data) {
    page.open("div", &[("class", &"scroll")]);
    page.open("table", &[("class", &"many")]);
    page.element("caption", &[], &unit(data));
    let names = || data.policies.iter().chain(&data.bounds);
    page.within("thead", &[], |head| {
        head.within("tr", &[], |row| {
            for name in ["workload", "size"] {
                row.element("th", &[("scope", &"col"), ("class", &"short")], name);
            }
            for name in names() {
                row.element("th", &[("scope", &"col"), ("class", &"number short")], name);
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
            row.element("td", &[], &size_name(group.size_bytes));
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
