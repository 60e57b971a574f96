//! How long it takes to open a volume of which every block is mapped, until the first read and until all of its map is in
//! memory: after a power cut in the middle of its use, closed in good order, and after a power cut some time later. What the
//! backing reads by itself is measured beside each.
//!
//! `cargo run --release -p onefold-device --example open -- FILE [GIB]`
//!
//! FILE is made if it is not there: sparse, twice as large as the volume of GIB (256 unless said otherwise), with headers
//! and map but without data, as opening reads none. FILE.speed has 512 MiB to measure the backing with.
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use onefold_device::{BlockDevice, VolumeBacking, VolumeDevice, VolumeOptions, VolumeSpec};
use onefold_format::volume::VolumeName;
use onefold_units::{Lba, Nanos, PAGE_BYTES, Rng};
use onefold_volume::{
    Acknowledge, Backing, Buffer, Options, Piece, Range, Refusal, Trim, drive, mount,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Blocks of a request that fills.
const PIECE: u64 = 128;

/// Blocks written at random before the power cut.
const SINCE: u64 = 60_000;

/// Blocks that the backing is measured with.
const SPEED_BLOCKS: u64 = 1 << 17;

/// Maps every block of a new volume, in order, and an eighth of them again at random. It is not closed: map pages have records
/// in as many runs as they ever will.
fn make(path: &Path, bytes: u64) -> Outcome<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_len(2 * bytes)?;
    let backing = VolumeBacking::open(path, true)?;
    let spec = VolumeSpec { bytes: Some(bytes), ..VolumeSpec::default() };
    let label = VolumeDevice::format(&backing, &spec, false)?;
    // Small runs, as many as batches of single blocks would make, without the space that their headers would take.
    let options = Options {
        bytes: false,
        trim: Trim::Never,
        acknowledge: Acknowledge::Buffered,
        checkpoint_blocks: Options::default().checkpoint_batches,
        ..Options::default()
    };
    let mut disk = backing.clone();
    let (mut volume, _) = mount(&mut disk, backing.blocks(), options)?;
    let mut write = |lba: u64, blocks: u64| -> Outcome<()> {
        let range = Range { lba: Lba::new(lba), blocks };
        loop {
            let asked = volume.write(0, range, None, false);
            drive(&mut volume, &mut disk, Nanos::ZERO);
            while volume.poll_done().is_some() {}
            match asked {
                Ok(()) => return Ok(()),
                Err(Refusal::Busy) => {}
                Err(refusal) => return Err(format!("{refusal:?}").into()),
            }
        }
    };
    let blocks = label.logical_blocks;
    for lba in (0..blocks).step_by(usize::try_from(PIECE)?) {
        write(lba, PIECE.min(blocks - lba))?;
    }
    let mut rng = Rng::new(1);
    for _ in 0..blocks / 8 {
        write(rng.below(blocks), 1)?;
    }
    Ok(())
}

/// What the backing reads, 64 requests at a time: bytes per second in pieces of 1 MiB, and single blocks per second.
fn backing_speed(path: &Path) -> Outcome<(f64, f64)> {
    let path = path.with_extension("speed");
    if !path.exists() {
        let mut file = VolumeBacking::create(&path, SPEED_BLOCKS * PAGE_BYTES)?;
        let bytes = Buffer::new(1 << 20);
        for at in (0..SPEED_BLOCKS).step_by(256) {
            Backing::write(&mut file, at, bytes.bytes()).map_err(|_| "a write failed")?;
        }
        Backing::flush(&mut file).map_err(|_| "a flush failed")?;
    }
    let mut file = VolumeBacking::open(&path, false)?;
    let mut measure = |pieces: &[Piece]| -> Outcome<f64> {
        let begin = Instant::now();
        for some in pieces.chunks(64) {
            if file.read_all(some).iter().any(Result::is_err) {
                return Err("a read failed".into());
            }
        }
        Ok(f64::from(u32::try_from(pieces.len())?) / begin.elapsed().as_secs_f64())
    };
    let long = (0..SPEED_BLOCKS).step_by(256).map(|at| Piece { at, blocks: 256 });
    let mut rng = Rng::new(3);
    let single = (0..8192).map(|_| Piece { at: rng.below(SPEED_BLOCKS), blocks: 1 });
    let (long, single): (Vec<_>, Vec<_>) = (long.collect(), single.collect());
    Ok((measure(&long)? * f64::from(1 << 20), measure(&single)?))
}

/// Opens the volume and says how long that took.
fn open(path: &Path, what: &str) -> Outcome<VolumeDevice> {
    let (sequential, single) = backing_speed(path)?;
    let begin = Instant::now();
    let mut options = VolumeOptions::default();
    // There is no data.
    options.engine.verify = false;
    let opened = VolumeDevice::open(VolumeBacking::open(path, true)?, options)?;
    let device = opened.device;
    let mut buffer = Buffer::new(4096);
    device.read(device.size() / 2, buffer.bytes_mut()).map_err(|status| format!("{status:?}"))?;
    let first = begin.elapsed();
    // With a snapshot writes wait until the pages that the cut had changed were read.
    if device.members().len() > 1 {
        device.write(0, buffer.bytes(), false).map_err(|status| format!("{status:?}"))?;
        let write = begin.elapsed().as_secs_f64() * 1e3;
        writeln!(std::io::stdout().lock(), "{what}: first write after {write:.1} ms")?;
    }
    let pages = (device.size() / PAGE_BYTES).div_ceil(1024);
    let resident = || device.details().log.map_or(pages, |log| log.resident_pages);
    while resident() < pages && begin.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let all = begin.elapsed();
    let resident = resident();
    writeln!(
        std::io::stdout().lock(),
        "{what}: recovered after {:.1} ms, first read after {:.1} ms, {resident} of {pages} map pages in memory after {:.1} ms; \
         backing: {:.0} MB/s, {single:.0} single blocks/s; {:?}",
        opened.took.as_secs_f64() * 1e3,
        first.as_secs_f64() * 1e3,
        all.as_secs_f64() * 1e3,
        sequential / 1e6,
        opened.recovery,
    )?;
    Ok(device)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new(arguments.first().ok_or("open FILE [GIB]")?);
    let gib: u64 = arguments.get(1).map_or(Ok(256), |text| text.parse())?;
    if !path.exists() {
        make(path, gib << 30)?;
    }
    let mut rng = Rng::new(2);
    let mut device = open(path, "after a power cut in the middle of its use")?;
    for (idle, what) in
        [(false, "after a power cut"), (true, "after a power cut when idle")].repeat(2)
    {
        cut(device, &mut rng, idle)?;
        device = open(path, what)?;
    }
    for _ in 0..3 {
        close(device)?;
        device = open(path, "closed in good order")?;
    }
    cut(device, &mut rng, false)?;
    close(open(path, "after a power cut, not long after it was closed")?)?;
    let device = open(path, "before a snapshot")?;
    device.make_snapshot(&VolumeName::new("snapshot")?)?;
    cut(device, &mut rng, false)?;
    let device = open(path, "after a power cut, with a snapshot")?;
    device.delete_member("snapshot")?;
    device.wait_until_freed();
    close(device)
}

/// Closes a volume and says how long that took.
fn close(device: VolumeDevice) -> Outcome<()> {
    let begin = Instant::now();
    device.close().map_err(|error| format!("{error:?}"))?;
    let took = begin.elapsed().as_secs_f64() * 1e3;
    drop(device);
    Ok(writeln!(std::io::stdout().lock(), "closed in {took:.1} ms")?)
}

/// Writes at random, and ends as in a power cut; when `idle`, some time after the last flush.
fn cut(device: VolumeDevice, rng: &mut Rng, idle: bool) -> Outcome<()> {
    let data = Buffer::new(4096);
    for _ in 0..SINCE {
        let at = rng.below(device.size() / PAGE_BYTES) * PAGE_BYTES;
        device.write(at, data.bytes(), false).map_err(|status| format!("{status:?}"))?;
    }
    device.flush().map_err(|status| format!("{status:?}"))?;
    if idle {
        std::thread::sleep(Duration::from_millis(300));
    }
    // Dropped without being closed.
    drop(device);
    Ok(())
}
