//! The account as tables for people.

use std::fmt::Write;

use onefold_sim::result::{bytes, count, duration, significant};
use onefold_units::convert::float;

use super::budget::days;
use super::{Account, DriveCost, FileSystem};

/// Files that are printed.
const FILES: usize = 10;
/// Causes that are printed of a hop.
const CAUSES: usize = 4;

/// How the cells of a column stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

pub(super) fn of(account: &Account) -> String {
    let mut text = hops(account);
    if !account.drives.is_empty() {
        text.push('\n');
        text += &drives(account);
    }
    if let Some(fs) = &account.file_system
        && !fs.files.is_empty()
    {
        text.push('\n');
        text += &files(fs);
    }
    let notes = notes(account);
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    text
}

/// A row for each hop.
fn hops(account: &Account) -> String {
    let base = account.base();
    let row = |name: &str, sum: u64, most: String| {
        let factor = significant(float(sum) / float(base.max(1)), 3);
        vec![name.to_owned(), bytes(sum), if base == 0 { "-".to_owned() } else { factor }, most]
    };
    let per = if account.program.is_some() { "per byte" } else { "per byte sent" };
    let mut rows = vec![["", "bytes", per, "most of it"].map(str::to_owned).to_vec()];
    rows.extend(account.program.map(|sum| row("program", sum, String::new())));
    if let Some(fs) = &account.file_system {
        let parts = fs.by.parts().map(|(name, bytes)| (name.to_owned(), bytes));
        let requests = format!(
            "{}; {} writes, {} with FUA, {} flushes",
            most(&parts),
            count(fs.write_requests),
            count(fs.fua_requests),
            count(fs.flush_requests)
        );
        rows.push(row("file system", fs.write_bytes, requests));
    }
    for drive in &account.drives {
        if let Some(volume) = &drive.volume {
            let sent: Vec<_> =
                volume.sent_pages.iter().map(|(c, n)| (c.clone(), n * 4096)).collect();
            let sum = sent.iter().map(|(_, bytes)| bytes).sum();
            rows.push(row(&format!("volume on {}", drive.name), sum, most(&sent)));
        }
        rows.push(row(&drive.label(), drive.nand_bytes, most(&drive.causes())));
    }
    aligned(&rows, &[Align::Left, Align::Right, Align::Right, Align::Left])
}

/// The largest parts, in words.
fn most(parts: &[(String, u64)]) -> String {
    let mut parts: Vec<_> = parts.iter().filter(|(_, bytes)| *bytes > 0).collect();
    parts.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    let words = parts.iter().take(CAUSES).map(|(name, sum)| format!("{name} {}", bytes(*sum)));
    words.collect::<Vec<_>>().join(", ")
}

fn drives(account: &Account) -> String {
    let head = ["drive", "WAF", "write p50", "p99", "max", "flush p50", "p99", "max", "life"];
    let row = |drive: &DriveCost| [vec![drive.label()], cells(drive)].concat();
    let head = head.map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(head).chain(account.drives.iter().map(row)).collect();
    let mut align = [Align::Right; 9];
    align[0] = Align::Left;
    aligned(&rows, &align)
}

/// WAF; p50, p99 and longest time of writes, then of flushes; life of a drive. "-" where there is none.
pub(super) fn cells(drive: &DriveCost) -> Vec<String> {
    let none = || "-".to_owned();
    let time = |count: u64, ns: u64| if count == 0 { none() } else { duration(float(ns)) };
    let waf = if drive.host.write_pages == 0 { none() } else { significant(drive.waf, 3) };
    let mut cells = vec![waf];
    for all in [&drive.latency_ns.write, &drive.latency_ns.flush] {
        cells.extend([all.p50, all.p99, all.max].map(|ns| time(all.count, ns)));
    }
    cells.push(drive.life.days.map_or_else(none, days));
    cells
}

/// The files that cost most.
fn files(fs: &FileSystem) -> String {
    let head = ["bytes", "writes", "file"].map(str::to_owned).to_vec();
    let row = |file: &super::FileCost| {
        vec![bytes(file.write_bytes), count(file.write_requests), file.path.clone()]
    };
    let rows: Vec<_> = std::iter::once(head).chain(fs.files.iter().take(FILES).map(row)).collect();
    let mut text = aligned(&rows, &[Align::Right, Align::Right, Align::Left]);
    if let Some(more) = fs.files_count.checked_sub(10).filter(|more| *more > 0) {
        // Writing to a string cannot fail.
        _ = writeln!(text, "and {} files more", count(more));
    }
    text
}

/// What a reader has to know, and the budgets.
fn notes(account: &Account) -> Vec<String> {
    let mut notes: Vec<String> = account.aged().into_iter().collect();
    if account.drives.iter().any(|drive| drive.life.days.is_some()) {
        notes.push(account.lives());
    }
    notes.extend(account.doubts());
    let remarks = account.file_system.iter().flat_map(|fs| &fs.remarks);
    notes.extend(remarks.map(|remark| format!("files: {remark}")));
    notes.extend(account.budgets.iter().map(ToString::to_string));
    notes
}

impl Account {
    /// What factors divide by: bytes of the program, else of the file system.
    pub(super) fn base(&self) -> u64 {
        let sent = self.file_system.as_ref().map_or(0, |fs| fs.write_bytes);
        self.program.unwrap_or(sent)
    }
}

/// Rows in columns that are as wide as their widest cell.
fn aligned(rows: &[Vec<String>], align: &[Align]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..align.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).zip(align).map(|((cell, width), align)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
