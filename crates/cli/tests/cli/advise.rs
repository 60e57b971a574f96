//! `onefold volume advise`: what it says follows from what it simulates.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Folder, message, text};
use serde_json::Value;

/// Drives of 480 MiB, which are aged and run in a second.
const SMALL: [&str; 4] = ["--set", "geometry.pages=16", "--set", "geometry.blocks=128"];

fn advise(arguments: &[&str]) -> Output {
    let command = ["volume", "advise"];
    Command::new(env!("CARGO_BIN_EXE_onefold")).args(command).args(arguments).output().unwrap()
}

/// What is said of a small drive, as JSON. Each verdict in it follows from the numbers beside it.
fn small(preset: &str, arguments: &[&str]) -> Value {
    advised(preset, &[&SMALL, arguments].concat())
}

fn advised(preset: &str, arguments: &[&str]) -> Value {
    let json = ["--format", "json", "--preset", preset];
    let output = advise(&[&json[..], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    agrees(&advice);
    for other in advice["others"].as_array().unwrap() {
        agrees(other);
    }
    advice
}

fn programmed(compared: &Value, side: &str) -> f64 {
    compared[side]["programmed_per_written"].as_f64().unwrap()
}

fn agrees(compared: &Value) {
    let sides = ["alone", "with_volume"].map(|side| programmed(compared, side));
    let erased =
        ["alone", "with_volume"].iter().all(|side| compared[side]["erases"].as_u64().unwrap() > 0);
    let saves = if sides[1] <= 0.95 * sides[0] { "use" } else { "does not help" };
    let verdict = compared["verdict"].as_str().unwrap();
    assert!(verdict == "not measurable" || (erased && verdict == saves), "{compared:#}");
}

fn refused(arguments: &[&str], code: i32, said: &str) {
    let output = advise(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", message(&output));
    assert!(message(&output).contains(said), "{arguments:?}: {}", message(&output));
}

#[test]
fn small_random_writes_are_for_a_volume_where_the_unit_is_large() {
    let load = ["--workload", "randwrite,bs=4KiB,qd=8,flush_every=8,requests=100k"];
    let qlc = small("qlc-16k", &load);
    assert_eq!(qlc["verdict"], "use", "{qlc:#}");
    // Four times for the unit alone.
    assert!(programmed(&qlc, "alone") > 4.0);
    assert_eq!(
        (&qlc["model"]["unit_bytes"], &qlc["volume"]["unit_bytes"]),
        (&16384.into(), &16384.into())
    );
    let tlc = small("tlc", &load);
    assert_eq!(tlc["verdict"], "does not help", "{tlc:#}");
    // The fuller the log, the more is cleaned: the verdict changes with the numbers.
    let full = qlc["others"].as_array().unwrap().iter().find(|one| one["utilisation"] == 0.85);
    assert_eq!(full.unwrap()["verdict"], "does not help", "{qlc:#}");
}

/// Streams part what dies young from what does not; where all writes are alike, they only take room.
#[test]
fn streams_are_for_skewed_writes_and_not_for_uniform_ones() {
    let drive = ["--set", "geometry.pages=8", "--set", "geometry.blocks=256"];
    for (distribution, verdict) in [("", "does not help"), (",dist=zipf:1.2", "use")] {
        let load = format!("randwrite,bs=16KiB,qd=8,requests=20k{distribution}");
        let advice = advised("tlc", &[&drive[..], &["--workload", &load]].concat());
        let streams = &advice["streams"];
        assert_eq!(streams["verdict"], verdict, "{distribution}: {streams:#}");
        let [with, alone] = [&streams["run"], &advice["alone"]]
            .map(|run| run["programmed_per_written"].as_f64().unwrap());
        assert_eq!(with <= 0.95 * alone, verdict == "use", "{with} and {alone}");
    }
    // Nothing is said of a drive that has streams, or no superblocks for them.
    let load = ["--workload", "randwrite,bs=16KiB,qd=8,requests=10k"];
    let has = ["--set", "ftl.streams=2", "--set", "ftl.classifier=hot-cold"];
    assert!(advised("tlc", &[&drive[..], &load, &has].concat())["streams"].is_null());
    assert!(small("tlc", &load)["streams"].is_null());
}

#[test]
fn long_writes_in_order_are_not_for_a_volume_and_are_cut_off() {
    let advice = small("qlc-16k", &["--workload", "write,bs=1MiB,qd=4"]);
    assert_eq!((&advice["verdict"], &advice["cut"]), (&"does not help".into(), &true.into()));
    let requests = |side: &str| advice[side]["requests"].clone();
    assert_eq!(requests("alone"), requests("with_volume"), "both are cut at the same request");
    assert!(programmed(&advice, "alone") < 1.2, "{advice:#}");
}

/// Writes of 4 KiB in 8 MiB, each followed by a flush: no batch is ever full.
fn flushed_one_by_one(path: &Path, writes: u64) {
    let mut lines = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
    for at in 0..writes {
        let (time, sector) = (at * 100_000, at * 7919 % 2000 * 8);
        writeln!(lines, "{time},W,{sector},8,,20000\n{},F,0,0,,50000", time + 30_000).unwrap();
    }
    fs::write(path, lines).unwrap();
}

#[test]
fn a_trace_with_a_flush_for_each_write_fills_no_batch() {
    let folder = Folder::new("advise-flushes");
    let trace = folder.0.join("trace.csv");
    flushed_one_by_one(&trace, 4000);
    let advice = small("qlc-16k", &["--trace", text(&trace)]);
    assert_eq!(advice["load"]["writes"], 4000);
    // A header and a block, padded to 16 KiB, for each block.
    assert!(programmed(&advice, "with_volume") >= 3.9, "{advice:#}");
    assert_eq!(advice["verdict"], "does not help", "{advice:#}");
    // It has 16 MiB, and is replayed until about 16 superblocks of 4 MiB were written.
    let written = advice["with_volume"]["written_bytes"].as_u64().unwrap();
    assert_eq!(written, 4 * 4000 * 4096, "{advice:#}");

    let nothing = folder.0.join("reads.csv");
    fs::write(&nothing, "t_ns,op,sector512,nsect,flags,lat_ns\n0,R,0,8,,20000\n9,R,8,8,,20000\n")
        .unwrap();
    let reads = small("qlc-16k", &["--trace", text(&nothing)]);
    assert_eq!(reads["verdict"], "not measurable", "{reads:#}");
    assert_eq!(reads["why"], "the load writes nothing");
    let few = small("qlc-16k", &["--workload", "randwrite,bs=4KiB,requests=2000"]);
    assert_eq!(few["verdict"], "not measurable", "{few:#}");
}

#[test]
fn zones_alone_take_no_random_writes() {
    let load = "randwrite,bs=4KiB,qd=8,requests=300k,range=64MiB";
    let arguments = ["--preset", "zns-proto", "--size", "4052MiB", "--overwritten", "0"];
    let output = advise(&[&arguments[..], &["--workload", load, "--format", "json"]].concat());
    // A size in whole zones of 32 MiB is not this one.
    assert_eq!(output.status.code(), Some(3), "{}", message(&output));
    let arguments = ["--preset", "zns-proto", "--size", "4GiB", "--overwritten", "0"];
    let output = advise(&[&arguments[..], &["--workload", load, "--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&advice["verdict"], &advice["alone"]), (&"use".into(), &Value::Null));
}

#[test]
fn what_cannot_be_judged_is_refused_with_what_to_do() {
    let folder = Folder::new("advise-refused");
    let (image, trace) = (folder.0.join("image"), folder.0.join("trace.csv"));
    let scratch = folder.0.join("scratch");
    let image_of = ["ssd", "create", text(&image), "--preset", "qlc-16k", "--size", "512MiB"];
    let made =
        Command::new(env!("CARGO_BIN_EXE_onefold")).args(image_of).args(&SMALL[..2]).output();
    assert!(made.unwrap().status.success());
    // A model is not measured, and nobody is told to do so.
    refused(&[text(&image), "--scratch", text(&scratch)], 2, "--scratch measures a drive");
    refused(&[text(&image), "--destructive"], 2, "--destructive measures a drive");
    refused(&["--preset", "tlc", "--scratch", text(&scratch)], 2, "--scratch measures a drive");
    let load = ["--workload", "randwrite,bs=4KiB,qd=8,requests=50k"];
    let told = advise(&[&[text(&image)][..], &load].concat());
    assert_eq!(told.status.code(), Some(0), "{}", message(&told));
    let said = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(said.contains(": use\n") && !said.contains("--scratch"), "{said}");
    refused(&[text(&image), "--preset", "tlc"], 2, "a drive of its own");
    refused(&[text(&trace)], 2, "trace.csv");
    flushed_one_by_one(&trace, 10);
    refused(&[text(&trace), "--size", "4GiB"], 2, "has none");
    refused(
        &[text(&trace), "--unit", "5KiB", "--preset", "qlc-16k"],
        2,
        "an indirection unit of 5120 B",
    );
    let tlc = |more: &[&'static str]| [&["--preset", "tlc"][..], &SMALL, more].concat();
    refused(&tlc(&["--set", "volume.op=0.3"]), 2, "use --op");
    refused(&tlc(&["--workload", "randwrite,bs=4KiB,range=0-50%"]), 2, "depends on the capacity");
    refused(&tlc(&["--workload", "randwrite,bs=4KiB,range=4GiB"]), 3, "workload `randwrite");
    refused(&tlc(&["--workload", "scribble"]), 3, "workload `scribble`");
    refused(&tlc(&["--utilisation", "0.98"]), 3, "the volume cannot work");
    refused(&tlc(&["--utilisation", "0.7", "--op", "0.5"]), 2, "say a lower --utilisation or --op");
    refused(&tlc(&["--trace-format", "msr"]), 2, "--trace-format is given");
    let mib = |at: u64| format!("{at},W,{},2048,,20000\n", at * 2048);
    let head = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
    fs::write(&trace, (0..1024).map(mib).fold(head, |lines, line| lines + &line)).unwrap();
    let large = ["--preset", "tlc", "--size", "512MiB", "--set", "geometry.pages=16"];
    refused(
        &[&large[..], &["--trace", text(&trace)]].concat(),
        4,
        "the trace needs 1073741824 bytes",
    );
}

#[test]
fn a_device_is_measured_only_where_it_may_be_written_and_a_model_stands_for_it() {
    let folder = Folder::new("advise-scratch");
    let (path, scratch) = (folder.0.join("backing"), folder.0.join("scratch"));
    fs::write(&path, vec![7; 4 << 20]).unwrap();
    let load = ["--workload", "randwrite,bs=4KiB,qd=8,requests=10k"];
    let of = |path: &Path, arguments: &[&str]| {
        small("tlc", &[&[text(path)][..], &load, arguments].concat())
    };
    let looked = of(&path, &["--unit", "16KiB"]);
    assert_eq!(
        (&looked["device"]["measured"], &looked["model"]["assumed"]),
        (&Value::Null, &true.into())
    );
    assert_eq!(looked["volume"]["unit_bytes"], 16384);
    let measure = ["--scratch", text(&scratch), "--scratch-size", "4MiB", "--seconds", "1"];
    let measured = of(&path, &measure);
    assert_eq!(measured["device"]["measured"]["random"].as_array().unwrap().len(), 5);
    assert_eq!(measured["unit"]["bytes"], measured["device"]["measured"]["unit_bytes"]);
    assert!(!scratch.exists());
    assert_eq!(fs::read(&path).unwrap(), vec![7; 4 << 20], "it was only to be read");
    // What exists is no scratch file.
    refused(&[text(&path), "--scratch", text(&path)], 1, "cannot measure");
    assert_eq!(fs::read(&path).unwrap(), vec![7; 4 << 20]);
    refused(&[text(&path), "--scratch", text(&scratch), "--destructive"], 2, "cannot be used with");
    let on_it = folder.0.join("volume");
    let make = ["volume", "create", text(&on_it), "--backing-size", "64MiB", "--size", "32MiB"];
    assert!(
        Command::new(env!("CARGO_BIN_EXE_onefold")).args(make).output().unwrap().status.success()
    );
    let holds = of(&on_it, &[])["device"]["holds"].clone();
    assert!(holds.as_str().unwrap().contains("volume"), "{holds}");
}
