//! A part of a study: its report shows what the part has, leaves out what needs more, and misses what was not computed.

use crate::common::{SMALL, options, run_in, study};
use onefold_study::report::{self, LeftOut, Point, Report, pictures};
use onefold_study::{Options, Row, Study, Verdict};

const SHOWN: &str = r#"
[[headline]]
metric = "total_hit_ratio"
policy = "arc"
baselines = ["LRU", "sieve"]
workloads = ["A"]

[[headline]]
metric = "total_hit_ratio"
policy = "LRU"
baselines = ["sieve"]

[[check]]
id = "1"
text = "About all."
metric = "total_hit_ratio"
claims = ["arc >= 0", "LRU >= 0"]

[[check]]
id = "2"
text = "About A."
metric = "target_hit_ratio"
workloads = ["A"]
claims = ["LRU <= 1", "alone >= LRU"]

[[check]]
id = "3"
text = "Names its places."
metric = "total_hit_ratio"
workloads = ["A"]
claims = ["LRU@B@1MiB >= 0"]

[[figure]]
title = "all"
metric = "target_hit_ratio"
checks = ["1", "2"]

[[figure]]
title = "divided"
metric = "total_hit_ratio"
baseline = "LRU"
policies = ["arc", "LRU", "sieve"]

[[figure.published]]
workloads = ["A"]
policies = ["arc", "sieve"]
from = 0.5

[[figure.published]]
workloads = ["B"]
to = 2.0

[[figure]]
title = "what arc is about"
metric = "total_hit_ratio"
policies = ["LRU", "arc", "sieve"]
about = ["arc", "sieve"]

[[figure]]
title = "only B"
metric = "total_hit_ratio"
workloads = ["B"]
"#;

fn text() -> String {
    SMALL.replace(r#"["lru"]"#, r#"[{policy = "lru", label = "LRU"}, "arc", "sieve"]"#) + SHOWN
}

/// All rows of the study, and a part of it.
struct Ran {
    study: Study,
    rows: Vec<Row>,
    options: Options,
    _folder: tempfile::TempDir,
}

impl Ran {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rows = run_in(folder.path(), &text(), 2).rows;
        Self { study: study(&text()), rows, options: options(folder.path(), 2), _folder: folder }
    }

    fn options(&self, only: &[&str], policies: &[&str]) -> Options {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Options { only: owned(only), policies: owned(policies), ..self.options.clone() }
    }

    /// The report of a part, from the rows of all points.
    fn part(&self, only: &[&str], policies: &[&str]) -> Report {
        Report::of_part(&self.study, &self.options(only, policies), &self.rows)
    }
}

fn titles(report: &Report) -> Vec<&str> {
    report.figures.iter().map(|data| data.figure.title.as_str()).collect()
}

fn ids(report: &Report) -> Vec<&str> {
    report.checks.iter().map(|data| data.check.id.as_str()).collect()
}

#[test]
fn a_part_of_policies_shows_no_others() {
    let ran = Ran::new();
    let part = ran.part(&[], &["LRU", "alone"]);
    assert_eq!(titles(&part), ["all", "divided", "only B"]);
    let [all, divided, only_b] = part.figures.as_slice() else { panic!("three figures") };
    assert_eq!((all.policies.as_slice(), all.bounds.len()), (&["LRU".to_owned()][..], 1));
    assert_eq!((all.groups.len(), only_b.groups.len()), (4, 2));
    assert_eq!(divided.policies, ["LRU"]);
    assert!(divided.groups.iter().all(|group| group.policies == [Point::Value(1.0)]));
    // Of the published numbers only that for B is about LRU.
    let published: Vec<Option<f64>> =
        divided.figure.published.iter().map(|one| one.range.to).collect();
    assert_eq!(published, [Some(2.0)]);
    assert_eq!(ids(&part), ["2", "3"]);
    assert_eq!(all.figure.checks, ["2"]);
    assert!(part.checks.iter().all(|data| data.verdict == Verdict::Holds));
    assert!(part.headlines.is_empty());
    assert_eq!(part.left_out, LeftOut { figures: 1, headlines: 2, checks: 1 });

    // Without the bound the second check goes as well, and so does what the page says of bounds.
    let lru = ran.part(&[], &["LRU"]);
    assert_eq!(ids(&lru), ["3"]);
    assert!(lru.figures.iter().all(|data| data.bounds.is_empty()));
    let page = |report: &Report| report::html(&ran.study, &ran.rows, report);
    assert!(page(&part).contains("Lines across the bars: alone"));
    assert!(!page(&lru).contains("Lines across the bars"));
}

#[test]
fn a_figure_needs_its_baseline_and_something_of_what_it_is_about() {
    let ran = Ran::new();
    assert_eq!(titles(&ran.part(&[], &["arc"])), ["all", "what arc is about", "only B"]);
    let one_of_two = ran.part(&[], &["sieve", "LRU"]);
    assert_eq!(titles(&one_of_two), ["all", "divided", "what arc is about", "only B"]);
    assert_eq!(one_of_two.figures[2].policies, ["LRU", "sieve"]);
    // A bound of the target says nothing about all tenants.
    assert_eq!(titles(&ran.part(&[], &["alone"])), ["all"]);
    let unknown = text().replace("about = [\"arc\"", "about = [\"alone\"");
    let error = Study::parse(std::path::Path::new("s.toml"), &unknown).unwrap_err().to_string();
    assert!(error.contains("about is \"alone\", expected one of LRU, arc, sieve"), "{error}");
}

#[test]
fn a_part_of_workloads_shows_no_others() {
    let ran = Ran::new();
    let part = ran.part(&["A"], &[]);
    assert_eq!(titles(&part), ["all", "divided", "what arc is about"]);
    for data in &part.figures {
        assert!(data.groups.len() == 2 && data.groups.iter().all(|group| group.name == "A"));
    }
    assert_eq!(part.figures[1].figure.published.len(), 1);
    // An average over all workloads is none over one of them.
    assert_eq!(part.headlines.len(), 1);
    assert_eq!(part.headlines[0].headline.policy, "arc");
    // The first check is about B as well, and the third names it.
    assert_eq!(ids(&part), ["2"]);
    assert_eq!(part.left_out, LeftOut { figures: 1, headlines: 1, checks: 2 });
    let names = pictures(&ran.study, &ran.rows, &part);
    assert_eq!(names.len(), 3);
    let both = ran.part(&["B"], &["LRU"]);
    assert_eq!((ids(&both), both.figures.len()), (vec!["3"], 3));
}

#[test]
fn averages_keep_the_baselines_that_are_left() {
    let ran = Ran::new();
    let part = ran.part(&[], &["arc", "sieve"]);
    let [headline] = part.headlines.as_slice() else { panic!("one average") };
    assert_eq!(headline.headline.baselines, ["sieve"]);
    assert_eq!((headline.versus.len(), headline.versus[0].all.computed), (1, 2));
}

#[test]
fn the_whole_is_a_part_without_names() {
    let ran = Ran::new();
    let whole = Report::new(&ran.study, &ran.rows);
    assert_eq!(ran.part(&[], &[]), whole);
    let all = ran.part(&["A", "B"], &["LRU", "arc", "sieve", "alone"]);
    assert_eq!(
        (all.checks, all.headlines, all.left_out),
        (whole.checks, whole.headlines, LeftOut::default())
    );
    assert!(!report::text(&ran.part(&[], &[])).contains("leave out"));
}

/// What the part names and nobody computed is missing, not left out.
#[test]
fn what_was_not_computed_is_missing() {
    let mut ran = Ran::new();
    ran.rows.retain(|row| row.label != "LRU" || row.workload != "B");
    let part = ran.part(&[], &["LRU"]);
    assert_eq!((ids(&part), part.checks[0].verdict), (vec!["3"], Verdict::Missing));
    assert!(!part.checks[0].is_as_expected());
}

#[test]
fn text_page_and_object_say_what_is_left_out() {
    let ran = Ran::new();
    let part = ran.part(&["A"], &["LRU"]);
    let line = "2 figures, 2 averages and 3 checks need what --only and --policy leave out";
    assert_eq!(part.left_out.to_string(), line);
    let text = report::text(&part);
    assert!(text.ends_with(&format!("\n\n{line}\n")), "{text}");
    assert!(report::html(&ran.study, &ran.rows, &part).contains(line));
    let object = serde_json::to_value(&part).unwrap();
    assert_eq!(object["left_out"]["checks"], 3);
    let whole = serde_json::to_value(ran.part(&[], &[])).unwrap();
    assert!(whole.get("left_out").is_none());
    let said = |figures, headlines, checks| LeftOut { figures, headlines, checks }.to_string();
    assert!(said(0, 1, 0).starts_with("1 average needs what"));
    assert!(said(1, 0, 1).starts_with("1 figure and 1 check need what"));
    let of_checks = part.left_out.of_checks();
    assert_eq!(of_checks, LeftOut { checks: 3, ..LeftOut::default() });
}

/// Results of all points and results of the part alone say the same of the part; only the whole misses something.
#[test]
fn status_and_rows_are_those_of_the_part() {
    let ran = Ran::new();
    let part = ran.options(&["A"], &["LRU", "alone"]);
    let rows = onefold_study::rows(&ran.study, &part).unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.workload == "A"));
    let of_rows = Report::of_part(&ran.study, &part, &rows);
    assert_eq!(of_rows, ran.part(&["A"], &["LRU", "alone"]));
    let status = onefold_study::status(&ran.study, &part).unwrap();
    assert_eq!((status.workloads.len(), status.workloads[0].done), (1, 4));
    // The other results of the folder are those of the study, if not of the part.
    assert_eq!((status.workloads[0].left, status.strangers), (0, 0));
}
