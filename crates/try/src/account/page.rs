//! The account as a page: the flow of bytes as pictures, then the numbers as tables.

use onefold_sim::report::plot::{FlowColumn, FlowPlot, Segment, hatch_swatch};
use onefold_sim::report::{Markup, hatch_of, html};
use onefold_sim::result::{bytes, count, percent, significant};
use onefold_units::convert::float;

use super::table::cells;
use super::{Account, DriveCost, FileSystem};

/// Width of a picture.
const WIDTH: f64 = 1040.0;
/// Height of the tallest stack of all pictures: widths can be compared between them.
const TALLEST: f64 = 300.0;
/// Files with blocks of their own.
const FILES: usize = 4;
/// Files in the table.
const LISTED: usize = 10;
/// Hatches of what a file system writes; a file has that of what the user asked for.
const OWNERS: [(&str, usize); 4] =
    [("data", 0), ("journal", 14), ("metadata", 19), ("unknown", 18)];
/// Causes that a volume has of what its host wrote.
const FROM_HOST: [&str; 2] = ["user", "journal"];
/// Hatches of what a volume adds, from this one on.
const ADDED: usize = 11;

/// `power_cuts`: what was found about them, line by line.
pub(super) fn of(account: &Account, power_cuts: &[String]) -> String {
    html(&account.title(), |page| {
        page.within("header", &[], |page| {
            page.element("p", &[("class", &"kicker")], "Onefold account");
            page.element("h1", &[], &account.title());
        });
        budgets(page, account);
        cuts(page, power_cuts);
        flows(page, account);
        drives(page, account);
        files(page, account);
    })
}

fn section(page: &mut Markup, title: &str, note: &str, content: impl FnOnce(&mut Markup)) {
    page.within("section", &[("class", &"figure")], |page| {
        page.element("h2", &[], title);
        page.element("p", &[("class", &"note")], note);
        content(page);
    });
}

fn cuts(page: &mut Markup, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    section(page, "Power cuts", "The states that the disk can be in afterwards.", |page| {
        page.within("ul", &[("class", &"verdicts")], |list| {
            for line in lines {
                list.element("li", &[("class", &"")], line);
            }
        });
    });
}

fn budgets(page: &mut Markup, account: &Account) {
    if account.budgets.is_empty() {
        return;
    }
    section(page, "Budgets", "What was to hold, and what was found.", |page| {
        page.within("ul", &[("class", &"verdicts")], |list| {
            for verdict in &account.budgets {
                let class = if verdict.holds { "" } else { "warning" };
                list.element("li", &[("class", &class)], &verdict.to_string());
            }
        });
    });
}

/// A picture for each drive, and one without drives if there are none.
fn flows(page: &mut Markup, account: &Account) {
    let note = "Bytes as widths, the same scale in every picture. A band is what one hop hands to the next; blocks \
                without a band are what a hop adds. Point at a block to see its size.";
    section(page, "Where the bytes come from", note, |page| {
        let first: Vec<FlowColumn> = above(account);
        let with =
            |drive: &DriveCost| first.iter().cloned().chain(below(drive)).collect::<Vec<_>>();
        let mut pictures: Vec<(String, Vec<FlowColumn>)> =
            account.drives.iter().map(|drive| (drive.label(), with(drive))).collect();
        if pictures.is_empty() {
            pictures.push(("no drive".to_owned(), first.clone()));
        }
        let sum = |column: &FlowColumn| column.blocks.iter().map(|block| block.length).sum::<f64>();
        let columns = pictures.iter().flat_map(|(_, columns)| columns);
        let most = columns.map(sum).fold(0.0, f64::max);
        for (label, columns) in pictures {
            if columns.is_empty() {
                page.element("p", &[("class", &"empty")], "Nothing was written.");
                continue;
            }
            page.element("h3", &[], &label);
            let title = format!("Bytes from the program to {label}");
            FlowPlot { title, width: WIDTH, scale: TALLEST / most.max(1.0), columns }.draw(page);
        }
    });
}

/// The hops that all drives have: the program and the file system.
fn above(account: &Account) -> Vec<FlowColumn> {
    let mut columns = Vec::new();
    if let Some(sum) = account.program {
        let block = block("written", 7, sum, sum);
        columns.push(FlowColumn {
            label: "program".to_owned(),
            note: bytes(sum),
            blocks: vec![block],
            carried: 0,
        });
    }
    if let Some(fs) = &account.file_system {
        columns.push(FlowColumn {
            label: match fs.systems.first() {
                Some(system) => format!("file system ({system})"),
                None => "disk".to_owned(),
            },
            note: hop(fs.write_bytes, account.program),
            blocks: owned(fs),
            carried: fs.files.len().min(FILES) + 1,
        });
    }
    columns
}

/// What the file system wrote: the files that cost most, the others, and what is no file.
fn owned(fs: &FileSystem) -> Vec<Segment> {
    let all = fs.write_bytes;
    let shown = &fs.files[..fs.files.len().min(FILES)];
    let mut blocks: Vec<Segment> = shown
        .iter()
        .enumerate()
        .map(|(n, file)| block(&file.path, striped(n), file.write_bytes, all))
        .collect();
    let named: u64 = shown.iter().map(|file| file.write_bytes).sum();
    let others = fs.by.data.saturating_sub(named);
    let word = if shown.is_empty() { "data of files" } else { "other files" };
    blocks.push(block(word, striped(shown.len()), others, all));
    for ((name, bytes), (_, hatch)) in fs.by.parts().into_iter().zip(OWNERS).skip(1) {
        blocks.push(block(name, hatch, bytes, all));
    }
    blocks
}

/// Files in turn, so that one can be told from the next.
const fn striped(n: usize) -> usize {
    if n.is_multiple_of(2) { 0 } else { 10 }
}

/// The hops of a drive: the volume, if there is one, and flash.
fn below(drive: &DriveCost) -> Vec<FlowColumn> {
    let mut columns = Vec::new();
    let mut sent = drive.host.write_pages * 4096;
    if let Some(volume) = &drive.volume {
        let all: u64 = volume.sent_pages.values().map(|pages| pages * 4096).sum();
        let mut parts: Vec<_> =
            volume.sent_pages.iter().map(|(cause, pages)| (cause.clone(), pages * 4096)).collect();
        parts.retain(|(_, bytes)| *bytes > 0);
        // What the host wrote comes first, where the band ends.
        parts
            .sort_by_key(|(cause, bytes)| (!FROM_HOST.contains(&cause.as_str()), u64::MAX - bytes));
        let carried = parts.iter().filter(|(cause, _)| FROM_HOST.contains(&cause.as_str())).count();
        let hatch = |n: usize| if n < carried { n * 10 } else { ADDED + n - carried };
        let block =
            |(n, (cause, bytes)): (usize, &(String, u64))| block(cause, hatch(n), *bytes, all);
        columns.push(FlowColumn {
            label: "volume".to_owned(),
            note: hop(all, Some(sent)),
            blocks: parts.iter().enumerate().map(block).collect(),
            carried,
        });
        sent = all;
    }
    let all = drive.nand_bytes;
    let mut causes = drive.causes();
    causes.sort_by_key(|(cause, _)| cause != "user");
    columns.push(FlowColumn {
        label: format!("flash of {}", drive.name),
        note: hop(all, Some(sent)),
        carried: usize::from(causes.first().is_some_and(|(cause, _)| cause == "user")),
        blocks: causes
            .iter()
            .map(|(cause, bytes)| block(cause, hatch_of(cause), *bytes, all))
            .collect(),
    });
    columns
}

fn block(label: &str, hatch: usize, sum: u64, all: u64) -> Segment {
    let share = percent(float(sum) / float(all.max(1)));
    let label = format!("{label} {}", bytes(sum));
    Segment { tip: format!("{label} ({share})"), label, hatch, length: float(sum) }
}

/// Bytes, and how many there are for each of the hop before.
fn hop(sum: u64, before: Option<u64>) -> String {
    match before.filter(|before| *before > 0) {
        Some(before) => format!("{}, x {}", bytes(sum), significant(float(sum) / float(before), 3)),
        None => bytes(sum),
    }
}

/// A sentence.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A table with a head; the first column names the row.
fn table(page: &mut Markup, head: &[&str], rows: &[Vec<String>]) {
    page.within("div", &[("class", &"scroll")], |page| {
        page.within("table", &[], |table| {
            table.within("thead", &[], |head_row| {
                head_row.within("tr", &[], |row| {
                    for (n, name) in head.iter().enumerate() {
                        let class = if n == 0 { "" } else { "number" };
                        row.element("th", &[("scope", &"col"), ("class", &class)], name);
                    }
                });
            });
            table.within("tbody", &[], |body| {
                for cells in rows {
                    body.within("tr", &[], |row| {
                        for (n, cell) in cells.iter().enumerate() {
                            if n == 0 {
                                row.element("th", &[("scope", &"row")], cell);
                            } else {
                                row.element("td", &[("class", &"number")], cell);
                            }
                        }
                    });
                }
            });
        });
    });
}

fn drives(page: &mut Markup, account: &Account) {
    if account.drives.is_empty() {
        return;
    }
    let note = format!(
        "{}. The recording was replayed by what its requests waited for. {}.",
        capital(&account.aged().unwrap_or_default()),
        capital(&account.lives())
    );
    let head = [
        "drive",
        "programmed",
        "WAF",
        "write p50",
        "write p99",
        "write max",
        "flush p50",
        "flush p99",
        "flush max",
        "life",
    ];
    let row = |drive: &DriveCost| {
        let cells = cells(drive).into_iter().map(|cell| cell.replace(" us", " \u{b5}s"));
        [drive.label(), bytes(drive.nand_bytes)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    section(page, "Drives", &note, |page| {
        table(page, &head, &account.drives.iter().map(row).collect::<Vec<_>>());
        for doubt in account.doubts() {
            page.element("p", &[("class", &"warning")], &doubt);
        }
    });
}

fn files(page: &mut Markup, account: &Account) {
    let Some(fs) = &account.file_system else { return };
    let note = format!(
        "{} writes, {} of them with FUA, and {} flushes. Files are known by {} looks while the program ran; what no look \
         knows is unknown.",
        count(fs.write_requests),
        count(fs.fua_requests),
        count(fs.flush_requests),
        count(fs.looks)
    );
    section(page, "Files that cost most", &note, |page| {
        page.within("ul", &[("class", &"legend")], |list| {
            for ((name, sum), (_, hatch)) in fs.by.parts().into_iter().zip(OWNERS) {
                list.within("li", &[], |item| {
                    hatch_swatch(item, hatch);
                    item.element("span", &[], &format!("{name} {}", bytes(sum)));
                });
            }
        });
        let row = |file: &super::FileCost| {
            let share = percent(float(file.write_bytes) / float(fs.write_bytes.max(1)));
            vec![file.path.clone(), bytes(file.write_bytes), share, count(file.write_requests)]
        };
        let rows: Vec<_> = fs.files.iter().take(LISTED).map(row).collect();
        table(page, &["file", "written", "share", "writes"], &rows);
        for remark in &fs.remarks {
            page.element("p", &[("class", &"warning")], remark);
        }
    });
}
