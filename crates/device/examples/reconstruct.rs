//! How long the modes `sung` and `han` take to rebuild their tables from the log (Sung 2022, figure 15: 5.49 s for 256 GB),
//! and to read them again after the volume was closed in good order.
//!
//! `cargo run --release -p onefold-device --example reconstruct -- FILE [GIB [sung|han]]`
//!
//! FILE must not be there. It is made sparse, twice as large as the volume of GIB (2 unless said otherwise). Every block is
//! written once, 4 KiB each, in random order, without data, as opening reads none; then the volume is dropped and not
//! closed. Mode `sung` has 64 partitions in use, as many as 256 GB has at the paper's 4 GB.
use std::fs::{OpenOptions, read_to_string};
use std::io::Write as _;
use std::path::Path;

use onefold_device::{VolumeBacking, VolumeDevice, VolumeOptions, VolumeSpec};
use onefold_format::volume::VolumeMode;
use onefold_units::convert::float;
use onefold_units::{Lba, Nanos, PAGE_BYTES, Rng};
use onefold_volume::{Backing, Options, PaperFlush, Range, Refusal, drive};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Partitions that hold data.
const PARTITIONS: u64 = 64;

/// Writes every block of a new volume once, in random order, and flushes. It is not closed.
fn make(path: &Path, mode: VolumeMode, bytes: u64) -> Outcome<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.set_len(2 * bytes)?;
    let backing = VolumeBacking::open(path, true)?;
    let segment_bytes = (mode == VolumeMode::Sung).then_some(bytes / PARTITIONS);
    let spec = VolumeSpec { mode, bytes: Some(bytes), segment_bytes, ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false)?;
    // A flush of the file for each transaction would take longer than all the rest.
    let options = Options { bytes: false, paper_flush: PaperFlush::All, ..Options::default() };
    let mut disk = backing.clone();
    let (mut volume, _) = onefold_modes::open(&mut disk, backing.blocks(), options)?;
    let mut order: Vec<u64> = (0..bytes / PAGE_BYTES).collect();
    let mut rng = Rng::new(1);
    for last in (1..order.len()).rev() {
        order.swap(last, usize::try_from(rng.below(u64::try_from(last)? + 1))?);
    }
    for lba in order {
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        while let Err(refusal) = volume.write(0, range, None, false) {
            if refusal != Refusal::Busy {
                return Err(format!("block {lba} was refused: {refusal:?}").into());
            }
            drive(&mut *volume, &mut disk, Nanos::ZERO);
            while volume.poll_done().is_some() {}
        }
    }
    volume.flush(0).map_err(|refusal| format!("the flush was refused: {refusal:?}"))?;
    drive(&mut *volume, &mut disk, Nanos::ZERO);
    Backing::flush(&mut disk).map_err(|_| "the file cannot be flushed")?;
    Ok(())
}

/// Seconds that this thread was on a CPU.
fn cpu_s() -> Outcome<f64> {
    let text = read_to_string("/proc/thread-self/schedstat")?;
    let ns: u64 = text.split(' ').next().unwrap_or("").parse()?;
    Ok(float(ns) / 1e9)
}

/// Opens the volume, says how long that took, and closes it.
fn open(path: &Path, what: &str) -> Outcome<()> {
    let backing = VolumeBacking::open(path, true)?;
    let before = cpu_s()?;
    let opened = VolumeDevice::open(backing, VolumeOptions::default())?;
    let cpu = cpu_s()? - before;
    let took = opened.took.as_secs_f64();
    writeln!(
        std::io::stdout().lock(),
        "{what}: {took:.2} s, of which {cpu:.2} s of CPU time; {:?}",
        opened.recovery
    )?;
    Ok(opened.device.close().map_err(|error| format!("{error:?}"))?)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new(arguments.first().ok_or("reconstruct FILE [GIB [sung|han]]")?);
    let gib: u64 = arguments.get(1).map_or(Ok(2), |text| text.parse())?;
    let mode = match arguments.get(2).map(String::as_str) {
        None | Some("sung") => VolumeMode::Sung,
        Some("han") => VolumeMode::Han,
        Some(other) => return Err(format!("mode {other}, expected sung or han").into()),
    };
    make(path, mode, gib << 30)?;
    open(path, "not closed")?;
    open(path, "closed in good order")
}
