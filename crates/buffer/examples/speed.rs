//! Nanoseconds per request of each policy on golden trace G1L (buffer specification, section 6):
//! 20 million single-page reads, Zipf 1.0 over 4,194,304 scattered pages, 32,768 entries.
//!
//! Counts the CPU time of the thread where Linux tells it, so other programs disturb little.
//!
//! `cargo run --release -p onefold-buffer --example speed`
#[path = "common/block_mix.rs"]
mod block_mix;
#[path = "common/g1l.rs"]
mod g1l;
#[path = "common/policy.rs"]
mod policy;
#[path = "../tests/buffer/common/zipf.rs"]
mod zipf;

use std::io::Write;

use block_mix::block_mix;
use g1l::{REQUESTS, g1l};
use onefold_buffer::{Actions, Policies, PolicySpec, Req};
use onefold_units::convert::float;
use onefold_units::{Lpn, Op};
use policy::{AllMapped, build};

/// Files of the block mix: 64 GiB of them.
const FILES: u32 = 1024;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

/// Runs the policies named as arguments, or all of them.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let policies = Policies::builtin();
    let all = policies.iter().map(|info| info.name.to_owned());
    let named = if named.is_empty() { all.collect() } else { named };
    let mut stdout = std::io::stdout().lock();
    // Kept as 4 B records; the loop below decodes them into requests.
    let (keys, mix): (Vec<u32>, _) = (g1l().collect(), block_mix(FILES));
    for text in named {
        let spec = PolicySpec::parse(&text)?;
        for op in [Op::Read, Op::Write] {
            let mut buffer = build(spec)?;
            let mut out = Actions::counting();
            let start = cpu_ns()?;
            let mut sink = 0;
            for (key, ahead) in keys.iter().zip(keys.iter().skip(8)) {
                sink ^= buffer.touch(Lpn::new(*ahead));
                buffer.request(&Req::new(op, Lpn::new(*key), 1), &AllMapped, &mut out);
            }
            std::hint::black_box(sink);
            let ns = (cpu_ns()? - start) / f64::from(REQUESTS);
            let misses = 1.0 - buffer.stats().total().hit_ratio();
            let op = op.name();
            writeln!(stdout, "{spec} G1L {op}: {ns:.1} CPU ns/request, miss ratio {misses:.5}")?;
        }
        let mut buffer = build(spec)?;
        let mut out = Actions::counting();
        let start = cpu_ns()?;
        for r in &mix {
            let req = Req { tenant: r.tenant, ..Req::new(r.op, Lpn::new(r.lpn), r.n) };
            buffer.request(&req, &AllMapped, &mut out);
        }
        let spent = cpu_ns()? - start;
        let total = buffer.stats().total();
        let pages = total.accesses().pages;
        let ns = spent / float(pages);
        let hits = buffer.stats().tenant(1).hit_ratio();
        writeln!(
            stdout,
            "{spec} block mix: {ns:.1} CPU ns/page over {pages} pages, hit ratio of the hot {hits:.5}"
        )?;
    }
    Ok(())
}
