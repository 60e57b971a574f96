//! Look-alikes as loads: open loop at their own times, alone and as one of several tenants.

use crate::common::{sets, setup, workload};
use onefold_config::{Config, Sources};
use onefold_sim::result::RunResult;
use onefold_sim::{Control, Setup, simulate};

const SMALL: [&str; 2] = ["geometry.blocks=64", "capacity.logical=0.75"];
const REQUESTS: u64 = 5_000;
const LIKE: &str = "like-prxy_0,requests=5k";

fn run(setup: &Setup) -> RunResult {
    simulate(setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_look_alike_runs_at_its_own_times() {
    let result = run(&setup("tlc", &sets(&SMALL), &workload(LIKE)));
    assert_eq!(result.host.read_requests + result.host.write_requests, REQUESTS);
    assert!(result.host.write_requests > REQUESTS * 95 / 100, "prxy_0 writes 96.9 %");
    // The volume has 3,000,000 requests in 143,846 s.
    let seconds = result.virtual_ns / 1_000_000_000;
    assert!((225..255).contains(&seconds), "{seconds} s, expected 240");
    assert_eq!(result.workload.as_deref(), Some(LIKE), "labelled with its own name");
}

#[test]
fn a_look_alike_is_a_tenant() {
    let tenants = format!(
        "extends = \"preset:tlc\"\n[geometry]\nblocks = 64\n[capacity]\nlogical = 0.75\n\
         [[tenant]]\nname = \"proxy\"\nworkload = \"{LIKE}\"\nrange = \"0..50%\"\n\
         [[tenant]]\nname = \"reads\"\nworkload = \"randread,rate=100,requests=1k\"\n\
         range = \"50%..100%\"\n"
    );
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("like.toml");
    std::fs::write(&path, tenants).unwrap();
    let config = Config::load(&Sources { file: Some(path), ..Sources::default() }).unwrap();
    let result = run(&Setup { config, ..setup("tlc", &[], &workload("randread")) });
    assert_eq!(result.host.read_requests + result.host.write_requests, REQUESTS + 1_000);
}
