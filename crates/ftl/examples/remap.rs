//! What a remap costs in CPU time: scattered units, long runs, and collection with and without a log.
//!
//! `cargo run --release -p onefold-ftl --example remap [scattered|clone|collection]`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use onefold_ftl::{Ftl, FtlConfig, RemapConfig, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::{
    At, CellTimes, FaultSpec, Geometry, GeometrySpec, Nand, NullMedia, Span, TimingSpec, Work,
};
use onefold_units::convert::{float, low32};
use onefold_units::{Cause, Lpn, Nanos, Rng};

const AT: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

/// 16 dies and 18 GiB, 16 GiB of them visible: 288 superblocks of 16,384 pages over all dies.
fn device(scheme: RemapScheme, log_bytes: u64) -> Ftl<NullMedia> {
    device_of(scheme, log_bytes, Span::Device)
}

/// The same, or 18,432 superblocks of 256 pages of one die, as the default device has them.
fn device_of(scheme: RemapScheme, log_bytes: u64, span: Span) -> Ftl<NullMedia> {
    let pages = if span == Span::Device { 1024 } else { 256 };
    let geometry = Geometry::new(GeometrySpec {
        channels: 8,
        ways: 2,
        planes: 1,
        blocks: 288 * 1024 / pages,
        pages,
        page_bytes: 4096,
        unit_bytes: 4096,
        span,
    })
    .expect("fixed numbers");
    let remap = RemapConfig { scheme, log_bytes, ..RemapConfig::OFF };
    let config = FtlConfig {
        gc_start: 0.02,
        metadata_pages: true,
        trim_log_bytes: 1 << 20,
        seed: 1,
        remap,
        ..FtlConfig::plain(4 << 20)
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

/// CPU time of this thread in nanoseconds: other programs disturb little.
fn cpu_now() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}

fn cpu_ns(begin: f64) -> f64 {
    cpu_now() - begin
}

fn fill(ftl: &mut Ftl<NullMedia>, units: u32) {
    for lpn in 0..units {
        ftl.write(AT, Lpn::new(lpn), 1, 0, &[]).expect("there is room");
    }
}

/// Units of a written device of 12 GiB: its map is many times the caches of a core.
const WIDE: u32 = 3 << 20;

/// Units of 256 MiB, whose map and counts stay in the cache of a core: what is left is instructions.
const NARROW: u32 = 1 << 16;

/// Remaps of single units from anywhere to anywhere in the first `units`, `per_command` at a time.
fn scattered(scheme: RemapScheme, log_bytes: u64, per_command: u32, units: u32) {
    const COMMANDS_UNITS: u32 = 4 << 20;
    let mut ftl = device(scheme, log_bytes);
    fill(&mut ftl, units);
    let mut rng = Rng::new(7);
    let mut ranges = Vec::new();
    let begin = cpu_now();
    for _ in 0..COMMANDS_UNITS / per_command {
        ranges.clear();
        for n in 0..per_command {
            // Targets of one command are disjoint: each from a part of its own.
            let part = units / per_command;
            let dst = Lpn::new(n * part + low32(rng.below(u64::from(part))));
            let src = Lpn::new(low32(rng.below(u64::from(units))));
            ranges.push(RemapRange { dst, src, len: 1 });
        }
        ftl.remap(AT, &ranges, RemapOptions::default()).expect("remapped");
    }
    let stats = ftl.remap_stats();
    println!(
        "{:4} log {:3} MiB, {per_command:3} per command over {:5} MiB: {:6.1} ns per unit, {} remapped, \
         {} copied, {} compactions, {} destages, {} log pages",
        scheme.name(),
        log_bytes >> 20,
        units >> 8,
        cpu_ns(begin) / f64::from(COMMANDS_UNITS),
        stats.remapped,
        stats.copied,
        stats.compactions,
        stats.destages,
        ftl.programs().of(Cause::Rmm) + ftl.programs().of(Cause::RmmGc),
    );
}

/// Clones of 1 GiB that was written sequentially: to where nothing is, and over the first clone of
/// another GiB.
fn clone(scheme: RemapScheme, span: Span) {
    const UNITS: u32 = 1 << 18;
    const TIMES: u32 = 24;
    let mut ftl = device_of(scheme, 2 << 20, span);
    fill(&mut ftl, 2 * UNITS);
    for (src, what) in [(0, "1 GiB"), (UNITS, "another over it")] {
        let (programs, entries) = (ftl.programs().total(), ftl.remap_stats().entries);
        let range = RemapRange { dst: Lpn::new(2 << 20), src: Lpn::new(src), len: UNITS };
        // CPU time is counted in steps of some milliseconds: the mean of several.
        let (before, mut cpu) = (ftl.clone(), 0.0);
        for _ in 1..TIMES {
            let mut ftl = before.clone();
            let begin = cpu_now();
            ftl.remap(AT, &[range], RemapOptions::default()).expect("remapped");
            cpu += cpu_ns(begin);
        }
        let begin = cpu_now();
        let done = ftl.remap(AT, &[range], RemapOptions::default()).expect("remapped");
        cpu += cpu_ns(begin);
        println!(
            "{:4} superblocks of {span:?}, clone of {what}: {:.3} ms, {} log entries, {} pages \
             programmed, {:?}",
            scheme.name(),
            cpu / f64::from(TIMES) / 1e6,
            ftl.remap_stats().entries - entries,
            ftl.programs().total() - programs,
            done.outcomes,
        );
    }
}

/// Random overwrites of a device half of whose units are shared.
fn collection(scheme: RemapScheme) {
    const UNITS: u32 = 15 << 18;
    let mut ftl = device(scheme, 64 << 20);
    let mut rng = Rng::new(3);
    let half = UNITS / 2;
    fill(&mut ftl, half);
    for dst in half..UNITS {
        let src = Lpn::new(low32(rng.below(u64::from(half))));
        let range = RemapRange { dst: Lpn::new(dst), src, len: 1 };
        ftl.remap(AT, &[range], RemapOptions::default()).expect("remapped");
    }
    for round in 0..3 {
        let before = ftl.stats();
        let begin = cpu_now();
        for _ in 0..UNITS {
            let lpn = low32(rng.below(u64::from(UNITS)));
            if rng.below(3) == 0 {
                let src = Lpn::new(low32(rng.below(u64::from(UNITS))));
                let range = RemapRange { dst: Lpn::new(lpn), src, len: 1 };
                ftl.remap(AT, &[range], RemapOptions::default()).expect("remapped");
            } else {
                ftl.write(AT, Lpn::new(lpn), 1, 0, &[]).expect("there is room");
            }
        }
        let stats = ftl.stats().since(&before);
        let moved = stats.programs.of(Cause::Gc);
        let cpu = cpu_ns(begin) / (f64::from(UNITS) + float(moved));
        println!(
            "{:4} overwrites {round}: {cpu:.1} ns per write, remap and moved page; {} moved, {} unshared, {:?}",
            scheme.name(),
            moved,
            stats.programs.of(Cause::Unshare),
            ftl.remap_stats(),
        );
    }
}

fn main() {
    let chosen = std::env::args().nth(1);
    let wants = |part: &str| chosen.as_deref().is_none_or(|chosen| chosen == part);
    for scheme in [RemapScheme::Opt, RemapScheme::Lh].into_iter().filter(|_| wants("scattered")) {
        for units in [WIDE, NARROW] {
            for per_command in [1, 128] {
                scattered(scheme, 64 << 20, per_command, units);
            }
        }
    }
    if wants("scattered") {
        scattered(RemapScheme::Lh, 2 << 20, 128, WIDE);
    }
    let schemes = [RemapScheme::Opt, RemapScheme::Lh, RemapScheme::Ln];
    for scheme in schemes.into_iter().filter(|_| wants("clone")) {
        for span in [Span::Device, Span::Die] {
            clone(scheme, span);
        }
    }
    for scheme in [RemapScheme::Opt, RemapScheme::Lh].into_iter().filter(|_| wants("collection")) {
        collection(scheme);
    }
}
