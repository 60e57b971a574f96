//! Replay by dependencies, on what tells the end of a request at once and on stacks of layers.

use std::fmt::Write;

use crate::common::{sets, setup};
use onefold_config::Load;
use onefold_sim::result::RunResult;
use onefold_sim::{Control, SimError, simulate};

/// A drive, a zoned volume, a volume on a drive.
const DEVICES: [(&str, &str); 3] =
    [("s1", "volume.mode=none"), ("choi2022", "run.qd=1"), ("s1", "volume.mode=log")];

fn replay(device: (&str, &str), trace: &str, mode: &str) -> RunResult {
    attempt(device, trace, mode).unwrap_or_else(|error| panic!("{device:?}: {error}"))
}

fn attempt((preset, set): (&str, &str), trace: &str, mode: &str) -> Result<RunResult, SimError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    std::fs::write(&path, format!("t_ns,op,sector512,nsect,flags,lat_ns\n{trace}")).unwrap();
    let sets = sets(&[set, mode]);
    let setup = setup(preset, &sets, &Load::Trace(path));
    simulate(&setup, &Control::default())
}

fn in_flight(result: &RunResult) -> f64 {
    result.checks.littles_law.as_ref().unwrap().in_flight_mean
}

fn how(result: &RunResult) -> &str {
    &result.trace.as_ref().unwrap().replay
}

/// Writes at distances in ns that took so long, -1: unknown.
fn writes(requests: u64, apart: u64, took: i64) -> String {
    let mut text = String::new();
    for number in 0..requests {
        let _ = writeln!(text, "{},W,{},8,,{took}", number * apart, number * 8);
    }
    text
}

/// Eight at once while it was recorded, on devices that are far slower and far faster than that.
#[test]
fn no_more_are_under_way_than_there_were() {
    for device in DEVICES {
        let many = writes(2_000, 10, 80);
        assert!(in_flight(&replay(device, &many, "run.mode=open")) > 100.0, "{device:?}");
        for mode in ["dependencies", "recorded"] {
            let result = replay(device, &many, &format!("run.mode={mode}"));
            let depth = in_flight(&result);
            assert!((4.0..=8.1).contains(&depth), "{device:?}: {depth} requests in flight");
            assert_eq!(how(&result), mode);
        }
    }
}

/// More were under way then than there ever are here.
#[test]
fn recorded_times_are_kept_where_nothing_waits() {
    for device in DEVICES {
        let trace = writes(200, 10_000_000, 1_000_000_000);
        let time = |mode| replay(device, &trace, mode).virtual_ns;
        assert_eq!(time("run.mode=recorded"), time("run.mode=open"), "{device:?}");
    }
}

/// 20 requests that took 90 of each 100 ms: 10 ms of thinking is left on a fast device.
#[test]
fn pauses_are_those_of_the_trace() {
    for device in DEVICES {
        let trace = writes(20, 100_000_000, 90_000_000);
        let result = replay(device, &trace, "run.speedup=1");
        let thinking = 19 * 10_000_000;
        let time = result.virtual_ns;
        assert!((thinking..thinking * 3 / 2).contains(&time), "{device:?}: {time} ns");
        let twice = replay(device, &trace, "run.speedup=2").virtual_ns;
        assert!((thinking / 2..thinking).contains(&twice), "{device:?}: {twice} ns");
    }
}

/// Pairs of a write and a flush, a microsecond apart; nothing tells how long they took.
#[test]
fn without_ends_flushes_are_waited_for() {
    for device in DEVICES {
        let mut pairs = String::new();
        for number in 0..400 {
            let _ = writeln!(pairs, "{},W,{},8,,-1", number * 2000, number * 8);
            let _ = writeln!(pairs, "{},F,0,0,,-1", number * 2000 + 1000);
        }
        let result = replay(device, &pairs, "run.speedup=1");
        assert_eq!(how(&result), "flushes");
        assert!(in_flight(&result) <= 2.01, "{device:?}: {} in flight", in_flight(&result));
        assert!(in_flight(&replay(device, &pairs, "run.mode=open")) > 10.0, "{device:?}");
    }
}

/// A trace that tells nothing of it is sent at its own times, or cannot be replayed as recorded.
#[test]
fn what_a_trace_does_not_tell_is_not_made_up() {
    for device in DEVICES {
        let trace = writes(500, 10, -1);
        let (default, open) =
            (replay(device, &trace, "run.speedup=1"), replay(device, &trace, "run.mode=open"));
        assert_eq!((how(&default), how(&open)), ("open", "open"));
        assert_eq!(default.virtual_ns, open.virtual_ns);
        let refused =
            attempt(device, &trace, "run.mode=recorded").err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains("run.mode=bounded")), "{device:?}");
    }
}
