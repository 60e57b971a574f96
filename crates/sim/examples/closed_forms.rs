//! Prints write amplification against the closed forms of ssd.md 3.1 on all of `s1`, as a Markdown
//! table: `cargo run --release -p onefold-sim --example closed_forms`. It takes a minute or two.

#[path = "../tests/sim/closed_forms/cases.rs"]
mod cases;
#[path = "../tests/sim/common/mod.rs"]
mod common;

use std::io::{self, Write as _};

use cases::{CASES, RHOS, Scale};

const S1: Scale =
    Scale { channels: 8, ways: 2, pages_per_die: 65_536, requests: 8_000_000, warmup: 6.0 };

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "| case | rho | closed form | measured | deviation |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    let mut worst: f64 = 0.0;
    for case in &CASES {
        for rho in RHOS {
            let run = case.measure(rho, &S1);
            let percent = 100.0 * run.deviation();
            worst = worst.max(percent.abs());
            writeln!(
                out,
                "| {} | {:.4} | {:.4} | {:.4} | {percent:+.2} % |",
                case.name, run.rho, run.expected, run.found
            )?;
            out.flush()?;
        }
    }
    writeln!(out, "\nLargest deviation: {worst:.2} %")
}
