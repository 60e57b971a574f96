//! Recordings on drives.

use std::path::{Path, PathBuf};

use onefold_config::{Age, Config, Load, Sources};
use onefold_sim::{Control, Setup, simulate};
use onefold_trace::{Record, TraceOp, WriteFormat};
use onefold_tracefile::{Meta, Options, OutputFormat, create};
use onefold_try::account::drives::{AGE, Replay, parse, run};
use onefold_try::account::{Drive, DriveCost};
use onefold_units::Rng;
use onefold_units::convert::float;

const DISK: u64 = 256 << 20;

/// A recording of a program that writes small blocks at random, and waits for a flush now and then.
pub(crate) fn recording(path: &Path, (disk, bytes): (u64, u64), flush_every: u64) {
    let mut rng = Rng::new(7);
    let meta = Meta::generated("test");
    let format = OutputFormat::Stream(WriteFormat::Oft);
    let mut out = create(path, format, &meta, "").unwrap();
    let (mut now, mut written) = (0, 0);
    let mut n = 0_u64;
    while written < bytes {
        n += 1;
        let len = 4096 << rng.below(3);
        let is_flush = n.is_multiple_of(flush_every);
        let op = if is_flush { TraceOp::Flush } else { TraceOp::Write };
        let offset = rng.below((disk - len) / 4096) * 4096;
        let mut record = match op {
            TraceOp::Flush => Record::new(now, op, 0, 0),
            _ => Record::new(now, op, offset, len),
        };
        record.lat_ns = Some(1000);
        out.push(&record).unwrap();
        written += record.len;
        now += if is_flush { 500_000 } else { 5_000 };
    }
    out.finish().unwrap();
}

fn replay(requests: &Path, volume: bool) -> Replay<'_> {
    let program = onefold_sim::result::Program::default();
    Replay { requests, disk_bytes: DISK, seconds: 60.0, age: AGE, volume, seed: 3, program }
}

fn made(dir: &Path) -> PathBuf {
    let path = dir.join("requests.oft");
    recording(&path, (DISK, 24 << 20), 9);
    path
}

fn run_all(drives: &[Drive], replay: &Replay<'_>, threads: usize) -> Vec<DriveCost> {
    run(drives, replay, threads, None).unwrap()
}

#[test]
fn causes_add_up_and_threads_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = made(dir.path());
    let drives = parse(Some("tlc,qlc-16k")).unwrap();
    let costs = run_all(&drives, &replay(&path, true), 2);
    let labels: Vec<String> = costs.iter().map(DriveCost::label).collect();
    assert_eq!(labels, ["tlc", "tlc+volume", "qlc-16k", "qlc-16k+volume"]);
    for cost in &costs {
        let sum: u64 = cost.causes().iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(sum, cost.nand_bytes, "{}", cost.label());
        assert!(cost.host.write_pages * 4096 >= 24 << 20, "{}", cost.label());
        let waf = float(cost.nand_bytes) / float(cost.host.write_pages * 4096);
        assert!((waf - cost.waf).abs() < 1e-9 && waf > 1.0, "{} {waf} {}", cost.label(), cost.waf);
        assert!(cost.latency_ns.flush.count > 0 && cost.life.days.is_some(), "{}", cost.label());
        // The age is in the result, and the drive was full enough to collect.
        let aged = cost.precondition.as_ref().unwrap();
        assert!(aged.waf_last > 1.0 && cost.flash.erases > 0, "{} {aged:?}", cost.label());
    }
    // Both runs of a drive are on the same flash.
    assert_eq!(costs[0].device.raw_bytes, costs[1].device.raw_bytes);
    assert!(costs[0].device.logical_bytes > DISK);
    let padding = |cost: &DriveCost| cost.flash.program_pages.of("padding");
    assert!(padding(&costs[2]) > padding(&costs[0]), "16 KiB units pad small writes");
    assert!(padding(&costs[3]) < padding(&costs[2]) / 4, "a volume fills units");
    let timeless = |mut costs: Vec<DriveCost>| {
        for cost in &mut costs {
            cost.precondition.as_mut().unwrap().cpu_s = 0.0;
        }
        costs
    };
    assert_eq!(timeless(costs), timeless(run_all(&drives, &replay(&path, true), 1)));
}

#[test]
fn the_keys_of_a_result_repeat_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = made(dir.path());
    let costs = run_all(&parse(Some("qlc-16k,970pro")).unwrap(), &replay(&path, true), 2);
    for cost in &costs {
        // What `onefold sim run --preset NAME --set .. --trace FILE --seed 3` does.
        let sources = Sources { preset: Some(&cost.name), sets: &cost.keys, ..Sources::default() };
        let config = Config::load(&sources).unwrap().with_load(&Load::Trace(path.clone()));
        let setup = Setup {
            config,
            trace_options: Options::default(),
            seed: 3,
            program: onefold_sim::result::Program::default(),
        };
        let run = simulate(&setup, &Control::default()).unwrap();
        assert_eq!(run.config_sha256, cost.config_sha256, "{}", cost.label());
        assert_eq!(run.flash, cost.flash, "{}", cost.label());
        assert_eq!(run.latency_ns, cost.latency_ns, "{}", cost.label());
        assert_eq!(run.volume, cost.volume, "{}", cost.label());
        assert_eq!(run.virtual_ns, cost.virtual_ns, "{}", cost.label());
    }
}

#[test]
fn a_drive_alone_holds_the_disk_and_ages_as_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = made(dir.path());
    let drives = parse(Some("tlc")).unwrap();
    let of = |age: Age| {
        let replay = Replay { age, ..replay(&path, false) };
        run_all(&drives, &replay, 1).remove(0)
    };
    let (full, new) =
        (of(Age { fill: 1.0, overwrite: 2.0 }), of(Age { fill: 0.1, overwrite: 0.0 }));
    assert_eq!(full.device.logical_bytes, DISK);
    assert!(full.waf > 1.2 * new.waf, "{} {}", full.waf, new.waf);
    let days = |cost: &DriveCost| cost.life.days.unwrap();
    let ratio = days(&new) / days(&full) / (full.waf / new.waf);
    assert!((ratio - 1.0).abs() < 1e-6, "life follows what is programmed: {ratio}");
}

#[test]
fn every_preset_of_all_runs_at_small_and_usual_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("requests.oft");
    recording(&path, (64 << 20, 1 << 20), 9);
    let drives = parse(Some("all")).unwrap();
    for disk_bytes in [64 << 20, 300 << 20] {
        let replay = Replay { disk_bytes, ..replay(&path, true) };
        let costs = run_all(&drives, &replay, 2);
        assert_eq!(costs.len(), 2 * drives.len());
        for cost in costs {
            assert!(cost.host.write_requests > 0, "{}", cost.label());
        }
    }
}

/// The goal: ten drives and 1 GiB of writes in 10 s on two cores.
#[test]
#[ignore = "a measurement: cargo test -p onefold-try --test try --profile release ten_drives -- --ignored --nocapture"]
fn ten_drives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("requests.oft");
    recording(&path, (4 << 30, 1 << 30), 9);
    let drives = parse(Some("all")).unwrap();
    for volume in [false, true] {
        let replay = Replay { disk_bytes: 4 << 30, ..replay(&path, volume) };
        let begin = std::time::Instant::now();
        let costs = run_all(&drives[..10], &replay, 2);
        eprintln!("{} runs: {:.1} s", costs.len(), begin.elapsed().as_secs_f64());
        for cost in costs {
            let aged = cost.precondition.as_ref().map_or(0.0, |aged| aged.cpu_s);
            eprintln!("{:24} WAF {:.2}, aged in {aged:.1} s of CPU", cost.label(), cost.waf);
        }
    }
}
