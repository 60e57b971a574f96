//! Figures as tables of text.

use std::fmt::Write;

use onefold_config::size_text;

use super::html::number;
use super::{Data, Point};

/// All figures, each as one table per workload: policies down, sizes across.
#[must_use]
pub fn text(figures: &[Data]) -> String {
    let mut out = String::new();
    for data in figures {
        let unit = if data.figure.baseline.is_some() { "" } else { unit(data) };
        if !out.is_empty() {
            out.push('\n');
        }
        line(&mut out, &format!("{}{unit}", data.title()));
        let mut start = 0;
        while let Some(first) = data.groups.get(start) {
            let groups = &data.groups[start..];
            let count = groups.iter().take_while(|group| group.workload == first.workload).count();
            table(&mut out, data, &groups[..count]);
            start += count;
        }
    }
    out
}

const fn unit(data: &Data) -> &'static str {
    if data.figure.metric.is_share() { " (%)" } else { "" }
}

fn table(out: &mut String, data: &Data, groups: &[super::Group]) {
    let Some(first) = groups.first() else { return };
    let names = data.policies.iter().chain(&data.bounds);
    let width = names.clone().map(|name| name.chars().count()).max().unwrap_or(0).max(8);
    line(out, &format!("\n  {}", first.workload));
    let mut head = format!("  {:width$}", "");
    for group in groups {
        // Writing to a string cannot fail.
        let _ = write!(head, " {:>9}", size_text(group.size_bytes));
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
            let _ = write!(row, " {text:>9}");
        }
        line(out, &row);
    }
    for failure in failures(data, groups) {
        line(out, &format!("  {failure}"));
    }
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
                lines.push(format!("{name}, {}: {reason}", size_text(group.size_bytes)));
            }
        }
    }
    lines
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}
