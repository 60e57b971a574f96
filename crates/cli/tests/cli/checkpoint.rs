//! `sim run --checkpoint`: what is left when a run ends early, and what the same command makes of it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, message, text};

const PATIENCE: Duration = Duration::from_mins(2);

const DRIVE: [&str; 10] = [
    "sim",
    "run",
    "--preset",
    "s1",
    "--set",
    "geometry.channels=2",
    "--set",
    "geometry.blocks=64",
    "--format",
    "json",
];

fn command(load: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
    command.args(DRIVE).args(["--workload", load]).args(more);
    command
}

/// Starts a run and waits until it has stored so many states.
fn started(load: &str, state: &Path, states: usize) -> Child {
    let more = ["--checkpoint", text(state), "--checkpoint-every", "20k"];
    let mut command = command(load, &more);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    let mut seen = Vec::new();
    while seen.len() < states {
        assert!(begin.elapsed() < PATIENCE, "no state is stored");
        std::thread::sleep(Duration::from_millis(1));
        if let Ok(file) = fs::metadata(state)
            && seen.last() != Some(&file.ino())
        {
            seen.push(file.ino());
        }
    }
    child
}

/// The result without CPU time.
fn lasting(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", message(output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().filter(|line| !line.contains("\"cpu_s\"")).collect()
}

#[test]
fn a_killed_run_goes_on_from_its_last_state() {
    let folder = Folder::new("checkpoint-killed");
    let state = folder.0.join("run.state");
    let load = "mix,bs=4KiB,qd=8,requests=2M";
    let whole = command(load, &[]).output().unwrap();
    let mut child = started(load, &state, 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let rest = command(load, &["--checkpoint", text(&state)]).output().unwrap();
    assert!(message(&rest).contains("goes on from"), "{}", message(&rest));
    assert_eq!(lasting(&rest), lasting(&whole));
    assert!(!state.exists(), "the result is out");
}

#[test]
fn a_signal_keeps_the_state_and_says_so() {
    let folder = Folder::new("checkpoint-signal");
    let state = folder.0.join("run.state");
    // The second run goes on: the first state that is seen is the one it begins with.
    for (signal, code, states) in [("-INT", 130, 1), ("-TERM", 143, 2)] {
        let child = started("mix,bs=4KiB,qd=8,requests=1G", &state, states);
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", message(&output));
        assert!(message(&output).contains("the same command goes on from there"));
        assert!(String::from_utf8_lossy(&output.stdout).contains("\"partial\": true"));
        assert!(state.exists() && !folder.0.join("run.state.part").exists());
    }
}

#[test]
fn what_is_no_state_of_this_run_stays_as_it_is() {
    let folder = Folder::new("checkpoint-foreign");
    let state = folder.0.join("run.state");
    let load = "mix,bs=4KiB,qd=8,requests=1k";
    fs::write(&state, "my thesis").unwrap();
    let run = |more: &[&str]| {
        command(load, &[&["--checkpoint", text(&state)], more].concat()).output().unwrap()
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    assert!(message(&output).contains("is no state of a run"), "{}", message(&output));
    assert_eq!(fs::read(&state).unwrap(), b"my thesis");
    fs::remove_file(&state).unwrap();
    let output = run(&["--set", "volume.mode=log"]);
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    assert!(!state.exists());
    let nowhere = folder.0.join("no/run.state");
    let output = command(load, &["--checkpoint", text(&nowhere)]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", message(&output));
    assert!(message(&output).contains("cannot be written to"), "{}", message(&output));
    let output = command(load, &["--checkpoint-every", "1M"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

/// Both would store their states in turn, and the later one would go on from the other's.
#[test]
fn a_state_belongs_to_one_run() {
    let folder = Folder::new("checkpoint-locked");
    let state = folder.0.join("run.state");
    // Another run, so that it is refused in any case, but not because the file is in use.
    let second =
        || command("mix,bs=4KiB,qd=8,requests=2M", &["--checkpoint", text(&state)]).output();
    // Its first state, and one that has taken the place of another.
    for states in [1, 3] {
        let mut child = started("mix,bs=4KiB,qd=8,requests=1G", &state, states);
        let refused = second().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(refused.status.code(), Some(5), "{}", message(&refused));
        assert!(message(&refused).contains("another run keeps its state"), "{}", message(&refused));
    }
    let free = second().unwrap();
    assert_eq!(free.status.code(), Some(2), "{}", message(&free));
}
