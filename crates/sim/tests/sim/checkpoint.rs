//! A run that is stopped and continued has the result of a run in one go.

use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use onefold_config::{Config, Load, Sources};
use onefold_sim::result::RunResult;
use onefold_sim::{
    Checkpoint, CheckpointError, Control, Setup, SimError, Store, WriteState, simulate,
};
use onefold_units::Rng;

use crate::common::{sets, setup, workload};

/// A file in memory.
#[derive(Default)]
struct Memory {
    bytes: RefCell<Option<Vec<u8>>>,
    written: Cell<u64>,
    /// Nothing can be written from this number on.
    full_from: Option<u64>,
}

impl Store for Memory {
    fn name(&self) -> String {
        "run.state".to_owned()
    }

    fn open(&self) -> io::Result<Option<Box<dyn Read>>> {
        let bytes = self.bytes.borrow().clone();
        Ok(bytes.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read>))
    }

    fn replace(&self, write: WriteState<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        if self.full_from.is_some_and(|full| self.written.get() >= full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written.set(self.written.get() + 1);
        *self.bytes.borrow_mut() = Some(bytes);
        Ok(())
    }
}

/// A run from the state that is stored, if any is, until `stop` requests are done in all.
fn part(
    setup: &Setup,
    store: &Memory,
    every: Option<u64>,
    stop: u64,
) -> Result<RunResult, SimError> {
    let interrupt = AtomicBool::new(false);
    let progress = |done: u64| interrupt.store(done >= stop, Ordering::Relaxed);
    let control = Control {
        interrupt: Some(&interrupt),
        progress: Some(&progress),
        checkpoint: Some(Checkpoint { store, every }),
        ..Control::default()
    };
    simulate(setup, &control)
}

/// The result without CPU time.
fn lasting(mut result: RunResult) -> String {
    result.cpu_s = 0.0;
    if let Some(precondition) = &mut result.precondition {
        precondition.cpu_s = 0.0;
    }
    result.to_json_pretty()
}

/// Stops at random and goes on, until the run is over. How often it was stopped.
fn in_parts(setup: &Setup, mean: u64, rng: &mut Rng) -> (String, u64) {
    let store = Memory::default();
    let (mut stop, mut stops) = (0, 0);
    loop {
        stop += 1 + rng.below(2 * mean);
        match part(setup, &store, None, stop) {
            Ok(result) if !result.partial => return (lasting(result), stops),
            Ok(_) | Err(SimError::Interrupted) => stops += 1,
            Err(error) => panic!("after {stops} stops: {error}"),
        }
    }
}

const SMALL: [&str; 4] =
    ["geometry.channels=2", "geometry.ways=2", "geometry.blocks=64", "geometry.pages=64"];
const MIX: &str = "mix,bs=4KiB:8/12KiB:1/2KiB:1,align=2KiB,qd=16,requests=12k,dist=zipf:0.9,trim_share=0.03,flush_every=50,fua_share=0.05";

/// A file of the repository.
fn recorded(name: &str) -> Load {
    Load::Trace(PathBuf::from("../../traces").join(name))
}

fn with(preset: &str, more: &[&str], load: &Load) -> (String, Setup) {
    let label = format!("{preset} {more:?}");
    (label, setup(preset, &sets(&[&SMALL[..], more].concat()), load))
}

/// Where something of each part of the state is in use.
fn drives() -> Vec<(String, Setup)> {
    let mix = workload(MIX);
    let remaps = workload(
        "mix,qd=8,requests=12k,remap_share=0.3,remap_run=64KiB,remap_move_share=0.3,trim_share=0.05",
    );
    let paced = workload("randrw,rate=2k,requests=8k,flush_every=100");
    let dedup = ["capacity.logical=0.7", "ftl.remap=lh", "precondition.overwrite=1"];
    let faults =
        ["faults.program=0.0001", "faults.read=0.0002", "faults.slow=0.01", "ftl.relocate=true"];
    let mut all = vec![
        with("s1", &["precondition.overwrite=1"], &mix),
        with("s1", &["run.warmup=3000", "run.window=500"], &mix),
        with(
            "s1",
            &["capacity.logical=0.7", "ftl.gc_idle=true", "ftl.streams=4", "ftl.classifier=auto"],
            &paced,
        ),
        with("s1", &["capacity.logical=0.7", "ftl.streams=2", "ftl.classifier=hot-cold"], &mix),
        with(
            "tlc",
            &["capacity.logical=0.7", "timing.read_priority=1ms", "precondition.overwrite=1"],
            &paced,
        ),
        with("sata-dramless", &["capacity.logical=0.7", "precondition.overwrite=1"], &mix),
        with("qlc-16k", &["capacity.logical=0.6"], &mix),
        with(
            "tlc-plp",
            &["capacity.logical=0.7", "buffer.size=1MiB", "buffer.writeback=async"],
            &mix,
        ),
        with("s1", &[&faults[..], &["capacity.logical=0.6"]].concat(), &mix),
        with("s1", &["capacity.logical=0.7", "ftl.metadata=pages", "ftl.checkpoint=0.2"], &mix),
        with(
            "femu32",
            &[&dedup[..], &["dedup.fingerprints=9000", "dedup.content=exact_dup_ratio:ratio=0.5"]]
                .concat(),
            &mix,
        ),
        with(
            "femu32",
            &[&dedup[..], &["dedup.scope=reads", "dedup.content=recent:ratio=0.5"]].concat(),
            &mix,
        ),
        with(
            "femu32",
            &[&dedup[..], &["dedup.scope=all", "dedup.content=iid_zipf:theta=0.5"]].concat(),
            &mix,
        ),
    ];
    for victim in ["greedy", "cost-benefit", "fifo", "d-choices", "random"] {
        all.push(with("s1", &[&format!("ftl.victim={victim}"), "precondition.overwrite=1"], &mix));
    }
    for scheme in ["none", "gf", "gn", "ln", "lh", "opt"] {
        let remap = format!("ftl.remap={scheme}");
        let log = ["capacity.logical=0.6", "ftl.remap_log=64KiB", "precondition.overwrite=1"];
        all.push(with("femu32", &[&log[..], &[remap.as_str()]].concat(), &remaps));
    }
    all
}

fn check(all: &[(String, Setup)], mean: u64) {
    for (seed, (label, setup)) in (0..).zip(all) {
        let whole = simulate(setup, &Control::default());
        let whole = lasting(whole.unwrap_or_else(|error| panic!("{label}: {error}")));
        let (parts, stops) = in_parts(setup, mean, &mut Rng::new(seed));
        assert!(stops >= 2, "{label}: {stops} stops");
        assert!(parts == whole, "{label}, seed {seed}:\n{}", first_difference(&parts, &whole));
    }
}

fn first_difference(parts: &str, whole: &str) -> String {
    let lines = parts.lines().zip(whole.lines()).filter(|(part, whole)| part != whole).take(5);
    let pairs = lines.flat_map(|(part, whole)| ["in parts ", part, "\nwhole    ", whole, "\n"]);
    pairs.collect()
}

#[test]
fn drives_go_on_where_they_were() {
    check(&drives(), 1500);
}

#[test]
fn buffers_go_on_where_they_were() {
    let policies = onefold_buffer::Policies::builtin();
    let areas = ["2l", "pt-lru", "cflru", "s3-fifo", "sieve"];
    let areas = areas.map(|area| format!("aoi:area={area},reaccess=cursor"));
    let names = policies.iter().map(|policy| policy.name.to_owned()).chain(areas);
    let setups: Vec<_> = names
        .map(|name| {
            let name = format!("buffer.policy={name}");
            let more = ["capacity.logical=0.7", "buffer.size=1MiB", "run.warmup=2000", &name];
            with("tlc", &more, &workload(MIX))
        })
        .collect();
    assert!(setups.len() > 20);
    check(&setups, 1500);
}

#[test]
fn traces_go_on_where_they_were() {
    let modes = ["dependencies", "open", "closed", "bounded", "recorded"];
    let mut all: Vec<_> = modes
        .iter()
        .map(|mode| {
            let mode = format!("run.mode={mode}");
            with("s1", &["run.fit=wrap", &mode], &recorded("rec-sqlite-wal-ext4.csv.zst"))
        })
        .collect();
    for repeat in ["run.repeat=3", "run.until=steady"] {
        let more = ["run.fit=wrap", "capacity.logical=0.7", repeat];
        all.push(with("s1", &more, &recorded("rec-sqlite-wal-ext4.csv.zst")));
    }
    let dedup = [
        "run.fit=wrap",
        "ftl.remap=lh",
        "dedup.scope=writes",
        "run.mode=open",
        "capacity.logical=0.7",
    ];
    all.push(with("femu32", &dedup, &recorded("rec-dedup-homes-mail-ext4.fiu.zst")));
    check(&all, 8000);
}

#[test]
fn tenants_go_on_where_they_were() {
    let file = PathBuf::from("tests/sim/data/tenants.toml");
    let config = Config::load(&Sources { file: Some(file), ..Sources::default() }).unwrap();
    let setup = Setup { config, ..setup("s1", &[], &workload("randread")) };
    check(&[("tenants".to_owned(), setup)], 8000);
}

/// One drive and a load of 6,000 requests, stopped at the middle.
fn stopped() -> (Setup, Memory) {
    let (_, setup) = with("s1", &["precondition.overwrite=0.5"], &workload("mix,qd=8,requests=6k"));
    let store = Memory::default();
    assert!(part(&setup, &store, None, 3000).unwrap().partial);
    (setup, store)
}

/// Nearly all of the run is before the stop, so that what the rest took alone is far less.
#[test]
fn cpu_time_adds_up() {
    let more = ["precondition.overwrite=0.5"];
    let (_, setup) = with("s1", &more, &workload("mix,qd=8,requests=200k"));
    let store = Memory::default();
    let before = part(&setup, &store, None, 199_000).unwrap();
    let after = part(&setup, &store, None, u64::MAX).unwrap();
    assert!(before.partial && !after.partial && before.cpu_s > 0.0);
    assert!(after.cpu_s > before.cpu_s / 2.0, "{} after {}", after.cpu_s, before.cpu_s);
    assert_eq!(before.precondition, after.precondition, "it is done once");
}

/// A program that is killed goes on from the state that was stored last.
#[test]
fn states_are_stored_now_and_then() {
    let (_, setup) = with("s1", &[], &workload("mix,qd=8,requests=6k"));
    let whole = lasting(simulate(&setup, &Control::default()).unwrap());
    for full_from in 1..5 {
        let store = Memory { full_from: Some(full_from), ..Memory::default() };
        let killed = part(&setup, &store, Some(1000), u64::MAX);
        assert!(matches!(killed, Err(SimError::Checkpoint(CheckpointError::Io { .. }))));
        assert_eq!(store.written.get(), full_from);
        let store = Memory { bytes: store.bytes, ..Memory::default() };
        let rest = part(&setup, &store, Some(1000), u64::MAX).unwrap();
        assert_eq!(lasting(rest), whole, "after {full_from} states");
        // The first is stored before the first request: preconditioning is not done again.
        assert_eq!(store.written.get(), 6 - full_from, "of 6");
    }
}

fn refusal(setup: &Setup, store: &Memory) -> String {
    match part(setup, store, None, u64::MAX) {
        Err(SimError::Checkpoint(error)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it goes on"),
    }
}

#[test]
fn a_state_of_another_run_is_refused_with_what_differs() {
    let (setup, store) = stopped();
    let refused = |other: &Setup, key: &str| {
        let text = refusal(other, &store);
        assert!(text.contains(key), "{text}");
    };
    refused(&Setup { seed: 43, ..setup.clone() }, "seed = 42, and this one has seed = 43");
    let (_, other) = with(
        "s1",
        &["precondition.overwrite=0.5", "ftl.victim=fifo"],
        &workload("mix,qd=8,requests=6k"),
    );
    refused(&other, "ftl.victim = \"greedy\", and this one has ftl.victim = \"fifo\"");
    let mut other = setup.clone();
    other.program.commit = "another".to_owned();
    refused(&other, "commit");
    other = setup.clone();
    other.config = other.config.with_load(&workload("mix,qd=8,requests=7k"));
    refused(&other, "6k");
    // Another trace of the same name.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    let trace = |second: u64| {
        let line =
            |number: u64| format!("{},W,{},8,,60000\n", number * 1000, number * 8 % 1000 + second);
        let lines: String = (0..2000).map(line).collect();
        std::fs::write(&path, format!("t_ns,op,sector512,nsect,flags,lat_ns\n{lines}")).unwrap();
    };
    trace(0);
    let (_, setup) = with("s1", &[], &Load::Trace(path.clone()));
    let store = Memory::default();
    assert!(part(&setup, &store, None, 1000).unwrap().partial);
    trace(8);
    assert!(refusal(&setup, &store).contains("trace_sha256"));
}

#[test]
fn a_damaged_state_is_refused() {
    let (setup, store) = stopped();
    let whole = store.bytes.borrow().clone().unwrap();
    let with = |bytes: Vec<u8>| Memory { bytes: RefCell::new(Some(bytes)), ..Memory::default() };
    let mut rng = Rng::new(1);
    let len = whole.len();
    let anywhere: Vec<usize> = (0..200)
        .map(|_| usize::try_from(rng.below(u64::try_from(len).unwrap())).unwrap())
        .collect();
    let places = (0..60).map(|place| place * 3).chain(anywhere).chain(len - 24..len);
    for place in places {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << rng.below(8);
        let text = refusal(&setup, &with(bytes));
        let is_told = text.contains("damaged or cut off") || text.contains("is no state of a run");
        assert!(is_told, "byte {place}: {text}");
        let text = refusal(&setup, &with(whole[..place].to_vec()));
        let is_told = text.contains("damaged or cut off") || text.contains("is no state of a run");
        assert!(is_told, "cut off at {place}: {text}");
    }
    assert!(refusal(&setup, &with([&whole[..], &[0]].concat())).contains("damaged"));
    assert!(!part(&setup, &with(whole), None, u64::MAX).unwrap().partial);
}

#[test]
fn what_cannot_be_stopped_is_refused_at_once() {
    for (preset, set) in [("qlc-16k", "volume.mode=log"), ("zn540", "precondition.fill=0")] {
        let setup = setup(preset, &sets(&[set]), &workload("write,bs=128KiB,qd=4,requests=1k"));
        let text = refusal(&setup, &Memory::default());
        assert!(text.contains("volume, zones, [[stack]]"), "{text}");
    }
}
