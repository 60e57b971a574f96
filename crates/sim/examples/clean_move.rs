//! Cleaning of a volume by remap beside cleaning by copying, as a Markdown table: write amplification, throughput and the
//! longest wait on a device of 208 MiB with superblocks and log segments of 1 MiB and the times of `s1`.
//! `cargo run --release -p onefold-sim --example clean_move`

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{self, Write as _};

use common::{sets, setup, workload};
use onefold_sim::result::RunResult;
use onefold_sim::{Control, simulate};
use onefold_units::convert::float;

const DEVICE: [&str; 10] = [
    "geometry.channels=1",
    "geometry.ways=1",
    "geometry.pages=256",
    "geometry.blocks=234",
    "geometry.superblock=device",
    "capacity.logical=208MiB",
    "volume.mode=log",
    "volume.log_segment=1MiB",
    "volume.trim_pause=0",
    "precondition.fill=1",
];

const UNIFORM: &str = "randwrite,bs=4KiB,qd=64,requests=300k";
const SKEWED: &str = "randwrite,bs=4KiB,qd=64,requests=300k,dist=hotcold:10/90";

/// Name, and what is set for it. The smaller log of remaps does not hold all of them.
const MOVES: [(&str, &[&str]); 3] = [
    ("copy", &[]),
    ("remap", &["ftl.remap=lh", "volume.clean_move=remap"]),
    ("remap, log of 128 KiB", &["ftl.remap=lh", "ftl.remap_log=128KiB", "volume.clean_move=remap"]),
];

fn run(moves: &[&str], op: &str, load: &str) -> RunResult {
    let more = [op, "precondition.overwrite=1", "run.warmup=150000"];
    let sets = sets(&[&DEVICE[..], moves, &more].concat());
    let setup = setup("s1", &sets, &workload(load));
    simulate(&setup, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| writes | mapped | cleaning | WAF | host x device | copied | remapped | gc | log | MB/s | longest wait |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|")?;
    for (name, load) in [("uniform", UNIFORM), ("90 % to 10 %", SKEWED)] {
        for (share, op) in [("50 %", "volume.op=0.494"), ("80 %", "volume.op=0.2")] {
            for (moved, sets) in MOVES {
                let run = run(sets, op, load);
                let Some(volume) = &run.volume else { continue };
                let per = |pages: u64| float(pages) / float(run.host.write_pages);
                let flash = |cause: &str| per(run.flash.program_pages.of(cause));
                writeln!(
                    out,
                    "| {name} | {share} | {moved} | {:.2} | {:.2} x {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} ms |",
                    run.waf,
                    volume.waf_host,
                    volume.waf_device,
                    per(volume.sent_pages["cleaning"]),
                    per(volume.remapped_pages),
                    flash("gc"),
                    flash("rmm") + flash("rmm_gc"),
                    run.bandwidth / 1e6,
                    float(volume.stalls.max_ns) / 1e6,
                )?;
                out.flush()?;
            }
        }
    }
    Ok(())
}
