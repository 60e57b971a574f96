//! What the workload generators reach beside what they should.
//!
//!     cargo run --release -p onefold-trace --example calibration [search]
//!
//! `search` looks for the number of pages at which each volume has as many distinct written pages
//! as the original, and prints the figures there: the row to put into `pages/preset.rs`.

use std::io::Write;

use onefold_trace::workload::{
    Lsm, LsmGenerator, PageFigures, PageRequest, PageSource, PageVolume, WorkloadError,
};
use onefold_units::convert::{float, floor_u64};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const DEVICE_BYTES: u64 = 300 << 30;
const SEED: u64 = 1;

/// Jeong 2021, Table 1 and section II; write amplification for values of 1 KB.
const PAPER: [(&str, [f64; 4]); 2] =
    [("lsm-load", [0.30, 14.3, 6.1, 9.5]), ("lsm-run", [0.40, 22.6, 15.0, 3.6])];

fn main() -> Outcome {
    let mut out = std::io::stdout().lock();
    if std::env::args().nth(1).as_deref() == Some("search") {
        return search(&mut out);
    }
    writeln!(out, "workload                read share   write amp.   read amp.   drive writes")?;
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
        let volume = PageVolume::parse(name)?;
        row(&mut out, name, &volume.wanted(), &measure(&volume)?)?;
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

fn measure(volume: &PageVolume) -> Result<PageFigures, WorkloadError> {
    // As long as it takes for the page writes.
    let spec = format!("{},bytes=1TiB", volume.canonical().replace(",bytes=", ",was="));
    let words: Vec<&str> = spec.split(',').filter(|word| !word.starts_with("was=")).collect();
    let mut source = PageVolume::parse(&words.join(","))?.instantiate(DEVICE_BYTES, SEED)?;
    Ok(PageFigures::measure(&mut source, volume.wanted().page_writes))
}

fn header(out: &mut impl Write) -> Outcome {
    writeln!(
        out,
        "\nvolume, wanted/reached   rewrite share   top 1 %       max writes        median gap     p90 gap"
    )?;
    Ok(())
}

fn row(out: &mut impl Write, name: &str, wanted: &PageFigures, reached: &PageFigures) -> Outcome {
    writeln!(
        out,
        "{name:22} {:.3}/{:.3} {:.3}/{:.3} {:6}/{:6} {:5}/{:5} {:6}/{:6}",
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

/// Bisects the number of pages; more pages mean fewer rewrites.
fn search(out: &mut impl Write) -> Outcome {
    header(out)?;
    for name in PageVolume::names() {
        let wanted = PageVolume::parse(name)?.wanted();
        let (mut low, mut high) = (1000_u64, 16_000_000_u64);
        while high - low > low / 500 {
            let pages = floor_u64((float(low) * float(high)).sqrt());
            let volume = PageVolume::parse(&format!("{name},pages={pages}"))?;
            if measure(&volume)?.rewrite_share > wanted.rewrite_share {
                low = pages;
            } else {
                high = pages;
            }
        }
        let volume = PageVolume::parse(&format!("{name},pages={low}"))?;
        row(out, &format!("{name} {low}"), &wanted, &measure(&volume)?)?;
    }
    Ok(())
}
