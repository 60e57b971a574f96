//! Figures as SVG files, to be shown in other pages.

use onefold_sim::report::plot::{Key, LinePlot, Panel, Sheet};

use super::bars::{self, FLAT, Look, axis, highest, sizes_title, stroke};
use super::html::PUBLISHED;
use super::line_plots::hatch;
use super::value::size_name;
use super::{Data, Group, Report, over_time, zones};
use crate::file::FigureKind;
use crate::{Row, Study};

/// Width of a picture, and of what is inside its margins, in pixels.
const WIDTH: f64 = 760.0;
const INNER: f64 = WIDTH - 24.0;
/// Height of a plot.
const HEIGHT: f64 = 200.0;
/// Size of one of two plots side by side.
const PANEL: (f64, f64) = (INNER / 2.0, HEIGHT);
/// Most bars of a plot over the whole width, and of one of two side by side.
const BARS_FULL: usize = 56;
const BARS_HALF: usize = 28;
/// Width of a character in the name of a group, in pixels.
const CHARACTER: usize = 7;
/// Most sizes of a workload that do not get a plot of their own.
const SIZES_FEW: usize = 2;

/// A figure as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Name of the file: that of the study, then the title of the figure.
    pub name: String,
    /// Its content: SVG. Equal numbers make equal text.
    pub svg: String,
}

/// The figures that are drawn, in the order of the study. Tables are not.
#[must_use]
pub fn pictures(study: &Study, rows: &[Row], report: &Report) -> Vec<Picture> {
    let mut pictures: Vec<Picture> = Vec::new();
    for data in report.figures.iter().filter(|data| !data.groups.is_empty()) {
        let sheet = match data.figure.kind {
            FigureKind::Table => continue,
            FigureKind::Bars => of_bars(study, data),
            FigureKind::Zones => of_lines(data, study, zones::plots(study, rows, data, PANEL)),
            FigureKind::Series => of_lines(data, study, over_time::plots(study, rows, data, PANEL)),
        };
        let latency = data.figure.latency.as_deref().unwrap_or_default();
        let stem = file_stem(&format!("{} {} {latency}", study.name, data.figure.title));
        let mut name = format!("{stem}.svg");
        let mut copy = 2;
        while pictures.iter().any(|other| other.name == name) {
            name = format!("{stem}-{copy}.svg");
            copy += 1;
        }
        pictures.push(Picture { name, svg: sheet.svg() });
    }
    pictures
}

/// Letters and digits, with a dash for everything between them.
fn file_stem(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
    let words: String = text.chars().map(plain).collect();
    words.split_whitespace().collect::<Vec<&str>>().join("-")
}

fn of_bars(study: &Study, data: &Data) -> Sheet {
    let policies = data.policies.iter().map(|name| (Key::Hatch(hatch(study, name)), name.clone()));
    let bounds = data.bounds.iter().map(|name| (Key::Line(stroke(study, name)), name.clone()));
    let published = data.has_published().then(|| (Key::Outline, PUBLISHED.to_owned()));
    let sizes = |groups: &[Group]| groups.len();
    let by_workload = || data.groups.chunk_by(|a, b| a.name == b.name);
    let panels = if by_workload().map(sizes).max().unwrap_or(0) <= SIZES_FEW {
        of_all_workloads(study, data)
    } else {
        by_workload().map(|groups| of_workload(study, data, groups)).collect()
    };
    Sheet {
        title: data.title(),
        width: WIDTH,
        legend: policies.chain(bounds).chain(published).collect(),
        panels,
    }
}

/// Workloads side by side, in as many rows as it takes.
fn of_all_workloads(study: &Study, data: &Data) -> Vec<(String, Panel)> {
    let has_sizes = data.groups.iter().any(|group| group.size_bytes != data.groups[0].size_bytes);
    let name = |group: &Group| match size_name(group.size_bytes) {
        size if has_sizes => format!("{} {size}", group.name),
        _ => group.name.clone(),
    };
    let longest = data.groups.iter().map(|group| name(group).len()).max().unwrap_or(1);
    let by_names = 680 / (longest * CHARACTER + 6).max(1);
    let by_bars = BARS_FULL / data.policies.len().max(1);
    let most = by_names.min(by_bars).max(1);
    // Rows of nearly equal lengths.
    let rows = data.groups.len().div_ceil(most).max(1);
    let look = Look { size: (INNER, HEIGHT), x_title: "", has_tips: false };
    let row = |groups: &[Group]| {
        let (y, note) = scale(data, groups);
        let plot = bars::plot((study, data), groups, look, y, name);
        (note.to_owned(), Panel::Bars(plot))
    };
    data.groups.chunks(data.groups.len().div_ceil(rows).max(1)).map(row).collect()
}

/// One workload, sizes side by side.
fn of_workload(study: &Study, data: &Data, groups: &[Group]) -> (String, Panel) {
    let is_narrow = groups.len() * data.policies.len() <= BARS_HALF;
    let width = if is_narrow { INNER / 2.0 } else { INNER };
    let look = Look { size: (width, HEIGHT), x_title: sizes_title(study), has_tips: false };
    let (y, note) = scale(data, groups);
    let plot = bars::plot((study, data), groups, look, y, |group| size_name(group.size_bytes));
    (format!("{} {note}", groups[0].workload), Panel::Bars(plot))
}

/// The axis of all groups of a figure, or of these alone where it would make them flat.
fn scale(data: &Data, groups: &[Group]) -> (onefold_sim::report::plot::Axis, &'static str) {
    let (own, all) = (highest(data, groups), highest(data, &data.groups));
    if own < all * FLAT { (axis(data, own), "(its own scale)") } else { (axis(data, all), "") }
}

fn of_lines(data: &Data, study: &Study, plots: Vec<(String, LinePlot)>) -> Sheet {
    let legend = data.policies.iter().map(|name| (Key::Line(hatch(study, name)), name.clone()));
    Sheet {
        title: data.title(),
        width: WIDTH,
        legend: legend.collect(),
        panels: plots.into_iter().map(|(title, plot)| (title, Panel::Lines(plot))).collect(),
    }
}
