//! `onefold report` as a user runs it.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const RUN: &str = r#"{"schema": "onefold.sim/1", "onefold": {"version": "0.1.0", "commit": ""},
 "seed": 11, "config": {"geometry": {"channels": 8}}, "trace": null, "workload": "randread<&>",
 "host": {"read_requests": 5, "read_pages": 5}, "flash": {"read_pages": {"user": 5}},
 "ftl": {}, "waf": 0.0, "latency_ns": {"read": {"count": 5, "mean": 133000.0}},
 "virtual_ns": 1000000, "device": {"name": "s1"}}"#;

/// A fresh file of this test; tests run side by side, so each has its own name.
fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path
}

fn onefold() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
    command.arg("report");
    command
}

fn with_stdin(mut command: Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A command that refuses its arguments ends without reading its input.
    let written = child.stdin.take().unwrap().write_all(input.as_bytes());
    assert!(written.is_ok() || written.unwrap_err().kind() == ErrorKind::BrokenPipe);
    child.wait_with_output().unwrap()
}

/// Standard error on one line: messages are wrapped to the width of a terminal.
fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).replace('\u{2502}', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_report_goes_to_the_file_or_to_standard_output() {
    let run = file("report-run.json", RUN);
    let report = run.with_file_name("report-run.html");
    let _ = fs::remove_file(&report);
    let output = onefold().arg(&run).arg("-o").arg(&report).output().unwrap();
    assert!(output.status.success(), "{}", message(&output));
    assert!(output.stdout.is_empty());
    let html = fs::read_to_string(&report).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("randread&lt;&amp;&gt;"));

    let mut command = onefold();
    command.arg("-").arg(&run);
    let output = with_stdin(command, RUN);
    assert!(output.status.success(), "{}", message(&output));
    assert!(String::from_utf8(output.stdout).unwrap().contains("2 runs compared"));
}

#[test]
fn a_file_that_is_no_result_is_refused_by_name() {
    let cases = [
        ("report-cut.json", &RUN[..100], "truncated"),
        ("report-text.json", "read 0 8", "not JSON"),
        ("report-empty.json", "", "is empty"),
        ("report-other.json", "{\"a\": 1}", "no key `schema`"),
        ("report-short.json", "{\"schema\": \"onefold.sim/1\"}", "missing field"),
        ("report-newer.json", "{\"schema\": \"onefold.sim/9\"}", "upgrade"),
    ];
    let good = file("report-good.json", RUN);
    for (name, content, expected) in cases {
        let path = file(name, content);
        let output = onefold().arg(&good).arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(output.stdout.is_empty(), "{name}");
        let message = message(&output);
        assert!(message.contains(name) && message.contains(expected), "{name}: {message}");
    }
    let output = onefold().arg("report-absent.json").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(message(&output).contains("report-absent.json"));
}

#[test]
fn a_result_is_never_overwritten() {
    let run = file("report-kept.json", RUN);
    let output = onefold().arg(&run).arg("-o").arg(&run).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    assert_eq!(fs::read_to_string(&run).unwrap(), RUN);
    let output = with_stdin(
        {
            let mut command = onefold();
            command.args(["-", "-"]);
            command
        },
        RUN,
    );
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
}

/// Columns of runs of one preset had the same name.
#[test]
fn columns_are_named_by_what_differs() {
    let runs: Vec<PathBuf> = ["lru", "arc"]
        .map(|policy| {
            let config =
                format!("{{\"buffer\": {{\"policy\": \"{policy}\", \"size\": \"1MiB\"}}}}");
            let run = RUN.replace("{\"geometry\": {\"channels\": 8}}", &config);
            file(&format!("report-{policy}.json"), &run)
        })
        .into();
    let output = onefold().args(["--format", "table"]).args(&runs).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let head: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["buffer.policy=lru", "buffer.policy=arc"], "{table}");
}
