//! What the classifier `auto` takes of a write, beside a drive that asks nobody.
//!
//! Counts the CPU time of the thread, so other programs disturb little. Flash is never collected: nothing else differs.
//!
//! `cargo run --release -p onefold-ssd --example streams`
use std::io::Write;

use onefold_nand::{Geometry, GeometrySpec, NullMedia, Span};
use onefold_ssd::{ClassifierSpec, Command, Payload, Ssd, SsdConfig, example_config};
use onefold_units::{Nanos, Op, Rng};

const UNIT: u64 = 16_384;
const WRITES: u64 = 500_000;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

/// CPU time of a write of one unit at a random place.
fn measure(classifier: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let mut config = SsdConfig {
        geometry: Geometry::new(GeometrySpec {
            channels: 1,
            ways: 1,
            planes: 1,
            blocks: 4096,
            pages: 256,
            page_bytes: 16_384,
            unit_bytes: 16_384,
            span: Span::Device,
        })?,
        classifier: ClassifierSpec::parse(classifier)?,
        ..example_config()
    };
    config.ftl.logical_units = 400_000;
    config.ftl.streams = 8;
    let mut ssd = Ssd::new(config, NullMedia)?;
    let mut rng = Rng::new(1);
    let places: Vec<u64> = (0..WRITES).map(|_| rng.below(ssd.capacity() / UNIT) * UNIT).collect();
    let start = cpu_ns()?;
    for offset in &places {
        ssd.submit(Nanos::ZERO, &Command::new(Op::Write, *offset, UNIT), Payload::None)?;
    }
    Ok((cpu_ns()? - start) / 500_000.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for _ in 0..5 {
        let [host, auto] = [measure("host")?, measure("auto")?];
        writeln!(out, "host {host:6.1}, auto {auto:6.1}: {:5.1} CPU ns more a write", auto - host)?;
    }
    Ok(())
}
