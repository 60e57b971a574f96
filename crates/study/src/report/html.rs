//! A report as one self-contained HTML page.

use std::collections::BTreeMap;
use std::fmt::Display;

use onefold_config::size_text;
use onefold_sim::report::plot::{hatch_swatch, line_swatch, outline_swatch};
use onefold_sim::report::{Markup, html as page};
use onefold_sim::result::significant;
use onefold_units::convert::{float, u64_from};

use super::bars::{self, Look, axis, highest, sizes_title, stroke};
use super::data::{number, range_text};
use super::line_plots::{HALF, hatch};
use super::text::failures;
use super::value::size_name;
use super::{CheckData, Data, Point, Report, beside, over_time, ranking_tables, zones};
use crate::file::{FigureKind, PublishedRange};
use crate::{Row, Study};

/// What the legend says of published numbers.
pub(super) const PUBLISHED: &str = "published: range, exact number";
/// Size of a plot over the whole page, in pixels.
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
            let bounds = bounds(study, report);
            if !bounds.is_empty() {
                let text = format!("Lines across the bars: {}.", bounds.join(", "));
                head.element("p", &[("class", &"note")], &text);
            }
            if !report.left_out.is_nothing() {
                head.element("p", &[("class", &"note")], &format!("{}.", report.left_out));
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

/// What the bounds are that figures show.
fn bounds(study: &Study, report: &Report) -> Vec<String> {
    let is_shown = |name: &str| {
        let mut shown = report.figures.iter().flat_map(|data| &data.bounds);
        shown.any(|other| other == name)
    };
    let bounds = study.bounds.iter().filter(|bound| is_shown(bound.name()));
    bounds.map(|bound| format!("{} ({})", bound.name(), bound.about())).collect()
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
            format!("Devices made of {}; sizes are those of {}", study.preset, devices.size_key)
        };
        return format!(
            "{made}; for all points {}; each is a run of the simulator in virtual time; seed {}; \
             {}.",
            if devices.sets.is_empty() { "no changes".to_owned() } else { devices.sets.join(", ") },
            study.seed,
            made_by(rows),
        );
    }
    format!(
        "{part}Device {}, entries of {}, flash pages of {}; tables charged: {}; latencies with the \
         times of {}; seed {}; {}.",
        size_text(study.device_bytes),
        size_text(study.entry_bytes.into()),
        size_text(study.flash_page_bytes.into()),
        study.charge.name(),
        study.preset,
        study.seed,
        made_by(rows),
    )
}

/// The program that made the rows and what they cost; a kept table does not say.
fn made_by(rows: &[Row]) -> String {
    match rows.first() {
        Some(row) if row.kept.is_some() => "numbers of a kept table".to_owned(),
        Some(row) => format!("onefold {}; {}", row.onefold.version, cost(rows)),
        None => "no numbers".to_owned(),
    }
}

/// How many points were run in how much CPU time, whatever the number of threads.
fn cost(rows: &[Row]) -> String {
    // One run may stand for several sizes.
    let runs: BTreeMap<&str, f64> = rows.iter().map(|row| (row.key.as_str(), row.cpu_s)).collect();
    let (count, cpu_s) = (runs.len(), runs.values().sum::<f64>());
    let rate = significant(float(u64_from(count)) / cpu_s.max(1e-9), 2);
    format!("{count} runs in {} s of CPU time, {rate} in a second of it", significant(cpu_s, 3))
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
            FigureKind::Series => {
                line_legend(page, study, data);
                over_time::draw(page, study, rows, data);
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
        if data.has_published() {
            list.within("li", &[], |item| {
                outline_swatch(item);
                item.element("span", &[], PUBLISHED);
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
                let flat = own < all * bars::FLAT;
                let scale = if flat { " (its own scale)" } else { "" };
                page.element("h3", &[], &format!("{}{scale}", groups[0].workload));
                let y = axis(data, if flat { own } else { all });
                let look = Look { size, x_title: sizes_title(study), has_tips: true };
                bars::plot((study, data), groups, look, y, |group| size_name(group.size_bytes))
                    .draw(page);
            });
        }
    });
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
            let published = group.published.iter().copied().chain(std::iter::repeat(None));
            let points = group.policies.iter().chain(&group.bounds);
            for (point, published) in points.zip(published) {
                cell(row, data, point, published);
            }
        });
    }
    for _ in 0..3 {
        page.close();
    }
}

fn cell(row: &mut Markup, data: &Data, point: &Point, published: Option<PublishedRange>) {
    let (text, reason) = match point {
        Point::Value(value) => (number(data, *value), ""),
        Point::Failed(reason) => ("failed".to_owned(), reason.as_str()),
        Point::Nothing => ("-".to_owned(), ""),
    };
    let attributes: [(&str, &dyn Display); 2] = [("class", &"number"), ("title", &reason)];
    let attributes = if reason.is_empty() { &attributes[..1] } else { &attributes };
    row.within("td", attributes, |cell| {
        cell.text(&text);
        if let Some(range) = published {
            let text = format!("paper: {}", range_text(data, range));
            cell.element("span", &[("class", &"paper")], &text);
        }
    });
}
