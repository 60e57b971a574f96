//! Tables that take a run apart: latency by what requests waited for, and tenants.

use onefold_units::convert::float;

use super::markup::Markup;
use super::sections::duration;
use crate::result::{DelaySummaries, LatencySummary, RunResult, count, percent, share};

/// One table row: texts on the left, then numbers.
type Line = (Vec<String>, Vec<String>);

/// Latency by operation and by what the requests waited for; nothing if no run recorded it.
pub(super) fn delays(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    let mut lines = Vec::new();
    for (run, label) in runs.iter().zip(labels) {
        let by_delay = &run.latency_by_delay;
        for (operation, delays) in [("read", &by_delay.read), ("write", &by_delay.write)] {
            delay_lines(&mut lines, label, operation, delays);
        }
    }
    let note = "Requests by what they waited for: nothing, other requests of the host, or background \
                work (garbage collection, metadata, buffer flushes).";
    let texts = ["run", "operation", "waited for"];
    let numbers = ["requests", "share", "mean", "p99", "p99.9", "max"];
    table(page, "Latency by cause of delay", note, &texts, &numbers, lines);
}

fn delay_lines(lines: &mut Vec<Line>, label: &str, operation: &str, delays: &DelaySummaries) {
    let named =
        [("nothing", &delays.none), ("host", &delays.host), ("background", &delays.background)];
    let total: f64 = named.iter().map(|(_, latency)| float(latency.count)).sum();
    for (cause, latency) in named.into_iter().filter(|(_, latency)| latency.count > 0) {
        let texts = [label, operation, cause].map(str::to_owned).to_vec();
        let mut numbers = vec![count(latency.count), percent(share(float(latency.count), total))];
        numbers.push(duration(latency.mean));
        numbers.extend([latency.p99, latency.p999, latency.max].map(|ns| duration(float(ns))));
        lines.push((texts, numbers));
    }
}

/// What each tenant did and how long it waited; nothing without tenants.
pub(super) fn tenants(page: &mut Markup, runs: &[RunResult], labels: &[String]) {
    let mut lines = Vec::new();
    for (run, label) in runs.iter().zip(labels) {
        for tenant in &run.tenants {
            let texts = vec![label.clone(), tenant.name.clone()];
            let mut numbers = vec![count(tenant.host.requests()), count(tenant.host.write_pages)];
            numbers.extend(mean_and_p99(&tenant.latency_ns.read));
            numbers.extend(mean_and_p99(&tenant.latency_ns.write));
            lines.push((texts, numbers));
        }
    }
    let note = "Tenants share the device; each has its own counters and latencies.";
    let numbers = ["requests", "pages written", "read mean", "read p99", "write mean", "write p99"];
    table(page, "Tenants", note, &["run", "tenant"], &numbers, lines);
}

fn mean_and_p99(latency: &LatencySummary) -> [String; 2] {
    if latency.count == 0 {
        return ["-".to_owned(), "-".to_owned()];
    }
    [duration(latency.mean), duration(float(latency.p99))]
}

/// A section with one table; nothing without lines.
fn table(
    page: &mut Markup,
    title: &str,
    note: &str,
    texts: &[&str],
    numbers: &[&str],
    lines: Vec<Line>,
) {
    if lines.is_empty() {
        return;
    }
    page.within("section", &[], |page| {
        page.element("h2", &[], title);
        page.element("p", &[("class", &"note")], note);
        page.open("div", &[("class", &"scroll")]);
        page.open("table", &[]);
        page.within("thead", &[], |head| {
            head.within("tr", &[], |row| {
                for name in texts {
                    row.element("th", &[("scope", &"col")], name);
                }
                for name in numbers {
                    row.element("th", &[("scope", &"col"), ("class", &"number")], name);
                }
            });
        });
        page.open("tbody", &[]);
        for (texts, numbers) in lines {
            page.within("tr", &[], |row| {
                for text in texts {
                    row.element("td", &[], &text);
                }
                for number in numbers {
                    row.element("td", &[("class", &"number")], &number);
                }
            });
        }
        page.close();
        page.close();
        page.close();
    });
}
