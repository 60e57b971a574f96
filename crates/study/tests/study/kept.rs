//! Kept tables: what is read back says the same as the results, and a sample that is run again finds each change.

use std::fs;
use std::path::PathBuf;

use crate::common::{SMALL, options, run_in, study};
use onefold_study::report::{Report, pictures};
use onefold_study::{Control, Fault, Options, Program, read_table, table, verify};

const SHOWN: &str = r#"
latency = ["service", { model = "service", programs = "die", label = "die" }]
"#;

const FIGURES: &str = r#"
[[figure]]
metric = "target_hit_ratio"

[[figure]]
metric = "total_latency"
latency = "die"

[[figure.published]]
workloads = ["A"]
policies = ["lru"]
from = "1us"
to = "1ms"

[[headline]]
metric = "total_hit_ratio"
policy = "lru"
baselines = ["lru"]

[[check]]
id = "1"
text = "All is written."
metric = "pages_programmed"
claims = ["lru > 0"]
"#;

fn text() -> String {
    SMALL.replace("seed = 3", &format!("seed = 3{SHOWN}")) + FIGURES
}

/// A table in a folder, and the options that read it.
fn kept(folder: &std::path::Path) -> (PathBuf, Options) {
    run_in(folder, &text(), 2);
    let options = options(folder, 2);
    let (text, missing) = table(&study(&text()), &options).unwrap();
    assert_eq!(missing, 0);
    let path = folder.join("small.csv");
    fs::write(&path, text).unwrap();
    (path, options)
}

#[test]
fn a_table_says_what_the_results_say() {
    let folder = tempfile::tempdir().unwrap();
    let (path, options) = kept(folder.path());
    let study = study(&text());
    let rows = onefold_study::rows(&study, &options).unwrap();
    let read = read_table(&study, &options, &path).unwrap();
    assert_eq!((read.rows.len(), read.absent.len(), read.strangers), (8, 0, 0));
    let (whole, small) = (Report::new(&study, &rows), Report::new(&study, &read.rows));
    assert_eq!(whole, small);
    // The second model is not the first.
    let first = text().replace("latency = \"die\"", "");
    let first = Report::new(&crate::common::study(&first), &rows);
    assert_ne!(whole.figures[1].groups, first.figures[1].groups);
    let pictures = pictures(&study, &read.rows, &small);
    let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
    let stem = "small-mean-latency-of-all-tenants-die.svg";
    assert_eq!(names, ["small-hit-ratio-of-the-target.svg", stem]);
    for picture in &pictures {
        roxmltree::Document::parse(&picture.svg).unwrap();
    }
    let has_outline: Vec<bool> =
        pictures.iter().map(|picture| picture.svg.contains("class=\"published\"")).collect();
    assert_eq!(has_outline, [false, true]);
}

#[test]
fn a_table_outlives_versions_of_the_program_and_of_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let (path, options) = kept(folder.path());
    let later = tempfile::tempdir().unwrap();
    let program = Program { version: "9.9.9".to_owned(), commit: "def".to_owned() };
    let options = Options { folder: later.path().to_path_buf(), program, ..options };
    onefold_study::run(&study(&text()), &options, &Control::default()).unwrap();
    let (other, _) = table(&study(&text()), &options).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), other);
    // A point that is changed has no row any more; a figure that came later has no column.
    let changed =
        text().replace("requests=10k", "requests=20k") + "[[figure]]\nmetric = \"absorption\"\n";
    let read = read_table(&study(&changed), &options, &path).unwrap();
    assert_eq!((read.rows.len(), read.missing, read.strangers), (4, 4, 4));
    assert_eq!(read.absent, ["absorption"]);
}

#[test]
fn a_sample_that_is_run_again_finds_each_change() {
    let folder = tempfile::tempdir().unwrap();
    let (path, options) = kept(folder.path());
    let study = study(&text());
    let run = |count| {
        let table = read_table(&study, &options, &path).unwrap();
        verify(&study, &options, &Control::default(), (&table, count)).unwrap()
    };
    let sample = run(Some(3));
    assert_eq!((sample.points, sample.differences.len()), (3, 0));
    assert!(sample.numbers >= 9, "{sample:?}");
    let all = run(None);
    assert_eq!((all.points, all.differences.len()), (8, 0));

    let whole = fs::read_to_string(&path).unwrap();
    let head: Vec<&str> = whole.lines().next().unwrap().split(',').collect();
    let at = head.iter().position(|name| *name == "pages_programmed").unwrap();
    let line = whole.lines().find(|line| line.starts_with("B,lru,1048576,3,")).unwrap();
    let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
    let before = cells[at].clone();
    cells[at] = format!("{before}0");
    fs::write(&path, whole.replace(line, &cells.join(","))).unwrap();
    let changed = run(None);
    let [difference] = changed.differences.as_slice() else { panic!("{changed:?}") };
    let expected = format!(
        "B, lru, 1MiB, seed 3: pages_programmed is {before}0 in the table and {before} now (-90.000 %)"
    );
    assert_eq!(difference.to_string(), expected);
}

#[test]
fn what_is_no_table_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let (path, options) = kept(folder.path());
    let whole = fs::read_to_string(&path).unwrap();
    let study = study(&text());
    let error = |text: &str| {
        fs::write(&path, text).unwrap();
        let error = read_table(&study, &options, &path).unwrap_err();
        assert_eq!(error.fault(), Fault::Run);
        error.to_string()
    };
    assert!(error("").contains("line 1: no table of results: no column `workload`"));
    assert!(error("a,b\n1,2\n").contains("no column `workload`"));
    let short = whole.replacen(",3,", ",", 1);
    assert!(error(&short).contains("line 2: no table of results"), "{}", error(&short));
    let line = whole.lines().nth(1).unwrap();
    let cells: Vec<&str> = line.split(',').collect();
    let (last, rest) = cells.split_last().unwrap();
    for bad in ["x", "NaN", "inf"] {
        let wrong = whole.replacen(line, &format!("{},{bad}", rest.join(",")), 1);
        let found = error(&wrong);
        assert!(found.contains(&format!("is `{bad}`, expected a number")), "{last} {found}");
    }
}
