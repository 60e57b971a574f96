//! Rankings and means along axes as text and as HTML.

use std::fmt::Write;

use onefold_sim::report::Markup;
use onefold_sim::report::plot::{Axis, Group as Bars, GroupedPlot, Level};

use super::line_plots::HALF;
use super::ranking::{Marginal, Mean, Ranking, highest, shown};
use crate::file::Metric;

/// Head and rows of a table: texts on the left, numbers on the right.
struct Lines {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Columns that are texts.
    texts: usize,
}

fn title(metric: Metric) -> String {
    let unit = match metric {
        Metric::Bandwidth => " (MB/s)",
        _ if metric.is_share() => " (%)",
        _ => "",
    };
    format!("{}{unit}", metric.name())
}

fn cell(metric: Metric, mean: Option<&Mean>) -> String {
    mean.map_or_else(|| "-".to_owned(), |mean| shown(metric, mean))
}

impl Lines {
    fn of_points(ranking: &Ranking) -> Self {
        let alone = ranking.axes.is_empty();
        let mut head = if alone { vec!["point".to_owned()] } else { ranking.axes.clone() };
        let texts = head.len();
        head.extend(ranking.metrics.iter().map(|metric| title(*metric)));
        let tells_apart = ranking.best_only && ranking.has_intervals();
        if tells_apart {
            head.push("not told apart from".to_owned());
        }
        let rows = ranking.points.iter().map(|point| {
            let on = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            let mut row: Vec<String> =
                if alone { vec![point.label.clone()] } else { point.axes.iter().map(on).collect() };
            if point.error.is_some() {
                row.extend(ranking.metrics.iter().map(|_| "failed".to_owned()));
            } else {
                let numbers = ranking.metrics.iter().zip(&point.numbers);
                row.extend(numbers.map(|(metric, mean)| cell(*metric, mean.as_ref())));
            }
            if tells_apart {
                let others = point.not_told_apart.join("; ");
                row.push(if others.is_empty() { "-".to_owned() } else { others });
            }
            row
        });
        Self { head, rows: rows.collect(), texts }
    }

    fn of_marginal(marginal: &Marginal, metrics: &[Metric]) -> Self {
        let mut head = vec![format!("by {}", marginal.axis), "points".to_owned()];
        head.extend(metrics.iter().map(|metric| title(*metric)));
        let rows = marginal.values.iter().map(|value| {
            let numbers = metrics.iter().zip(&value.numbers);
            let numbers = numbers.map(|(metric, mean)| cell(*metric, mean.as_ref()));
            [value.value.clone(), value.points.to_string()].into_iter().chain(numbers).collect()
        });
        Self { head, rows: rows.collect(), texts: 1 }
    }

    fn text(&self) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |at: usize| lines().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut out = String::new();
        for line in lines() {
            let cell = |(at, text): (usize, &String)| {
                let pad = " ".repeat(widths[at] - text.chars().count());
                if at < self.texts { format!("{text}{pad}") } else { format!("{pad}{text}") }
            };
            let cells: Vec<String> = line.iter().enumerate().map(cell).collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }

    fn html(&self, page: &mut Markup) {
        let class = |at: usize| if at < self.texts { "short" } else { "number short" };
        page.within("div", &[("class", &"scroll")], |page| {
            page.within("table", &[("class", &"many")], |table| {
                table.within("thead", &[], |head| {
                    head.within("tr", &[], |row| {
                        for (at, name) in self.head.iter().enumerate() {
                            row.element("th", &[("scope", &"col"), ("class", &class(at))], name);
                        }
                    });
                });
                table.within("tbody", &[], |body| {
                    for line in &self.rows {
                        body.within("tr", &[("class", &"numbers")], |row| {
                            for (at, text) in line.iter().enumerate() {
                                row.element("td", &[("class", &class(at))], text);
                            }
                        });
                    }
                });
            });
        });
    }
}

/// What the points are sorted by.
fn caption(ranking: &Ranking) -> Option<String> {
    let metric = ranking.sorted_by?;
    let order = if metric.is_gain() { "highest" } else { "lowest" };
    Some(if ranking.best_only {
        let chance =
            if ranking.has_intervals() { "" } else { " (several seeds would tell it from chance)" };
        format!("The {order} {} of each load{chance}", metric.name())
    } else {
        format!("Each load by {}, {order} first", metric.name())
    })
}

/// Every point, then means along axes, then why points failed.
pub(super) fn text(ranking: &Ranking) -> String {
    let mut out = caption(ranking).map_or_else(String::new, |caption| caption + "\n\n");
    out += &Lines::of_points(ranking).text();
    for marginal in &ranking.marginals {
        out.push('\n');
        out += &Lines::of_marginal(marginal, &ranking.metrics).text();
    }
    for note in uneven(ranking).map(str::to_owned).into_iter().chain(warned(ranking)) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{note}");
    }
    for (label, error) in failures(ranking) {
        let _ = writeln!(out, "\n{label}: {error}");
    }
    out
}

/// Means along an axis are not comparable if points are missing.
fn uneven(ranking: &Ranking) -> Option<&'static str> {
    let is_uneven = |marginal: &Marginal| {
        let mut counts = marginal.values.iter().map(|value| value.points);
        let first = counts.next();
        counts.any(|count| Some(count) != first)
    };
    ranking.marginals.iter().any(is_uneven).then_some(
        "Values with fewer points lack some of the others' points: compare these means with care.",
    )
}

/// What speaks against the numbers of some points.
fn warned(ranking: &Ranking) -> Option<String> {
    let with = || ranking.points.iter().filter(|point| !point.warnings.is_empty());
    let first = with().next()?;
    Some(format!(
        "{} of {} points have warnings (column `warnings` of the results), such as {}, {}: {}",
        with().count(),
        ranking.points.len(),
        first.workload,
        first.label,
        first.warnings.join("; ")
    ))
}

/// Each reason once, with the first point that met it.
fn failures(ranking: &Ranking) -> Vec<(String, &str)> {
    let mut told: Vec<(String, &str)> = Vec::new();
    for point in &ranking.points {
        if let Some(error) = &point.error
            && !told.iter().any(|(_, other)| other == error)
        {
            told.push((format!("{}, {}", point.workload, point.label), error));
        }
    }
    told
}

/// The same on a page, with a plot for each axis and number.
pub(super) fn html(page: &mut Markup, ranking: &Ranking) {
    page.within("section", &[("class", &"figure")], |page| {
        let caption = caption(ranking).unwrap_or_else(|| "All points".to_owned());
        page.element("h2", &[], &caption);
        Lines::of_points(ranking).html(page);
        if let Some(note) = warned(ranking) {
            page.element("p", &[("class", &"note")], &note);
        }
        for (label, error) in failures(ranking) {
            page.element("p", &[("class", &"note")], &format!("{label}: {error}"));
        }
    });
    for marginal in &ranking.marginals {
        page.within("section", &[("class", &"figure")], |page| {
            page.element("h2", &[], &format!("By {}", marginal.axis));
            let uneven = uneven(ranking).unwrap_or_default();
            let note = format!("Means over all points with a value. {uneven}");
            page.element("p", &[("class", &"note")], note.trim_end());
            page.within("div", &[("class", &"panels")], |page| {
                for (at, metric) in ranking.metrics.iter().enumerate() {
                    page.within("div", &[("class", &"panel")], |page| {
                        page.element("h3", &[], metric.title());
                        plot(page, marginal, (at, *metric));
                    });
                }
            });
            Lines::of_marginal(marginal, &ranking.metrics).html(page);
        });
    }
}

fn plot(page: &mut Markup, marginal: &Marginal, (at, metric): (usize, Metric)) {
    let highest = highest(marginal, at);
    let y = if metric.is_share() {
        Axis::share(metric.title(), highest)
    } else if metric.is_time() {
        Axis::time(metric.title(), highest)
    } else {
        Axis::number(metric.title(), highest)
    };
    let bars = |value: &super::ranking::MarginalValue| Bars {
        label: value.value.clone(),
        bars: vec![value.numbers[at].map(|mean| Level {
            series: 0,
            height: mean.mean,
            tip: format!("{}: {}", value.value, shown(metric, &mean)),
        })],
        outlines: Vec::new(),
        levels: Vec::new(),
    };
    let plot = GroupedPlot {
        title: format!("{} by {}", metric.title(), marginal.axis),
        size: HALF,
        x_title: marginal.axis.clone(),
        y,
        reference: None,
        groups: marginal.values.iter().map(bars).collect(),
    };
    plot.draw(page);
}
