//! Loads on a zoned volume over two devices, or over one with conventional zones.

use crate::common::{sets, setup, workload};
use onefold_config::{Config, Load, Sources};
use std::fmt::Write as _;

use onefold_sim::result::{RunResult, ZonedVolume};
use onefold_sim::{Control, Setup, simulate};

/// The devices of the paper with zones of 16 MiB, so that runs are short: 256 sequential zones.
const SMALL: [&str; 3] = ["geometry.pages=64", "geometry.blocks=257", "namespace.zone_size=16MiB"];

fn choi(more: &[&str], load: &str) -> Setup {
    setup("choi2022", &sets(&[&SMALL, more].concat()), &workload(load))
}

fn run(setup: &Setup) -> (RunResult, ZonedVolume) {
    let result = simulate(setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"));
    let volume = result.zoned_volume.clone().unwrap();
    (result, volume)
}

/// What fits the cache is written once: all that comes on top is metadata, every ten seconds.
#[test]
fn random_writes_inside_the_cache_are_not_copied() {
    let load = "randwrite,bs=4KiB,qd=32,requests=20k,range=256MiB";
    let (result, volume) = run(&choi(&[], load));
    assert_eq!(volume.sent("user"), 20_000);
    assert_eq!((volume.valid_copies, volume.reclaims_total()), (0, (0, 0)));
    assert!(volume.phys_per_user < 1.01, "{}", volume.phys_per_user);
    assert_eq!(result.host.write_pages, 20_000);
    assert_eq!(volume.devices[1].sent_pages["user"], 0);
}

/// Random writes to more chunks than there are cache zones: dm-zoned copies whole zones, holes and all, and throws most of it away.
#[test]
fn random_writes_beyond_the_cache_are_copied_and_zero_filled() {
    let load = "randwrite,bs=4KiB,qd=32,requests=4k,range=2GiB";
    let (result, volume) = run(&choi(&["run.window=1000"], load));
    assert_eq!(volume.sent("user"), 4_000);
    assert!(volume.sent("zero_fill") > volume.sent("user"), "{volume:?}");
    assert!(volume.phys_per_user > 3.0, "{}", volume.phys_per_user);
    let (started, aborted) = volume.reclaims_total();
    assert!(started > aborted && aborted > 0, "{started} started, {aborted} aborted");
    assert!(volume.waits.values().any(|waits| waits.count > 0));
    assert!(!result.series.points.is_empty());
}

#[test]
fn runs_repeat_and_differ_by_seed() {
    let load = "randwrite,bs=4KiB,qd=8,requests=2k,range=2GiB";
    let mut setup = choi(&[], load);
    let [first, again] = [run(&setup).1, run(&setup).1];
    assert_eq!(first, again);
    setup.seed += 1;
    assert_ne!(first, run(&setup).1);
}

/// Choi 2022: with its chunk pinned no block of the journal is copied; without, it is.
#[test]
fn the_pinned_journal_is_not_copied() {
    let journal = ["zoned.journal_offset=160MiB", "zoned.journal_size=16MiB"];
    let copied = |mode: &str| {
        let mode = format!("zoned.journal={mode}");
        let load = "randwrite,bs=4KiB,qd=8,requests=6k,range=2GiB";
        run(&choi(&[&journal[..], &[&mode]].concat(), load)).1
    };
    let (off, one) = (copied("off"), copied("one"));
    assert!(off.sent("journal") > 0 && off.sent("journal_copied") > 0, "{off:?}");
    assert_eq!((one.sent("journal_copied"), one.journal_copies), (0, 0));
    // Choi 2022, Fig. 3.
    assert_eq!((one.journal_moves, one.journal_path.len()), (0, 1), "{:?}", one.journal_path);
    assert!(off.journal_moves > 0 && off.journal_copies >= off.sent("journal_copied"));
    let path = &off.journal_path;
    assert_eq!(u64::try_from(path.len()), Ok(off.journal_moves + 1));
    assert!(
        path.windows(2).all(|pair| pair[0].zone != pair[1].zone && pair[0].at_ns < pair[1].at_ns)
    );
    assert!(path.last().unwrap().before_pages < off.sent("journal"));
    assert_eq!(one.journal_outside_pages, 0);
}

/// FLUSH reaches both devices; the kernel's order reaches only one.
#[test]
fn the_order_of_the_kernel_does_not_flush_the_zoned_device() {
    let flushes = |set: &str| {
        let load = "randwrite,bs=4KiB,qd=8,requests=3k,range=2GiB";
        let (_, volume) = run(&choi(&[set], load));
        (volume.devices[0].flushes, volume.devices[1].flushes)
    };
    assert_eq!(flushes("zoned.kernel_flush=true").1, 0);
    let (regular, zoned) = flushes("zoned.kernel_flush=false");
    assert!(regular >= zoned && zoned > 0, "{regular} and {zoned}");
}

#[test]
fn filling_goes_through_the_volume() {
    let load = "randread,bs=4KiB,qd=4,requests=500";
    let (result, volume) = run(&choi(&["precondition.fill=0.5"], load));
    assert!((result.precondition.unwrap().fill - 0.5).abs() < 1e-9);
    assert_eq!(volume.sent("user"), 0, "filling is not measured");
    let reads: u64 = volume.devices.iter().map(|device| device.read_pages).sum();
    assert!((150..350).contains(&reads), "half of the volume holds something: {reads}");
    assert!(volume.devices[1].read_pages > volume.devices[0].read_pages);
}

#[test]
fn requests_in_part_of_a_block_are_refused() {
    let setup = choi(&[], "randwrite,bs=1KiB,qd=1,requests=10");
    let error = simulate(&setup, &Control::default()).unwrap_err().to_string();
    assert!(error.contains("is not in whole blocks of 4 KiB"), "{error}");
}

/// One device with conventional zones: the same placement, all of it on one device, whose collection is behind the conventional zones.
#[test]
fn one_device_with_conventional_zones_is_enough() {
    let small = [
        "geometry.pages=64",
        "geometry.blocks=110",
        "namespace.zone_size=16MiB",
        "capacity.logical=1.25GiB",
    ];
    let single = |load: &str| {
        let (result, volume) = run(&setup("choi2022-single", &sets(&small), &workload(load)));
        assert_eq!((volume.devices.len(), &volume.devices[0].name[..]), (1, "zoned"));
        assert_eq!(volume.cache_zones, 14);
        (result, volume)
    };
    let (result, volume) = single("randwrite,bs=4KiB,qd=32,requests=20k,range=128MiB");
    assert_eq!((volume.sent("user"), volume.valid_copies), (20_000, 0));
    assert!(volume.phys_per_user < 1.02, "{}", volume.phys_per_user);
    // A few are overwritten before their flash page is full.
    assert!(result.flash.program_pages.of("user") > 19_000);
    let (_, volume) = single("randwrite,bs=4KiB,qd=32,requests=3k,range=768MiB");
    assert!(volume.sent("zero_fill") > volume.sent("user"), "{volume:?}");
    assert!(volume.reclaims_total().0 > 0 && volume.devices[0].flushes > 0);
}

/// Policy `log` on the same devices. That both received what was sent, cause by cause, is a law of every run.
#[test]
fn policy_log_runs_on_both_devices_and_copies_no_journal() {
    let journal = ["zoned.policy=log", "zoned.journal_offset=160MiB", "zoned.journal_size=16MiB"];
    let volume = |mode: &str| {
        let sets = [&journal[..], &[mode, "precondition.fill=0.9"]].concat();
        let load = "write,bs=16KiB,qd=8,requests=4k,range=16MiB,fua_share=0.2";
        // Its ring is the journal.
        let load = load.replace("range=16MiB", "range=160MiB-176MiB");
        let result = simulate(&choi(&sets, &load), &Control::default());
        let result = result.unwrap_or_else(|error| panic!("{error}"));
        (result.volume.clone().unwrap(), result)
    };
    let (set, result) = volume("zoned.journal=set");
    let (off, _) = volume("zoned.journal=off");
    // The last batch is in memory: nobody flushes it.
    assert!((16_000 - 255..=16_000).contains(&set.sent_pages["journal"]), "{set:?}");
    assert_eq!(set.journal_copied_pages, 0);
    // Some of the filling is sent in the measured part.
    assert_eq!(off.sent_pages["journal"], 0);
    assert!((16_000 - 255..17_000).contains(&off.sent_pages["user"]), "{off:?}");
    assert!((1..=3).contains(&set.journal_segments), "{set:?}");
    assert_eq!((set.journal_demotions, off.journal_segments), (0, 0));
    assert!(result.flash.program_pages.total() > 16_000, "{:?}", result.flash);
    let dmz = choi(&[], "write,requests=1").config.host_bytes().unwrap();
    assert!((dmz * 9 / 10..=dmz).contains(&result.device.logical_bytes));
}

/// A file system with a journal of so many MiB at 2,080 MiB, which is the middle of a chunk of 64 MiB: its ring is written in
/// pieces of 64 KiB, its header after every 16th; with every `every`th one comes a write of 16 KiB to a range of `data` MiB.
fn journaled(path: &std::path::Path, journal: u64, laps: u64, (data, every): (u64, u64)) {
    let mut text = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
    let mut rng = onefold_units::Rng::new(1);
    let (first, sectors_of_ring) = (2080 * 2048, journal * 2048 - 8);
    let (mut at, mut line) = (0, |t: u64, op: &str, sector: u64, sectors: u64| {
        let _ = writeln!(text, "{t},{op},{sector},{sectors},,-1");
    });
    for number in 0..laps * journal * 16 {
        let t = number * 1_000_000;
        if number % every == 0 {
            line(t, "W", rng.below(data * 64) * 32, 32);
        }
        if number % 16 == 0 {
            line(t, "W", first, 8);
        }
        let sectors = 128.min(sectors_of_ring - at);
        line(t, "W", first + 8 + at, sectors);
        at = (at + sectors) % sectors_of_ring;
        if number % 32 == 0 {
            line(t, "F", 0, 0);
        }
    }
    std::fs::write(path, text).unwrap();
}

/// Copies of a load beside a journal in two chunks and in eight, with a cache of 14 zones that is short or not.
#[test]
fn a_journal_zone_set_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    for (journal, laps, data) in [(64, 4, (2048, 4)), (64, 4, (384, 4)), (448, 2, (1024, 64))] {
        journaled(&path, journal, laps, data);
        let [off, one, set] = ["off", "one", "set"].map(|mode| {
            let journal = [
                format!("zoned.journal={mode}"),
                "zoned.journal_offset=2080MiB".to_owned(),
                format!("zoned.journal_size={journal}MiB"),
            ];
            let load = Load::Trace(path.clone());
            run(&setup("choi2022", &journal, &load)).1
        });
        assert!(set.sent("journal_appended") > laps * journal * 256);
        assert_eq!((set.sent("journal_copied"), set.journal_outside_pages), (0, 0), "{journal}");
        let share = off.sent("journal_copied");
        assert!(10 * (off.valid_copies - set.valid_copies) >= 9 * share, "{}", set.valid_copies);
        assert!(one.journal_outside_pages > 0, "its ring lies in more than one chunk");
        assert!(
            set.valid_copies <= off.valid_copies,
            "{} and {}",
            set.valid_copies,
            off.valid_copies
        );
    }
}

/// Lines of a trace with so many writes of 4 KiB, one after the other, `apart` ns apart and each `took` ns long.
fn writes(requests: u64, apart: u64, took: i64) -> String {
    let mut text = "t_ns,op,sector512,nsect,flags,lat_ns\n".to_owned();
    for number in 0..requests {
        let _ = writeln!(text, "{},W,{},8,,{took}", number * apart, number * 8);
    }
    text
}

/// 2,000 writes at once, and 20 writes a second apart.
#[test]
fn a_bounded_replay_keeps_its_limit_and_the_times_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    for preset in ["s1", "choi2022"] {
        let replay = |requests: u64, apart: u64, mode: &str| {
            std::fs::write(&path, writes(requests, apart, -1)).unwrap();
            let mode = sets(&[mode, "run.qd=2"]);
            let setup = setup(preset, &mode, &Load::Trace(path.clone()));
            simulate(&setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
        };
        let most = |mode| replay(2_000, 0, mode).checks.littles_law.unwrap().in_flight_mean;
        assert!(most("run.mode=open") > 100.0, "{preset}");
        let bounded = most("run.mode=bounded");
        assert!((1.0..=2.0).contains(&bounded), "{preset}: {bounded} requests in flight");
        let time = |mode| replay(20, 1_000_000_000, mode).virtual_ns;
        assert_eq!(time("run.mode=bounded"), time("run.mode=open"), "{preset}");
        assert!(time("run.mode=bounded") > 19_000_000_000, "{preset}");
    }
}

/// A read of the cache behind 2,000 writes.
#[test]
fn a_read_goes_before_writes_that_wait_for_the_regular_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    std::fs::write(&path, writes(2_000, 0, -1) + "1,R,0,8,,-1\n").unwrap();
    let read = |depth: &str| {
        let depth = sets(&["run.mode=open", depth]);
        let setup = setup("dmz-guest", &depth, &Load::Trace(path.clone()));
        run(&setup).0.latency_ns.read.max
    };
    let [alone, unlimited] = ["zoned.regular_depth=1", "zoned.regular_depth=0"].map(read);
    assert!(alone < 1_000_000 && unlimited > 400_000_000, "{alone} and {unlimited} ns");
}

/// What waits for the device when the load is over was sent as well: a law of every run.
#[test]
fn what_waits_for_the_regular_device_at_the_end_is_sent() {
    for requests in 300..330 {
        let load = workload(&format!("randwrite,bs=4KiB,qd=32,requests={requests},range=2GiB"));
        run(&setup("dmz-guest", &sets(&SMALL), &load));
    }
    let depth = sets(&["zoned.regular_depth=1"]);
    let alone = Sources { preset: Some("choi2022-single"), sets: &depth, ..Sources::default() };
    let refused = Config::load(&alone).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|text| text.contains("zoned.regular_depth")));
}
