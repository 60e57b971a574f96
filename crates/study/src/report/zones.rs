//! The zones that a journal goes through (Choi 2022, Fig. 3), one plot per workload and size.

use onefold_sim::report::Markup;
use onefold_sim::report::plot::{Axis, Line, LinePlot};
use onefold_sim::result::{JournalZone, count};
use onefold_units::convert::{float, floor_u64};

use super::Data;
use super::line_plots::{self, HALF, hatch};
use super::value::rows_of;
use crate::file::Workload;
use crate::numbers::JournalPath;
use crate::{Row, Study};

/// One plot per workload and size, with a line for each device: those of the first seed.
pub(super) fn draw(page: &mut Markup, study: &Study, rows: &[Row], data: &Data) {
    line_plots::draw(page, plots(study, rows, data, HALF), |pages, zone| {
        format!("zone {} after {} pages", floor_u64(zone), count(floor_u64(pages)))
    });
}

/// The plots of [`draw`], with their titles.
pub(super) fn plots(
    study: &Study,
    rows: &[Row],
    data: &Data,
    size: (f64, f64),
) -> Vec<(String, LinePlot)> {
    let pages = |end: f64| Axis::number("pages of the journal written", end);
    let zone = |end: f64| Axis::number("zone", end);
    let line =
        |place: (&Workload, u64), label: &String| line(rows, place, label, hatch(study, label));
    line_plots::plots(study, data, size, (&pages, &zone), line)
}

/// Steps: a zone from its first page of the journal to the next zone's.
fn line(
    rows: &[Row],
    (workload, size): (&Workload, u64),
    label: &str,
    style: usize,
) -> Option<Line> {
    let rows = rows_of(rows, (&workload.name, size), label, false);
    let path = journal_path(rows.first()?)?;
    let begins = || path.zones.iter().map(|(before, _)| float(*before));
    let ends = begins().skip(1).chain([float(path.pages)]);
    let step = |((_, zone), (begin, end)): (&(u64, u32), (f64, f64))| {
        let zone = Some(f64::from(*zone));
        [(begin, zone), (end, zone)]
    };
    let points = path.zones.iter().zip(begins().zip(ends)).flat_map(step).collect();
    Some(Line { label: label.to_owned(), style, points })
}

/// The zones that the journal of a point went through, from its result or from a kept table.
pub(crate) fn journal_path(row: &Row) -> Option<JournalPath> {
    if let Some(kept) = &row.kept {
        return kept.path.clone();
    }
    let volume = row.result.as_ref()?.zoned_volume.as_ref()?;
    let zone = |entry: &JournalZone| (entry.before_pages, entry.zone);
    let zones = volume.journal_path.iter().map(zone).collect();
    Some(JournalPath { zones, pages: volume.sent("journal") })
}
