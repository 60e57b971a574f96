//! Files that are somebody else's: what holds anything is not overwritten unless the user says so.
//!
//! `onefold volume create FILE` knew the marks of eleven formats, and wrote over everything else with exit code 0: a tar archive, a
//! gzip, a database. So did `write-log replay`, `--cache` and `advise --destructive`; `-o` replaced whatever its path named, and
//! `serve --fuse` hid the files of a folder.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Folder, message, text};

const BYTES: u64 = 48 << 20;

fn onefold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).args(arguments).output().unwrap()
}

fn well(arguments: &[&str]) -> Output {
    let output = onefold(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", message(&output));
    output
}

/// Runs what is to be refused with exit code 2 and a text in its message.
fn refused(arguments: &[&str], what: &str) {
    let output = onefold(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", message(&output));
    assert!(message(&output).contains(what), "{arguments:?}: {}", message(&output));
}

/// A file with holes but for these bytes.
fn file(path: &Path, at: u64, bytes: &[u8]) {
    let file = File::create(path).unwrap();
    file.set_len(BYTES).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

/// Targets that look like something, with what is to be said of each.
const FOREIGN: [(u64, &[u8], &str); 10] = [
    (257, b"ustar\x0000", "a tar archive"),
    (0, &[0x1F, 0x8B, 8, 0], "gzip data"),
    (0, b"SQLite format 3\0\x10\0", "an SQLite database"),
    (0, b"%PDF-1.7\n", "a PDF document"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"dear diary\n", "text"),
    (1080, &[0x53, 0xEF], "an ext2, ext3 or ext4 file system"),
    (512, b"EFI PART", "a GUID partition table"),
    (33_333_333, &[1], "data: its first non-zero byte is at offset 33333333"),
    (BYTES - 1, &[1], "data: its first non-zero byte is at offset 50331647"),
];

#[test]
fn a_volume_is_made_on_nothing_but_zeroes() {
    let folder = Folder::new("foreign-create");
    let path = folder.0.join("target");
    for (at, bytes, what) in FOREIGN {
        file(&path, at, bytes);
        let before = fs::read(&path).unwrap();
        refused(&["volume", "create", text(&path)], &format!("the backing holds {what}; nothing"));
        assert!(fs::read(&path).unwrap() == before, "{what} is as it was");
    }
    well(&["volume", "create", text(&path), "--force"]);
    refused(&["volume", "create", text(&path)], "holds a volume");
    fs::write(&path, vec![0; 48 << 20]).unwrap();
    well(&["volume", "create", text(&path)]);
    file(&path, 0, &[]);
    well(&["volume", "create", text(&path)]);
    // An emulated SSD is looked at as a device.
    let image = folder.image();
    well(&["volume", "create", text(&image)]);
    refused(&["volume", "create", text(&image)], "holds a volume");
}

#[test]
fn a_log_is_replayed_to_nothing_but_zeroes() {
    let folder = Folder::new("foreign-replay");
    let [log, target] = ["log", "target"].map(|name| folder.0.join(name));
    // A log of one entry of no sectors: magic, version, one entry, sectors of 512 B.
    let mut bytes = vec![0; 1024];
    bytes[..8].copy_from_slice(&0x006A_7366_7773_6872_u64.to_le_bytes());
    bytes[8..16].copy_from_slice(&1_u64.to_le_bytes());
    bytes[16..24].copy_from_slice(&1_u64.to_le_bytes());
    bytes[24..28].copy_from_slice(&512_u32.to_le_bytes());
    bytes[512 + 16] = 1;
    fs::write(&log, bytes).unwrap();
    let replay = ["volume", "write-log", "replay", text(&log), text(&target)];
    for (at, bytes, what) in FOREIGN {
        file(&target, at, bytes);
        refused(&replay, what);
    }
    well(&[&replay[..], &["--force"]].concat());
    file(&target, 0, &[]);
    well(&replay);
}

#[test]
fn a_cache_and_a_measured_file_are_nothing_but_zeroes() {
    let folder = Folder::new("foreign-cache");
    let (zoned, cache) = (folder.zoned_image("128MiB"), folder.0.join("cache"));
    let create = ["volume", "create", text(&zoned), "--zoned", "dmz", "--cache", text(&cache)];
    let measure = ["volume", "advise", text(&cache), "--destructive", "--seconds", "1"];
    for (at, bytes, what) in FOREIGN {
        file(&cache, at, bytes);
        refused(&create, &format!("the cache holds {what}; nothing was changed"));
        refused(&measure, what);
    }
    well(&[&create[..], &["--force"]].concat());
    refused(&create, "holds a volume of policy dmz");
}

/// A small result in a file.
fn run(output: &Path) -> Vec<String> {
    let run = ["sim", "run", "--workload", "randwrite,requests=1k", "--set", "precondition.fill=0"];
    let mut run: Vec<String> = run.iter().map(ToString::to_string).collect();
    run.extend(["-o".to_owned(), text(output).to_owned()]);
    run
}

/// Once a text was taken for an older result, and a trace for one that can be made again: a diary and a recording went.
#[test]
fn a_result_replaces_an_older_one_and_nothing_else() {
    let folder = Folder::new("foreign-output");
    let path = folder.0.join("out");
    let run = run(&path);
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let json = [&run[..], &["--format", "json"]].concat();
    let generate = ["trace", "generate", "write,requests=1k,rate=1k", "-o", text(&path)];
    for (at, bytes, what) in FOREIGN {
        let what = if what.starts_with("data") { "data" } else { what };
        file(&path, at, bytes);
        let before = fs::read(&path).unwrap();
        for command in [&run[..], &json, &generate] {
            refused(command, &format!("which is {what} and no older result of this command"));
        }
        assert!(fs::read(&path).unwrap() == before, "{what} is as it was");
    }
    fs::write(&path, []).unwrap();
    well(&run);
    refused(&run, "which is text and no older result of this command");
    refused(&json, "which is text");
    well(&[&json[..], &["--force"]].concat());
    well(&json);
    fs::write(&path, r#"{"schema": "somebody.else/1"}"#).unwrap();
    refused(&json, "which is JSON text");
    refused(&["report", text(&path), "-o", text(&folder.0)], "no regular file");
}

/// What only the result tells: the file holds one of another command. The result is not lost.
#[test]
fn a_result_of_another_command_stays() {
    let folder = Folder::new("foreign-schema");
    let path = folder.0.join("out");
    let run = run(&path);
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let json = [&run[..], &["--format", "json"]].concat();
    well(&["config", "presets", "--format", "json", "-o", text(&path)]);
    let before = fs::read(&path).unwrap();
    let output = onefold(&json);
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    assert!(String::from_utf8(output.stdout).unwrap().contains("onefold.sim/1"));
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_report_replaces_a_report() {
    let folder = Folder::new("foreign-report");
    let [json, page] = ["run.json", "report.html"].map(|name| folder.0.join(name));
    let mut run = run(&json);
    run.extend(["--format", "json"].map(str::to_owned));
    well(&run.iter().map(String::as_str).collect::<Vec<_>>());
    let report = ["report", text(&json), "-o", text(&page)];
    well(&report);
    well(&report);
    fs::write(&page, "<!DOCTYPE html>\n<html><head><title>mine</title></head></html>\n").unwrap();
    refused(&report, "which is an HTML page and no older result of this command");
    well(&[&report[..], &["--force"]].concat());
}

#[test]
fn a_trace_replaces_nothing_unless_it_is_told_to() {
    let folder = Folder::new("foreign-trace");
    let trace = folder.0.join("trace.oft");
    let generate = ["trace", "generate", "write,requests=1k,rate=1k", "-o", text(&trace)];
    well(&generate);
    refused(&generate, "which is a trace in Onefold's format");
    well(&[&generate[..], &["--force"]].concat());
    let convert = ["trace", "convert", text(&trace), "--to", "msr", "-o", text(&trace)];
    refused(&convert, "Onefold's format");
}

#[test]
fn a_device_is_written_to_and_never_replaced() {
    let run = run(Path::new("/dev/null"));
    well(&run.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn a_link_that_a_result_goes_to_stays_one() {
    let folder = Folder::new("foreign-link");
    let [path, link] = ["out", "link"].map(|name| folder.0.join(name));
    fs::write(&path, "an older result\n").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut run = run(&link);
    run.push("--force".to_owned());
    well(&run.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&path).unwrap().contains("randwrite"));
}

#[test]
fn a_mount_hides_nothing() {
    let folder = Folder::new("foreign-mount");
    let image = folder.image();
    let directory = folder.0.join("directory");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("letter"), "dear").unwrap();
    let serve =
        |place: &PathBuf| ["ssd", "serve", text(&image), "--fuse", text(place)].map(str::to_owned);
    let refused = |place: &PathBuf, what: &str| {
        let arguments = serve(place);
        refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), what);
    };
    refused(&directory, "it holds \"letter\", which would be hidden");
    refused(&directory.join("letter"), "it is no directory");
    refused(&image, "it is no directory");
    assert_eq!(fs::read_to_string(directory.join("letter")).unwrap(), "dear");
}

/// Every command but a successful `create` left an image as after a power cut, because it opened it and did not close it.
#[test]
fn an_image_below_a_volume_is_closed_by_every_command() {
    let folder = Folder::new("foreign-closed");
    let image = folder.image();
    let image = text(&image);
    let clean = |after: &[&str]| {
        let check = well(&["ssd", "check", image]);
        let said =
            String::from_utf8(check.stdout).unwrap() + &message(&onefold(&["ssd", "info", image]));
        assert!(!said.contains("not shut down cleanly"), "after {after:?}: {said}");
    };
    let commands: [&[&str]; 10] = [
        &["create", image, "--dry-run"],
        &["create", image],
        &["create", image, "--zoned"],
        &["create", image, "--segment", "3B", "--force"],
        &["info", image],
        &["check", image, "--data"],
        &["dump", image, "label"],
        &["scrub", image, "--dry-run"],
        &["journals", image],
        &["snapshot", "list", image],
    ];
    for command in commands {
        // Whether it does what it is asked is not the question.
        let _ = onefold(&[&["volume"], command].concat());
        clean(command);
    }
    let zoned = folder.zoned_image("128MiB");
    let made = well(&["volume", "create", text(&zoned), "--zoned"]);
    // It read none of the blocks of zones that are written in their order, which the log called a refusal.
    assert!(!message(&made).contains("refused"), "{}", message(&made));
    well(&["volume", "info", text(&zoned)]);
    let check = well(&["ssd", "check", text(&zoned)]);
    let said = String::from_utf8(check.stdout).unwrap();
    assert!(!said.contains("not shut down cleanly"), "{said}");
}
