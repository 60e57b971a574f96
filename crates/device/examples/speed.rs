//! Speed of an emulated SSD in this process, one thread, no front end.
//!
//! `cargo run --release -p onefold-device --example speed -- [FOLDER]`
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use onefold_device::{Access, BlockDevice, Image, Latency, OpenOptions, SsdDevice};
use onefold_nand::{Geometry, GeometrySpec, Span};
use onefold_ssd::{SsdConfig, example_config};
use onefold_units::convert::{float, u64_from};
use onefold_units::{Rng, Status};

const PAGE: u64 = 4096;
const REQUESTS: u64 = 200_000;

/// 1 GiB raw, seven eighths of it visible.
fn config() -> Option<SsdConfig> {
    let spec = GeometrySpec {
        channels: 8,
        ways: 2,
        planes: 1,
        blocks: 64,
        pages: 256,
        page_bytes: 4096,
        unit_bytes: 4096,
        span: Span::Device,
    };
    let geometry = Geometry::new(spec).ok()?;
    let mut config = SsdConfig { geometry, ..example_config() };
    config.ftl.logical_units = geometry.total_slots() * 13 / 16;
    Some(config)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join(format!("onefold-speed-{}.img", std::process::id()));
    let result = run(&path);
    std::fs::remove_file(&path)?;
    result
}

fn run(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let config = config().ok_or("the geometry is fixed")?;
    drop(Image::create(path, &config, String::new())?);
    let image = Image::open(path, Access::Exclusive)?;
    let device = SsdDevice::open(image, &config, OpenOptions::new(Latency::None))?.device;
    let pages = device.size() / PAGE;
    let mut rng = Rng::new(1);
    let large = vec![0x5A; 128 << 10];
    let large_bytes = u64_from(large.len());
    let larges = device.size() / large_bytes;
    let mut read = vec![0; large.len()];
    let mut random = |n: u64| (0..n).map(|_| rng.below(pages) * PAGE).collect::<Vec<_>>();

    rate("sequential write, 128 KiB", larges, large_bytes, |n| {
        device.write(n * large_bytes, &large, false).map(drop)
    })?;
    rate("sequential read, 128 KiB", larges, large_bytes, |n| {
        device.read(n * large_bytes, &mut read).map(drop)
    })?;
    let mut next = random(REQUESTS).into_iter();
    let mut unit = vec![0; 4096];
    rate("random read, 4 KiB", REQUESTS, PAGE, |_| {
        device.read(next.next().unwrap_or(0), &mut unit).map(drop)
    })?;
    for pass in ["random write, 4 KiB", "random write, 4 KiB, collecting"] {
        let mut next = random(REQUESTS).into_iter();
        rate(pass, REQUESTS, PAGE, |_| {
            device.write(next.next().unwrap_or(0), &unit, false).map(drop)
        })?;
    }
    device.flush().map_err(|status| format!("{status:?}"))?;
    let mut next = random(1000).into_iter();
    rate("random write, 4 KiB, and flush", 1000, PAGE, |_| {
        device.write(next.next().unwrap_or(0), &unit, false)?;
        device.flush().map(drop)
    })?;
    device.close()?;
    Ok(())
}

fn rate(
    what: &str,
    requests: u64,
    bytes: u64,
    mut request: impl FnMut(u64) -> Result<(), Status>,
) -> Result<(), Box<dyn std::error::Error>> {
    let begin = Instant::now();
    for n in 0..requests {
        request(n).map_err(|status| format!("{what}: {status:?}"))?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let (iops, mb) = (float(requests) / seconds, float(requests * bytes) / seconds / 1e6);
    writeln!(std::io::stdout(), "{what:<34} {iops:>9.0} /s {mb:>8.1} MB/s")?;
    Ok(())
}
