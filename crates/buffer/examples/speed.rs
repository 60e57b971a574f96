//! Nanoseconds per request of each policy on golden trace G1L (buffer specification, section 6):
//! 20 million single-page reads, Zipf 1.0 over 4,194,304 scattered pages, 32,768 entries.
//!
//! Counts the CPU time of the thread where Linux tells it, so other programs disturb little.
//!
//! `cargo run --release -p onefold-buffer --example speed`
#[path = "common/g1l.rs"]
mod g1l;
#[path = "../tests/buffer/common/zipf.rs"]
mod zipf;

use std::io::Write;

use g1l::{REQUESTS, g1l};
use onefold_buffer::{
    Actions, BufferConfig, BufferError, Charge, FtlView, Policy, PolicyKind, PolicySpec, Req,
    Sizes, new_policy,
};
use onefold_units::convert::{float, low32};
use onefold_units::{Lpn, Op, Rng};
use zipf::Zipf;

const ENTRY: u32 = 4096;
const SLOTS: u64 = 32_768;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

/// One request in the form a study keeps: 12 B.
#[derive(Clone, Copy)]
struct Record {
    lpn: u32,
    n: u32,
    op: Op,
    tenant: u8,
}

/// A block mix: files of 64 MiB written in requests of 512 KiB and trimmed some time later, read
/// back once in half of the cases, with one hot single-page request for each of them. Pages
/// accessed are mostly the files'.
fn block_mix() -> Vec<Record> {
    const FILE: u32 = 16_384;
    const FILES: u32 = 1024;
    let zipf = Zipf::new(1 << 17);
    let mut rng = Rng::new(7);
    let mut out = Vec::new();
    for file in 0..4 * FILES {
        let start = file % FILES * FILE;
        if file >= FILES {
            out.push(Record { lpn: start, n: FILE, op: Op::Trim, tenant: 0 });
        }
        let old = low32(rng.below(u64::from(FILES))) * FILE;
        for at in (0..FILE).step_by(128) {
            out.push(Record { lpn: start + at, n: 128, op: Op::Write, tenant: 0 });
            if file % 2 == 0 {
                out.push(Record { lpn: old + at, n: 128, op: Op::Read, tenant: 0 });
            }
            let lpn = FILES * FILE + zipf.key(&mut rng);
            let op = if rng.below(20) == 0 { Op::Read } else { Op::Write };
            out.push(Record { lpn, n: 1, op, tenant: 1 });
        }
    }
    out
}

fn build(spec: PolicySpec) -> Result<Box<dyn Policy + Send>, BufferError> {
    let bytes = SLOTS * u64::from(ENTRY);
    let config = BufferConfig { policy: spec, bytes, charge: Charge::None, volatile: false };
    let sizes = Sizes { entry_bytes: ENTRY, flash_page_bytes: ENTRY, device_bytes: 1 << 38 };
    new_policy(&config, &sizes)
}

/// Every page holds data, as in a file that is read.
struct AllMapped;

impl FtlView for AllMapped {
    fn mapped(&self, _: Lpn) -> bool {
        true
    }

    fn mapped_count(&self, _: Lpn, n: u32) -> u32 {
        n
    }
}

/// Runs the policies named as arguments, or all of them.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let all = PolicyKind::ALL.map(PolicyKind::name).map(str::to_owned);
    let named = if named.is_empty() { all.to_vec() } else { named };
    let mut stdout = std::io::stdout().lock();
    // Kept as 4 B records; the loop below decodes them into requests.
    let (keys, mix): (Vec<u32>, _) = (g1l().collect(), block_mix());
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
