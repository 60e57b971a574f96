//! Speed and memory of the deduplication index with 8 Mi entries (32 GiB of 4 KiB pages).
//!
//! Counts the CPU time of the thread, so other programs disturb little.
//!
//! `cargo run --release -p onefold-ftl --example fingerprints`
use std::io::Write;

use onefold_ftl::{Fingerprint, FingerprintIndex, Origin};
use onefold_units::convert::{float, narrow};
use onefold_units::{Ppn, Rng};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const ENTRIES: u32 = 8 << 20;
/// 12.5 % over-provisioned.
const SLOTS: u32 = ENTRIES / 8 * 9;
const OPERATIONS: u32 = 8 << 20;

/// The `n`-th content: 128 random bits.
fn content(n: u32) -> Fingerprint {
    let mut rng = Rng::new(u64::from(n));
    Fingerprint::new(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()))
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

/// Prints what one of `OPERATIONS` calls with random numbers costs.
fn measure(name: &str, mut one: impl FnMut(u32, &mut Rng)) -> Outcome<()> {
    let mut rng = Rng::new(1);
    let start = cpu_ns()?;
    for n in 0..OPERATIONS {
        one(n, &mut rng);
    }
    let ns = (cpu_ns()? - start) / f64::from(OPERATIONS);
    writeln!(std::io::stdout().lock(), "{name}: {ns:.1} CPU ns")?;
    Ok(())
}

fn main() -> Outcome<()> {
    let mut index = FingerprintIndex::new(u64::from(SLOTS), ENTRIES);
    let random = |rng: &mut Rng, bound: u32| narrow(rng.below(u64::from(bound)));
    measure("insert while it fills", |n, _| index.insert(content(n), Ppn::new(n), Origin::Write))?;
    let mut found = 0;
    measure("find, a hit", |_, rng| {
        found += u32::from(index.find(content(random(rng, ENTRIES))).is_some());
    })?;
    measure("find, a miss", |n, _| {
        found += u32::from(index.find(content(ENTRIES + n)).is_some());
    })?;
    assert_eq!(found, OPERATIONS, "every hit hits and every miss misses");
    let mut free = ENTRIES;
    measure("move to another slot", |_, rng| {
        let from = random(rng, SLOTS);
        index.moved(Ppn::new(from), Ppn::new(free));
        free = from;
    })?;
    measure("insert over a slot, index nearly full", |n, rng| {
        index.insert(content(ENTRIES + n), Ppn::new(random(rng, SLOTS)), Origin::Write);
    })?;
    let mut small = FingerprintIndex::new(u64::from(SLOTS), ENTRIES / 2);
    for n in 0..ENTRIES / 2 {
        small.insert(content(n), Ppn::new(n), Origin::Write);
    }
    measure("insert that evicts, half as many entries", |n, _| {
        small.insert(content(ENTRIES + n), Ppn::new((ENTRIES / 2 + n) % SLOTS), Origin::Write);
    })?;
    measure("forget", |n, _| index.forget(Ppn::new(n)))?;
    let bytes = FingerprintIndex::new(u64::from(SLOTS), ENTRIES).bytes();
    let per_entry = float(bytes - 4 * u64::from(SLOTS)) / f64::from(ENTRIES);
    writeln!(
        std::io::stdout().lock(),
        "memory: {bytes} B, {per_entry:.2} B per entry and 4 B per slot"
    )?;
    Ok(())
}
