//! How long it takes to open a volume of which every block is mapped, until the first read and until all of its map is in
//! memory: closed in good order, and after a power cut.
//!
//! `cargo run --release -p onefold-device --example open -- FILE [GIB]`
//!
//! FILE is made if it is not there: sparse, twice as large as the volume of GIB (256 unless said otherwise), with headers
//! and map but without data, as opening reads none.
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use onefold_device::{BlockDevice, VolumeBacking, VolumeDevice, VolumeOptions, VolumeSpec};
use onefold_format::volume::VolumeName;
use onefold_units::{Lba, Nanos, PAGE_BYTES, Rng};
use onefold_volume::{Buffer, Options, Range, Refusal, drive, mount};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Blocks of a request that fills.
const PIECE: u64 = 128;

/// Blocks written at random before the power cut.
const SINCE: u64 = 60_000;

/// Maps every block of a new volume, in order, and an eighth of them again at random.
fn make(path: &Path, bytes: u64) -> Outcome<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_len(2 * bytes)?;
    let backing = VolumeBacking::open(path, true)?;
    let spec = VolumeSpec { bytes: Some(bytes), ..VolumeSpec::default() };
    let label = VolumeDevice::format(&backing, &spec, false)?;
    // Small runs, as many as batches of single blocks would make, without the space that their headers would take.
    let options = Options {
        bytes: false,
        trim: false,
        eager: false,
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
    volume.close();
    while !volume.is_idle() || volume.frozen().is_none() {
        drive(&mut volume, &mut disk, Nanos::ZERO);
    }
    Ok(())
}

/// Opens the volume and says how long that took.
fn open(path: &Path, what: &str) -> Outcome<VolumeDevice> {
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
         {:?}",
        opened.took.as_secs_f64() * 1e3,
        first.as_secs_f64() * 1e3,
        all.as_secs_f64() * 1e3,
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
    for _ in 0..3 {
        open(path, "closed in good order")?.close().map_err(|error| format!("{error:?}"))?;
    }
    let mut rng = Rng::new(2);
    for (idle, what) in
        [(false, "after a power cut"), (true, "after a power cut when idle")].repeat(2)
    {
        cut(open(path, "before a power cut")?, &mut rng, idle)?;
        open(path, what)?.close().map_err(|error| format!("{error:?}"))?;
    }
    let device = open(path, "before a snapshot")?;
    device.make_snapshot(&VolumeName::new("snapshot")?)?;
    cut(device, &mut rng, false)?;
    let device = open(path, "after a power cut, with a snapshot")?;
    device.delete_member("snapshot")?;
    device.wait_until_freed();
    device.close().map_err(|error| format!("{error:?}").into())
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
