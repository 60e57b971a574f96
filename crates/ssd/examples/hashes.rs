//! Speed of the content hashes on 4 KiB, and of the comparison of a hit.
//!
//! Counts the CPU time of the thread, so other programs disturb little.
//!
//! `cargo run --release -p onefold-ssd --example hashes`
use std::io::Write;

use onefold_ssd::{HashKind, Hasher};
use onefold_units::Rng;

const PAGES: u32 = 500_000;
/// 16 MiB: pages come from memory that is not in the nearest cache.
const POOL: usize = 4096;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = Rng::new(1);
    let pool: Vec<[u8; 4096]> = (0..POOL)
        .map(|_| {
            let words: [[u8; 8]; 512] = std::array::from_fn(|_| rng.next_u64().to_le_bytes());
            std::array::from_fn(|at| words[at / 8][at % 8])
        })
        .collect();
    let mut out = std::io::stdout().lock();
    for kind in HashKind::ALL {
        let hasher = Hasher::new(kind, [7; 32]);
        let mut all = 0;
        let start = cpu_ns()?;
        for (page, _) in pool.iter().cycle().zip(0..PAGES) {
            all ^= hasher.of(page).raw();
        }
        let ns = (cpu_ns()? - start) / f64::from(PAGES);
        std::hint::black_box(all);
        let strong = if kind.strong() { "strong" } else { "verify hits" };
        writeln!(out, "{:7} {ns:7.1} CPU ns per 4 KiB ({strong})", kind.name())?;
    }
    // A hit of a weak hash is compared with the page: both are read.
    let stored = pool.clone();
    let mut equal = 0;
    let start = cpu_ns()?;
    for (n, (page, _)) in pool.iter().cycle().zip(0..PAGES).enumerate() {
        equal += u32::from(std::hint::black_box(page) == &stored[n % POOL]);
    }
    let ns = (cpu_ns()? - start) / f64::from(PAGES);
    assert_eq!(equal, PAGES, "each page equals its copy");
    writeln!(out, "compare {ns:7.1} CPU ns per 4 KiB that is equal")?;
    Ok(())
}
