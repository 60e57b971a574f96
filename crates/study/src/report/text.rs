//! A report as text.

use std::fmt::Write;

use super::data::{number, range_text};
use super::value::{place_name, size_name};
use super::{CheckData, Data, HeadlineData, Point, Report, ranking_tables};
use crate::file::{Check, Verdict};

/// All figures, each as one table per workload: policies down, sizes across; then averages, checks,
/// and a line of what a part of a study leaves out.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = report.ranking.as_ref().map_or_else(String::new, ranking_tables::text);
    for data in &report.figures {
        let unit = if data.figure.baseline.is_some() { "" } else { unit(data) };
        if !out.is_empty() {
            out.push('\n');
        }
        line(&mut out, &format!("{}{unit}", data.title()));
        if data.has_published() {
            line(&mut out, "  Lines `paper`: what was published.");
        }
        let mut start = 0;
        while let Some(first) = data.groups.get(start) {
            let groups = &data.groups[start..];
            let count = groups.iter().take_while(|group| group.workload == first.workload).count();
            table(&mut out, data, &groups[..count]);
            start += count;
        }
    }
    for data in &report.headlines {
        out.push('\n');
        headline(&mut out, data);
    }
    if !report.checks.is_empty() {
        out.push('\n');
        out.push_str(&checks(&report.checks));
    }
    if !report.left_out.is_nothing() {
        line(&mut out, &format!("\n{}", report.left_out));
    }
    out
}

/// Every check with what became of it, and the numbers that decided. What was not computed is counted
/// in the summary.
#[must_use]
pub fn checks(checks: &[CheckData]) -> String {
    let mut out = String::new();
    for data in checks {
        let Check { id, text, reason, .. } = &data.check;
        line(&mut out, &format!("{id} {}: {text}", data.summary()));
        if !reason.is_empty() {
            line(&mut out, &format!("  known to fail: {reason}"));
        }
        let computed = || data.cases.iter().filter(|case| case.verdict != Verdict::Missing);
        if computed().next().is_some() {
            line(&mut out, &format!("  {}:", data.title()));
        }
        for case in computed() {
            let at = place_name(&case.workload, case.size_bytes);
            line(&mut out, &format!("  {:12} {at}: {}", case.verdict.name(), case.numbers));
            for wrong in &case.wrong {
                line(&mut out, &format!("  {:12} not so: {wrong}", ""));
            }
        }
    }
    out
}

/// One line per baseline, sizes across.
fn headline(out: &mut String, data: &HeadlineData) {
    line(out, &data.title());
    if !data.headline.published.is_empty() {
        line(out, &format!("  published: {}", data.headline.published));
    }
    let names = || data.headline.baselines.iter().map(|name| name.chars().count());
    let width = names().max().unwrap_or(0);
    let mut head = format!("  {:width$}", "");
    let sizes = data.sizes.iter().map(|size| size_name(*size));
    for name in sizes.chain(["all", "of means"].map(str::to_owned)) {
        // Writing to a string cannot fail.
        let _ = write!(head, " {name:>12}");
    }
    line(out, &head);
    for versus in &data.versus {
        let mut row = format!("  {:width$}", versus.baseline);
        for ratios in versus.by_size.iter().chain([&versus.all]) {
            let _ = write!(row, " {:>12}", ratios.text());
        }
        let _ = write!(row, " {:>12}", versus.all.of_means_text());
        line(out, &format!("{row}  {}", versus.all.range_text()));
    }
}

fn unit(data: &Data) -> &'static str {
    if data.figure.metric.is_share() { " (%)" } else { "" }
}

fn table(out: &mut String, data: &Data, groups: &[super::Group]) {
    let Some(first) = groups.first() else { return };
    let names = data.policies.iter().chain(&data.bounds);
    let width = names.clone().map(|name| name.chars().count()).max().unwrap_or(0).max(8);
    line(out, &format!("\n  {}", first.workload));
    let cell = cell_width(data, groups);
    let mut head = format!("  {:width$}", "");
    for group in groups {
        // Writing to a string cannot fail.
        let _ = write!(head, " {:>cell$}", size_name(group.size_bytes));
    }
    line(out, &head);
    for (at, name) in names.enumerate() {
        let mut row = format!("  {name:width$}");
        for group in groups {
            let point = group.policies.iter().chain(&group.bounds).nth(at);
            let text = match point {
                Some(Point::Value(value)) => number(data, *value),
                Some(Point::Failed(_)) => "failed".to_owned(),
                Some(Point::Nothing) | None => "-".to_owned(),
            };
            let _ = write!(row, " {text:>cell$}");
        }
        line(out, &row);
        published_line(out, data, groups, (at, width, cell));
    }
    for failure in failures(data, groups) {
        line(out, &format!("  {failure}"));
    }
}

/// Width of a number: that of the longest range that was published, if there is one.
fn cell_width(data: &Data, groups: &[super::Group]) -> usize {
    let published = groups.iter().flat_map(|group| group.published.iter().flatten());
    published.map(|range| range_text(data, *range).chars().count()).max().unwrap_or(0).max(9)
}

/// What was published of the policy above, if anything was.
fn published_line(
    out: &mut String,
    data: &Data,
    groups: &[super::Group],
    (at, width, cell): (usize, usize, usize),
) {
    let of = |group: &super::Group| group.published.get(at).copied().flatten();
    if groups.iter().all(|group| of(group).is_none()) {
        return;
    }
    let mut row = format!("  {:width$}", "  paper");
    for group in groups {
        let text = of(group).map_or_else(String::new, |range| range_text(data, range));
        // Writing to a string cannot fail.
        let _ = write!(row, " {text:>cell$}");
    }
    line(out, &row);
}

/// Why points failed, each reason once.
pub(super) fn failures(data: &Data, groups: &[super::Group]) -> Vec<String> {
    let names = || data.policies.iter().chain(&data.bounds);
    let mut told = std::collections::BTreeSet::new();
    let mut lines = Vec::new();
    for group in groups {
        for (name, point) in names().zip(group.policies.iter().chain(&group.bounds)) {
            if let Point::Failed(reason) = point
                && told.insert((name, reason))
            {
                lines.push(format!("{}: {reason}", place_name(name, group.size_bytes)));
            }
        }
    }
    lines
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}
