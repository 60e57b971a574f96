//! Structure of the report: well-formed, complete, escaped, total.

use roxmltree::{Document, Node, ParsingOptions};

use super::plot::{Axis, Bar, BarPlot};
use super::{Markup, render};
use crate::result::tests::{MINIMAL, sample};
use crate::result::{CcdfPoint, LatencySummary, RunResult, Tenant};

/// Parses the whole page as XML, which it is on purpose.
fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap()
}

fn plots<'a>(page: &'a Document<'_>) -> Vec<Node<'a, 'a>> {
    page.descendants().filter(|node| node.attribute("class") == Some("plot")).collect()
}

fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|inner| inner.text()).collect()
}

fn with_class<'a>(node: Node<'a, 'a>, class: &str) -> Vec<Node<'a, 'a>> {
    node.descendants().filter(|inner| inner.attribute("class") == Some(class)).collect()
}

/// Every number of every coordinate lies in or near its picture.
fn assert_coordinates_are_sane(page: &Document<'_>) {
    for plot in plots(page) {
        let view = plot.attribute("viewBox").unwrap();
        let size: Vec<f64> = view.split(' ').map(|n| n.parse().unwrap()).collect();
        for node in plot.descendants().filter(Node::is_element) {
            for (names, limit) in [
                (["x", "x1", "x2", "cx", "width"], size[2]),
                (["y", "y1", "y2", "cy", "height"], size[3]),
            ] {
                for value in names.iter().filter_map(|name| node.attribute(*name)) {
                    let value: f64 = value.parse().unwrap();
                    assert!((0.0..=limit).contains(&value), "{value} of {node:?}");
                }
            }
        }
    }
}

#[test]
fn a_report_of_one_run_has_every_part() {
    let html = render(&[sample()]);
    let page = parsed(&html);
    let titles: Vec<String> = page
        .descendants()
        .filter(|node| node.has_tag_name("h2"))
        .map(|node| text_of(node).trim().to_owned())
        .collect();
    assert_eq!(
        titles,
        [
            "s1",
            "Summary",
            "Flash traffic by cause",
            "Write amplification over time",
            "Latency distribution",
            "Latency over time",
            "Valid data per superblock",
            "Configuration",
        ]
    );
    let names: Vec<&str> =
        plots(&page).iter().map(|plot| plot.attribute("aria-label").unwrap()).collect();
    assert_eq!(
        names,
        [
            "Flash pages programmed by cause",
            "Write amplification over virtual time",
            "Latency distribution: Reads",
            "Latency distribution: Writes",
            "Mean latency over virtual time: Reads",
            "Mean latency over virtual time: Writes",
            "Valid data per superblock: s1",
        ]
    );
    let all = text_of(page.root());
    for expected in [
        "traces/trace.csv (msr, 2,000,000 requests)",
        "0.1.0 0123456789ab",
        "\"channels\": 8",
        "6.324",
        "133 \u{b5}s",
    ] {
        assert!(all.contains(expected), "{expected}");
    }
    assert_coordinates_are_sane(&page);
}

#[test]
fn plots_show_the_numbers() {
    let html = render(&[sample()]);
    let page = parsed(&html);
    let plots = plots(&page);
    // Traffic: user is 1 and gc is 5.3 of an axis that ends at 8.
    let bars = with_class(plots[0], "bar");
    assert_eq!(bars.len(), 3);
    let width = |n: usize| bars[n].attribute("width").unwrap().parse::<f64>().unwrap();
    assert!((width(1) / width(0) - 5.3).abs() < 0.01, "{} {}", width(0), width(1));
    let tip = text_of(bars[1]);
    assert_eq!(tip.trim(), "gc: 5,300,000 pages (83.8 %)");
    // WAF rises by the same step in every window.
    let line = with_class(plots[1], "line")[0].attribute("d").unwrap();
    let heights: Vec<f64> = line
        .trim_start_matches('M')
        .split('L')
        .map(|point| point.trim_end_matches("h0").split(' ').nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(heights.len(), 20);
    assert!(heights.windows(2).all(|pair| pair[0] > pair[1]), "{heights:?}");
    let labels: Vec<String> =
        with_class(plots[1], "tick middle").iter().map(|tick| text_of(*tick)).collect();
    assert_eq!(labels, ["0", "20", "40", "60", "80"]);
    // Histogram: the empty first bin has no bar.
    assert_eq!(with_class(plots[6], "solid").len(), 19);
}

#[test]
fn nothing_is_fetched_and_nothing_runs() {
    let html = render(&[sample(), sample()]);
    let without_namespace = html.replace("http://www.w3.org/2000/svg", "");
    for forbidden in ["http:", "https:", "//", "<script", "@import", "src=", "href=", "url(h"] {
        assert!(!without_namespace.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn names_cannot_become_markup() {
    let evil = "</title><script>alert('x')</script>\"&\u{0}\u{1b}";
    let mut run = sample();
    run.device.name = evil.to_owned();
    run.trace.as_mut().unwrap().path = evil.to_owned();
    run.warnings = vec![evil.to_owned()];
    run.config = serde_json::json!({ evil: evil });
    run.ftl.victim = evil.to_owned();
    run.onefold.version = evil.to_owned();
    let causes = format!("{{\"{}\": 5}}", "<b>&amp;");
    run.flash.program_pages = serde_json::from_str(&causes).unwrap();
    for runs in [vec![run.clone()], vec![run.clone(), run]] {
        let html = render(&runs);
        assert!(!html.contains("<script"));
        assert!(!html.contains('\u{1b}'));
        let page = parsed(&html);
        assert!(!page.descendants().any(|node| node.has_tag_name("script")));
        assert!(text_of(page.root()).contains("<b>&amp;"));
    }
}

#[test]
fn eight_runs_differ_without_colour() {
    let runs: Vec<RunResult> = (0..8)
        .map(|n| {
            let mut run = sample();
            run.device.name = format!("device {n}");
            run
        })
        .collect();
    let html = render(&runs);
    let page = parsed(&html);
    let lines = with_class(plots(&page)[1], "line");
    let mut dashes: Vec<&str> =
        lines.iter().map(|line| line.attribute("stroke-dasharray").unwrap()).collect();
    dashes.sort_unstable();
    dashes.dedup();
    assert_eq!(dashes.len(), 8);
    for n in 0..8 {
        assert!(html.contains(&format!("device {n}: WAF")), "tooltip of device {n}");
    }
    assert_coordinates_are_sane(&page);
}

#[test]
fn runs_without_data_say_so() {
    let empty = RunResult::from_json(MINIMAL).unwrap();
    let html = render(std::slice::from_ref(&empty));
    let page = parsed(&html);
    assert_eq!(plots(&page).len(), 0);
    assert_eq!(with_class(page.root(), "empty").len(), 5);
    assert!(!html.contains("NaN") && !html.contains("inf"));
    // Beside a run with data, the empty one has its column and no line.
    let both = render(&[empty, sample()]);
    let page = parsed(&both);
    assert_eq!(plots(&page).len(), 7);
    assert_coordinates_are_sane(&page);
    parsed(&render(&[]));
}

#[test]
fn any_value_can_be_drawn() {
    let mut run = sample();
    run.waf = 1e300;
    run.virtual_ns = u64::MAX;
    run.host.read_requests = u64::MAX;
    run.host.write_requests = u64::MAX;
    run.latency_ns.read.max = u64::MAX;
    run.superblocks.valid_histogram = vec![u64::MAX, 0, 1];
    run.flash.program_pages =
        serde_json::from_str(&format!("{{\"user\": {0}, \"gc\": {0}}}", u64::MAX)).unwrap();
    run.host.write_pages = 1;
    run.latency_ccdf.read =
        vec![CcdfPoint(u64::MAX, 5.0), CcdfPoint(0, -1.0), CcdfPoint(1, 1e-300)];
    for (n, point) in run.series.points.iter_mut().enumerate() {
        point.virtual_ns = if n % 2 == 0 { u64::MAX } else { 0 };
        point.waf = [1e300, -1e300, 0.0, 5e-324][n % 4];
        point.read_mean_ns = [f64::MAX, -1.0][n % 2];
    }
    let runs = [run, sample()];
    let html = render(&runs);
    let page = parsed(&html);
    assert_coordinates_are_sane(&page);
    assert!(!html.contains("NaN"), "a coordinate or text is no number");
    assert!(crate::result::table(&runs).len() > 100);
}

#[test]
fn a_partial_run_is_marked() {
    let mut run = sample();
    run.partial = true;
    let html = render(&[run]);
    assert!(html.contains("Partial: the run was interrupted."));
    assert!(!render(&[sample()]).contains("Partial"));
}

#[test]
fn delays_and_tenants_have_their_tables() {
    let mut run = sample();
    assert!(!render(&[run.clone()]).contains("Tenants"));
    let waited = LatencySummary { count: 30, mean: 2_000_000.0, ..LatencySummary::default() };
    run.latency_by_delay.read.none = LatencySummary { count: 70, ..waited.clone() };
    run.latency_by_delay.read.background = waited.clone();
    let mut tenant = Tenant { name: "<db>".to_owned(), ..Tenant::default() };
    tenant.latency_ns.write = waited;
    run.tenants = vec![tenant];
    let html = render(&[run]);
    let page = parsed(&html);
    let rows: Vec<String> = page
        .descendants()
        .filter(|node| node.has_tag_name("tr"))
        .map(|row| row.children().map(text_of).collect::<Vec<_>>().join("|"))
        .collect();
    assert!(rows.contains(&"s1|read|background|30|30 %|2.00 ms|0|0|0".to_owned()), "{rows:?}");
    assert!(rows.contains(&"s1|<db>|0|0|-|-|2.00 ms|0".to_owned()), "{rows:?}");
}

/// The bytes of a small plot: a change of the drawing has to be a decision.
#[test]
fn a_small_plot_is_drawn_as_reviewed() {
    let plot = BarPlot {
        title: "two bars".to_owned(),
        size: (200.0, 120.0),
        x: Axis::share("valid", 1.0),
        y: Axis::number("count", 2.0),
        style: 3,
        bars: vec![
            Bar { from: 0.0, to: 0.5, height: 2.0, tip: "first".to_owned() },
            Bar { from: 0.5, to: 1.0, height: 1.0, tip: "second".to_owned() },
        ],
    };
    let mut markup = Markup::new();
    plot.draw(&mut markup);
    let drawn = markup.finish();
    let expected = include_str!("golden/two_bars.svg");
    assert!(drawn == expected, "review and save as golden/two_bars.svg:\n{drawn}");
}
