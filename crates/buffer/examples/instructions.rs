//! Short runs of each policy, to count their instructions (`scripts/instructions.py`): single-page reads
//! and writes of golden trace G1L, and a block mix. Prints `POLICY WORKLOAD PAGES` for each run, in
//! order; what is counted is [`measured`], once per line.
//!
//! `cargo run --release -p onefold-buffer --example instructions -- lru arc`
#[path = "common/block_mix.rs"]
mod block_mix;
#[path = "common/g1l.rs"]
mod g1l;
#[path = "common/policy.rs"]
mod policy;
#[path = "../tests/buffer/common/zipf.rs"]
mod zipf;

use std::io::Write;

use block_mix::{Record, block_mix};
use g1l::g1l;
use onefold_buffer::{Actions, Policy, PolicySpec, Req};
use onefold_units::{Lpn, Op};
use policy::{AllMapped, build};

/// Requests of G1L: three misses for every entry.
const KEYS: usize = 250_000;
/// Files of the block mix: four times the buffer, written four times.
const FILES: u32 = 8;

/// What is counted. Never inlined, so that it can be found by its name; no other name has it as a part.
#[inline(never)]
fn measured(buffer: &mut dyn Policy, records: &[Record], out: &mut Actions) {
    for r in records {
        let req = Req { tenant: r.tenant, ..Req::new(r.op, Lpn::new(r.lpn), r.n) };
        buffer.request(&req, &AllMapped, out);
    }
}

/// Runs the policies named as arguments.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys: Vec<u32> = g1l().take(KEYS).collect();
    let single = |op| keys.iter().map(move |key| Record { lpn: *key, n: 1, op, tenant: 0 });
    let workloads: [(&str, Vec<Record>); 3] = [
        ("zipf-read", single(Op::Read).collect()),
        ("zipf-write", single(Op::Write).collect()),
        ("block-mix", block_mix(FILES)),
    ];
    let mut stdout = std::io::stdout().lock();
    for text in std::env::args().skip(1) {
        let spec = PolicySpec::parse(&text)?;
        for (name, records) in &workloads {
            let mut buffer = build(spec)?;
            measured(buffer.as_mut(), records, &mut Actions::counting());
            let pages = buffer.stats().total().accesses().pages;
            writeln!(stdout, "{spec} {name} {pages}")?;
        }
    }
    Ok(())
}
