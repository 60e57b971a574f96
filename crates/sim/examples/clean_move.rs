//! Cleaning of a volume by remap beside cleaning by copying, as a Markdown table: write amplification, throughput and the
//! longest waits on a device of 208 MiB with superblocks and log segments of 1 MiB and the times of `s1`. First comes the
//! device without a volume, under the same writes.
//! `cargo run --release -p onefold-sim --example clean_move`

#[path = "../tests/sim/common/mod.rs"]
mod common;

use std::io::{self, Write as _};

use common::{sets, setup, workload};
use onefold_sim::result::RunResult;
use onefold_sim::{Control, simulate};
use onefold_units::convert::float;

const DEVICE: [&str; 9] = [
    "geometry.channels=1",
    "geometry.ways=1",
    "geometry.pages=256",
    "geometry.blocks=234",
    "geometry.superblock=device",
    "capacity.logical=208MiB",
    "precondition.fill=1",
    "precondition.overwrite=1",
    "run.warmup=150000",
];

const VOLUME: [&str; 3] = ["volume.mode=log", "volume.log_segment=1MiB", "volume.trim_pause=0"];

const UNIFORM: &str = "randwrite,bs=4KiB,qd=64,requests=300k";
const SKEWED: &str = "randwrite,bs=4KiB,qd=64,requests=300k,dist=hotcold:10/90";

/// Name, and what is set for it. The smaller log of remaps does not hold all of them.
const MOVES: [(&str, &[&str]); 3] = [
    ("copy", &[]),
    ("remap", &["ftl.remap=lh", "volume.clean_move=remap"]),
    ("remap, log of 128 KiB", &["ftl.remap=lh", "ftl.remap_log=128KiB", "volume.clean_move=remap"]),
];

/// How much of the log is mapped, what makes it so, and the same share of the device.
const SHARES: [(&str, &str, &str); 2] = [
    ("50 %", "volume.op=0.494", "precondition.range=0.5"),
    ("80 %", "volume.op=0.2", "precondition.range=0.8"),
];

fn run(more: &[&str], load: &str) -> RunResult {
    let sets = sets(&[&DEVICE[..], more].concat());
    let setup = setup("s1", &sets, &workload(load));
    simulate(&setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn milliseconds(ns: u64) -> f64 {
    float(ns) / 1e6
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| writes | mapped | cleaning | WAF | host x device | copied | remapped | gc | log | MB/s | wait, f >= R | wait | write |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|")?;
    for (name, load) in [("uniform", UNIFORM), ("90 % to 10 %", SKEWED)] {
        for (share, op, range) in SHARES {
            let bare = run(&[range], &format!("{load},range=0-{}", share.replace(' ', "")));
            let (waf, gc) = (bare.waf, bare.flash.program_pages.of("gc"));
            let gc = float(gc) / float(bare.host.write_pages);
            let (bandwidth, longest) = (bare.bandwidth / 1e6, bare.latency_ns.write.max);
            let longest = milliseconds(longest);
            writeln!(
                out,
                "| {name} | {share} | no volume | {waf:.2} | | | | {gc:.2} | | {bandwidth:.1} | | | {longest:.0} ms |",
            )?;
            for (moved, sets) in MOVES {
                row(
                    &mut out,
                    [name, share, moved],
                    &run(&[&VOLUME[..], &[op], sets].concat(), load),
                )?;
            }
        }
    }
    Ok(())
}

fn row(
    out: &mut impl io::Write,
    [name, share, moved]: [&str; 3],
    run: &RunResult,
) -> io::Result<()> {
    let Some(volume) = &run.volume else { return Ok(()) };
    let per = |pages: u64| float(pages) / float(run.host.write_pages);
    let flash = |cause: &str| per(run.flash.program_pages.of(cause));
    writeln!(
        out,
        "| {name} | {share} | {moved} | {:.2} | {:.2} x {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} ms | {:.0} ms | {:.0} ms |",
        run.waf,
        volume.waf_host,
        volume.waf_device,
        per(volume.sent_pages["cleaning"]),
        per(volume.remapped_pages),
        flash("gc"),
        flash("rmm") + flash("rmm_gc"),
        run.bandwidth / 1e6,
        milliseconds(volume.stalls.max_paced_ns),
        milliseconds(volume.stalls.max_ns),
        milliseconds(run.latency_ns.write.max),
    )?;
    out.flush()
}
