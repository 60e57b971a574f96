//! Figures: which numbers they show, and that their page is well-formed.

use std::collections::BTreeSet;

use crate::common::{SMALL, row, run_in, study};
use onefold_study::PublishedRange;
use onefold_study::report::{self, Point, Report};
use onefold_units::convert::float;

const FIGURES: &str = r#"
[[figure]]
title = "Latency <&> baseline"
metric = "target_latency"
baseline = "LRU"
sizes = ["1MiB"]
policies = ["LRU", "large", "alone", "min-alone"]

[[figure.published]]
workloads = ["A"]
policies = ["large"]
from = 0.25
to = 3.5
note = "a range"

[[figure.published]]
workloads = ["B"]
policies = ["large"]
value = 0.75

[[figure]]
metric = "total_hit_ratio"
kind = "table"
note = "A note."
"#;

#[test]
fn figures_show_what_they_describe() {
    let policies = r#"[{policy = "lru", label = "LRU"},
                       {policy = "aoi:chunk=4KiB,channels=4096", label = "large"}, "sieve"]"#;
    let text = SMALL.replace(r#"["lru"]"#, policies).replace("alone\"", "alone\", \"min-alone\"");
    let text = text + FIGURES;
    let folder = tempfile::tempdir().unwrap();
    let rows = run_in(folder.path(), &text, 2).rows;
    let study = study(&text);
    let report = Report::new(&study, &rows);
    let [latency, hits] = report.figures.as_slice() else { panic!("two figures") };
    assert_eq!((latency.groups.len(), hits.groups.len()), (2, 4));
    // Bounds of the target say nothing about all tenants.
    let of_target = ["alone", "min-alone"].map(str::to_owned);
    assert_eq!((latency.bounds.as_slice(), hits.bounds.len()), (&of_target[..], 0));
    let group = &latency.groups[0];
    assert_eq!((group.workload.as_str(), group.size_bytes), ("A", 1 << 20));
    assert_eq!(group.policies[0], Point::Value(1.0));
    let alone = group.bounds[0].value().unwrap();
    assert!(alone > 0.1 && alone < 1.0, "{alone}");
    let lru = row(&rows, "B", "lru", 1 << 20);
    let tenant = &lru.tenants[0];
    let pages = tenant.reads.pages + tenant.writes.pages;
    let ratio = float(tenant.reads.hits + tenant.writes.hits) / float(pages);
    assert_eq!(hits.groups[3].policies[0], Point::Value(ratio));
    assert_eq!(hits.groups[3].workload, "mixed requests");
    let failed = &group.policies[1];
    assert!(matches!(failed, Point::Failed(reason) if reason.contains("aoi")), "{failed:?}");

    let published = |range: PublishedRange| vec![None, Some(range)];
    let range = PublishedRange { from: Some(0.25), to: Some(3.5) };
    assert_eq!(latency.groups[0].published, published(range));
    let exact = PublishedRange { from: Some(0.75), to: Some(0.75) };
    assert_eq!(latency.groups[1].published, published(exact));
    assert!(hits.groups[0].published.is_empty());

    let page = report::html(&study, &rows, &report);
    let page = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let document = roxmltree::Document::parse(page).unwrap();
    let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!((count("section"), count("table"), count("h2")), (2, 2, 2));
    // A reason that a point failed is not only a tooltip, and the line of the baseline is drawn.
    assert!(page.contains(">large, 1MiB: ") && page.contains("class=\"reference\""));
    assert!(page.contains("<caption>hit ratio of all tenants (%)"));
    assert!(page.contains("Latency &lt;&amp;&gt; baseline, relative to LRU"));
    let runs: BTreeSet<&String> = rows.iter().map(|row| &row.key).collect();
    assert!(page.contains(&format!("; {} runs in ", runs.len())), "{page}");
    // Published numbers stand in the plot, in the table and in the legend, also where there is no number of ours.
    assert!(page.contains(">paper: 0.250 to 3.50</span>") && page.contains(">paper: 0.750</span>"));
    let count = |text: &str| page.matches(text).count();
    assert_eq!((count("class=\"published\""), count("class=\"published-mark\"")), (3, 2));
    assert_eq!(count("published: range, exact number"), 1);
    let text = report::text(&report);
    assert!(text.contains("large            failed"), "{text}");
    assert!(text.contains("  paper   0.250 to 3.50\n"), "{text}");
    assert!(text.contains("  large, 1MiB: ") && text.contains("LRU                1.00"), "{text}");
}

/// A number that is published for one size stands beside no other, and a limit on one side is shown
/// as that.
#[test]
fn a_published_number_is_about_its_sizes_alone() {
    let text = SMALL.to_owned()
        + "[[figure]]\nmetric = \"total_hit_ratio\"\n\
           [[figure.published]]\nsizes = [\"1MiB\"]\npolicies = [\"lru\"]\nfrom = 0.5\n\
           [[figure.published]]\nworkloads = [\"A\"]\nsizes = [\"256KiB\"]\nto = 0.25\n";
    let folder = tempfile::tempdir().unwrap();
    let rows = run_in(folder.path(), &text, 2).rows;
    let study = study(&text);
    let report = Report::new(&study, &rows);
    let [figure] = report.figures.as_slice() else { panic!("one figure") };
    for group in &figure.groups {
        let expected = match (group.workload.as_str(), group.size_bytes) {
            (_, bytes) if bytes == 1 << 20 => Some((Some(0.5), None)),
            ("A", _) => Some((None, Some(0.25))),
            _ => None,
        };
        let found = group.published.iter().flatten().map(|range| (range.from, range.to));
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(expected), "{group:?}");
    }
    let text = report::text(&report);
    assert_eq!(text.matches("at least 50").count(), 2, "{text}");
    assert_eq!(text.matches("at most 25").count(), 1, "{text}");
}
