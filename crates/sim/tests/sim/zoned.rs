//! Loads on a zoned namespace.

use crate::common::{sets, setup, workload};
use onefold_sim::result::{RunResult, Zoned};
use onefold_sim::{Control, Setup, simulate};

/// Four dies of 16 blocks of 64 pages of 4 KiB: 16 sets of 1 MiB over all dies, 15 zones; transfers of 10.24 us, programs of
/// 200 us, reads of 40 us, erases of 2 ms.
const SMALL: [&str; 9] = [
    "namespace.type=zoned",
    "namespace.zone_size=1MiB",
    "geometry.channels=4",
    "geometry.ways=1",
    "geometry.blocks=16",
    "geometry.pages=64",
    "capacity.logical=15MiB",
    "timing.link=0",
    "precondition.fill=0",
];

fn small(more: &[&str], load: &str) -> Setup {
    setup("s1", &sets(&[&SMALL, more].concat()), &workload(load))
}

fn run(setup: &Setup) -> (RunResult, Zoned) {
    let result = simulate(setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"));
    let zoned = result.zoned.clone().unwrap();
    (result, zoned)
}

fn refused(setup: &Setup) -> String {
    simulate(setup, &Control::default()).unwrap_err().to_string()
}

/// A zone is as fast as the dies it stripes over: a write of 16 pages to an idle zone.
#[test]
fn sequential_writes_go_as_fast_as_the_zone_is_wide() {
    for (dies, programs) in [("4", 4), ("2", 8), ("1", 16)] {
        let width = format!("namespace.zone_dies={dies}");
        let zone = format!("namespace.zone_size={dies}MiB");
        let more = [&width[..], &zone, "capacity.logical=0.9"];
        // Zones of a set of one superblock of each die.
        let more = if dies == "4" { &more[..1] } else { &more };
        let (result, zoned) = run(&small(more, "write,bs=64KiB,qd=1,requests=30"));
        assert_eq!(zoned.zone_dies.to_string(), dies);
        assert_eq!(result.latency_ns.write.max, programs * (10_240 + 200_000));
        assert_eq!(result.flash.program_pages.total(), 480);
    }
}

/// A sequential load that begins again resets each zone first; the gap behind the capacity is not addressed.
#[test]
fn a_load_that_wraps_resets_zones() {
    let more = ["namespace.zone_capacity=768KiB", "capacity.logical=11520KiB"];
    let (result, zoned) = run(&small(&more, "write,bs=128KiB,qd=4,bytes=25MiB"));
    assert_eq!(result.device.logical_bytes, (15 * 768) << 10);
    assert_eq!((zoned.zone_bytes, zoned.capacity_bytes), (1 << 20, 768 << 10));
    // 25 MiB are two rounds and 2.5 MiB: all zones were reset once, and four of them again.
    assert_eq!(zoned.resets, 15 + 4);
    assert_eq!(result.flash.erases, zoned.resets * 4);
    assert_eq!(zoned.zones["full"], 14);
    assert_eq!(zoned.zones["implicitly open"], 1);
    assert_eq!(zoned.zones.values().sum::<u64>(), 15);
    assert_eq!(result.flash.program_pages.total(), result.host.write_pages);
    assert!(result.latency_ns.write.max >= 2_000_000, "some writes wait for a reset");
}

#[test]
fn preconditioning_fills_zones_and_reads_find_them() {
    let more = ["precondition.fill=0.5"];
    let (result, zoned) = run(&small(&more, "read,bs=4KiB,qd=1,requests=3840"));
    assert_eq!(zoned.zones["full"], 7);
    assert!(result.precondition.is_some());
    assert_eq!(result.flash.read_pages.total(), 1920, "half of what is read was written");
    assert_eq!(result.latency_ns.read.max, 50_240);
}

/// Tenants in zones of their own, more than may be open at a time: the device closes one for the other.
#[test]
fn tenants_share_the_open_zones() {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    let tenant = |name: &str, range: &str| {
        format!(
            "[[tenant]]\nname = \"{name}\"\nrange = \"{range}\"\nworkload = \"write,bs=16KiB,qd=1,requests=128\"\n"
        )
    };
    let text = [tenant("a", "0..5MiB"), tenant("b", "5MiB..10MiB"), tenant("c", "10MiB..15MiB")];
    std::fs::write(file.path(), format!("extends = \"preset:s1\"\n{}", text.concat())).unwrap();
    let all = sets(&[&SMALL[..], &["namespace.max_open=2"]].concat());
    let path = Some(file.path().to_path_buf());
    let config = onefold_config::Config::load(&onefold_config::Sources {
        file: path,
        sets: &all,
        ..onefold_config::Sources::default()
    });
    let setup = Setup { config: config.unwrap(), ..small(&[], "write") };
    let (result, zoned) = run(&setup);
    assert_eq!(result.tenants.len(), 3);
    assert_eq!(result.host.write_pages, 3 * 512);
    assert!(zoned.implicit_closes > 100, "{}", zoned.implicit_closes);
    assert_eq!(zoned.zones["full"], 6);
}

#[test]
fn a_write_cache_answers_before_the_program() {
    let more = ["buffer.size=1MiB"];
    let load = "write,bs=4KiB,qd=1,requests=200";
    assert_eq!(run(&small(&more, load)).0.latency_ns.write.max, 1_000);
    assert_eq!(run(&small(&[], load)).0.latency_ns.write.max, 210_240);
}

#[test]
fn what_does_not_fit_zones_is_refused_in_words() {
    let random = refused(&small(&[], "randwrite,bs=4KiB,qd=1,requests=100"));
    assert!(random.contains("write of 4096 B at byte"), "{random}");
    assert!(random.contains("failed: Zone Invalid Write"), "{random}");
    let partial = refused(&small(&[], "write,bs=2KiB,align=2KiB,qd=1,requests=10"));
    assert!(partial.contains("whole blocks of 4 KiB"), "{partial}");
}

/// The presets run, and programs are what the host wrote.
#[test]
fn zoned_presets_run() {
    for preset in ["zns-proto", "zn540", "femu-zns"] {
        let small = sets(&["precondition.fill=0"]);
        let load = workload("write,bs=768KiB,qd=4,requests=200");
        let (result, zoned) = run(&setup(preset, &small, &load));
        assert_eq!(result.host.write_pages, 200 * 192, "{preset}");
        assert!(result.flash.program_pages.total() <= result.host.write_pages, "{preset}");
        assert!(zoned.opens > 0 && result.bandwidth > 0.0, "{preset}");
        assert_eq!(result.config["namespace"]["type"], "zoned");
    }
}

/// Two conventional zones before the others: random writes there, overwritten in place, which costs garbage collection; the
/// sequential zones behind them are written as before.
#[test]
fn conventional_zones_take_random_writes() {
    let more = [
        "namespace.conventional=2",
        "namespace.conventional_op=0.1",
        "capacity.logical=8MiB",
        "geometry.blocks=48",
        "geometry.superblock=device",
        "ftl.separate_gc=false",
    ];
    let (result, zoned) = run(&small(&more, "randwrite,bs=4KiB,qd=4,requests=20k,range=2MiB"));
    let conventional = zoned.conventional.clone().unwrap();
    assert_eq!((conventional.zones, result.device.logical_bytes), (2, 8 << 20));
    assert_eq!(zoned.zones["empty"], 6);
    assert_eq!(conventional.program_pages.of("user"), 20_000);
    let copied = conventional.program_pages.of("gc");
    assert!(copied > 1000 && result.flash.program_pages.of("gc") == copied, "{conventional:?}");
    assert_eq!((result.flash.erases, result.flash.wear.max), (conventional.erases, 0));
    assert!(conventional.wear.mean > 1.0);
    // A load over all zones, and one that trims.
    let (_, zoned) = run(&small(&more, "write,bs=64KiB,qd=4,bytes=17MiB"));
    assert_eq!((zoned.zones["full"], zoned.zones["implicitly open"]), (6, 0));
    assert_eq!(zoned.conventional.unwrap().program_pages.of("user"), 2 * 512 + 256);
    let trims = "randwrite,bs=4KiB,qd=1,requests=4k,range=2MiB,trim_share=0.5";
    let (result, _) = run(&small(&more, trims));
    assert!(result.host.trim_pages > 1000);
    let random = refused(&small(&more, "randwrite,bs=4KiB,qd=1,requests=100"));
    assert!(random.contains("Zone Invalid Write"), "{random}");
}
