//! What the workload generators reach beside what they should.
//!
//!     cargo run --release -p onefold-trace --example calibration [search]
//!
//! `search [NAME]` looks for the popularity at which a volume reaches the figures of the original,
//! and prints it with the figures there: the second fit of `pages/preset.rs`. Takes minutes.

use std::io::Write;

use onefold_trace::workload::{
    Lsm, LsmGenerator, PageFigures, PageRequest, PageSource, PageVolume, WorkloadError,
};
use onefold_units::convert::float;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const DEVICE_BYTES: u64 = 300 << 30;
const SEED: u64 = 1;
/// What fits beside a store of 282 GiB on the device.
const MAX_PAGES: f64 = 4e6;

/// Jeong 2021, Table 1 and section II; write amplification for values of 1 KB.
const PAPER: [(&str, [f64; 4]); 2] =
    [("lsm-load", [0.30, 14.3, 6.1, 9.5]), ("lsm-run", [0.40, 22.6, 15.0, 3.6])];

fn main() -> Outcome {
    let mut out = std::io::stdout().lock();
    if std::env::args().nth(1).as_deref() == Some("search") {
        return search(&mut out, std::env::args().nth(2).as_deref());
    }
    writeln!(
        out,
        "{:22} {:>11} {:>11} {:>11} {:>11}",
        "wanted/reached", "read share", "write amp.", "read amp.", "drive wr."
    )?;
    for (name, wanted) in PAPER {
        let reached = store(name)?;
        write!(out, "{name:22}")?;
        for (wanted, reached) in wanted.into_iter().zip(reached) {
            write!(out, " {wanted:5.2}/{reached:5.2}")?;
        }
        writeln!(out)?;
    }
    header(&mut out)?;
    for name in PageVolume::names() {
        for fit in PageVolume::fits() {
            let spec = format!("{name},fit={fit}");
            row(&mut out, &spec, &PageVolume::parse(&spec)?.wanted(), &measure(&spec)?)?;
        }
    }
    Ok(())
}

/// Read share, write and read amplification, drive writes.
fn store(name: &str) -> Result<[f64; 4], WorkloadError> {
    let mut store = Lsm::parse(name)?.instantiate(DEVICE_BYTES, SEED)?;
    drain(&mut store);
    let totals = store.totals();
    let [user, read, write] = [totals.user_bytes, totals.read_bytes, totals.write_bytes].map(float);
    Ok([read / (read + write), write / user, read / user, write / float(DEVICE_BYTES)])
}

fn drain(store: &mut LsmGenerator) {
    let mut batch = [PageRequest::EMPTY; 1024];
    while store.fill_pages(&mut batch) == batch.len() {}
}

/// The figures over as many page writes as were measured of the original.
fn measure(spec: &str) -> Result<PageFigures, WorkloadError> {
    let volume = PageVolume::parse(&format!("{spec},bytes=1TiB"))?;
    let mut source = volume.instantiate(DEVICE_BYTES, SEED)?;
    Ok(PageFigures::measure(&mut source, volume.wanted().page_writes))
}

fn header(out: &mut impl Write) -> Outcome {
    writeln!(
        out,
        "\n{:32} {:>11} {:>11} {:>15} {:>11} {:>15}",
        "wanted/reached", "rewrites", "top 1 %", "max writes", "median gap", "p90 gap"
    )?;
    Ok(())
}

fn row(out: &mut impl Write, name: &str, wanted: &PageFigures, reached: &PageFigures) -> Outcome {
    writeln!(
        out,
        "{name:32} {:6.3}/{:.3} {:6.3}/{:.3} {:7}/{:7} {:5}/{:5} {:7}/{:7}",
        wanted.rewrite_share,
        reached.rewrite_share,
        wanted.top1_share,
        reached.top1_share,
        wanted.max_writes,
        reached.max_writes,
        wanted.median_gap,
        reached.median_gap,
        wanted.p90_gap,
        reached.p90_gap
    )?;
    Ok(())
}

/// What the search varies.
#[derive(Clone, Copy)]
struct Point {
    s: f64,
    q: f64,
    pages: f64,
    rho: f64,
    distance: f64,
}

impl Point {
    fn coordinates(&mut self) -> [&mut f64; 5] {
        [&mut self.s, &mut self.q, &mut self.pages, &mut self.rho, &mut self.distance]
    }

    /// How large the first step of each coordinate is, as a factor.
    const STEPS: [f64; 5] = [1.08, 1.5, 1.3, 1.3, 2.0];

    fn spec(&self, name: &str) -> String {
        let Self { s, q, pages, rho, distance } = self;
        let rho = rho.min(0.95);
        format!("{name},s={s:.3},q={q:.2},pages={pages:.0},rho={rho:.3},distance={distance:.0}")
    }
}

/// Squared logarithms of reached / wanted; the shares count most.
fn misfit(wanted: &PageFigures, reached: &PageFigures) -> f64 {
    let square = |weight: f64, a: f64, b: f64| weight * (a / b).ln().powi(2);
    square(30.0, 1.0 - reached.rewrite_share, 1.0 - wanted.rewrite_share)
        + square(30.0, reached.top1_share, wanted.top1_share)
        + square(2.0, float(reached.max_writes), float(wanted.max_writes))
        + square(2.0, float(reached.median_gap.max(1)), float(wanted.median_gap))
        + square(1.0, float(reached.p90_gap.max(1)), float(wanted.p90_gap))
}

/// Coordinate descent from the default parameters.
fn search(out: &mut impl Write, only: Option<&str>) -> Outcome {
    header(out)?;
    for name in PageVolume::names().filter(|name| only.is_none_or(|only| only == *name)) {
        let volume = PageVolume::parse(name)?;
        let wanted = volume.wanted();
        let try_at = |point: &Point| -> Result<(f64, PageFigures), WorkloadError> {
            let reached = measure(&point.spec(name))?;
            Ok((misfit(&wanted, &reached), reached))
        };
        let mut best = start(&volume);
        let (mut least, mut reached) = try_at(&best)?;
        let mut scale = 1.0;
        while scale > 0.05 {
            let before = least;
            for at in 0..Point::STEPS.len() {
                for sign in [1.0, -1.0] {
                    let mut other = best;
                    *other.coordinates()[at] *= Point::STEPS[at].powf(sign * scale);
                    other.distance = other.distance.min(1e6);
                    other.pages = other.pages.min(MAX_PAGES);
                    let (misfit, figures) = try_at(&other)?;
                    if misfit < least {
                        (best, least, reached) = (other, misfit, figures);
                        break;
                    }
                }
            }
            if least > before * 0.98 {
                scale *= 0.5;
            }
        }
        row(out, &best.spec(name), &wanted, &reached)?;
    }
    Ok(())
}

/// The parameters in the canonical form of a volume.
fn start(volume: &PageVolume) -> Point {
    let canonical = volume.canonical();
    let value = |key: &str| {
        let prefix = format!("{key}=");
        let word = canonical.split(',').find_map(|word| word.strip_prefix(&prefix));
        word.and_then(|word| word.parse().ok()).unwrap_or(1.0)
    };
    Point {
        s: value("s"),
        q: value("q"),
        pages: value("pages"),
        rho: value("rho"),
        distance: value("distance"),
    }
}
