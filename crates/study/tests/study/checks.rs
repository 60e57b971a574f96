//! Checks and headlines: what is written, what becomes of it, and what is refused.

use std::path::Path;

use crate::common::{SMALL, options, row, run_in, study};
use onefold_study::report::{self, CheckData, Report};
use onefold_study::{Row, Study, Verdict};

/// The small study with three policies and one check.
fn with_check(check: &str) -> String {
    let policies =
        r#"[{policy = "lru", label = "LRU"}, {policy = "arc", label = "A - B"}, "sieve"]"#;
    SMALL.replace(r#"["lru"]"#, policies)
        + "\n[[check]]\nid = \"O1\"\ntext = \"Words.\"\nmetric = \"target_hit_ratio\"\n"
        + check
}

/// Hits of the target in thousandths for every policy of a workload.
fn made_up(study: &Study, hits: &[(&str, &str, u64, u64)]) -> Vec<Row> {
    let row = |&(workload, label, size_bytes, hits): &(&str, &str, u64, u64)| {
        let mut row = Row {
            workload: workload.to_owned(),
            label: label.to_owned(),
            bound: label == "alone",
            size_bytes,
            ..Row::default()
        };
        row.tenants.resize_with(1, Default::default);
        row.tenants[0].target = true;
        row.tenants[0].reads.pages = 1000;
        row.tenants[0].reads.hits = hits;
        row
    };
    assert!(!study.workloads.is_empty());
    hits.iter().map(row).collect()
}

fn checked(check: &str, hits: &[(&str, &str, u64, u64)]) -> CheckData {
    let study = study(&with_check(check));
    let rows = made_up(&study, hits);
    Report::new(&study, &rows).checks.remove(0)
}

const MIB: u64 = 1 << 20;
const SMALLER: u64 = 1 << 18;

#[test]
fn a_claim_holds_fails_or_lacks_numbers() {
    let hits = [
        ("A", "LRU", MIB, 175),
        ("A", "A - B", MIB, 300),
        ("A", "sieve", MIB, 310),
        ("A", "alone", MIB, 350),
    ];
    let verdict = |claim: &str| {
        let data = checked(
            &format!("workloads = [\"A\"]\nsizes = [\"1MiB\"]\nclaims = [\"{claim}\"]"),
            &hits,
        );
        assert_eq!(data.cases.len(), 1);
        (data.verdict, data.cases[0].wrong.len())
    };
    for (claim, expected) in [
        ("sieve > LRU", (Verdict::Holds, 0)),
        ("sieve < LRU", (Verdict::Fails, 1)),
        ("A - B >= sieve - 0.01", (Verdict::Holds, 0)),
        ("A - B >= sieve - 0.005", (Verdict::Fails, 1)),
        ("A - B - 0.01 <= sieve <= A - B + 0.01", (Verdict::Holds, 0)),
        ("alone >= 2 * LRU", (Verdict::Holds, 0)),
        ("alone > 2 * LRU", (Verdict::Fails, 1)),
        ("alone < 2.1 * LRU - 0.005", (Verdict::Holds, 0)),
        ("alone > sieve, A - B > LRU", (Verdict::Holds, 0)),
        ("LRU > sieve, A - B, 0.09", (Verdict::Fails, 2)),
        ("sieve <= 0.31", (Verdict::Holds, 0)),
        ("sieve@1MiB > LRU@A@1MiB", (Verdict::Holds, 0)),
        ("sieve > LRU@256KiB", (Verdict::Missing, 0)),
        // What is known decides, whatever the missing number is.
        ("LRU > sieve > LRU@256KiB", (Verdict::Fails, 1)),
    ] {
        assert_eq!(verdict(claim), expected, "{claim}");
    }
}

#[test]
fn the_cases_of_a_check_are_its_workloads_and_sizes() {
    let hits = [("A", "LRU", MIB, 100), ("A", "sieve", MIB, 110), ("B", "LRU", MIB, 100)];
    let data = checked("claims = [\"sieve > LRU\"]", &hits);
    assert_eq!((data.cases.len(), data.verdict), (4, Verdict::Missing));
    assert_eq!(data.summary(), "not computed (1 of 4 hold, 3 not computed)");
    assert_eq!(data.cases[1].numbers, "sieve (11.00) > LRU (10.00)");
    assert_eq!(data.cases[2].numbers, "sieve (-) > LRU (-)");
    // Terms that all name their place are asked once.
    let data = checked("claims = [\"sieve@A@1MiB >= LRU@B@1MiB + 0.01\"]", &hits);
    assert_eq!((data.cases.len(), data.verdict), (1, Verdict::Holds));
    let data = checked("claims = [\"sieve@1MiB > LRU@1MiB\"]", &hits);
    assert_eq!((data.cases.len(), data.verdict), (2, Verdict::Missing));
    // A row with an error has no number.
    let study = study(&with_check("claims = [\"sieve > LRU\"]"));
    let mut rows = made_up(&study, &hits);
    rows[1].error = Some("it failed".to_owned());
    assert_eq!(Report::new(&study, &rows).checks[0].cases[1].verdict, Verdict::Missing);
}

#[test]
fn what_is_known_to_fail_is_noticed_when_it_holds() {
    let hits = [("A", "LRU", SMALLER, 100), ("A", "sieve", SMALLER, 110)];
    let place = "workloads = [\"A\"]\nsizes = [\"256KiB\"]\n";
    let known = "expect = \"fails\"\nreason = \"Too short.\"\n";
    let check = |claim: &str, rest: &str| {
        let data = checked(&format!("{place}{rest}claims = [\"{claim}\"]"), &hits);
        (data.is_as_expected(), data.summary())
    };
    assert_eq!(check("LRU < sieve", ""), (true, "holds (1 of 1 hold)".to_owned()));
    assert_eq!(check("LRU > sieve", ""), (false, "fails (0 of 1 hold)".to_owned()));
    let as_known = "fails (0 of 1 hold), as is known";
    assert_eq!(check("LRU > sieve", known), (true, as_known.to_owned()));
    let news = "holds (1 of 1 hold), but was known to fail";
    assert_eq!(check("LRU < sieve", known), (false, news.to_owned()));
    assert!(!check("LRU < A - B", "").0 && !check("LRU < A - B", known).0);
}

#[test]
fn unknown_names_and_crooked_claims_are_refused() {
    let error = |check: &str| {
        Study::parse(Path::new("s.toml"), &with_check(check)).unwrap_err().to_string()
    };
    let claim = |claim: &str| error(&format!("claims = [\"{claim}\"]"));
    for (bad, expected) in [
        ("sieve > lru", "`lru` has no target_hit_ratio; expected one of LRU, A - B, sieve, alone"),
        ("sieve > LRU@W9", "`@W9` in `LRU@W9` is neither a workload nor a size of the study"),
        ("sieve > LRU@2MiB", "`@2MiB` in `LRU@2MiB` is neither"),
        ("sieve > LRU@A@B", "or one too many"),
        ("sieve", "expected sides with >=, <=, > or < and spaces between them"),
        ("sieve>LRU", "`sieve>LRU` has no target_hit_ratio"),
        ("sieve > ", "`` has no target_hit_ratio"),
        ("sieve > LRU - x", "`LRU - x` has no"),
        ("sieve > NaN", "`NaN` has no"),
    ] {
        let found = claim(bad);
        assert!(found.starts_with("s.toml, line 3") && found.contains(expected), "{found}");
    }
    assert!(error("").contains("[[check]] has no `claims`"));
    assert!(error("claims = []").contains("expected at least one item"));
    assert!(error("claims = [\"sieve > LRU\"]\nexpect = \"fails\"").contains("no `reason`"));
    assert!(error("claims = [\"sieve > LRU\"]\nreason = \"x\"").contains("expected only with"));
    assert!(error("claims = [\"sieve > LRU\"]\nsizes = [\"2MiB\"]").contains("one of the sizes"));
    assert!(error("claims = [\"sieve > LRU\"]\nworkloads = [\"C\"]").contains("one of A, B"));
    // A bound says nothing about some numbers.
    let of_all = with_check("claims = [\"alone > LRU\"]").replace("target_hit_ratio", "absorption");
    let found = Study::parse(Path::new("s.toml"), &of_all).unwrap_err().to_string();
    assert!(found.contains("`alone` has no absorption"), "{found}");
    let figure = "[[figure]]\nmetric = \"absorption\"\nchecks = [\"O2\"]\n";
    let found = error(&format!("claims = [\"sieve > LRU\"]\n{figure}"));
    assert!(found.contains("checks is \"O2\", expected one of O1"), "{found}");
}

const HEADLINE: &str = r#"
[[headline]]
metric = "target_hit_ratio"
policy = "sieve"
baselines = ["LRU", "A - B"]
published = "+31.72 %"
[[figure]]
metric = "target_hit_ratio"
checks = ["O1"]
"#;

#[test]
fn headlines_are_means_of_ratios_and_say_what_is_missing() {
    let text = with_check("claims = [\"sieve > LRU\"]") + HEADLINE;
    let study = study(&text);
    let rows = made_up(
        &study,
        &[
            ("A", "LRU", SMALLER, 100),
            ("A", "LRU", MIB, 200),
            ("B", "LRU", MIB, 100),
            ("B", "LRU", SMALLER, 0),
            ("A", "sieve", SMALLER, 150),
            ("A", "sieve", MIB, 100),
            ("B", "sieve", MIB, 300),
            ("B", "sieve", SMALLER, 300),
        ],
    );
    let report = Report::new(&study, &rows);
    let [lru, arc] = report.headlines[0].versus.as_slice() else { panic!("two baselines") };
    // Nothing can be divided by the 0 of LRU at B, 256KiB.
    let texts: Vec<String> = lru.by_size.iter().map(report::Ratios::text).collect();
    assert_eq!(texts, ["1.500 1/2", "1.750"]);
    assert_eq!(lru.all.text(), "1.667 3/4");
    assert_eq!(lru.all.of_means_text(), "2.125");
    assert_eq!(lru.all.range_text(), "0.500 (A, 1MiB) to 3.000 (B, 1MiB)");
    assert_eq!((arc.all.mean, arc.all.computed, arc.all.expected), (None, 0, 4));
    let text = report::text(&report);
    assert!(
        text.contains("published: +31.72 %") && text.contains("1.667 3/4        2.125  0.500 (A"),
        "{text}"
    );
    assert!(text.contains("O1 holds") || text.contains("O1 fails"), "{text}");
    assert!(text.contains("not so: sieve > LRU"), "{text}");

    let page = report::html(&study, &rows, &report);
    let document =
        roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
    let beside = document
        .descendants()
        .find(|node| node.attribute("class") == Some("verdicts"))
        .expect("checks stand beside their figure");
    let shown: String = beside.descendants().filter_map(|node| node.text()).collect();
    assert!(shown.contains("O1 fails (3 of 4 hold)") && shown.contains("Words."), "{shown}");
    assert_eq!(beside.ancestors().filter(|node| node.has_tag_name("section")).count(), 1);
}

#[test]
fn a_workload_can_have_fewer_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let text = SMALL.replace("name = \"B\"", "name = \"B\"\nsizes = [\"1MiB\"]")
        + "[[check]]\nid = \"x\"\ntext = \"y\"\nmetric = \"target_hit_ratio\"\n\
           claims = [\"alone >= lru\"]\n";
    let summary = run_in(folder.path(), &text, 1);
    assert_eq!(summary.rows.len(), 4 + 2);
    assert_eq!(row(&summary.rows, "B", "lru", MIB).size_bytes, MIB);
    let report = Report::new(&study(&text), &summary.rows);
    assert_eq!((report.checks[0].cases.len(), report.checks[0].verdict), (3, Verdict::Holds));
    let status = onefold_study::status(&study(&text), &options(folder.path(), 1)).unwrap();
    assert_eq!((status.workloads[1].done, status.workloads[1].left), (2, 0));
}
