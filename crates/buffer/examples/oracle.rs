//! Our side of `scripts/oracle-libcachesim.sh`: writes the pages of a golden trace (buffer
//! specification, section 6) to a file, 4 B little-endian each, and prints for each policy and size
//! how many reads of it missed. `min` is the optimum.
//!
//! `cargo run --release -p onefold-buffer --example oracle -- g1 FILE lru sieve min`
//! `cargo run --release -p onefold-buffer --example oracle -- g1l FILE`
#[path = "common/g1l.rs"]
mod g1l;
#[path = "../tests/buffer/common/unmapped.rs"]
mod unmapped;
#[path = "../tests/buffer/common/zipf.rs"]
mod zipf;

use std::error::Error;
use std::io::Write;

use onefold_buffer::offline::{NextUse, Request, min};
use onefold_buffer::{Actions, BufferConfig, Charge, PolicySpec, Req, Sizes, new_policy};
use onefold_units::{Lpn, Op, Rng};
use unmapped::Unmapped;
use zipf::Zipf;

const ENTRY: u32 = 4096;

/// The sizes that have golden miss ratios.
const SLOTS: [u32; 2] = [1_000, 10_000];

fn g1() -> impl Iterator<Item = u32> {
    let zipf = Zipf::new(100_000);
    let mut rng = Rng::new(42);
    (0..1_000_000).map(move |_| zipf.key(&mut rng))
}

/// Misses of the optimum at each size.
fn optimum(keys: &[u32]) -> [u64; 2] {
    let read = |lpn: &u32| Request { op: Op::Read, tenant: 0, lpn: *lpn, n: 1 };
    let requests: Vec<Request> = keys.iter().map(read).collect();
    let next = NextUse::new(&requests);
    SLOTS.map(|slots| min(&next, slots).total().reads.misses())
}

fn misses(policy: PolicySpec, slots: u32, keys: &[u32]) -> Result<u64, Box<dyn Error>> {
    let bytes = u64::from(slots) * u64::from(ENTRY);
    let config = BufferConfig { policy, bytes, charge: Charge::None, volatile: false };
    let sizes = Sizes::of_one_die(ENTRY, 1 << 34);
    let mut buffer = new_policy(&config, &sizes)?;
    let mut out = Actions::counting();
    for key in keys {
        buffer.request(&Req::new(Op::Read, Lpn::new(*key), 1), &Unmapped, &mut out);
    }
    Ok(buffer.stats().total().reads.misses())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let keys: Vec<u32> = match arguments.next().as_deref() {
        Some("g1") => g1().collect(),
        Some("g1l") => g1l::g1l().collect(),
        _ => return Err("usage: oracle g1|g1l FILE [POLICY ..]".into()),
    };
    let file = arguments.next().ok_or("name the file for the pages of the trace")?;
    std::fs::write(file, keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<u8>>())?;
    let mut stdout = std::io::stdout().lock();
    for text in arguments {
        let missed = if text == "min" {
            optimum(&keys)
        } else {
            let policy = PolicySpec::parse(&text)?;
            [misses(policy, SLOTS[0], &keys)?, misses(policy, SLOTS[1], &keys)?]
        };
        for (slots, misses) in SLOTS.iter().zip(missed) {
            writeln!(stdout, "{text} {slots} {misses} {}", keys.len())?;
        }
    }
    Ok(())
}
