//! `onefold trace` as a user runs it: output, messages and exit codes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A fresh file of this test; tests run side by side, so each has its own name.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path
}

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("trace").args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Standard error on one line: messages are wrapped to the width of a terminal.
fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).replace('\u{2502}', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn info(path: &Path) -> Value {
    let output = run(&["info", text(path), "--format", "json"]);
    assert!(output.status.success(), "{}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn info_prints_one_object_per_file() {
    let csv = recorded("rec-sqlite-wal-ext4.csv.zst");
    let log = recorded("rec-sqlite-wal-nbdkit-filter-log.txt.zst");
    let output = run(&["info", text(&csv), text(&log), "--format", "json"]);
    assert!(message(&output).contains("Onefold CSV, ns, 512 B sectors (zstd), 38,092 requests"));
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["schema"], "onefold.trace_info/1");
    for (key, value) in [
        ("requests", 38_092_u64),
        ("reads", 58),
        ("writes", 22_411),
        ("flushes", 15_611),
        ("trims", 4),
        ("zeroes", 8),
        ("read_bytes", 1_106_944),
        ("write_bytes", 352_366_592),
        ("footprint_bytes", 5_345 * 4_096),
        ("duration_ns", 17_772_884_000),
        ("skipped_lines", 0),
    ] {
        assert_eq!(lines[0][key], value, "{key}");
    }
    assert_eq!(lines[1]["format"], "nbdkit-log");
    assert_eq!(lines[1]["out_of_order"], 126);
}

/// Reads and writes of one size would hide each other's mix.
#[test]
fn info_tells_sizes_of_reads_and_writes_apart() {
    let rows = ["R,0,8", "R,0,8", "R,16,128", "W,0,128", "W,0,1", "W,0,1", "D,0,2048", "F,0,0"];
    let rows: Vec<String> =
        rows.iter().enumerate().map(|(at, row)| format!("{at},{row},,-1\n")).collect();
    let text = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned() + &rows.concat();
    let info = info(&file("sizes.csv", text.as_bytes()));
    let sizes = |key: &str| -> Vec<(u64, u64)> {
        let number = |size: &Value, key: &str| size[key].as_u64().unwrap();
        let list = info[key].as_array().unwrap().iter();
        list.map(|size| (number(size, "bytes"), number(size, "requests"))).collect()
    };
    assert_eq!(sizes("read_sizes"), [(4096, 2), (65_536, 1)]);
    assert_eq!(sizes("write_sizes"), [(512, 2), (65_536, 1)]);
    assert_eq!(sizes("sizes"), [(512, 2), (4096, 2), (65_536, 2)]);
}

#[test]
fn convert_and_sample() {
    let csv = recorded("rec-sqlite-wal-ext4.csv.zst");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let before = info(&csv);
    for format in ["oft", "parquet", "onefold-csv"] {
        let to = folder.join(format!("convert.{format}"));
        let output = run(&["convert", text(&csv), "--to", format, "--force", "-o", text(&to)]);
        assert!(output.status.success(), "{}", message(&output));
        assert!(!message(&output).contains("lost"), "{}", message(&output));
        let after = info(&to);
        for (key, value) in before.as_object().unwrap() {
            let differs = ["path", "format", "interpretation", "sha256", "devices"];
            assert!(differs.contains(&key.as_str()) || &after[key] == value, "{format} {key}");
        }
    }
    let to = folder.join("convert.msr");
    let output = run(&["convert", text(&csv), "--to", "msr", "--force", "-o", text(&to)]);
    assert!(message(&output).contains("lost: 15623 requests left out"), "{}", message(&output));
    let to = folder.join("sample.oft");
    let mut requests = Vec::new();
    for every in ["1", "4"] {
        let arguments = [
            "sample",
            text(&csv),
            "--to",
            "oft",
            "--until",
            "5s",
            "--every",
            every,
            "--force",
            "-o",
            text(&to),
        ];
        assert!(run(&arguments).status.success());
        let sample = info(&to);
        assert!(sample["duration_ns"].as_u64().unwrap() < 5_000_000_000);
        requests.push(sample["requests"].as_u64().unwrap());
    }
    assert!(requests[0] < 38_092 && requests[1] < requests[0], "{requests:?}");
}

#[test]
fn generate_is_decided_by_the_seed() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let bytes = |name: &str, seed: &str| {
        let to = folder.join(name);
        let spec = "randwrite,bs=4KiB,rate=10000,requests=2k";
        let output = run(&[
            "generate",
            spec,
            "--to",
            "oft",
            "--seed",
            seed,
            "--force",
            "-o",
            text(&to),
            "--size",
            "64MiB",
        ]);
        assert!(output.status.success(), "{}", message(&output));
        assert_eq!(info(&to)["requests"], 2_000);
        fs::read(to).unwrap()
    };
    assert!(bytes("generate.1", "1") == bytes("generate.2", "1"));
    assert!(bytes("generate.1", "1") != bytes("generate.2", "2"));
    let wrong = run(&["generate", "randwrong", "--to", "oft", "-o", "/dev/null"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn look_alikes_are_listed_generated_and_counted() {
    let list = run(&["generate", "--list"]);
    let words = String::from_utf8(list.stdout).unwrap();
    let line = words.lines().find(|line| line.starts_with("like-hm_0 ")).unwrap();
    assert!(line.contains("66.5 % of the blocks written"), "{line}");
    let json = run(&["generate", "--list", "--format", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["workloads"].as_array().unwrap().len(), words.lines().count());

    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("like-hm_0.oft");
    let output = run(&["generate", "like-hm_0,requests=100k", "--force", "-o", text(&to)]);
    assert!(output.status.success(), "{}", message(&output));
    let info = info(&to);
    assert_eq!(info["requests"], 100_000);
    let near = |key: &str, wanted: f64, tolerance: f64| {
        let found = info[key].as_f64().unwrap();
        assert!((found - wanted).abs() <= tolerance, "{key} is {found}, expected {wanted}");
    };
    near("rewrite_share", 0.907, 0.02);
    near("top1_write_share", 0.425, 0.05);
    near("unaligned_share", 0.212, 0.03);
    near("multi_page_share", 0.217, 0.03);

    let wrong = run(&["generate", "like-hm0", "-o", "/dev/null"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(message(&wrong).contains("did you mean `like-hm_0`?"), "{}", message(&wrong));
}

#[test]
fn bad_traces_exit_with_4_and_one_reason() {
    let good = "1,W,4096,4096,5\n".repeat(40);
    let zstd = fs::read(recorded("rec-sqlite-wal-ext4.csv.zst")).unwrap();
    let cases: [(&str, Vec<u8>, &[&str], &str); 6] = [
        ("empty", Vec::new(), &[], "the file is empty, expected a trace"),
        ("text", b"not a trace\n".to_vec(), &[], "no known trace format fits"),
        ("line", format!("{good}1,W,x,4096,5\n").into_bytes(), &[], "line 41, column 5 (byte 644)"),
        ("named", good.clone().into_bytes(), &["--trace-format", "msr"], "line 1, column"),
        ("cut", zstd[..zstd.len() / 2].to_vec(), &[], "zstd data is damaged or cut off"),
        ("ioda", b"0.5 0 4096 16384 1\n".to_vec(), &[], "could be ioda or disksim"),
    ];
    for (name, bytes, options, expected) in cases {
        let path = file(&format!("bad.{name}"), &bytes);
        let mut arguments = vec!["info", text(&path)];
        arguments.extend(options);
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(4), "{name}: {}", message(&output));
        assert!(message(&output).contains(expected), "{name}: {}", message(&output));
        assert!(output.stdout.is_empty(), "{name}");
    }
    let path = file("bad.skip", format!("{good}1,W,x,4096,5\n").as_bytes());
    let output = run(&["info", text(&path), "--on-bad-line", "skip", "--format", "json"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"skipped_lines\":1"));
}

#[test]
fn wrong_options_exit_with_2() {
    let csv = recorded("rec-sqlite-wal-ext4.csv.zst");
    let csv = text(&csv);
    for (arguments, expected) in [
        (vec!["info", csv, "--trace-format", "mrs"], "trace format is `mrs`, expected one of msr"),
        (vec!["info", csv, "--trace-format", "msr:time=h"], "time=h"),
        (vec!["info", csv, "--format", "mqsim:time=us"], "--trace-format mqsim:time=us"),
        (vec!["info", csv, "--format", "html"], "this command draws no pictures"),
        (vec!["mrc", csv, "--sizes", "1MiB,6000"], "expected multiples of the page, 4KiB"),
        (vec!["mrc", csv, "--page", "3KiB"], "expected a power of two from 512B to 1MiB"),
        (vec!["mrc", csv, "--sample-rate", "0"], "expected a share"),
        (vec!["mrc", csv, "--sample-pages", "0"], "expected a number from 1"),
        (vec!["info", csv, "--max-gap", "30"], "--max-gap is `30`, expected a time with a unit"),
        (vec!["convert", csv, "--to", "xml", "-o", "x"], "--to is `xml`, expected one of oft"),
        (vec!["convert", csv, "--to", "oft"], "-o is missing"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains(expected), "{arguments:?}: {}", message(&output));
    }
    let missing = run(&["info", "/nonexistent/trace"]);
    assert_eq!(missing.status.code(), Some(1), "{}", message(&missing));
}

/// Quiet is quiet: an error or nothing, unless data was asked for.
#[test]
fn quiet_prints_no_table() {
    let csv = recorded("rec-sqlite-wal-ext4.csv.zst");
    for command in ["info", "mrc"] {
        let output = run(&[command, text(&csv), "-q"]);
        assert!(output.status.success());
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{}", message(&output));
        let output = run(&[command, text(&csv), "-q", "--format", "json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap();
        assert!(output.stderr.is_empty());
        let table = file("quiet.table", b"");
        assert!(run(&[command, text(&csv), "-q", "-o", text(&table)]).status.success());
        assert!(fs::read_to_string(&table).unwrap().lines().count() > 10);
    }
    let wrong = run(&["info", "/nonexistent/trace", "-q"]);
    assert!(message(&wrong).contains("cannot open"), "{}", message(&wrong));
}

fn curve(name: &str, options: &[&str]) -> Value {
    let sizes = "64KiB,256KiB,1MiB,4MiB,8MiB,16MiB,32MiB,64MiB,128MiB,256MiB,512MiB,1GiB";
    let path = recorded(name);
    let mut arguments = vec!["mrc", text(&path), "--format", "json", "--sizes", sizes];
    arguments.extend(options);
    let output = run(&arguments);
    assert!(output.status.success(), "{}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// docs/traces.md says how far a sample may be from the exact curve.
#[test]
fn a_sampled_curve_is_near_the_exact_one() {
    for name in
        ["rec-sqlite-wal-ext4.csv.zst", "rec-btrfs-ffsb-mixed.oft.zst", "rec-xfs-fio-rand.oft.zst"]
    {
        let exact = curve(name, &[]);
        assert_eq!(exact["schema"], "onefold.trace_mrc/1");
        for sampling in [["--sample-pages", "8k"], ["--sample-rate", "0.1"]] {
            for seed in ["0", "1", "2"] {
                let near = curve(name, &[&sampling[..], &["--seed", seed]].concat());
                assert!(near["sampled_pages"].as_u64().unwrap() <= 8000, "{name} {sampling:?}");
                let ratios = |curve: &Value| -> Vec<f64> {
                    let points = curve["points"].as_array().unwrap().iter();
                    points.map(|at| at["miss_ratio"].as_f64().unwrap()).collect()
                };
                let (exact, near) = (ratios(&exact), ratios(&near));
                let far: f64 = exact.iter().zip(&near).map(|(a, b)| (a - b).abs()).sum();
                assert!(far / 12.0 < 0.03, "{name} {sampling:?} {seed}: {exact:?} {near:?}");
            }
        }
    }
}

/// The curve is what the simulator's buffer does with the same requests.
#[test]
fn the_curve_is_the_buffer_of_the_simulator() {
    let trace = recorded("rec-sqlite-wal-ext4.csv.zst");
    let exact = curve("rec-sqlite-wal-ext4.csv.zst", &[]);
    for (at, size) in [(2, "1MiB"), (4, "8MiB")] {
        let size = format!("buffer.size={size}");
        let output = Command::new(env!("CARGO_BIN_EXE_onefold"))
            .args(["sim", "run", "--preset", "s1", "--set", "buffer.policy=lru", "--set", &size])
            .args(["--trace", text(&trace), "--format", "json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", message(&output));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hits = result["buffer"]["hit_ratio"].as_f64().unwrap();
        let misses = exact["points"][at]["miss_ratio"].as_f64().unwrap();
        assert!((hits + misses - 1.0).abs() < 1e-9, "{size}: {hits} {misses}");
    }
}

#[test]
fn the_curve_is_drawn() {
    let csv = recorded("rec-sqlite-wal-ext4.csv.zst");
    let output = run(&["mrc", text(&csv), "--per-doubling", "4", "--format", "html"]);
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("size of the buffer"));
    assert!(page.matches("class=\"line\"").count() >= 3, "{}", page.len());
}

/// What does not fit any format names the format that comes closest, and why that one fails.
#[test]
fn an_unknown_format_names_the_closest_one() {
    let lines = "128166372003061629,usr,0,write,8192,4096,1331\n".repeat(3);
    let output = run(&["info", text(&file("closest.csv", lines.as_bytes()))]);
    assert_eq!(output.status.code(), Some(4));
    let said = message(&output);
    for part in
        ["closest is msr", "line 1, column 26", "expected Read or Write", "--trace-format msr"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_foreign_compression_is_named() {
    let path = file("foreign.bz2", b"BZh91AY&SY\x01\x02\x03");
    for options in [&[][..], &["--trace-format", "msr"]] {
        let output = run(&[&["info", text(&path)], options].concat());
        assert_eq!(output.status.code(), Some(4));
        assert!(message(&output).contains("compressed with bzip2"), "{}", message(&output));
    }
}

/// `--on-bad-line skip` was advised for a damaged recording, where it does nothing. What lies before the
/// damage can be kept, and the advice says how.
#[test]
fn a_damaged_recording_gets_advice_that_works() {
    let (spec, whole) = ("randwrite,requests=20k,rate=1000", file("whole.oft", b""));
    assert!(run(&["generate", spec, "-q", "-o", text(&whole)]).status.success());
    let mut bytes = fs::read(&whole).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xFF;
    let damaged = file("damaged.oft", &bytes);
    for options in [&[][..], &["--on-bad-line", "skip"]] {
        let output = run(&[&["info", text(&damaged)], options].concat());
        assert_eq!(output.status.code(), Some(4));
        let said = message(&output);
        assert!(!said.contains("--on-bad-line"), "{said}");
        let kept = said.split("`head -c ").nth(1).unwrap().split(' ').next().unwrap();
        let part = file("part.oft", &bytes[..kept.parse().unwrap()]);
        let requests = info(&part)["requests"].as_u64().unwrap();
        assert!((5_000..20_000).contains(&requests), "{requests}");
    }
}
