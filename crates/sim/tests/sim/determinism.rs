//! The same setup gives the same bytes: twice, in debug and release builds, and on every machine.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::{sets, setup, workload};
use onefold_config::{Config, Load, Sources};
use onefold_sim::result::RunResult;
use onefold_sim::{Control, Setup, simulate};
use serde_json::Value;

/// One line for each of [`setups`]: digests of the result and of its configuration, and numbers by
/// which a reader sees what a change did.
const SNAPSHOT: &str = include_str!("snapshots/determinism.txt");

/// Setups that together reach every part with state of its own: collection, trims, skew, open loop,
/// read priority, demand-paged map, buffer, metadata pages, checkpoints, traces, tenants.
fn setups() -> Vec<(&'static str, Setup)> {
    let small = ["geometry.channels=2", "geometry.blocks=64", "precondition.overwrite=1"];
    let tlc = ["geometry.channels=2", "geometry.blocks=64", "capacity.logical=0.75"];
    let dramless = ["geometry.channels=1", "geometry.blocks=64", "capacity.logical=0.75"];
    let trace = ["run.fit=wrap", "run.speedup=4", "ftl.victim=d-choices"];
    let mix = "mix,bs=4KiB:8/12KiB:1/2KiB:1,align=2KiB,qd=16,requests=200k,dist=zipf:0.9";
    let poisson = "randrw,rate=2k,requests=50k,dist=gaussian:0.1,flush_every=100";
    let skewed = "randrw,qd=8,requests=50k,dist=hotcold:20/80,fua_share=0.1";
    // A relative path, because paths are part of the configuration that a result repeats.
    let recorded = Load::Trace("../../traces/rec-sqlite-wal-ext4.csv.zst".into());
    vec![
        ("s1-mix", setup("s1", &sets(&small), &workload(mix))),
        ("tlc-poisson", setup("tlc", &sets(&tlc), &workload(poisson))),
        ("dramless-hotcold", setup("sata-dramless", &sets(&dramless), &workload(skewed))),
        ("s1-trace", setup("s1", &sets(&trace), &recorded)),
        ("two-tenants", tenants()),
    ]
}

/// A configuration file with tenants.
fn tenants() -> Setup {
    let file = Path::new("tests/sim/data/tenants.toml").to_path_buf();
    let config = Config::load(&Sources { file: Some(file), ..Sources::default() }).unwrap();
    Setup { config, ..setup("s1", &[], &workload("randread")) }
}

fn run(setup: &Setup) -> RunResult {
    simulate(setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The result without what names the program or measures this machine.
fn lasting(result: &RunResult) -> Value {
    let mut json: Value = serde_json::from_str(&result.to_json_pretty()).unwrap();
    let top = json.as_object_mut().unwrap();
    assert!(top.remove("onefold").is_some() && top.remove("cpu_s").is_some());
    for (part, key) in [("precondition", "cpu_s"), ("trace", "path")] {
        if let Some(part) = top[part].as_object_mut() {
            assert!(part.remove(key).is_some(), "{part:?} has no {key}");
        }
    }
    json
}

/// FNV-1a of the compact JSON: nobody attacks these digests.
fn digest(json: &Value) -> u64 {
    json.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn golden_digests() {
    let mut found = String::new();
    for (name, setup) in setups() {
        let result = run(&setup);
        let mut json = lasting(&result);
        // Apart, so that a new key does not look like a change of the model.
        let config = json.as_object_mut().unwrap().remove("config").unwrap();
        assert!(json.as_object_mut().unwrap().remove("config_sha256").is_some());
        writeln!(
            found,
            "{name} result={:016x} config={:016x} requests={} waf={:.6} virtual_ns={}",
            digest(&json),
            digest(&config),
            result.host.requests(),
            result.waf,
            result.virtual_ns,
        )
        .unwrap();
    }
    assert!(
        found == SNAPSHOT,
        "results differ from tests/sim/snapshots/determinism.txt. If the model was meant to change, or \
         the configuration got a key, the new file is:\n{found}\nit was:\n{SNAPSHOT}"
    );
}

#[test]
fn the_same_twice() {
    for (name, setup) in setups() {
        assert_eq!(lasting(&run(&setup)), lasting(&run(&setup)), "{name}");
    }
}

#[test]
fn the_same_twice_through_a_volume() {
    let volume = [
        "geometry.channels=1",
        "geometry.blocks=160",
        "volume.mode=log",
        "volume.log_segment=4MiB",
        "volume.streams=hot-cold",
    ];
    let through = "mix,bs=4KiB:8/12KiB:1/2KiB:1,align=2KiB,qd=16,requests=30k,dist=zipf:0.9,trim_share=0.02,flush_every=100";
    let setup = setup("qlc-16k", &sets(&volume), &workload(through));
    assert_eq!(lasting(&run(&setup)), lasting(&run(&setup)));
}

/// Or the digests would not notice anything.
#[test]
fn another_seed_gives_another_run() {
    let (_, setup) = setups().swap_remove(0);
    let other = Setup { seed: 43, ..setup.clone() };
    let (one, two) = (run(&setup), run(&other));
    assert_ne!(one.virtual_ns, two.virtual_ns);
    assert_ne!(one.flash, two.flash);
}

/// Observing must not disturb: the number of points of the time series changes no other number.
#[test]
fn windows_of_the_series_change_nothing_else() {
    let in_windows_of = |requests: u64| {
        let window = format!("run.window={requests}");
        let all = sets(&["geometry.channels=2", "geometry.blocks=64", &window]);
        let result = run(&setup("s1", &all, &workload("mix,qd=16,requests=60k")));
        let points = result.series.points.len();
        let mut json = lasting(&result);
        // The window itself is configured, and doubts come from the series.
        for key in ["series", "warnings", "config", "config_sha256"] {
            assert!(json.as_object_mut().unwrap().remove(key).is_some());
        }
        (points, json)
    };
    let (none, plain) = in_windows_of(1_000_000);
    assert_eq!(none, 0);
    for window in [7, 1_000, 60_000] {
        let (points, watched) = in_windows_of(window);
        assert!(points > 0, "windows of {window}");
        assert_eq!(watched, plain, "windows of {window}");
    }
}
