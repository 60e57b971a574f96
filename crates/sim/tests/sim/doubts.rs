//! Reasons not to believe a result are told with it, and nothing is said against one that is sound.

use std::fmt::Write;

use crate::common::{sets, setup, workload};
use onefold_config::Load;
use onefold_sim::{Control, simulate};

/// A drive of which 64 MiB are addressed.
const SMALL: [&str; 5] = [
    "geometry.channels=1",
    "geometry.ways=1",
    "geometry.blocks=280",
    "geometry.pages=64",
    "precondition.fill=1",
];

fn doubts(more: &[&str], load: &Load) -> String {
    let sets = sets(&[&SMALL[..], more].concat());
    let result = simulate(&setup("s1", &sets, load), &Control::default());
    result.unwrap_or_else(|error| panic!("{error}")).warnings.join("\n")
}

#[test]
fn a_settled_run_has_none() {
    let load = workload("randwrite,bs=4KiB,qd=8,requests=200k");
    assert_eq!(doubts(&["precondition.overwrite=3"], &load), "");
}

#[test]
fn a_short_one_and_one_without_collection() {
    let few = doubts(&["precondition.overwrite=3"], &workload("randwrite,bs=4KiB,requests=100"));
    assert!(few.contains("the series has 6 points"), "{few}");
    let load = workload("randwrite,bs=4KiB,requests=1000,range=10%");
    let fresh = doubts(&["precondition.fill=0"], &load);
    assert!(fresh.contains("nothing was erased"), "{fresh}");
    assert_eq!(doubts(&["precondition.fill=0"], &workload("randread,requests=1000")), "");
}

#[test]
fn write_amplification_that_still_moves() {
    let load = workload("randwrite,bs=4KiB,qd=8,requests=2500");
    let moving = doubts(&[], &load);
    assert!(moving.contains("the WAF still moved"), "{moving}");
}

#[test]
fn discards_of_what_preconditioning_wrote() {
    let load = workload("mix,bs=64KiB,requests=20k,read_share=0,trim_share=0.3");
    let discarded = doubts(&["precondition.overwrite=3"], &load);
    assert!(discarded.contains("of the capacity: what preconditioning had written"), "{discarded}");
}

/// The load comes faster than the device works, and it does not wait.
#[test]
fn a_backlog() {
    let rate = |rate| format!("randwrite,bs=4KiB,requests=50k,rate={rate}");
    let behind = doubts(&["precondition.overwrite=3"], &workload(&rate("1M")));
    assert!(behind.contains("behind the times of the load: latencies mean nothing"), "{behind}");
    let slow = doubts(&["precondition.overwrite=3"], &workload(&rate("50")));
    assert!(!slow.contains("behind"), "{slow}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    let mut trace = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
    for number in 0..20_000 {
        let _ = writeln!(trace, "{},W,{},8,,90", number * 100, number % 8000 * 8);
    }
    std::fs::write(&path, trace).unwrap();
    let waits = doubts(&[], &Load::Trace(path.clone()));
    assert!(!waits.contains("behind"), "{waits}");
    let open = doubts(&["run.mode=open"], &Load::Trace(path));
    assert!(open.contains("behind the times"), "{open}");
}

/// Reads that fail are counted, and the load goes on: on a drive, through a volume, on zones.
#[test]
fn requests_that_fail() {
    let cases: [(&str, &[&str]); 3] = [
        ("s1", &["geometry.channels=1", "geometry.blocks=280", "precondition.fill=1"]),
        ("s1", &["geometry.channels=1", "geometry.blocks=280", "volume.mode=log"]),
        ("zn540", &["precondition.fill=0.05"]),
    ];
    for (preset, more) in cases {
        let load = workload("randread,bs=4KiB,qd=4,requests=5000,range=4%");
        let sets = sets(&[more, &["faults.read=0.01"]].concat());
        let result = simulate(&setup(preset, &sets, &load), &Control::default());
        let result = result.unwrap_or_else(|error| panic!("{preset} {more:?}: {error}"));
        let (failed, read) = (result.host.failed_requests, result.latency_ns.read.count);
        assert!((10..150).contains(&failed), "{preset} {more:?}: {failed} failed");
        assert_eq!(failed + read, 5000, "{preset} {more:?}");
        let told = format!("{failed} requests failed, as flash could not be read");
        assert!(result.warnings.iter().any(|warning| warning.contains(&told)));
    }
}

/// A program that fails is used up and holds nothing: the books are those of flash (`simulate` balances them), whatever had been
/// staged for it, and wherever it goes.
#[test]
fn programs_that_fail_are_counted() {
    let small =
        ["geometry.channels=1", "geometry.ways=1", "geometry.blocks=560", "capacity.op=40 %"];
    let cases: [(&str, &[&str]); 4] = [
        ("s1", &["geometry.pages=64"]),
        ("s1", &["geometry.pages=64", "ftl.indirection=16KiB"]),
        ("tlc", &["geometry.pages=24", "faults.program=0.001"]),
        ("s1", &["geometry.pages=64", "volume.mode=log"]),
    ];
    for (preset, more) in cases {
        let load = workload("randwrite,bs=4KiB,qd=4,requests=40k");
        let faults = ["faults.program=0.0001", "faults.erase=0.001", "precondition.fill=1"];
        let sets = sets(&[&small[..], &faults, more].concat());
        let result = simulate(&setup(preset, &sets, &load), &Control::default());
        let result = result.unwrap_or_else(|error| panic!("{preset} {more:?}: {error}"));
        let bad = result.ftl.bad_superblocks;
        assert!(bad > 0, "{preset} {more:?}: no program failed");
    }
}

#[test]
fn keys_that_did_nothing() {
    let load = workload("randwrite,bs=4KiB,requests=1000");
    let idle = doubts(&["ftl.streams=2", "run.speedup=2"], &load);
    assert!(idle.contains("ftl.streams did nothing: no request has a stream"), "{idle}");
    assert!(idle.contains("run.speedup did nothing: no trace is replayed"), "{idle}");
}
