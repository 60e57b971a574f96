//! The parts of the report that are text and tables.

use onefold_units::convert::float;

use super::markup::Markup;
use super::page;
use super::plot::line_swatch;
use crate::result::{Row, RunResult, bytes, count, rows, significant, trimmed, version};

/// A duration with the sign of micro.
pub(super) fn duration(ns: f64) -> String {
    crate::result::duration(ns).replace("us", "\u{b5}s")
}

/// Title, what ran, and the headline numbers of each run.
pub(super) fn header(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    page.within("header", &[], |page| {
        page.element("p", &[("class", &"kicker")], "Onefold simulation report");
        page.element("h1", &[], &page::title(runs));
        if runs.is_empty() {
            page.element("p", &[("class", &"empty")], "There is no run in this report.");
        }
    });
    page.within("div", &[("class", &"cards")], |page| {
        for (n, (run, label)) in runs.iter().zip(labels).enumerate() {
            card(page, n, run, label, runs.len() > 1);
        }
    });
}

fn card(page: &mut Markup, n: usize, run: &RunResult, label: &str, several: bool) {
    page.within("article", &[("class", &"card")], |page| {
        page.within("h2", &[], |title| {
            if several {
                line_swatch(title, n);
            }
            title.element("span", &[], label);
        });
        tiles(page, run);
        page.within("dl", &[], |list| {
            for (name, value) in facts(run) {
                list.element("dt", &[], name);
                list.element("dd", &[], &value);
            }
        });
        if run.partial {
            let text = "Partial: the run was interrupted. Every number describes the part before.";
            page.element("p", &[("class", &"warning")], text);
        }
        for warning in &run.warnings {
            page.element("p", &[("class", &"warning")], &format!("Warning: {warning}"));
        }
    });
}

fn tiles(page: &mut Markup, run: &RunResult) {
    let or_dash = |known: bool, text: String| if known { text } else { "-".to_owned() };
    let (read, write) = (&run.latency_ns.read, &run.latency_ns.write);
    let tiles = [
        ("WAF", or_dash(run.host.write_pages > 0, significant(run.waf, 4))),
        ("read mean", or_dash(read.count > 0, duration(read.mean))),
        ("read p99", or_dash(read.count > 0, duration(float(read.p99)))),
        ("write mean", or_dash(write.count > 0, duration(write.mean))),
        ("write p99", or_dash(write.count > 0, duration(float(write.p99)))),
    ];
    page.within("ul", &[("class", &"tiles")], |list| {
        for (name, value) in tiles {
            list.within("li", &[], |tile| {
                tile.element("span", &[("class", &"value")], &value);
                tile.element("span", &[("class", &"what")], name);
            });
        }
    });
}

/// What ran, in words.
fn facts(run: &RunResult) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Device", device(run))];
    match (&run.trace, &run.workload) {
        (Some(trace), None) => {
            let requests = count(trace.requests);
            let text = format!("{} ({}, {requests} requests)", trace.path, trace.format);
            facts.push(("Trace", text));
        }
        (_, workload) => facts.push(("Workload", workload.clone().unwrap_or_default())),
    }
    facts.push(("Prepared", preparation(run)));
    facts.push(("Seed", run.seed.to_string()));
    facts.push(("Onefold", version(run)));
    if !run.config_sha256.is_empty() {
        let short: String = run.config_sha256.chars().take(12).collect();
        facts.push(("Configuration", format!("SHA-256 {short}")));
    }
    facts
}

fn device(run: &RunResult) -> String {
    let mut text = run.device_name().to_owned();
    if run.device.raw_bytes > 0 {
        let (logical, raw) = (bytes(run.device.logical_bytes), bytes(run.device.raw_bytes));
        let piece = format!(", {logical} logical of {raw} flash");
        text.push_str(&piece);
    }
    if !run.ftl.victim.is_empty() {
        let piece = format!(", {} garbage collection", run.ftl.victim);
        text.push_str(&piece);
    }
    text
}

fn preparation(run: &RunResult) -> String {
    run.precondition.as_ref().map_or_else(
        || "fresh device".to_owned(),
        |done| {
            let fill = trimmed(done.fill, 3);
            let overwrites = trimmed(done.overwrite_drive_writes, 3);
            format!("filled x {fill}, overwritten x {overwrites}")
        },
    )
}

/// How wide the columns of a table are.
pub(super) fn table_class(columns: usize) -> &'static str {
    match columns {
        0 | 1 => "few",
        2 => "pair",
        3..=5 => "some",
        _ => "many",
    }
}

/// Every number side by side.
pub(super) fn summary(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    if runs.is_empty() {
        return;
    }
    page.within("section", &[], |page| {
        page.element("h2", &[], "Summary");
        let note = "Pages are 4 KiB, MB are 10^6 bytes. Times, IOPS and throughput are virtual; \
                    only CPU time depends on the machine that ran the simulation.";
        page.element("p", &[("class", &"note")], note);
        page.open("div", &[("class", &"scroll")]);
        page.open("table", &[("class", &table_class(runs.len()))]);
        page.within("thead", &[], |head| {
            head.within("tr", &[], |row| {
                row.element("th", &[("scope", &"col")], "");
                for label in labels {
                    row.element("th", &[("scope", &"col"), ("class", &"number")], label);
                }
            });
        });
        page.open("tbody", &[]);
        let mut group = "";
        for row in rows(runs) {
            summary_row(page, &row, row.group != group);
            group = row.group;
        }
        page.close();
        page.close();
        page.close();
    });
}

fn summary_row(page: &mut Markup, row: &Row, first_of_group: bool) {
    let mut class =
        if row.group == "setup" || row.group == "origin" { "words" } else { "numbers" }.to_owned();
    if first_of_group {
        class.push_str(" first");
    }
    page.within("tr", &[("class", &class)], |cells| {
        cells.element("th", &[("scope", &"row")], &row.label);
        for value in &row.values {
            let value = value.replace(" us", " \u{b5}s");
            cells.element("td", &[("class", &"number")], &value);
        }
    });
}

/// The full configuration of each run, folded.
pub(super) fn details(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    if runs.is_empty() {
        return;
    }
    page.within("section", &[], |page| {
        page.element("h2", &[], "Configuration");
        for (run, label) in runs.iter().zip(labels) {
            page.within("details", &[], |page| {
                page.element("summary", &[], &format!("{label}: complete configuration"));
                // A value read from JSON always has a JSON form.
                let text = serde_json::to_string_pretty(&run.config).unwrap_or_default();
                page.element("pre", &[], &text);
                for line in provenance(run) {
                    page.element("p", &[("class", &"hash")], &line);
                }
            });
        }
    });
}

/// What pins the run down, in full.
fn provenance(run: &RunResult) -> Vec<String> {
    let mut lines = vec![format!("seed {}", run.seed)];
    if !run.onefold.commit.is_empty() {
        lines.push(format!("commit {}", run.onefold.commit));
    }
    if !run.config_sha256.is_empty() {
        lines.push(format!("configuration SHA-256 {}", run.config_sha256));
    }
    if let Some(trace) = run.trace.as_ref().filter(|trace| !trace.sha256.is_empty()) {
        lines.push(format!("trace SHA-256 {}", trace.sha256));
    }
    lines
}
