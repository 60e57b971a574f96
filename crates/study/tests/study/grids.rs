//! Grids: any key as an axis.

use std::collections::BTreeSet;
use std::path::Path;

use onefold_config::Typed;
use onefold_study::report::{self, Question, Report};
use onefold_study::{Control, Options, Program, Study, Summary, run};

const BASE: &str = r#"
schema = "onefold.study/1"
name = "tiny grid"
set = ["geometry.channels=1", "geometry.ways=1", "geometry.blocks=64", "geometry.pages=64",
       "precondition.overwrite=1"]
"#;
const GRID: &str = r#"
[grid]
preset = ["s1", "tlc"]
"ftl.victim" = ["greedy", "fifo"]
"capacity.op" = ["28 %", "50 %"]
workload = ["randwrite,bs=4KiB,qd=4,requests=2000", "write,bs=64KiB,qd=2,requests=200"]
seed = [1, 2, 3]
"#;

fn study(grid: &str) -> Result<Study, String> {
    Study::parse(Path::new("tiny.toml"), &format!("{BASE}{grid}")).map_err(|e| e.to_string())
}

fn options(folder: &Path) -> Options {
    Options { threads: 2, program: Program::default(), ..Options::new(folder) }
}

fn run_in(folder: &Path, study: &Study) -> Summary {
    run(study, &options(folder), &Control::default()).unwrap()
}

#[test]
fn every_key_is_an_axis() {
    let study = study(GRID).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let summary = run_in(folder.path(), &study);
    assert_eq!((summary.computed, summary.rows.len()), (48, 48));
    assert!(summary.rows.iter().all(|row| row.error.is_none()), "{:?}", summary.rows[0].error);
    let labels: BTreeSet<&str> = summary.rows.iter().map(|row| row.label.as_str()).collect();
    assert!(labels.contains("tlc, fifo, op 28 %"), "{labels:?}");
    let axes: Vec<&str> = summary.rows[0].axes.iter().map(|one| one.axis.as_str()).collect();
    assert_eq!(axes, ["preset", "ftl.victim", "capacity.op", "workload", "seed"]);
    assert_eq!(summary.rows[0].axes[2].value, Typed::Real(0.28));
    // A grid is run once, and goes on from there with more values.
    let more = study_with_more();
    let summary = run_in(folder.path(), &more);
    assert_eq!((summary.computed, summary.found), (24, 48));
}

fn study_with_more() -> Study {
    study(&GRID.replace("\"50 %\"", "\"50 %\", \"100 %\"")).unwrap()
}

/// The table of the results, by name of the column.
fn csv(folder: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.join("results.csv")).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn rows_have_every_axis_and_number_and_nothing_where_nothing_was_measured() {
    let reads = r#"
[[grid]]
preset = "s1"
"capacity.op" = 0.5
workload = ["randread,bs=4KiB,requests=500", "randwrite,bs=4KiB,requests=500"]
[[grid]]
preset = "s1"
"capacity.op" = 0.5
"buffer.size" = "256KiB"
"buffer.policy" = ["lru", "s3-fifo"]
workload = "randwrite,bs=4KiB,requests=500"
"#;
    let study = study(reads).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let summary = run_in(folder.path(), &study);
    assert_eq!(summary.rows.len(), 4);
    assert!(summary.rows.iter().all(|row| row.error.is_none()), "{:?}", summary.rows[0].error);
    let table = csv(folder.path());
    let (reads, writes, lru) = (&table[0], &table[1], &table[2]);
    assert_eq!((&*reads["buffer.size"], &*lru["buffer.size"]), ("", "262144"), "typed, or nothing");
    assert_eq!((&*reads["waf"], &*reads["latency_ns.write.p99"]), ("", ""));
    assert!(reads["latency_ns.read.p99"].parse::<u64>().unwrap() > 0);
    assert!(writes["waf"].parse::<f64>().unwrap() > 0.9);
    assert_eq!((&*writes["flash.program_pages.wear"], &*writes["buffer.write_hits"]), ("0", ""));
    assert!(!lru["buffer.write_hits"].is_empty());
    assert!(!reads["ftl.rho"].is_empty() && !reads.contains_key("pages_programmed"));
    // The numbers are those of the JSON of a run.
    let run = summary.rows[1].result.as_ref().unwrap();
    assert_eq!(writes["latency_ns.write.p99"], run.latency_ns.write.p99.to_string());
}

#[test]
fn points_are_ranked_and_averaged_over_seeds() {
    let study = study(GRID).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rows = run_in(folder.path(), &study).rows;
    let waf = study.metric("waf").unwrap();
    let asked = Question { best: Some(waf), ..Question::default() };
    let best = Report::answer(&study, &rows, &asked).unwrap().ranking.unwrap();
    assert_eq!(best.points.len(), 2, "the best of each load");
    let question = Question { sort: Some(waf), by: vec!["ftl.victim".to_owned()], ..asked };
    let question = Question { best: None, ..question };
    let sorted = Report::answer(&study, &rows, &question).unwrap().ranking.unwrap();
    let random: Vec<f64> = sorted.points[..8].iter().map(|p| p.numbers[0].unwrap().mean).collect();
    assert!(random.is_sorted() && random[0] < random[7], "{random:?}");
    assert_eq!(best.points[0].label, sorted.points[0].label);
    // More of it is better.
    let speed = study.metric("bandwidth").unwrap();
    let asked = Question { sort: Some(speed), ..Question::default() };
    let sorted_by_speed = Report::answer(&study, &rows, &asked).unwrap().ranking.unwrap();
    let speeds = |range: std::ops::Range<usize>| -> Vec<f64> {
        let points = &sorted_by_speed.points[range];
        points.iter().map(|point| -point.numbers[0].unwrap().mean).collect()
    };
    assert!(speeds(0..8).is_sorted() && speeds(8..16).is_sorted(), "{:?}", speeds(0..16));
    assert!(sorted.points[7].numbers[0].unwrap().half_width.unwrap() > 0.0);
    let [by] = sorted.marginals.as_slice() else { panic!("one axis was asked for") };
    assert_eq!((by.values.len(), by.values[0].points), (2, 8));
    let of = |victim: &str| {
        let rows = rows.iter().filter(|row| row.axes[1].text == victim);
        let wafs: Vec<f64> = rows.map(|row| row.result.as_ref().unwrap().waf).collect();
        wafs.iter().sum::<f64>() / 24.0
    };
    assert!((by.values[0].numbers[0].unwrap().mean - of("greedy")).abs() < 1e-9);
    let wrong = Question { by: vec!["ftl.gc_start".to_owned()], ..Question::default() };
    let error = Report::answer(&study, &rows, &wrong).unwrap_err().to_string();
    assert!(error.contains("--by is `ftl.gc_start`") && error.contains("ftl.victim"), "{error}");

    let whole = Report::new(&study, &rows);
    assert!(whole.figures.is_empty(), "one table has all points");
    let text = report::text(&whole);
    assert!(text.contains("by capacity.op") && text.contains('\u{b1}'), "{text}");
    let page = report::html(&study, &rows, &whole);
    roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
}

#[test]
fn zipped_axes_go_together() {
    let zipped = study(
        r#"
[grid]
preset = ["s1", "tlc"]
size = ["64MiB", "128MiB"]
zip = [["preset", "size"]]
"ftl.victim" = ["greedy", "fifo"]
workload = "randwrite,bs=4KiB,requests=100"
"#,
    )
    .unwrap();
    let labels: Vec<&str> = zipped.policies.iter().map(|policy| policy.label.as_str()).collect();
    let expected =
        ["s1, 64MiB, greedy", "s1, 64MiB, fifo", "tlc, 128MiB, greedy", "tlc, 128MiB, fifo"];
    assert_eq!(labels, expected);
}

/// A point that failed has no numbers, and not zeroes: neither of a buffer nor of a simulation.
#[test]
fn what_failed_has_empty_cells() {
    let buffers = r#"
schema = "onefold.study/1"
name = "tables do not fit"
device = "300GiB"
sizes = ["8MiB"]
policies = ["lru", "aoi:chunk=4KiB"]
[[workload]]
name = "w"
[[workload.source]]
workload = "write,bs=64KiB,bytes=1MiB"
"#;
    let folder = tempfile::tempdir().unwrap();
    let study = Study::parse(Path::new("b.toml"), buffers).unwrap();
    run_in(folder.path(), &study);
    let table = csv(folder.path());
    let (lru, aoi) = (&table[0], &table[1]);
    assert!(lru["error"].is_empty() && aoi["error"].contains("does not hold the tables"));
    for column in ["write_pages", "pages_programmed", "slots", "hit_ratio"] {
        assert!(!lru[column].is_empty() && aoi[column].is_empty(), "{column}: {}", aoi[column]);
    }
    assert!(!lru.contains_key("waf"), "nothing was simulated");
}

/// A drive that is too small for its collection gets blocks, unless somebody asks how its spare area does.
#[test]
fn a_size_makes_room_unless_the_spare_area_is_the_question() {
    let of = |grid: &str| {
        let text = format!(
            "schema = \"onefold.study/1\"\nname = \"small\"\n[grid]\npreset = \"tlc\"\nsize = \"1GiB\"\n{grid}workload = \"randwrite,bs=4KiB,requests=300\""
        );
        let study = Study::parse(Path::new("small.toml"), &text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let summary = run_in(folder.path(), &study);
        summary.rows[0].error.clone()
    };
    assert_eq!(of(""), None);
    assert!(of("\"capacity.op\" = \"7 %\"\n").unwrap().contains("beside the reserve"));
}

/// Files are called by their names, and by their paths where two have one name; a trace of a grid runs with every seed.
#[test]
fn traces_have_short_names_as_long_as_they_differ() {
    let names = |traces: &str| {
        let grid = format!("seeds = 3\n[grid]\npreset = \"s1\"\ntrace = [{traces}]");
        let study = study(&grid).unwrap();
        study.workloads.iter().map(|load| load.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("\"x/a.csv\", \"y/b.csv\""), ["a.csv", "b.csv"]);
    assert_eq!(names("\"x/a.csv\", \"y/a.csv\""), ["x/a.csv", "y/a.csv"]);

    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv");
    std::fs::write(
        &trace,
        "t_ns,op,sector512,nsect,flags,lat_ns\n0,W,0,8,,50000\n100000,W,8,8,,50000\n",
    )
    .unwrap();
    let grid = format!("seeds = 3\n[grid]\n\"capacity.op\" = 0.5\ntrace = \"{}\"", trace.display());
    let rows = run_in(folder.path(), &study(&grid).unwrap()).rows;
    assert_eq!(rows.iter().map(|row| row.seed).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rows.iter().all(|row| row.error.is_none()), "{:?}", rows[0].error);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let load = "workload = \"randwrite,bs=4KiB,requests=100\"";
    let cases = [
        ("[grid]\npreset = [\"s1\"]", "expected an axis trace or workload"),
        (&*format!("[grid]\nvictim = [\"fifo\"]\n{load}"), "expected a key of configurations"),
        (&*format!("[grid]\n\"ftl.victm\" = [\"fifo\"]\n{load}"), "ftl.victim"),
        (&*format!("[grid]\n\"ftl.victim\" = [\"best\"]\n{load}"), "best"),
        (&*format!("[grid]\npreset = [\"s1\", \"s1\"]\n{load}"), "expected every value once"),
        (&*format!("[grid]\nseed = [\"x\"]\n{load}"), "as seed"),
        (&*format!("[grid]\npreset = []\n{load}"), "at least one item"),
        (
            &*format!(
                "[grid]\npreset = [\"s1\"]\nsize = [\"8MiB\", \"16MiB\"]\nzip = [[\"preset\", \"size\"]]\n{load}"
            ),
            "as many values each",
        ),
        (
            &*format!("[grid]\npreset = [\"s1\"]\nzip = [[\"preset\", \"x\"]]\n{load}"),
            "expected an axis of this grid",
        ),
        (
            &*format!("[grid]\npreset = [\"s1\"]\n{load}\ntrace = \"a.csv\""),
            "either trace or workload",
        ),
        (
            &*format!("[grid]\npreset = [\"s1\"]\n{load}\n[[device]]\nlabel = \"x\""),
            "make it an axis",
        ),
        (
            &*format!("metrics = [\"latency_ns.write.p98\"]\n[grid]\npreset = \"s1\"\n{load}"),
            "did you mean `latency_ns.write.p9",
        ),
    ];
    for (grid, expected) in cases {
        let error = study(grid).unwrap_err();
        assert!(
            error.starts_with("tiny.toml, line ") && error.contains(expected),
            "{grid}: {error}"
        );
    }
    let many = format!(
        "[grid]\nseed = [{}]\n\"ftl.gc_start\" = [{}]\n{load}",
        list(200, 1.0),
        list(200, 0.001)
    );
    assert!(study(&many).unwrap_err().contains("expected at most 10000 points, not 40000"));
}

fn list(count: u32, factor: f64) -> String {
    let item = |number| format!("\"{}\"", f64::from(number) * factor);
    (1..=count).map(item).collect::<Vec<_>>().join(",")
}

/// Generated from the table of columns: `ONEFOLD_BLESS=1 cargo test -p onefold-study`.
#[test]
fn the_columns_are_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/study-columns.md");
    let text = onefold_study::columns_markdown();
    if std::env::var_os("ONEFOLD_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/study-columns.md is old: ONEFOLD_BLESS=1 cargo test -p onefold-study"
    );
}
