//! What recovery of a device of 1 TiB costs, in the paper's sizing example (128 dies, superblocks of
//! 512 MiB), by the share of remapped units; and what the log takes.
//!
//! `cargo run --release -p onefold-ftl --example recovery`; about 5 GiB of memory.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use onefold_ftl::{Ftl, FtlConfig, RemapConfig, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::{
    At, CellTimes, FaultSpec, Geometry, GeometrySpec, Nand, NullMedia, Span, TimingSpec, Work,
};
use onefold_units::convert::{float, low32};
use onefold_units::{Lpn, Nanos, Rng};

const AT: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

/// Logical units: 1 TiB.
const UNITS: u32 = 1 << 28;

fn device() -> Ftl<NullMedia> {
    let geometry = Geometry::new(GeometrySpec {
        channels: 16,
        ways: 8,
        planes: 1,
        blocks: 2560,
        pages: 1024,
        page_bytes: 4096,
        unit_bytes: 4096,
        span: Span::Device,
    })
    .expect("fixed numbers");
    let remap = RemapConfig {
        scheme: RemapScheme::Lh,
        log_bytes: 64 << 20,
        nvram_read: Nanos::new(50),
        nvram_write: Nanos::new(500),
        ..RemapConfig::OFF
    };
    let config = FtlConfig {
        gc_start: 0.02,
        metadata_pages: true,
        checkpoint: 0.25,
        trim_log_bytes: 1 << 20,
        seed: 1,
        remap,
        ..FtlConfig::plain(u64::from(UNITS))
    };
    let mut nand = Nand::new(geometry, timing(), FaultSpec::default(), NullMedia);
    nand.set_timed(false);
    Ftl::new(nand, config, 0).expect("a device that fits")
}

fn timing() -> TimingSpec {
    let cell = |ns| CellTimes::new(&[Nanos::new(ns)]).expect("one time");
    TimingSpec {
        read: cell(50_000),
        program: cell(500_000),
        erase: Nanos::new(5_000_000),
        channel_rate: 0,
        ..TimingSpec::EXAMPLE
    }
}

fn report(ftl: &Ftl<NullMedia>, what: &str) {
    let cost = ftl.recovery_cost();
    let (nvram, flash, units) = ftl.log_bytes();
    let stats = ftl.remap_stats();
    println!(
        "{what}: recovery {:.1} ms, {} MiB of flash ({} heads, {} map, {} tail, {} scanned, {} log \
         pages), {} MiB of NVRAM; {units} units remapped: {:.2} B each on flash, {} MiB in NVRAM; \
         {} copied",
        float(cost.time.get()) / 1e6,
        cost.flash_bytes(4096) >> 20,
        cost.head_pages,
        cost.map_pages,
        cost.tail_pages,
        cost.scanned_pages,
        cost.log_pages,
        cost.nvram_bytes >> 20,
        float(flash) / f64::from(units.max(1)),
        nvram >> 20,
        stats.copied,
    );
}

fn main() {
    let mut ftl = device();
    let mut rng = Rng::new(5);
    // A quarter of the units is there to be shared; the checkpoint interval is a quarter, too.
    for lpn in 0..UNITS / 4 {
        ftl.write(AT, Lpn::new(lpn), 1, 0, &[]).expect("there is room");
    }
    report(&ftl, "a quarter written");
    let mut next = UNITS / 4;
    for eighths in [1, 4] {
        while next < UNITS / 4 + UNITS / 8 * eighths {
            let mut ranges = Vec::new();
            for _ in 0..128 {
                let src = Lpn::new(low32(rng.below(u64::from(UNITS / 4))));
                ranges.push(RemapRange { dst: Lpn::new(next), src, len: 1 });
                next += 1;
            }
            ftl.remap(AT, &ranges, RemapOptions::default()).expect("remapped");
        }
        report(&ftl, &format!("{eighths} eighths remapped, unit by unit"));
    }
    // The worst moment: almost a checkpoint interval of writes since the last one. In order, what they
    // leave in the tails is next to nothing; at random, the number of each unit.
    let mut in_order = ftl.clone();
    for lpn in UNITS / 4 * 3..UNITS / 64 * 63 {
        in_order.write(AT, Lpn::new(lpn), 1, 0, &[]).expect("there is room");
    }
    report(&in_order, "and almost a checkpoint interval written in order");
    drop(in_order);
    for _ in UNITS / 4 * 3..UNITS / 64 * 63 {
        let lpn = Lpn::new(low32(rng.below(u64::from(UNITS))));
        ftl.write(AT, lpn, 1, 0, &[]).expect("there is room");
    }
    report(&ftl, "or at random");
}
