//! `onefold study` as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const STUDY: &str = r#"
schema = "onefold.study/1"
name = "demo"
device = "64MiB"
sizes = ["256KiB", "1MiB"]
policies = ["lru", { policy = "2l", label = "two levels" }]
bounds = ["alone", "min-alone"]
[[workload]]
name = "A"
[[workload.source]]
name = "stream"
workload = "write,bs=64KiB,bytes=32MiB"
size = "32MiB"
share = 9
[[workload.source]]
name = "hot"
workload = "randrw,bs=4KiB,dist=zipf:1.0,requests=10k"
offset = "32MiB"
share = 1
role = "target"
"#;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("demo.toml"), STUDY).unwrap();
    folder
}

fn onefold(folder: &Path, arguments: &str) -> Output {
    let arguments = arguments.split_whitespace();
    let binary = env!("CARGO_BIN_EXE_onefold");
    Command::new(binary).arg("study").args(arguments).current_dir(folder).output().unwrap()
}

/// Standard error on one line: messages are wrapped to the width of a terminal.
fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).replace('\u{2502}', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", message(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn run_status_and_report() {
    let folder = folder("study");
    let table = stdout(&onefold(&folder, "status demo.toml"));
    assert!(table.contains("A                     0      0      8  -"), "{table}");
    let first = onefold(&folder, "run demo.toml --threads 2 --policy lru");
    assert!(
        message(&first).starts_with("2 points computed (0 failed), 0 were there: demo-results")
    );
    let json: serde_json::Value = serde_json::from_str(&stdout(&onefold(
        &folder,
        "run demo.toml -o demo-results --format json",
    )))
    .unwrap();
    assert_eq!((&json["schema"], &json["partial"]), (&"onefold.study/1".into(), &false.into()));
    assert_eq!(
        (json["rows"].as_array().unwrap().len(), &json["rows"][2]["label"]),
        (8, &"two levels".into())
    );
    let status = stdout(&onefold(&folder, "status demo.toml --format json"));
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(
        (&status["workloads"][0]["done"], &status["workloads"][0]["left"]),
        (&8.into(), &0.into())
    );
    let html = stdout(&onefold(&folder, "report demo.toml"));
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("two levels"));
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    let text = stdout(&onefold(&folder, "report demo.toml --format table"));
    assert!(text.starts_with("Hit ratio of the target (%)\n\n  A\n"), "{text}");
    let report =
        stdout(&onefold(&folder, "report demo.toml --results demo-results -o report.html"));
    assert_eq!(
        (report.as_str(), fs::read_to_string(folder.join("report.html")).unwrap()),
        ("", html)
    );
    for file in ["results.jsonl", "results.json", "results.parquet"] {
        assert!(folder.join("demo-results").join(file).exists());
    }
}

#[test]
fn refusals_have_their_exit_codes() {
    let folder = folder("study-refusals");
    let study = |old: &str, new: &str| {
        fs::write(folder.join("bad.toml"), STUDY.replacen(old, new, 1)).unwrap();
    };
    let refused = |arguments: &str, code: i32, expected: &str| {
        let output = onefold(&folder, arguments);
        assert_eq!(output.status.code(), Some(code), "{}", message(&output));
        assert!(message(&output).contains(expected), "{}", message(&output));
        assert!(output.stdout.is_empty());
    };
    refused("run nothing.toml", 2, "cannot read the study nothing.toml");
    refused("run demo.toml --only B", 2, "expected a workload of the study: A");
    refused("run demo.toml --policy x", 2, "policy or bound of the study: lru, two levels, alone");
    refused("run demo.toml --scale 2", 2, "--scale is 2, expected a number above 0 and at most 1");
    refused("run demo.toml --memory 4Gi", 2, "an unknown unit; expected a size");
    refused("run demo.toml --threads 0", 2, "threads");
    refused("run demo.toml --results a -o b", 2, "expected one");
    refused("report demo.toml", 1, "no results of this study are in demo-results");
    study("sizes", "sises");
    refused("run bad.toml", 3, "did you mean `sizes`?");
    study("offset = \"32MiB\"", "offset = \"31MiB\"");
    refused("run bad.toml", 3, "start at 31MiB, expected at least 32MiB");
    study("workload = \"write,bs=64KiB,bytes=32MiB\"", "trace = \"demo.toml\"");
    refused("status bad.toml", 4, "demo.toml");
    study("workload = \"write,bs=64KiB,bytes=32MiB\"", "trace = \"missing.csv\"");
    refused("run bad.toml", 1, "workload A: cannot open");
}

#[test]
fn the_studies_of_the_repository_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-such-results");
    for (study, left) in [
        ("jeong2021", 14 * 22 * 5),
        ("jeong2021-areas", 8 * 8),
        ("jeong2021-small", 15 * 22 * 2),
        ("jeong2021-latency", 5 * 5 * 2),
        ("jeong2021-reads", 52 * 5 * 2),
        ("deletes", 45),
        ("rocksdb", 3 * 16 * 4),
        ("orderings", (4 * 2 + 3) * 15),
    ] {
        let arguments =
            format!("status studies/{study}.toml --format json --results {}", results.display());
        let status: serde_json::Value =
            serde_json::from_str(&stdout(&onefold(&root, &arguments))).unwrap();
        let workloads = status["workloads"].as_array().unwrap();
        let sum: u64 = workloads.iter().map(|workload| workload["left"].as_u64().unwrap()).sum();
        assert_eq!(sum, left, "{study}");
    }
}

/// A new key, for example, gives points another digest, and `make papers` finds no numbers in the table then.
#[test]
fn kept_tables_belong_to_their_studies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tables = fs::read_dir(root.join("docs/papers/results")).unwrap();
    let tables: Vec<_> = tables.map(|entry| entry.unwrap().path()).collect();
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        let study = table.file_stem().unwrap().to_str().unwrap();
        let arguments = format!(
            "report studies/{study}.toml --format table --results docs/papers/results/{study}.csv"
        );
        let report = onefold(&root, &arguments);
        assert!(report.status.success(), "{study}: {}", message(&report));
        assert!(!message(&report).contains("other versions"), "{study}: {}", message(&report));
    }
}

/// The numbers of a check decide the exit code, and what is known to fail must fail.
#[test]
fn check_compares_with_what_the_study_says() {
    let folder = folder("study-check");
    stdout(&onefold(&folder, "run demo.toml -q"));
    let none = onefold(&folder, "check demo.toml");
    assert_eq!(none.status.code(), Some(3), "{}", message(&none));
    assert!(message(&none).contains("demo.toml has no [[check]]"));
    let write = |name: &str, claim: &str, rest: &str| {
        let check = format!(
            "\n[[check]]\nid = \"X1\"\ntext = \"Words.\"\nmetric = \"target_hit_ratio\"\n\
             claims = [\"{claim}\"]\n{rest}"
        );
        fs::write(folder.join(name), STUDY.to_owned() + &check).unwrap();
    };
    let known = "expect = \"fails\"\nreason = \"It is a demo.\"\n";
    write("good.toml", "min-alone >= alone, lru, two levels", "");
    write("known.toml", "min-alone < alone", known);
    write("bad.toml", "min-alone < alone", "");
    write("news.toml", "min-alone >= alone", known);
    for (name, code, expected) in [
        ("good", 0, "X1 holds (2 of 2 hold): Words."),
        ("known", 0, "X1 fails (0 of 2 hold), as is known: Words."),
        ("bad", 1, "X1 fails (0 of 2 hold): Words."),
        ("news", 1, "X1 holds (2 of 2 hold), but was known to fail: Words."),
    ] {
        let output = onefold(&folder, &format!("check {name}.toml --results demo-results"));
        assert_eq!(output.status.code(), Some(code), "{name}: {}", message(&output));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(text.starts_with(expected), "{text}");
        let told = message(&output);
        let ends = ["all 1 checks come out as expected", "1 of 1 checks do not come out"];
        assert!(told.contains(ends[usize::from(code != 0)]), "{told}");
    }
    let json = onefold(&folder, "check known.toml --results demo-results --format json");
    let json: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(
        (&json[0]["verdict"], &json[0]["check"]["expect"]),
        (&"fails".into(), &"fails".into())
    );
    write("wrong.toml", "lruu > alone", "");
    let wrong = onefold(&folder, "check wrong.toml");
    assert_eq!(wrong.status.code(), Some(3), "{}", message(&wrong));
    assert!(message(&wrong).contains("`lruu` has no target_hit_ratio"));
}

const PART: &str = "--only A --policy lru --policy alone";

/// Two workloads, two checks and two figures; `part` has the results of [`PART`], and `all` those of all points.
fn ran_in_parts(name: &str) -> PathBuf {
    let folder = folder(name);
    let second = STUDY.split_once("[[workload]]").unwrap().1.replacen("\"A\"", "\"B\"", 1);
    // Equal workloads would be one point.
    let second = second.replacen("requests=10k", "requests=11k", 1);
    let check = |id: &str, claim: &str| {
        format!(
            "[[check]]\nid = \"{id}\"\ntext = \"Words.\"\nmetric = \"target_hit_ratio\"\n\
             workloads = [\"A\"]\nclaims = [\"{claim}\"]\n"
        )
    };
    let checks = check("X1", "alone >= lru") + &check("X2", "two levels >= 0 * alone");
    let figures = "[[figure]]\nmetric = \"target_hit_ratio\"\n[[figure]]\ntitle = \"Levels\"\n\
        metric = \"total_hit_ratio\"\nabout = [\"two levels\"]\n";
    let study = format!("{STUDY}\n[[workload]]{second}\n{checks}{figures}");
    fs::write(folder.join("demo.toml"), study).unwrap();
    let ran = onefold(&folder, &format!("run demo.toml --results part {PART}"));
    assert!(message(&ran).starts_with("4 points computed (0 failed), 0 were there"));
    let said = stdout(&ran);
    assert!(!said.contains("two levels") && !said.contains("min-alone"), "{said}");
    fs::write(folder.join("said"), said).unwrap();
    stdout(&onefold(&folder, "run demo.toml --results all --quiet"));
    let export = |results: &str, options: &str| {
        let arguments = format!("export demo.toml --results {results} {options}");
        fs::write(folder.join(format!("{results}.csv")), stdout(&onefold(&folder, &arguments)))
    };
    export("part", PART).unwrap();
    export("all", "").unwrap();
    folder
}

/// Each command takes the same part, from results of the part as from results of all points. Before, `check` asked for what the
/// options left out, and `status` counted that as results of other versions.
#[test]
fn a_part_of_a_study_is_the_same_to_every_command() {
    let folder = ran_in_parts("study-part");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (said, export) = (read("said"), read("part.csv"));
    assert_eq!(export.lines().count(), 5);
    let line = "need what --only and --policy leave out";
    assert!(said.ends_with(&format!("\n1 figure and 1 check {line}\n")), "{said}");
    for results in ["part", "all", "part.csv", "all.csv"] {
        let in_part = |command: &str| {
            onefold(&folder, &format!("{command} demo.toml --results {results} {PART}"))
        };
        assert_eq!(stdout(&in_part("report --format table")), said, "{results}");
        let check = in_part("check");
        let told = message(&check);
        assert!(stdout(&check).starts_with("X1 holds (2 of 2 hold)"), "{results}: {told}");
        assert!(!stdout(&check).contains("X2"));
        let left_out = "1 check needs what --only and --policy leave out";
        assert_eq!(told, format!("{left_out} all 1 checks come out as expected"), "{results}");
        let json = stdout(&in_part("report --format json"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let counts = serde_json::json!({"figures": 1, "headlines": 0, "checks": 1});
        assert_eq!(json["left_out"], counts, "{results}");
        let drawn = in_part("report --figures drawn");
        assert_eq!(message(&drawn), format!("1 figures: drawn 1 figure and 1 check {line}"));
        if results.ends_with("csv") {
            let told = message(&in_part("verify"));
            assert!(told.starts_with("4 points were run again: all "), "{told}");
        } else {
            assert_eq!(stdout(&in_part("export")), export, "{results}");
            let status = stdout(&in_part("status"));
            let expected = "A                     4      0      0  0 seconds\n";
            assert!(status.ends_with(expected), "{status}");
        }
    }
}

/// What nobody computed stays an error, and a part without any check is no success.
#[test]
fn a_part_that_lacks_points_is_told() {
    let folder = ran_in_parts("study-part-lacks");
    for (arguments, expected) in [
        ("check part", "1 of 2 checks do not come out as expected: X2"),
        ("check part.csv", "12 points of the study are not in part.csv"),
        ("check part --only A", "1 of 2 checks do not come out as expected: X2"),
        ("check part --policy two", "--policy is `two`, expected a policy or bound of the study"),
        (
            "check all --only B",
            "no check is left: 2 checks need what --only and --policy leave out",
        ),
        ("check part --only B", "no results of this study are in part"),
        ("verify part.csv --only B", "part.csv has no numbers of the chosen points"),
    ] {
        let (command, rest) = arguments.split_once(' ').unwrap();
        let refused = onefold(&folder, &format!("{command} demo.toml --results {rest}"));
        assert!(!refused.status.success(), "{arguments}");
        assert!(message(&refused).contains(expected), "{arguments}: {}", message(&refused));
    }
}

/// A grid without a file: it is run once, reported from its folder, and leaves what is not its own alone.
#[test]
fn a_grid_needs_no_file() {
    let folder = folder("study-grid");
    let grid = "grid --preset s1,tlc --set geometry.blocks=64 --set geometry.pages=64 \
        --set capacity.op=28%,50% --workload randwrite,bs=4KiB,requests=500 --seeds 1,2 -o drives";
    let first = onefold(&folder, grid);
    let table = stdout(&first);
    assert!(message(&first).starts_with("8 points computed (0 failed), 0 were there: drives"));
    assert!(table.contains("tlc     50%") && table.contains("by capacity.op"), "{table}");
    let again = onefold(&folder, &format!("{grid} --threads 1"));
    assert!(message(&again).starts_with("0 points computed (0 failed), 8 were there"));
    assert_eq!(stdout(&again), table);
    let best = stdout(&onefold(&folder, "report drives/grid.toml --best waf"));
    assert!(best.starts_with("The lowest waf of each load"), "{best}");
    let page = stdout(&onefold(&folder, "report drives/grid.toml -o page.html"));
    assert!(
        page.is_empty()
            && fs::read_to_string(folder.join("page.html")).unwrap().contains("By preset")
    );

    for (arguments, expected) in [
        ("report drives/grid.toml --best waff", "--best is `waff`, expected one of"),
        ("report drives/grid.toml --by ftl.victim", "--by is `ftl.victim`, expected an axis"),
        ("grid --by ftl.victim --workload randwrite -o y", "an axis of the study: workload, seed"),
        ("grid --preset s1 --workload randwrite --set ftl.victim=x -o y", "randwrite, s1: --set: "),
        ("grid --preset s1", "--trace"),
        ("grid --set ftl.victm=fifo --workload randwrite -o x", "did you mean `ftl.victim`?"),
        ("grid --set ftl.victim --workload randwrite -o x", "expected KEY=VALUE"),
        ("grid --preset s1 --trace no.csv -o x", "no.csv"),
    ] {
        let refused = onefold(&folder, arguments);
        assert!(!refused.status.success(), "{arguments}");
        assert!(message(&refused).contains(expected), "{arguments}: {}", message(&refused));
    }
    assert!(!folder.join("y").exists(), "refused before anything runs");
    let vain = "grid --preset tlc --size 4GiB --set capacity.op=0.07 --workload randwrite -o vain";
    let vain = onefold(&folder, vain);
    assert_eq!(vain.status.code(), Some(1), "{}", message(&vain));
    assert!(message(&vain).contains("(1 failed)"), "{}", message(&vain));
    fs::write(folder.join("drives/grid.toml"), "mine").unwrap();
    let refused = onefold(&folder, grid);
    assert!(message(&refused).contains("is a file of somebody else"), "{}", message(&refused));
    assert_eq!(fs::read_to_string(folder.join("drives/grid.toml")).unwrap(), "mine");
}

/// A row per request of `sim run`, in a file that is not there before.
#[test]
fn a_simulation_logs_each_request() {
    let folder = folder("study-log");
    let run = |log: &str| {
        let load = "randwrite,bs=4KiB,requests=500";
        let arguments = ["sim", "run", "--workload", load, "--latency-log", log];
        let binary = env!("CARGO_BIN_EXE_onefold");
        Command::new(binary).args(arguments).current_dir(&folder).output().unwrap()
    };
    assert!(run("log.csv").status.success());
    let log = fs::read_to_string(folder.join("log.csv")).unwrap();
    assert_eq!(log.lines().count(), 501);
    assert!(log.starts_with(
        "pass,number,tenant,op,fua,offset,bytes,issued_ns,latency_ns,waited_for\n1,0,host,write,0,"
    ));
    let refused = run("log.csv");
    assert!(message(&refused).contains("log.csv exists, expected a new file"));
    assert!(message(&run("no/log.csv")).contains("cannot write the latency log no/log.csv"));
}

#[test]
fn export_is_read_back_and_verified() {
    let folder = folder("study_export");
    stdout(&onefold(&folder, "run demo.toml --threads 2 --quiet"));
    let made = onefold(&folder, "export demo.toml -o demo.csv");
    assert!(message(&made).starts_with("table of 8 points: demo.csv"), "{}", message(&made));
    let kept = fs::read_to_string(folder.join("demo.csv")).unwrap();
    assert!(kept.starts_with("workload,label,size_bytes,seed,point,error"), "{kept}");
    assert_eq!(kept.lines().count(), 9);

    let table = |results: &str| {
        stdout(&onefold(&folder, &format!("report demo.toml --format table --results {results}")))
    };
    assert_eq!(table("demo.csv"), table("demo-results"));
    let drawn = onefold(&folder, "report demo.toml --results demo.csv --figures drawn");
    assert_eq!((stdout(&drawn), message(&drawn)), (String::new(), "2 figures: drawn".to_owned()));
    let svg = fs::read_to_string(folder.join("drawn/demo-hit-ratio-of-the-target.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.len() < 60_000);

    let same = onefold(&folder, "verify demo.toml --results demo.csv --points 3");
    assert!(same.status.success());
    assert!(message(&same).starts_with("3 points were run again: all "), "{}", message(&same));
    let refused = [
        ("verify demo.toml", "--results names no table"),
        (
            "run demo.toml --results demo.csv",
            "expected a folder: a run keeps more than a table has",
        ),
        ("status demo.toml --results demo.csv", "expected a folder"),
        ("export demo.toml --results demo.csv", "expected a folder"),
        ("export demo.toml --format json", "the table is CSV"),
        ("report demo.toml --results none.csv", "cannot read none.csv"),
    ];
    for (arguments, expected) in refused {
        let output = onefold(&folder, arguments);
        assert!(
            !output.status.success() && message(&output).contains(expected),
            "{}",
            message(&output)
        );
    }
    // Every number of every line is another.
    fs::write(folder.join("demo.csv"), kept.replace("0.", "1.")).unwrap();
    let other = onefold(&folder, "verify demo.toml --results demo.csv");
    assert_eq!(other.status.code(), Some(1));
    let text = message(&other);
    assert!(
        text.contains(" in the table and ") && text.contains("are not those of demo.csv"),
        "{text}"
    );
}
