//! Short runs of the simulator, to count their instructions (`scripts/instructions.py`): random reads,
//! fresh writes, and writes into garbage collection on a small device like `s1`. Prints
//! `LOAD REQUESTS` for each run, in order; what is counted is [`measured`], once per line. Each load
//! runs twice, so that the difference is free of what a run takes to begin and to end.
//!
//! `cargo run --release -p onefold-sim --example instructions -- read write collect`

use std::io::Write;

use onefold_config::{Config, Load, Sources};
use onefold_sim::result::Program;
use onefold_sim::{Control, Setup, SimError, simulate};
use onefold_tracefile::Options;

/// An eighth of `s1`, with room to collect.
const DEVICE: [&str; 2] = ["geometry.blocks=64", "capacity.logical=0.8"];

/// A load: its name, its workload, the share of the device that is filled before, and the requests of
/// its two runs.
type Counted = (&'static str, &'static str, f64, [u64; 2]);

/// Writes are fresh until the 262,144 pages of the device are used up.
const LOADS: [Counted; 3] = [
    ("read", "randread,bs=4KiB,qd=32", 1.0, [50_000, 250_000]),
    ("write", "randwrite,bs=4KiB,qd=32", 0.0, [20_000, 220_000]),
    ("collect", "randwrite,bs=4KiB,qd=32", 0.0, [260_000, 500_000]),
];

/// What is counted. Never inlined, so that it can be found by its name; no other name has it as a part.
#[inline(never)]
fn measured(setup: &Setup) -> Result<u64, SimError> {
    let result = simulate(setup, &Control::default())?;
    Ok(result.host.read_requests + result.host.write_requests)
}

fn setup(workload: &str, fill: f64, requests: u64) -> Result<Setup, Box<dyn std::error::Error>> {
    let mut sets: Vec<String> = DEVICE.iter().map(|&set| set.to_owned()).collect();
    sets.push(format!("precondition.fill={fill}"));
    let config = Config::load(&Sources { preset: Some("s1"), sets: &sets, ..Sources::default() })?;
    let load = Load::Workload(format!("{workload},requests={requests}"));
    Ok(Setup {
        config: config.with_load(&load),
        trace_options: Options::default(),
        seed: 1,
        program: Program::default(),
    })
}

/// Runs the loads named as arguments.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut stdout = std::io::stdout().lock();
    for name in std::env::args().skip(1) {
        let load = LOADS.iter().find(|load| load.0 == name);
        let Some((_, workload, fill, lengths)) = load else {
            return Err(format!("{name} is none of the loads read, write and collect").into());
        };
        for requests in *lengths {
            let done = measured(&setup(workload, *fill, requests)?)?;
            writeln!(stdout, "{name} {done}")?;
        }
    }
    Ok(())
}
