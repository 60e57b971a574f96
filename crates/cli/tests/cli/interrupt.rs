//! SIGINT and SIGTERM: every command ends at once, keeps what it has, and says so.
//!
//! Preconditioning ignored Ctrl-C, three times in ten minutes; a study took 16 s to end; SIGTERM ended both without a word, and an
//! interrupted run had exit code 0.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, message, text};

/// Whoever has not ended by then never does: what is run here takes longer, so that a signal that is ignored is seen. How fast a
/// command ends is not measured: on a busy machine that would be the speed of the machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Ticks of processor time after which a command is in its work.
const AT_WORK: u64 = 10;

fn start(arguments: &[&str]) -> Child {
    let child = Command::new(env!("CARGO_BIN_EXE_onefold"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let has_begun = || is_over(&child) || is_watching(&child) && is_at_work(&child);
    while !has_begun() {
        assert!(begin.elapsed() < PATIENCE, "{arguments:?} does nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Whether it takes signals.
fn is_watching(child: &Child) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
    tasks.into_iter().any(|task| name(task).is_ok_and(|name| name == "signals\n"))
}

/// Fields of its process from the state on.
fn fields(child: &Child) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').map(str::to_owned).collect()
}

fn is_over(child: &Child) -> bool {
    fields(child)[0] == "Z"
}

fn is_at_work(child: &Child) -> bool {
    let fields = fields(child);
    let ticks = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap());
    ticks.sum::<u64>() >= AT_WORK
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

fn end(mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the signal is ignored");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

pub(crate) fn interrupted(arguments: &[&str], name: &str, code: i32, said: &str) -> Output {
    let child = start(arguments);
    signal(&child, name);
    let output = end(child);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", message(&output));
    assert!(message(&output).contains(said), "{arguments:?}: {}", message(&output));
    output
}

#[test]
fn preconditioning_ends() {
    let begin = ["sim", "run", "--preset", "s1", "--workload", "randwrite,requests=1G"];
    let of_device = ["--set", "precondition.fill=1", "--set", "precondition.overwrite=1000"];
    let volume = ["--set", "volume.mode=log", "--set", "precondition.until=steady"];
    for more in [&of_device[..], &[&of_device[..], &volume].concat()] {
        let run = [&begin[..], more].concat();
        interrupted(&run, "-INT", 130, "nothing was measured yet, so there is no result");
    }
}

#[test]
fn a_run_keeps_what_it_measured() {
    let run = ["sim", "run", "--workload", "randwrite,requests=1G", "--set", "precondition.fill=0"];
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let output = interrupted(&run, name, code, "the result covers the part that was run");
        let table = String::from_utf8(output.stdout).unwrap();
        assert!(table.contains("interrupted"), "{table}");
    }
}

const STUDY: &str = r#"
schema = "onefold.study/1"
name = "demo"
device = "64MiB"
sizes = ["256KiB", "1MiB"]
policies = ["lru", "2l"]
[[workload]]
name = "A"
[[workload.source]]
name = "stream"
workload = "randwrite,bs=64KiB,bytes=32GiB"
"#;

#[test]
fn a_study_ends_and_can_go_on() {
    let folder = Folder::new("interrupt-study");
    let (study, results) = (folder.0.join("demo.toml"), folder.0.join("results"));
    fs::write(&study, STUDY).unwrap();
    let run = ["study", "run", text(&study), "--results", text(&results)];
    interrupted(&run, "-TERM", 143, "the same command goes on from here");
    let part = [&run[..], &["--scale", "0.01%"]].concat();
    let done = end(start(&part));
    assert_eq!(done.status.code(), Some(0), "{}", message(&done));
    assert!(message(&done).contains("4 points computed (0 failed), 0 were there"));
}

#[test]
fn files_that_are_not_whole_are_gone() {
    let folder = Folder::new("interrupt-files");
    let files = || fs::read_dir(&folder.0).unwrap().count();
    let trace = folder.0.join("trace.oft");
    let generate = ["trace", "generate", "randwrite,rate=1k,requests=1G", "-o", text(&trace)];
    interrupted(&generate, "-INT", 130, "the trace was not whole and is gone");
    assert_eq!(files(), 0);

    let (device, scratch) = (folder.0.join("device"), folder.0.join("scratch"));
    fs::File::create(&device).unwrap().set_len(1 << 20).unwrap();
    let advise = ["volume", "advise", text(&device), "--scratch", text(&scratch)];
    let advise = [&advise[..], &["--scratch-size", "1MiB", "--seconds", "3600"]].concat();
    interrupted(&advise, "-INT", 130, "nothing was changed");
    assert!(!Path::new(&scratch).exists() && files() == 1);
}

#[test]
fn a_second_signal_ends_what_a_first_one_let_end() {
    let run = ["sim", "run", "--workload", "randwrite,requests=1G", "--set", "precondition.fill=0"];
    let child = start(&run);
    signal(&child, "-INT");
    signal(&child, "-INT");
    let output = end(child);
    assert_eq!(output.status.code(), Some(130), "{}", message(&output));
}
