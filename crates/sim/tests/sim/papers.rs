//! The layers of Sung 2022 and Han 2021 between the load and the device.

use crate::common::{sets, setup, workload};
use onefold_sim::result::{RunResult, Volume};
use onefold_sim::{Control, simulate};

/// A layer on 240 MiB of one channel of `s1`.
const SMALL: [&str; 7] = [
    "geometry.channels=1",
    "geometry.ways=1",
    "geometry.blocks=280",
    "capacity.logical=240MiB",
    "precondition.fill=1",
    "precondition.overwrite=0.5",
    "volume.ack=complete",
];

fn run(layer: &str, more: &[&str], load: &str) -> (RunResult, Volume) {
    let layer = format!("volume.mode={layer}");
    let setup = setup("s1", &sets(&[&SMALL[..], &[&layer[..]], more].concat()), &workload(load));
    let result = simulate(&setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"));
    let volume = result.volume.clone().unwrap();
    (result, volume)
}

const WRITES: &str = "randwrite,bs=4KiB,qd=64,requests=60k";

#[test]
fn both_layers_clean_by_plugging_holes() {
    for mode in ["sung", "han"] {
        let (result, volume) = run(mode, &["volume.partition=0"], WRITES);
        assert_eq!(volume.mode, mode);
        assert_eq!(result.host.write_pages, 60_000);
        let sent: u64 = volume.sent_pages.values().sum();
        assert_eq!(sent, volume.device.write_pages);
        assert_eq!(volume.sent_pages["user"], 60_000);
        assert!(volume.sent_pages["cleaning"] > 10_000, "{mode}: {:?}", volume.sent_pages);
        assert!(volume.device.write_requests < 60_000 + volume.sent_pages["cleaning"], "merged");
        assert!(volume.map_probes > 50_000, "{}", volume.map_probes);
        assert!(volume.map_bytes_paper >= 12 * volume.live_pages);
        assert!(volume.map_bytes_peak >= volume.map_bytes);
        let law = result.checks.littles_law.unwrap();
        assert!((law.in_flight_mean - 64.0).abs() < 0.5, "{mode}: {}", law.in_flight_mean);
    }
}

/// Han 2021, sec. III-C, has four tables; Sung 2022, sec. III-C, one for each partition. Each table searched costs CPU time.
#[test]
fn tables_are_searched_one_after_the_other() {
    let load = "randread,bs=4KiB,qd=1,requests=2k";
    let probes = |partition: &str| run("sung", &[partition], load).1.map_probes;
    let one = probes("volume.partition=0");
    assert!((1_900..=2_000).contains(&one), "{one}: what is not committed needs no search");
    let many = probes("volume.partition=16MiB");
    assert!((8_000..30_000).contains(&many), "{many} of 15 tables for each read");
    let sung = |more: &[&str]| run("sung", more, load).0.latency_ns.read.mean;
    let (free, slow) = (sung(&[]), sung(&["volume.cpu_search=50us"]));
    assert!((47_500.0..50_001.0).contains(&(slow - free)), "{free} and {slow}");
}

#[test]
fn transactions_are_as_large_and_as_old_as_they_may_be() {
    let full = run("sung", &[], WRITES).1;
    let small = run("sung", &["volume.transaction=64"], WRITES).1;
    assert!(small.batches > 6 * full.batches, "{} and {}", small.batches, full.batches);
    let ratio = small.sent_pages["user"] + small.sent_pages["cleaning"];
    assert!(small.batches >= ratio / 64, "{} for {ratio}", small.batches);
    let slow = "randwrite,bs=4KiB,qd=1,requests=2k";
    let aged = |age: &str| run("sung", &["precondition.overwrite=0", age], slow).1.batches;
    let (often, seldom) = (aged("volume.commit_age=2ms"), aged("volume.commit_age=5s"));
    assert!(often > 100 && seldom < 10, "{often} and {seldom}");
}

/// The papers never flush the device, and say nothing of flushes that pass the layer (volume.md, section 3, V4).
#[test]
fn the_papers_flush_nothing_of_their_own() {
    let load = "randwrite,bs=4KiB,qd=8,requests=20k,flush_every=100";
    let (_, ours) = run("han", &[], load);
    let (result, own) = run("han", &["volume.paper_flush=own"], load);
    let (_, all) = run("han", &["volume.paper_flush=all"], load);
    assert!(ours.flushes > 400, "two for each transaction: {}", ours.flushes);
    assert!(result.host.flush_requests > 190);
    assert_eq!((own.flushes, all.flushes), (result.host.flush_requests, 0));
}

/// The layer of Sung 2022 is below the block layer, which merges.
#[test]
fn writes_are_merged_or_sent_as_they_come() {
    let requests = |set: &str| {
        let more = ["volume.op=0.5", "precondition.overwrite=0", set];
        let (_, volume) = run("sung", &more, "randwrite,bs=4KiB,qd=128,requests=15k");
        (volume.sent_pages["user"], volume.device.write_requests - volume.batches)
    };
    assert_eq!(requests("volume.merge=false"), (15_000, 15_000));
    let (pages, merged) = requests("volume.merge=true");
    assert!(pages == 15_000 && merged < 10_000, "{merged} requests");
}

/// A write below a block is submitted when its block was read. The layer was not let go on then:
/// where nothing else was under way, the write waited for the commit timer of 5 s.
#[test]
fn a_write_below_a_block_waits_for_its_read_alone() {
    let load = "randwrite,bs=512,qd=1,requests=300";
    for mode in ["sung", "han", "log"] {
        let (result, _) = run(mode, &["volume.paper_flush=all"], load);
        let slowest = result.latency_ns.write.max;
        assert!(slowest < 1_000_000_000, "{mode}: {slowest} ns, but no write takes a second");
    }
}

#[test]
fn the_cleaner_of_sung_starts_at_its_threshold() {
    let cleaned = |share: &str| {
        run(
            "sung",
            &["volume.op=0.5", "precondition.overwrite=0", share],
            "randwrite,bs=4KiB,qd=8,requests=15k",
        )
        .1
    };
    let late = cleaned("volume.free_share=0.05");
    let early = cleaned("volume.free_share=0.4");
    assert_eq!(late.cleaned_segments, 0);
    assert!(early.cleaned_segments > 0);
}

#[test]
fn tables_of_sung_leave_memory() {
    let more = ["volume.partition=16MiB", "volume.map_memory=1MiB"];
    let (_, volume) = run("sung", &more, "randwrite,bs=4KiB,qd=8,requests=5k");
    assert!(volume.table_faults > 10, "{}", volume.table_faults);
}
