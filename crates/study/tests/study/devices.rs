//! Studies of devices: points are runs of the simulator.

use std::fmt::Write;
use std::path::Path;

use onefold_study::{Control, Options, Program, Progress, Study, Summary, report::Report, run};
use onefold_units::convert::float;

const TEXT: &str = r#"
schema = "onefold.study/1"
kind = "devices"
name = "tiny"
preset = "s1"
size_key = "ftl.remap_log"
sizes = ["6KiB", "1MiB"]
set = ["geometry.channels=1", "geometry.ways=1", "geometry.blocks=32", "geometry.pages=128",
       "capacity.logical=0.6", "ftl.trim_log=4KiB", "precondition.overwrite=1", "dedup.content=iid_zipf"]

[[device]]
label = "NoRemap"
sized = false
[[device]]
label = "GN"
set = ["ftl.remap=gn", "dedup.fingerprints=10000"]
[[device]]
label = "Opt"
set = ["ftl.remap=opt", "dedup.fingerprints=10000"]
sized = false

[[workload]]
name = "randw"
workload = "randwrite,bs=4KiB,qd=4,requests=2000"

[[check]]
id = "C1"
text = "deduplication saves programs, and a small log keeps it from doing so"
metric = "waf"
claims = ["NoRemap > GN@6KiB > GN@1MiB >= Opt"]
"#;

fn study(text: &str) -> Result<Study, String> {
    Study::parse(Path::new("tiny.toml"), text).map_err(|error| error.to_string())
}

fn options(folder: &Path, policies: &[&str]) -> Options {
    Options {
        threads: 2,
        only: Vec::new(),
        policies: policies.iter().map(|label| (*label).to_owned()).collect(),
        scale: 1.0,
        memory_bytes: 0,
        folder: folder.to_path_buf(),
        program: Program::default(),
    }
}

/// Interrupted or not, with any number of threads: only CPU seconds may differ.
fn numbers(summary: &Summary) -> Vec<(String, u64, f64)> {
    let device = |row: &onefold_study::Row| row.result.as_ref().map_or(0.0, |run| run.waf);
    summary.rows.iter().map(|row| (row.label.clone(), row.size_bytes, device(row))).collect()
}

#[test]
fn points_are_computed_once_and_stand_for_all_sizes() {
    let study = study(TEXT).unwrap();
    let (once, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = run(&study, &options(once.path(), &[]), &Control::default()).unwrap();
    assert_eq!((whole.computed, whole.found, whole.left), (4, 0, 0), "two of three have one size");
    assert_eq!(whole.rows.len(), 6);
    assert!(whole.rows.iter().all(|row| row.error.is_none()), "{:?}", whole.rows);
    let checks = Report::new(&study, &whole.rows).checks;
    assert!(checks[0].is_as_expected(), "{:?}", checks[0].cases);

    let part = options(parts.path(), &["GN"]);
    assert_eq!(run(&study, &part, &Control::default()).unwrap().computed, 2);
    let rest = Options { threads: 1, ..options(parts.path(), &[]) };
    let rest = run(&study, &rest, &Control::default()).unwrap();
    assert_eq!((rest.computed, rest.found), (2, 2));
    assert_eq!(numbers(&rest), numbers(&whole));
}

#[test]
fn wrong_files_are_refused_with_the_reason() {
    for (from, to, reason) in [
        ("ftl.remap=gn", "ftl.remap=gm", "GN: --set: ftl.remap is"),
        ("kind = \"devices\"", "kind = \"device\"", "or leave it out"),
        ("metric = \"waf\"", "metric = \"absorption\"", "expected one of bandwidth, waf"),
        ("= \"randwrite", "= \"randwrit", "workload is"),
        ("\"GN\"", "\"Opt\"", "expected every label once"),
        ("set = [\"ftl.remap=opt\"", "set = [\"ftl.remap\"", "expected KEY=VALUE"),
        ("requests=2000\"", "requests=2000\"\ntrace = \"x\"", "either workload or trace"),
    ] {
        let found = study(&TEXT.replacen(from, to, 1)).expect_err(to);
        assert!(found.contains(reason), "{to}: {found}");
    }
}

/// A device with tenants, and a study that leaves the load to them.
const SHARED: &str = r#"
[geometry]
channels = 1
ways = 1
blocks = 32
pages = 128

[capacity]
logical = 0.6

[[tenant]]
name = "hot"
workload = "randwrite,bs=4KiB,dist=zipf:1.0,requests=2k"
range = "0..30%"

[[tenant]]
name = "log"
workload = "write,bs=64KiB,requests=200"
range = "30%..100%"
"#;

const OF_TENANTS: &str = r#"
schema = "onefold.study/1"
kind = "devices"
name = "shared"
config = "shared.toml"
size_key = "buffer.size"
sizes = ["1MiB", "2MiB"]

[[device]]
label = "LRU"
[[device]]
label = "AOI"
set = ["buffer.policy=aoi:channels=1,ways=1"]

[[workload]]
name = "both"
tenants = true

[[check]]
id = "C1"
text = "both tenants run"
metric = "ops_per_s"
claims = ["LRU > 0"]
"#;

#[test]
fn tenants_of_a_configuration_file_are_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.toml");
    std::fs::write(&file, SHARED).unwrap();
    let parse = |text: &str| {
        Study::parse(&folder.path().join("study.toml"), text).map_err(|error| error.to_string())
    };
    let study = parse(OF_TENANTS).unwrap();
    let whole = run(&study, &options(folder.path(), &[]), &Control::default()).unwrap();
    assert_eq!((whole.computed, whole.rows.len()), (4, 4));
    for row in &whole.rows {
        let host = &row.result.as_ref().unwrap().host;
        assert_eq!(host.write_requests, 2200, "{:?}", row.error);
    }
    for (from, to, reason) in [
        ("tenants = true", "tenants = false", "expected true, or leave it out"),
        ("tenants = true", "tenants = true\nworkload = \"write\"", "expected either workload or"),
        ("config =", "preset = \"s1\"\nconfig =", "expected either preset or config, not both"),
        ("config = \"shared.toml\"", "preset = \"s1\"", "a configuration with tenants"),
        ("shared.toml", "missing.toml", "missing.toml"),
    ] {
        let found = parse(&OF_TENANTS.replacen(from, to, 1)).expect_err(to);
        assert!(found.contains(reason), "{to}: {found}");
    }
    // The identity of a point has no digest of a trace of a tenant.
    let traced = SHARED.replace("workload = \"write,bs=64KiB,requests=200\"", "trace = \"a.csv\"");
    std::fs::write(&file, traced).unwrap();
    assert!(parse(OF_TENANTS).expect_err("a trace").contains("tenants that have a workload"));
}

/// A zoned volume below ext4 with its journal, with and without a zone of its own.
const ZONED: &str = r#"
schema = "onefold.study/1"
kind = "devices"
name = "journal"
preset = "choi2022"
size_key = "namespace.zone_size"
sizes = ["16MiB"]
seeds = 3
set = ["geometry.pages=64", "geometry.blocks=257", "zoned.journal_offset=160MiB", "zoned.journal_size=16MiB"]

[[device]]
label = "off"
[[device]]
label = "one"
set = ["zoned.journal=one"]

[[workload]]
name = "journal"
workload = "like-ext4-journal,file=1GiB,fill=false,journal=16MiB,journal_at=160MiB,commit=200,qd=32,requests=3k"

[[figure]]
metric = "journal_moves"
kind = "zones"
[[figure]]
metric = "valid_copies"
baseline = "off"
[[figure]]
metric = "valid_copies_regular"
kind = "table"
[[figure]]
metric = "valid_copies_zoned"
kind = "table"

[[check]]
id = "C1"
text = "what lies in a zone of its own is not copied, and does not move"
metric = "journal_copy_share"
claims = ["off > 0 >= one"]
"#;

/// A database on a small drive that it overwrites in full.
const OVER_TIME: &str = r#"
schema = "onefold.study/1"
name = "database"
preset = "femu32"
size_key = "ftl.remap_log"
sizes = ["32KiB"]
set = ["geometry.channels=1", "geometry.ways=1", "geometry.pages=64", "geometry.blocks=288", "capacity.logical=64MiB",
       "precondition.fill=0", "ftl.remap_mode=paper", "ftl.remap_refs=15", "ftl.remap_segment=128B",
       "run.remap_full=write", "run.window=100"]

[[device]]
label = "NoRemap"
sized = false
set = ["ftl.remap=none"]
[[device]]
label = "LN"
set = ["ftl.remap=ln"]
[[device]]
label = "LH"
set = ["ftl.remap=lh"]

[[workload]]
name = "fill"
workload = "like-sqlite-fillrandom,values=3000,frames=300,qd=4,checkpoint=remap"

[[figure]]
metric = "bandwidth"
kind = "series"
[[figure]]
metric = "stale_pages"
kind = "series"
policies = ["LH"]

[[check]]
id = "C1"
text = "the more is remapped, the sooner the drive is full: the load is bound by its programs"
metric = "gc_begins"
claims = ["LH < LN < NoRemap"]
[[check]]
id = "C2"
text = "with a small log remaps become copies, soon"
metric = "copies_begin"
claims = ["LN < 5000000000"]
[[check]]
id = "C3"
text = "bandwidth before collection is that of fewer programs"
metric = "bandwidth_before_gc"
claims = ["LH > 1.3 * NoRemap"]
[[check]]
id = "C4"
text = "and after it began it is less than what dies program"
metric = "bandwidth_after_gc"
claims = ["8.1 > NoRemap > 1"]
"#;

#[test]
fn a_series_is_drawn_and_checked_from_results_and_from_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let study = study(OVER_TIME).unwrap();
    let options = options(folder.path(), &[]);
    let rows = run(&study, &options, &Control::default()).unwrap().rows;
    let report = Report::new(&study, &rows);
    assert!(
        report.checks.iter().all(onefold_study::report::CheckData::is_as_expected),
        "{:?}",
        report.checks
    );
    let page = onefold_study::report::html(&study, &rows, &report);
    assert!(page.contains("virtual time"), "the series is drawn");
    let pictures = onefold_study::report::pictures(&study, &rows, &report);
    let lines = |at: usize| pictures[at].svg.matches("class=\"line\"").count();
    assert!(pictures.len() == 2 && lines(0) > lines(1) && lines(1) > 0, "a line for each device");
    // A table says the same.
    let (text, missing) = onefold_study::table(&study, &options).unwrap();
    let path = folder.path().join("kept.csv");
    std::fs::write(&path, text).unwrap();
    let read = onefold_study::read_table(&study, &options, &path).unwrap();
    let kept = Report::new(&study, &read.rows);
    assert_eq!((missing, read.absent.len(), &kept), (0, 0, &report));
    assert_eq!(onefold_study::report::pictures(&study, &read.rows, &kept), pictures);
    let refused = self::study(&OVER_TIME.replacen("\"bandwidth\"", "\"waf\"", 1)).unwrap_err();
    assert!(refused.contains("expected bandwidth, flash_pages"), "{refused}");
}

#[test]
fn numbers_are_means_over_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let study = study(ZONED).unwrap();
    let summary = run(&study, &options(folder.path(), &[]), &Control::default()).unwrap();
    assert_eq!(summary.computed, 6);
    let copies = |label: &str| -> Vec<f64> {
        let rows = summary.rows.iter().filter(|row| row.label == label);
        let volume = |row: &onefold_study::Row| row.result.clone()?.zoned_volume;
        rows.map(|row| float(volume(row).unwrap().valid_copies)).collect()
    };
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / 3.0;
    let (off, one) = (copies("off"), copies("one"));
    assert!(off.windows(2).any(|two| (two[0] - two[1]).abs() > 0.0), "seeds differ: {off:?}");
    let report = Report::new(&study, &summary.rows);
    assert!(
        report.checks.iter().all(onefold_study::report::CheckData::is_as_expected),
        "{:?}",
        report.checks
    );
    let shown: Vec<_> = report.figures[1].groups[0]
        .policies
        .iter()
        .map(onefold_study::report::Point::value)
        .collect();
    assert_eq!(shown, [Some(1.0), Some(mean(one) / mean(off.clone()))]);
    let first = |figure: usize| report.figures[figure].groups[0].policies[0].value().unwrap();
    let apart = [first(2), first(3)];
    assert!(apart[1] > 0.0, "{apart:?}");
    assert!((apart.iter().sum::<f64>() - mean(off)).abs() < 1e-6, "{apart:?}");
    let page = onefold_study::report::html(&study, &summary.rows, &report);
    assert!(page.contains("pages of the journal written"), "the zones of the journal are drawn");
    let refused = self::study(&ZONED.replace("seeds = 3", "seeds = 0")).unwrap_err();
    assert!(refused.contains("expected 1 to 100 seeds"), "{refused}");
}

/// No point reads the file of a trace again after the first one has.
#[test]
fn points_share_their_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    let mut lines = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
    for n in 0..3_000 {
        let _ = writeln!(lines, "{},W,{},8,,60000", n * 100_000, n * 7919 % 2000 * 8);
    }
    std::fs::write(&path, lines).unwrap();
    let load = format!("trace = \"{}\"", path.display());
    let text = TEXT.replace("workload = \"randwrite,bs=4KiB,qd=4,requests=2000\"", &load);
    let gone = |_: &Progress<'_>| drop(std::fs::remove_file(&path));
    let control = Control { interrupt: None, progress: Some(&gone) };
    let options = Options { threads: 1, ..options(folder.path(), &[]) };
    let summary = run(&study(&text).unwrap(), &options, &control).unwrap();
    let errors: Vec<_> = summary.rows.iter().filter_map(|row| row.error.as_ref()).collect();
    assert!(summary.computed >= 4 && errors.is_empty(), "{}: {errors:?}", summary.computed);
    assert!(!path.exists());
}
