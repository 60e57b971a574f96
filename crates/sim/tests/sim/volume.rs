//! A volume between the load and the device.

#![expect(clippy::print_stdout, reason = "says what was measured")]

use crate::common::{sets, setup, workload};
use onefold_config::Load;
use onefold_sim::result::{RunResult, Volume};
use onefold_sim::{Control, Setup, SimError, simulate};

/// 240 log segments of 1 MiB on one channel of `s1`.
const SMALL: [&str; 6] = [
    "geometry.channels=1",
    "geometry.ways=1",
    "geometry.blocks=280",
    "capacity.logical=240MiB",
    "precondition.fill=1",
    "volume.mode=log",
];

fn small(more: &[&str], load: &str) -> Setup {
    setup("s1", &sets(&[&SMALL, more].concat()), &workload(load))
}

fn run(setup: &Setup) -> (RunResult, Volume) {
    let result = simulate(setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"));
    let volume = result.volume.clone().unwrap();
    (result, volume)
}

#[test]
fn what_the_load_asked_for_is_counted_apart_from_what_the_device_got() {
    let load = "mix,bs=4KiB:4/12KiB:1/2KiB:1,align=2KiB,qd=16,requests=60k,trim_share=0.05,flush_every=500";
    let (result, volume) = run(&small(&[], load));
    assert_eq!(result.host.requests(), 60_000);
    assert!(result.host.flush_requests > 0 && result.host.trim_requests > 0);
    let sent: u64 = volume.sent_pages.values().sum();
    assert_eq!(sent, volume.device.write_pages);
    assert!(volume.sent_pages["cleaning"] > 0 && volume.sent_pages["header"] == volume.batches);
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert!(near(result.waf, volume.waf_host * volume.waf_device));
    let programs = result.flash.program_pages.total();
    let float = onefold_units::convert::float;
    assert!(near(result.waf, float(programs) / float(result.host.write_pages)));
    // 4 KiB blocks: what is written in part is read and written whole.
    assert!(volume.device.read_pages > volume.clean_read_pages);
    assert!(result.device.logical_bytes < 240 << 20);
    assert!(volume.live_pages * 10 > volume.log_pages * 7, "a fifth of the log is spare");
}

#[test]
fn a_load_that_ends_in_the_warm_up_is_refused() {
    let error = |more: &[&str]| {
        let setup = small(more, "randwrite,bs=4KiB,qd=4,requests=500");
        simulate(&setup, &Control::default()).err().map(|error| error.to_string())
    };
    let refused = "the load has 500 requests, and the first 500 are not measured: take a longer load, or a lower run.warmup";
    for mode in ["volume.mode=log", "volume.mode=none"] {
        assert_eq!(error(&[mode, "run.warmup=500"]).as_deref(), Some(refused));
        assert_eq!(error(&[mode, "run.warmup=499"]), None);
    }
}

/// One write of 4 KiB at a time, each answered when the device has it: CPU, then header and block over the channel,
/// one after the other on the only die, each with its program.
#[test]
fn a_write_takes_as_long_as_its_batch() {
    let more = ["volume.ack=complete", "volume.op=0.5", "timing.link=0", "precondition.fill=0"];
    let (result, volume) = run(&small(&more, "randwrite,bs=4KiB,qd=1,requests=100"));
    let (transfer, program) = (10_240, 200_000);
    assert_eq!(result.latency_ns.write.p50.next_multiple_of(1_000), {
        let ns: u64 = 1_000 + 2 * (transfer + program);
        ns.next_multiple_of(1_000)
    });
    assert_eq!(volume.sent_pages["header"], 100);
    // Answered from memory it takes the CPU time only.
    let buffered = ["volume.ack=buffer", more[1], more[2], more[3]];
    let (result, volume) = run(&small(&buffered, "randwrite,bs=4KiB,qd=1,requests=100"));
    assert_eq!(result.latency_ns.write.p50, 1_000);
    assert!(volume.sent_pages["header"] < 5, "full batches");
}

#[test]
fn a_flush_and_a_forced_write_wait_for_the_device() {
    let more = ["volume.op=0.5", "precondition.fill=0"];
    let load = "randwrite,bs=4KiB,qd=1,requests=2k,fua_share=0.5,flush_every=3";
    let (result, volume) = run(&small(&more, load));
    assert!(result.latency_ns.flush.p50 >= 1_000);
    assert!(result.latency_ns.write.p90 > 200_000, "forced ones program");
    assert!(volume.flushes > 500);
}

/// As a server that does not wait for its drive.
#[test]
fn a_device_without_latency_programs_and_takes_no_time() {
    let load = "randwrite,bs=4KiB,qd=1,requests=1000,flush_every=1";
    let [timed, at_once] = ["model", "none"].map(|latency| {
        let (result, volume) = run(&small(&[&format!("run.latency={latency}")], load));
        (result.latency_ns.flush.p50, volume.sent_pages["user"])
    });
    assert!(timed.0 > 100_000 && at_once.0 <= 1_000, "{timed:?}, {at_once:?}");
    assert_eq!(timed.1, at_once.1);
}

#[test]
fn reads_of_what_was_never_written_do_not_reach_the_device() {
    let more = ["precondition.fill=0"];
    let (result, volume) = run(&small(&more, "randread,bs=4KiB,qd=4,requests=1k"));
    assert_eq!((volume.read_runs, volume.device.read_pages), (0, 0));
    assert_eq!(result.latency_ns.read.p50, 4_000, "the CPU serves them one by one");
    let (result, volume) = run(&small(&[], "randread,bs=4KiB,qd=1,requests=1k"));
    assert_eq!(volume.read_runs, 1_000);
    assert!(result.latency_ns.read.p50 > 50_000);
}

#[test]
fn a_map_that_does_not_fit_is_paged() {
    let more = ["volume.map_memory=1MiB", "geometry.blocks=1200", "capacity.logical=1GiB"];
    let (result, volume) = run(&small(&more, "randwrite,bs=4KiB,qd=8,requests=3k"));
    assert!(volume.map_faults > 100 && volume.map_evictions > 100);
    assert!(volume.map_bytes <= 1 << 20);
    assert!(volume.stalls.requests > 100 && volume.stalls.max_ns > 0);
    assert_eq!(volume.stalls.max_paced_ns, volume.stalls.max_ns, "log segments were never short");
    assert!(result.latency_by_delay.write.background.count > 0);
}

/// Blocks that are remapped are programmed once, when the load wrote them, and not again by the cleaner.
#[test]
fn cleaning_by_remap_copies_nothing() {
    let load = "randwrite,bs=4KiB,qd=32,requests=30k";
    let by = |clean_move: &str| {
        let clean_move = format!("volume.clean_move={clean_move}");
        let more = ["precondition.overwrite=1", "ftl.remap=lh", &clean_move];
        run(&small(&more, load))
    };
    let (_, copied) = by("copy");
    assert!(copied.sent_pages["cleaning"] > 10_000 && copied.remapped_pages == 0);
    let stalls = &copied.stalls;
    assert!(stalls.max_paced_ns > 0 && stalls.max_paced_ns < stalls.max_ns, "{stalls:?}");
    let (result, remapped) = by("remap");
    assert!(remapped.remapped_pages > 10_000);
    assert_eq!((remapped.sent_pages["cleaning"], remapped.failed_remaps), (0, 0));
    // The cleaner read headers only.
    assert!(remapped.clean_read_pages * 10 < remapped.remapped_pages);
    assert_eq!(remapped.device.write_pages, remapped.sent_pages.values().sum::<u64>());
    let programs = &result.flash.program_pages;
    assert_eq!(programs.of("fallback"), 0);
    // One is programmed when the next one of its unit of programming comes.
    assert!(programs.of("user").abs_diff(remapped.device.write_pages) < 1_000);
}

/// A log of remaps that has room for few entries: what does not fit is copied by the cleaner, and nothing by the device.
#[test]
fn what_the_device_cannot_remap_is_copied() {
    let more = [
        "precondition.overwrite=1",
        "ftl.remap=ln",
        "ftl.remap_log=16KiB",
        "volume.clean_move=remap",
    ];
    let (result, volume) = run(&small(&more, "randwrite,bs=4KiB,qd=32,requests=30k"));
    assert!(volume.failed_remaps > 0 && volume.sent_pages["cleaning"] > 0);
    assert_eq!(result.flash.program_pages.of("fallback"), 0);
}

/// What preconditioning left in memory is not taken for the end of a request of the run: it was, and the run panicked.
#[test]
fn blocks_left_from_preconditioning_belong_to_nobody() {
    let load = "randwrite,bs=4KiB,qd=4,requests=2k,fua_share=0.5,flush_every=7";
    let (result, _) = run(&small(&["precondition.overwrite=0.001", "volume.op=0.4"], load));
    assert_eq!(result.host.requests(), 2_000);
}

/// Preconditioning goes through the volume, and tenants, windows and warm-up work with it as without.
#[test]
fn runs_go_as_without_a_volume() {
    let more = ["precondition.overwrite=1", "run.warmup=5000", "run.window=1000"];
    let (result, volume) = run(&small(&more, "randwrite,bs=4KiB,qd=32,requests=20k"));
    let precondition = result.precondition.unwrap();
    assert!(precondition.waf_last > 1.5, "{}", precondition.waf_last);
    assert_eq!(result.host.write_pages, 15_000);
    assert_eq!(result.series.points.len(), 15);
    let windows: u64 = result.series.points.iter().map(|point| point.host_write_pages).sum();
    assert_eq!(windows, 15_000);
    assert!(volume.cleaned_segments > 10);
    let law = result.checks.littles_law.unwrap();
    assert!((law.in_flight_mean - 32.0).abs() < 0.5, "{}", law.in_flight_mean);
}

#[test]
fn a_trace_goes_through_a_volume() {
    let more = [
        "precondition.fill=0",
        "geometry.blocks=1600",
        "capacity.logical=1400MiB",
        "run.mode=closed",
        "run.qd=1",
    ];
    let load = Load::Trace("../../traces/rec-sqlite-wal-ext4.csv.zst".into());
    let setup = setup("s1", &sets(&[&SMALL[..], &more].concat()), &load);
    let (result, volume) = run(&setup);
    assert_eq!(result.host.requests(), 38_092);
    // Every commit is flushed, so batches are small: volume.md, section 1.
    assert!(volume.waf_host > 1.1, "{}", volume.waf_host);
    assert!(volume.flushes >= result.host.flush_requests / 2);
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |more: &[&str]| {
        let sets = sets(&[&SMALL[..], more].concat());
        let sources = onefold_config::Sources {
            preset: Some("s1"),
            sets: &sets,
            ..onefold_config::Sources::default()
        };
        onefold_config::Config::load(&sources).unwrap_err()
    };
    let geometry = error(&["volume.op=0"]);
    assert!(geometry.to_string().contains("can hold data"), "{geometry}");
    assert!(geometry.help().contains("volume.op"));
    assert!(error(&["volume.log_segment=16MiB"]).to_string().contains("expected at least 128"));
    assert!(error(&["volume.unit=12KiB"]).to_string().contains("unit of 3 blocks"));
    let batch = error(&["volume.batch=12KiB", "ftl.indirection=16KiB"]).to_string();
    assert!(batch.contains("batches of 3 blocks"), "{batch}");
    let both = ["ftl.remap=lh", "dedup.fingerprints=1000"];
    assert!(error(&both).to_string().contains("expected one of them"));
    let remap = error(&["volume.clean_move=remap"]);
    assert!(remap.to_string().contains("the device would copy"), "{remap}");
    let units = ["volume.clean_move=remap", "ftl.remap=lh", "ftl.indirection=16KiB"];
    let units = error(&units);
    assert!(units.to_string().contains("single blocks"), "{units}");
    assert!(units.help().contains("volume.clean_move"));
    let partition = error(&["volume.mode=han", "volume.partition=64MiB"]).to_string();
    assert!(partition.contains("four equal partitions"), "{partition}");
    let tiny = error(&["volume.mode=sung", "volume.partition=1MiB"]).to_string();
    assert!(tiny.contains("partitions of at least 512 blocks"), "{tiny}");
}

/// The device below wears out: the volume cannot go on, and the run says why.
#[test]
fn a_device_that_fails_ends_the_run_with_its_reason() {
    let more = ["faults.program=0.9", "precondition.fill=0"];
    let setup = small(&more, "randwrite,bs=4KiB,qd=8,requests=20k");
    let error = simulate(&setup, &Control::default()).map(|_| ()).unwrap_err();
    let said = matches!(
        error,
        SimError::VolumeFailed | SimError::Volume { .. } | SimError::VolumeMount { .. }
    );
    assert!(said, "{error}");
}

/// The flash of [`SMALL`] as zones of one superblock: the device moves nothing, so all that is written for the load is what the volume
/// sends, and the cleaner of the volume is the only one.
#[test]
fn a_volume_on_zones_leaves_nothing_to_move_to_the_device() {
    let zones = ["namespace.type=zoned", "namespace.zone_size=1MiB", "geometry.superblock=device"];
    let load = "randwrite,bs=4KiB,qd=32,requests=60k";
    let more = ["precondition.overwrite=1", "volume.op=0.3"];
    let (blocks, on_blocks) = run(&small(&more, load));
    let (result, volume) = run(&small(&[&zones[..], &more].concat(), load));
    let sent: u64 = volume.sent_pages.values().sum();
    assert_eq!(sent, volume.device.write_pages);
    assert_eq!(result.flash.program_pages.total(), sent, "every page is programmed once");
    assert!(volume.sent_pages["cleaning"] > 0 && volume.trim_pages == 0);
    let resets = result.zoned.as_ref().map_or(0, |zones| zones.resets);
    assert!(resets >= volume.freed_segments, "{resets} resets");
    println!(
        "blocks: host {:.3} x device {:.3} = {:.3}; zones: host {:.3} x device {:.3} = {:.3}",
        on_blocks.waf_host,
        on_blocks.waf_device,
        blocks.waf,
        volume.waf_host,
        volume.waf_device,
        result.waf
    );
    assert!((volume.waf_device - 1.0).abs() < 0.01, "{}", volume.waf_device);
}

/// Host and cleaner take turns where a log segment is as long as a batch, so that a device that has no streams has superblocks that die as a
/// whole (`waf_device` is 1.07 if they write side by side).
#[test]
fn short_log_segments_lie_in_one_piece_on_the_device() {
    let settings = sets(&[
        "geometry.channels=1",
        "geometry.ways=1",
        "geometry.pages=256",
        "geometry.blocks=158",
        "geometry.superblock=device",
        "capacity.logical=140MiB",
        "precondition.fill=1",
        "precondition.overwrite=1",
        "run.warmup=10000",
        "volume.mode=log",
        "volume.log_segment=1MiB",
        "volume.trim_pause=0",
        "volume.op=0.2",
    ]);
    let load = workload("randwrite,bs=4KiB,qd=64,requests=30k");
    let (_, volume) = run(&setup("s1", &settings, &load));
    assert!(volume.waf_device < 1.02, "{}", volume.waf_device);
}

/// A write that is longer than a log segment is taken in pieces.
#[test]
fn long_requests_go_to_short_log_segments() {
    let settings = sets(&[
        "geometry.channels=1",
        "geometry.ways=1",
        "geometry.blocks=158",
        "geometry.pages=256",
        "capacity.logical=140MiB",
        "volume.mode=log",
        "volume.log_segment=256KiB",
    ]);
    let (result, _) = run(&setup("s1", &settings, &workload("write,bs=1MiB,qd=4,requests=40")));
    assert_eq!(result.host.write_pages, 40 * 256);
}
