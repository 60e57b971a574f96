//! Nanoseconds per request of each policy on golden trace G1L (buffer specification, section 6):
//! 20 million single-page reads, Zipf 1.0 over 4,194,304 scattered pages, 32,768 entries.
//!
//! Counts the CPU time of the thread where Linux tells it, so other programs disturb little.
//!
//! `cargo run --release -p onefold-buffer --example speed`
#[path = "../tests/buffer/common/unmapped.rs"]
mod unmapped;
#[path = "../tests/buffer/common/zipf.rs"]
mod zipf;

use std::io::Write;

use onefold_buffer::{
    Actions, BufferConfig, Charge, PolicyKind, PolicySpec, Req, Sizes, new_policy,
};
use onefold_units::convert::float;
use onefold_units::{Lpn, Op, Rng};
use unmapped::Unmapped;
use zipf::Zipf;

const ENTRY: u32 = 4096;
const PAGES_LOG2: u32 = 22;
const REQUESTS: u32 = 20_000_000;
const SLOTS: u64 = 32_768;

/// The trace as 4 B records; the loop below decodes them into requests.
fn g1l() -> Vec<u32> {
    let zipf = Zipf::new(1 << PAGES_LOG2);
    let mut rng = Rng::new(42);
    // An odd multiplier is a bijection of the pages.
    let scatter = |key: u32| key.wrapping_mul(0x9E37_79B1) & ((1 << PAGES_LOG2) - 1);
    (0..REQUESTS).map(|_| scatter(zipf.key(&mut rng))).collect()
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = g1l();
    let mut stdout = std::io::stdout().lock();
    for kind in PolicyKind::ALL {
        let policy = PolicySpec::new(kind);
        for op in [Op::Read, Op::Write] {
            let bytes = SLOTS * u64::from(ENTRY);
            let config = BufferConfig { policy, bytes, charge: Charge::None, volatile: false };
            let sizes =
                Sizes { entry_bytes: ENTRY, flash_page_bytes: ENTRY, device_bytes: 1 << 34 };
            let mut buffer = new_policy(&config, &sizes)?;
            let mut out = Actions::new();
            let mut steps = 0;
            let start = cpu_ns()?;
            for key in &keys {
                buffer.request(&Req::new(op, Lpn::new(*key), 1), &Unmapped, &mut out);
                steps += out.as_slice().len();
            }
            let ns = (cpu_ns()? - start) / f64::from(REQUESTS);
            let accesses = buffer.stats().total().accesses();
            let misses = float(accesses.misses()) / float(accesses.pages);
            let (name, op) = (kind.name(), op.name());
            writeln!(
                stdout,
                "{name} {op}: {ns:.1} CPU ns/request, miss ratio {misses:.5}, {steps} steps"
            )?;
        }
    }
    Ok(())
}
