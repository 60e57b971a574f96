//! The side-by-side table for a terminal.

use super::rows::{Row, rows};
use super::{RunResult, labels};

/// Blanks between columns.
const GAP: &str = "  ";

/// One or several runs side by side: a row per number, a column per run, units beside the values.
/// Ends with a line break; empty without runs.
#[must_use]
pub fn table(runs: &[RunResult]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let rows = printable(rows(runs));
    let head = if runs.len() > 1 { labels(runs) } else { Vec::new() };
    let label_width = rows.iter().map(|row| width(&row.label)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..runs.len()).map(|n| column_width(&rows, &head, n)).collect();

    let mut text = String::new();
    if !head.is_empty() {
        push_line(&mut text, "", label_width, &head, &widths);
    }
    let mut group = rows.first().map_or("", |row| row.group);
    for row in &rows {
        if row.group != group {
            text.push('\n');
            group = row.group;
        }
        push_line(&mut text, &row.label, label_width, &row.values, &widths);
    }
    for (n, run) in (1..).zip(runs) {
        for warning in &run.warnings {
            let of_run = if runs.len() > 1 { format!(" (run {n})") } else { String::new() };
            let piece = format!("\nwarning{of_run}: {}\n", printable_text(warning));
            text.push_str(&piece);
        }
    }
    text
}

/// Names come from files: control characters would move the cursor of a terminal.
fn printable(rows: Vec<Row>) -> Vec<Row> {
    let clean = |row: Row| Row {
        label: printable_text(&row.label),
        values: row.values.iter().map(|value| printable_text(value)).collect(),
        ..row
    };
    rows.into_iter().map(clean).collect()
}

fn printable_text(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn column_width(rows: &[Row], head: &[String], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.values.get(column));
    cells.chain(head.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
}

fn push_line(
    text: &mut String,
    label: &str,
    label_width: usize,
    cells: &[String],
    widths: &[usize],
) {
    let piece = format!("{label:label_width$}");
    text.push_str(&piece);
    for (cell, width) in cells.iter().zip(widths) {
        let piece = format!("{GAP}{cell:>width$}");
        text.push_str(&piece);
    }
    text.push('\n');
}
