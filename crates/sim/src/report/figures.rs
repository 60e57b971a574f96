//! The plots of the report: which numbers become which plot.

use onefold_units::convert::float;

use super::STYLES;
use super::markup::Markup;
use super::plot::{Axis, Bar, BarPlot, Line, LinePlot, line_swatch};
use super::sections::duration;
use crate::result::{CcdfPoint, RunResult, SeriesPoint, count, percent, share, significant};

/// Width of a plot over the whole page, in pixels.
pub(super) const FULL: f64 = 1040.0;
/// Width of one of two plots side by side.
const HALF: f64 = 510.0;
/// Height of a plot of full width.
const HEIGHT: f64 = 340.0;
/// Height of a plot of half width.
const HALF_HEIGHT: f64 = 320.0;

/// A titled section with a sentence on what is shown.
pub(super) fn section(
    page: &mut Markup,
    title: &str,
    note: &str,
    content: impl FnOnce(&mut Markup),
) {
    page.within("section", &[("class", &"figure")], |page| {
        page.element("h2", &[], title);
        page.element("p", &[("class", &"note")], note);
        content(page);
    });
}

/// What stands in the place of a plot without data.
pub(super) fn nothing(page: &mut Markup, why: &str) {
    page.element("p", &[("class", &"empty")], why);
}

/// Names of the lines, unless a single one needs none.
fn line_legend(page: &mut Markup, labels: &[String]) {
    if labels.len() < 2 {
        return;
    }
    page.within("ul", &[("class", &"legend")], |list| {
        for (n, label) in labels.iter().enumerate() {
            list.within("li", &[], |item| {
                line_swatch(item, n);
                item.element("span", &[], label);
            });
        }
    });
}

pub(super) fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// One line per run over virtual time; `value` is absent where the line has a gap.
fn over_time(
    runs: &[RunResult],
    labels: &[String],
    value: impl Fn(&SeriesPoint) -> Option<f64>,
) -> Vec<Line> {
    let line = |(style, (run, label)): (usize, (&RunResult, &String))| Line {
        label: label.clone(),
        style,
        points: run
            .series
            .points
            .iter()
            .map(|point| (float(point.virtual_ns), value(point)))
            .collect(),
    };
    runs.iter().zip(labels).enumerate().map(line).collect()
}

fn greatest_x(lines: &[Line]) -> f64 {
    greatest(lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)))
}

fn greatest_y(lines: &[Line]) -> f64 {
    greatest(lines.iter().flat_map(|line| line.points.iter().filter_map(|point| point.1)))
}

fn has_points(lines: &[Line]) -> bool {
    lines.iter().any(|line| line.points.iter().any(|point| point.1.is_some()))
}

fn window_note(runs: &[RunResult]) -> String {
    let mut windows: Vec<u64> = runs.iter().map(|run| run.series.window_requests).collect();
    windows.sort_unstable();
    windows.dedup();
    match windows.as_slice() {
        [window] if *window > 0 => format!("one point per {} requests", count(*window)),
        _ => "one point per window of requests".to_owned(),
    }
}

/// Write amplification of each window over virtual time.
pub(super) fn waf_over_time(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    let lines = over_time(runs, labels, |point| (point.host_write_pages > 0).then_some(point.waf));
    let note = format!(
        "Flash pages programmed per page the host wrote, {}. A gap is a window without writes.",
        window_note(runs)
    );
    section(page, "Write amplification over time", &note, |page| {
        if !has_points(&lines) {
            nothing(page, "No window with writes was recorded.");
            return;
        }
        line_legend(page, labels);
        let plot = LinePlot {
            title: "Write amplification over virtual time".to_owned(),
            size: (FULL, HEIGHT),
            x: Axis::time_span("virtual time", greatest_x(&lines)),
            y: Axis::number("WAF", greatest_y(&lines)),
            lines,
        };
        plot.draw(page, |ns, waf| format!("WAF {} at {}", significant(waf, 4), duration(ns)));
    });
}

/// Mean latency of each window over virtual time, reads and writes.
pub(super) fn latency_over_time(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    let positive = |value: f64| (value > 0.0).then_some(value);
    let reads = over_time(runs, labels, |point| positive(point.read_mean_ns));
    let writes = over_time(runs, labels, |point| positive(point.write_mean_ns));
    let note = format!("Mean of each window, {}.", window_note(runs));
    let panels: Vec<(&str, Vec<Line>)> =
        [("Reads", reads), ("Writes", writes)].into_iter().filter(|(_, l)| has_points(l)).collect();
    section(page, "Latency over time", &note, |page| {
        if panels.is_empty() {
            nothing(page, "No window with reads or writes was recorded.");
            return;
        }
        line_legend(page, labels);
        let wide = panels.len() == 1;
        side_by_side(page, panels, |page, (name, lines)| {
            let plot = LinePlot {
                title: format!("Mean latency over virtual time: {name}"),
                size: panel_size(wide),
                x: Axis::time_span("virtual time", greatest_x(&lines)),
                y: Axis::time("mean latency", greatest_y(&lines)),
                lines,
            };
            page.element("h3", &[], name);
            plot.draw(page, |at, ns| format!("{} at {}", duration(ns), duration(at)));
        });
    });
}

/// Share of requests slower than a time, both axes logarithmic.
pub(super) fn latency_ccdf(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    let reads = distributions(runs, labels, |run| &run.latency_ccdf.read);
    let writes = distributions(runs, labels, |run| &run.latency_ccdf.write);
    let panels: Vec<(&str, Vec<Line>)> =
        [("Reads", reads), ("Writes", writes)].into_iter().filter(|(_, l)| has_points(l)).collect();
    let note = "Share of the requests that took longer than a time. Lower and further left is \
                better; both axes are logarithmic.";
    section(page, "Latency distribution", note, |page| {
        if panels.is_empty() {
            nothing(page, "No latency was recorded.");
            return;
        }
        line_legend(page, labels);
        // One pair of axes for both, so that reads and writes can be compared.
        let lines = || panels.iter().flat_map(|(_, lines)| lines);
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let x_min = least(&mut lines().flat_map(|line| line.points.iter().map(|point| point.0)));
        let x_max = greatest(lines().flat_map(|line| line.points.iter().map(|point| point.0)));
        let y_min =
            least(&mut lines().flat_map(|line| line.points.iter().filter_map(|point| point.1)));
        let (x, y) = (
            Axis::time_log("latency", x_min, x_max),
            Axis::share_log("share of requests slower", y_min),
        );
        let wide = panels.len() == 1;
        side_by_side(page, panels, |page, (name, lines)| {
            let plot = LinePlot {
                title: format!("Latency distribution: {name}"),
                size: panel_size(wide),
                x: x.clone(),
                y: y.clone(),
                lines,
            };
            page.element("h3", &[], name);
            plot.draw(page, |ns, slower| {
                format!("{} slower than {}", percent(slower), duration(ns))
            });
        });
    });
}

fn distributions(
    runs: &[RunResult],
    labels: &[String],
    of: fn(&RunResult) -> &Vec<CcdfPoint>,
) -> Vec<Line> {
    let line = |(style, (run, label)): (usize, (&RunResult, &String))| {
        // Nothing is slower than the slowest request, and a logarithm has no place for that.
        let drawn = |point: &&CcdfPoint| point.0 > 0 && point.1 > 0.0;
        let points = of(run).iter().filter(drawn).map(|p| (float(p.0), Some(p.1.min(1.0))));
        Line { label: label.clone(), style, points: points.collect() }
    };
    runs.iter().zip(labels).enumerate().map(line).collect()
}

fn panel_size(wide: bool) -> (f64, f64) {
    if wide { (FULL, HEIGHT) } else { (HALF, HALF_HEIGHT) }
}

/// Panels in two columns, or one panel over the whole width.
fn side_by_side<T>(page: &mut Markup, panels: Vec<T>, draw: impl Fn(&mut Markup, T)) {
    let class = if panels.len() == 1 { "panels single" } else { "panels" };
    page.within("div", &[("class", &class)], |page| {
        for panel in panels {
            page.within("div", &[("class", &"panel")], |page| draw(page, panel));
        }
    });
}

/// Superblocks by their share of valid slots at the end, one histogram per run.
pub(super) fn valid_histogram(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    let note = "Superblocks by the share of their slots that hold valid data, at the end of the \
                run. Garbage collection is cheap where superblocks stand on the left.";
    let numbered: Vec<(usize, (&RunResult, &String))> = runs
        .iter()
        .zip(labels)
        .enumerate()
        .filter(|(_, (run, _))| run.superblocks.valid_histogram.iter().any(|n| *n > 0))
        .collect();
    section(page, "Valid data per superblock", note, |page| {
        if numbered.is_empty() {
            nothing(page, "No superblock was recorded.");
            return;
        }
        let highest = greatest(numbered.iter().flat_map(|(_, (run, _))| shares(run)));
        let wide = numbered.len() == 1;
        let several = runs.len() > 1;
        side_by_side(page, numbered, |page, (style, (run, label))| {
            if several {
                page.element("h3", &[], label);
            }
            let plot = BarPlot {
                title: format!("Valid data per superblock: {label}"),
                size: panel_size(wide),
                x: Axis::share("valid slots", 1.0),
                y: Axis::share("superblocks", highest),
                style: style % STYLES,
                bars: histogram_bars(run),
            };
            plot.draw(page);
        });
    });
}

fn total(run: &RunResult) -> f64 {
    run.superblocks.valid_histogram.iter().map(|n| float(*n)).sum()
}

fn shares(run: &RunResult) -> impl Iterator<Item = f64> {
    let total = total(run);
    run.superblocks.valid_histogram.iter().map(move |n| share(float(*n), total))
}

fn histogram_bars(run: &RunResult) -> Vec<Bar> {
    let counts = &run.superblocks.valid_histogram;
    let bins = float(onefold_units::convert::u64_from(counts.len()));
    let edges = (0_u32..).map(|n| (f64::from(n) / bins, f64::from(n + 1) / bins));
    let bar = |((from, to), (n, height)): ((f64, f64), (&u64, f64))| Bar {
        from,
        to,
        height,
        tip: format!(
            "{} superblocks ({}) with {} to {} valid",
            count(*n),
            percent(height),
            percent(from),
            percent(to)
        ),
    };
    edges.zip(counts.iter().zip(shares(run))).map(bar).collect()
}
