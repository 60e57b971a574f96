//! `onefold volume serve --write-log` and `onefold volume write-log` as a user runs them.

use std::fs;
use std::process::{Command, Output};

use crate::common::{Folder, Server, message, text};
use serde_json::Value;

fn volume(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("volume").args(arguments).output().unwrap()
}

fn well(arguments: &[&str]) -> Output {
    let output = volume(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", message(&output));
    output
}

/// Exit code and message.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = volume(arguments);
    (output.status.code(), message(&output))
}

#[test]
fn a_log_is_kept_marked_listed_and_replayed() {
    let folder = Folder::new("write-log");
    let [disk, log, copy] = ["disk", "log", "copy"].map(|name| folder.0.join(name));
    let (disk, log, copy) = (text(&disk), text(&log), text(&copy));
    well(&["create", disk, "--backing-size", "48MiB", "--size", "16MiB"]);
    fs::copy(disk, copy).unwrap();
    let (code, said) = refused(&["write-log", "mark", disk, "early"]);
    assert!(code == Some(2) && said.contains("serve it with --write-log FILE"), "{said}");

    let socket = folder.0.join("nbd");
    let server =
        Server::start_noun("volume", disk.as_ref(), &socket, &["--write-log", log, "--no-direct"]);
    well(&["write-log", "mark", disk, "served"]);
    assert_eq!(server.terminate(), Some(0));
    let (code, said) = refused(&["serve", disk, "--write-log", log]);
    assert!(code == Some(2) && said.contains("a write log is a new file"), "{said}");

    let listed = well(&["write-log", "list", log, "--format", "json"]).stdout;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    let entries = listed["entries"].as_array().unwrap();
    let mark = entries.iter().position(|entry| entry["mark"] == "served").unwrap();
    assert_eq!(entries[mark]["flags"][0], "mark");
    assert_eq!(entries.last().unwrap()["flags"][0], "flush");
    let lines = String::from_utf8(well(&["write-log", "list", log]).stdout).unwrap();
    assert!(lines.contains(&format!("{mark}: mark \"served\"\n")), "{lines}");
    assert!(lines.contains(": write 4096 at "), "{lines}");

    let (code, said) = refused(&["write-log", "replay", log, copy]);
    assert!(code == Some(2) && said.contains("holds a volume"), "{said}");
    assert_ne!(fs::read(copy).unwrap(), fs::read(disk).unwrap());
    well(&["write-log", "replay", log, copy, "--to-mark", "served", "--force"]);
    well(&["check", copy, "--data"]);
    let from = (mark + 1).to_string();
    well(&["write-log", "replay", log, copy, "--from-entry", &from, "--force"]);
    assert_eq!(fs::read(copy).unwrap(), fs::read(disk).unwrap());

    let (code, said) =
        refused(&["write-log", "replay", log, copy, "--to-mark", "never", "--force"]);
    assert!(code == Some(2) && said.contains("no mark \"never\""), "{said}");
    let (code, said) = refused(&["write-log", "list", disk]);
    assert!(code == Some(1) && said.contains("is not a write log"), "{said}");
    let bytes = fs::read(log).unwrap();
    fs::write(log, &bytes[..bytes.len() - 1]).unwrap();
    let (code, said) = refused(&["write-log", "list", log]);
    assert!(code == Some(1) && said.contains("is cut short"), "{said}");
}

#[test]
fn zones_have_no_write_log() {
    let folder = Folder::new("write-log-zones");
    let (image, log) = (folder.zoned_image("128MiB"), folder.0.join("log"));
    let (image, log) = (text(&image), text(&log));
    well(&["create", image, "--force"]);
    let (code, said) = refused(&["serve", image, "--write-log", log]);
    assert!(code == Some(2) && said.contains("cannot tell of zones"), "{said}");
    assert!(!std::path::Path::new(log).exists());
}
