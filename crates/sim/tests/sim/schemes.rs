//! The schemes of Wu 2022 on 240 MiB: what recovery would read, what NVRAM wears, and what DRAM they take.

use crate::common::{sets, setup, workload};
use onefold_sim::result::{Remap, RunResult};
use onefold_sim::{Control, simulate};

const KIB: u64 = 1024;

fn run(more: &[&str]) -> RunResult {
    run_load("like-fio-randw,requests=120k,qd=4", more)
}

fn run_load(load: &str, more: &[&str]) -> RunResult {
    let small = [
        "geometry.channels=1",
        "geometry.ways=1",
        "geometry.blocks=72",
        "capacity.logical=240MiB",
        "ftl.remap_mode=paper",
        "ftl.remap_refs=15",
        "ftl.remap_log=64KiB",
        "ftl.remap_segment=256B",
        "dedup.fingerprints=1M",
        "dedup.content=iid_zipf",
        "dedup.hash_units=0",
        "precondition.range=0.9",
    ];
    let setup = setup("femu32", &sets(&[&small[..], more].concat()), &workload(load));
    simulate(&setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn remap(result: &RunResult) -> &Remap {
    result.remap.as_ref().unwrap()
}

/// Heads and tails are read whatever the scheme; of the log what each scheme has of it (sec. IV-E).
#[test]
fn recovery_reads_what_the_scheme_keeps() {
    let of = |scheme: &str| {
        let run = run(&[&format!("ftl.remap={scheme}")]);
        let recovery = run.recovery.clone().unwrap();
        (run, recovery)
    };
    let (opt, plain) = of("opt");
    assert!(plain.flash_bytes > 72 * 4 * KIB && plain.log_flash_bytes == 0, "{plain:?}");
    let (gf, flash) = of("gf");
    assert!(flash.log_flash_bytes > 48 * KIB && flash.log_flash_bytes <= 64 * KIB, "{flash:?}");
    let (gn, nvram) = of("gn");
    let log = nvram.nvram_bytes - plain.nvram_bytes;
    assert!(log > 48 * KIB && log <= 64 * KIB, "{log} of {nvram:?}");
    let (ln, local) = of("ln");
    // Segments, and the slots of commands.
    let segments = local.nvram_bytes - plain.nvram_bytes;
    assert!((64 * KIB..72 * KIB).contains(&segments), "{segments} of {local:?}");
    assert_eq!(local.log_flash_bytes, 0);
    let (lh, hybrid) = of("lh");
    assert_eq!(hybrid.nvram_bytes, local.nvram_bytes);
    assert!(hybrid.log_flash_bytes > 200 * KIB, "{hybrid:?}");
    assert!(hybrid.time_ns > local.time_ns && local.time_ns > 0);

    for run in [&opt, &gf, &gn] {
        let tables = &remap(run).tables;
        assert_eq!((tables.log_pages_bytes, tables.segments_bytes), (0, 0));
        assert_eq!(remap(run).segment_cycles_max, 0);
    }
    for run in [&ln, &lh] {
        let (remap, tables) = (remap(run), &remap(run).tables);
        // 72 blocks of 1,024 pages at 4 bits; 64 KiB in 256 segments.
        assert_eq!((tables.refs_bytes, tables.segments_bytes), (72 * 1024 / 2, 256 / 8));
        assert!(remap.segment_cycles_max > 1, "{}", remap.segment_cycles_max);
        assert!(
            remap.segment_cycles_mean
                <= 1e-9 + f64::from(u32::try_from(remap.segment_cycles_max).unwrap())
        );
    }
    let log_superblocks = remap(&lh).tables.log_pages_bytes / (1024 * 8);
    assert!(log_superblocks >= 1 && remap(&ln).tables.log_pages_bytes == 0);
}

/// The watermark decides between rewriting a log in NVRAM and moving it to flash (sec. IV-B).
#[test]
fn the_watermark_chooses_between_rewriting_and_moving() {
    let of = |watermark: &str| {
        let run = run(&["ftl.remap=lh", &format!("ftl.remap_watermark={watermark}")]);
        (remap(&run).compactions, remap(&run).destages)
    };
    let (rewritten, moved) = of("95");
    assert!(rewritten > 0 && moved > 0, "{rewritten} {moved}");
    let (never, more) = of("0");
    assert_eq!(never, 0);
    assert!(more > moved, "{more} instead of {moved}");
    // Of a global log the same key says when it is full for good.
    let gn = |watermark: &str| remap(&run(&["ftl.remap=gn", watermark])).compactions;
    assert!(gn("ftl.remap_watermark=95") > 0);
    assert_eq!(gn("ftl.remap_watermark=0"), 0);
}

/// `O_max` of sec. IV-D: with more superblocks to itself the log is collected less often.
#[test]
fn the_log_takes_the_superblocks_it_may() {
    let of = |spare: &str| {
        let narrow = ["geometry.blocks=144", "geometry.pages=512", "ftl.remap=lh", spare];
        let run = run_load("like-fio-randw,requests=200k,qd=4", &narrow);
        (remap(&run).log_collections, remap(&run).tables.log_pages_bytes)
    };
    let (often, few) = of("ftl.remap_spare=1");
    let (seldom, many) = of("ftl.remap_spare=4");
    assert!(often > seldom, "{often} and {seldom} collections");
    assert!(many > few, "{many} and {few} bytes of pointers");
}
