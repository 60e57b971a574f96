//! What the content models reach on a device of 32 GiB: duplicates among the pages, and duplicate
//! writes (remap.md, section 11).
//!
//! `cargo run --release -p onefold-trace --example contents`
use std::collections::BTreeMap;
use std::io::Write;

use onefold_trace::workload::ContentSpec;
use onefold_units::Rng;
use onefold_units::convert::{float, index, narrow, u64_from};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// 32 GiB of 4 KiB.
const PAGES: u32 = 8 << 20;
const SPECS: [&str; 3] = ["unique", "iid_zipf", "exact_dup_ratio"];
/// One entry of a remap log in the paper's layout.
const P16_BYTES: f64 = 16.0;

/// The contents of all pages, with the pages of each.
#[derive(Default)]
struct Device {
    content_of: Vec<u128>,
    pages_of: BTreeMap<u128, u32>,
}

impl Device {
    /// Whether a page had the content already.
    fn write(&mut self, lpn: u32, content: u128) -> bool {
        let pages = self.pages_of.entry(content).or_default();
        let repeats = *pages > 0;
        *pages += 1;
        let Some(place) = self.content_of.get_mut(index(lpn)) else {
            // The first pass is in order.
            self.content_of.push(content);
            return repeats;
        };
        let before = std::mem::replace(place, content);
        if let Some(pages) = self.pages_of.get_mut(&before) {
            *pages -= 1;
            if *pages == 0 {
                self.pages_of.remove(&before);
            }
        }
        repeats
    }
}

fn main() -> Outcome {
    let mut out = std::io::stdout().lock();
    for spec in SPECS {
        let spec = ContentSpec::parse(spec)?;
        let mut device = Device::default();
        let mut model = spec.model(PAGES, 1);
        let mut rng = Rng::new(2);
        for pass in 0..=3 {
            let mut repeats = 0_u32;
            for n in 0..PAGES {
                let lpn = if pass == 0 { n } else { narrow(rng.below(u64::from(PAGES))) };
                repeats += u32::from(device.write(lpn, model.of_write(lpn)));
            }
            let distinct = float(u64_from(device.pages_of.len()));
            let duplicates = f64::from(PAGES) - distinct;
            writeln!(
                out,
                "{spec}, {pass} overwrites: {:.2} % of the pages repeat another ({:.1} MB of P16), \
                 {:.2} % of the writes did",
                duplicates / f64::from(PAGES) * 100.0,
                duplicates * P16_BYTES / 1e6,
                f64::from(repeats) / f64::from(PAGES) * 100.0,
            )?;
        }
        speed(&mut out, spec)?;
    }
    Ok(())
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

fn speed(out: &mut impl Write, spec: ContentSpec) -> Outcome {
    let mut model = spec.model(PAGES, 1);
    let mut rng = Rng::new(2);
    let start = cpu_ns()?;
    let all = (0..PAGES).fold(0, |all, _| all ^ model.of_write(narrow(rng.below(PAGES.into()))));
    let ns = (cpu_ns()? - start) / f64::from(PAGES);
    std::hint::black_box(all);
    writeln!(out, "{spec}: {ns:.1} CPU ns per random write")?;
    Ok(())
}
