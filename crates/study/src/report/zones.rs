//! The zones that a journal goes through (Choi 2022, Fig. 3), one plot per workload and size.

use onefold_sim::report::Markup;
use onefold_sim::report::plot::{Axis, Line, LinePlot};
use onefold_sim::result::count;
use onefold_units::convert::{float, floor_u64};

use super::Data;
use super::value::{place_name, rows_of};
use crate::file::Workload;
use crate::{Row, Study};

pub(super) const HALF: (f64, f64) = (510.0, 300.0);

/// The hatch of a policy, the same in all figures.
pub(super) fn hatch(study: &Study, label: &str) -> usize {
    study.policies.iter().position(|policy| policy.label == label).unwrap_or_default()
}

/// One plot per workload and size, with a line for each device: those of the first seed.
pub(super) fn draw(page: &mut Markup, study: &Study, rows: &[Row], data: &Data) {
    let figure = &data.figure;
    page.within("div", &[("class", &"panels")], |page| {
        for (workload, size) in study.places(&figure.workloads, &figure.sizes) {
            let line = |label: &String| line(rows, (workload, size), label, hatch(study, label));
            let lines: Vec<Line> = data.policies.iter().filter_map(line).collect();
            if lines.is_empty() {
                continue;
            }
            let title = place_name(&workload.label, size);
            page.within("div", &[("class", &"panel")], |page| {
                page.element("h3", &[], &title);
                plot(page, format!("{}: {title}", data.title()), lines);
            });
        }
    });
}

fn plot(page: &mut Markup, title: String, lines: Vec<Line>) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let greatest = |values: &mut dyn Iterator<Item = f64>| values.fold(1.0, f64::max);
    let plot = LinePlot {
        title,
        size: HALF,
        x: Axis::number("pages of the journal written", greatest(&mut points().map(|at| at.0))),
        y: Axis::number("zone", greatest(&mut points().filter_map(|at| at.1))),
        lines,
    };
    plot.draw(page, |pages, zone| {
        format!("zone {} after {} pages", floor_u64(zone), count(floor_u64(pages)))
    });
}

/// Steps: a zone from its first page of the journal to the next zone's.
fn line(
    rows: &[Row],
    (workload, size): (&Workload, u64),
    label: &str,
    style: usize,
) -> Option<Line> {
    let rows = rows_of(rows, (&workload.name, size), label, false);
    let volume = rows.first()?.result.as_ref()?.zoned_volume.as_ref()?;
    let begins = volume.journal_path.iter().map(|entry| float(entry.before_pages));
    let ends = begins.clone().skip(1).chain([float(volume.sent("journal"))]);
    let step = |(entry, (begin, end)): (&onefold_sim::result::JournalZone, (f64, f64))| {
        let zone = Some(f64::from(entry.zone));
        [(begin, zone), (end, zone)]
    };
    let points = volume.journal_path.iter().zip(begins.zip(ends)).flat_map(step).collect();
    Some(Line { label: label.to_owned(), style, points })
}
