//! Speed of a volume on a real file: 4 KiB random writes from several threads, and random reads beside those of the same
//! file without the volume. Prints one JSON object. `scripts/bench-volume.sh` puts it beside fio.
//!
//! `cargo run --release -p onefold-device --example volume -- FILE [SECONDS [THREADS [uring|threads [direct|buffered|no-trim [BATCHES]]]]]`
//!
//! FILE is made if it is not there: 4 GiB, all of it written once, with a volume of 1 GiB.
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onefold_device::{
    BlockDevice, VolumeBacking, VolumeDevice, VolumeIo, VolumeOptions, VolumeSpec,
};
use onefold_units::Rng;
use onefold_units::convert::{float, u64_from};
use onefold_volume::{Buffer, Sent};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BACKING: u64 = 4 << 30;
const VOLUME: u64 = 1 << 30;
const BLOCK: usize = 4096;

/// CPU seconds of this process, user and system.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = times.rsplit(") ").next().unwrap_or_default();
    // Clock ticks of 10 ms (proc_pid_stat(5), fields 14 and 15).
    after_name
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Writes all of a new file, so that nothing measured is the file system finding room.
fn make(path: &Path) -> Outcome<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let piece = vec![0x5A; 1 << 20];
    for at in 0..BACKING >> 20 {
        file.write_all_at(&piece, at << 20)?;
    }
    file.sync_all()?;
    drop(file);
    let spec = VolumeSpec { bytes: Some(VOLUME), ..VolumeSpec::default() };
    // What it was filled with looks like text, which is not overwritten unasked.
    VolumeDevice::format(&VolumeBacking::open(path, true)?, &spec, true)?;
    Ok(())
}

/// Blocks that several threads write at random, in a number of seconds.
fn write_randomly(device: &VolumeDevice, threads: u64, time: Duration) -> Outcome<u64> {
    let (written, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let (written, over) = (&written, &over);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                let data = Buffer::new(BLOCK);
                let mut count = 0;
                while !over.load(Relaxed) {
                    let lba = rng.below(VOLUME / 4096);
                    if device.write(lba * 4096, data.bytes(), false).is_err() {
                        break;
                    }
                    count += 1;
                }
                written.fetch_add(count, Relaxed);
            });
        }
        std::thread::sleep(time);
        over.store(true, Relaxed);
    });
    device.flush().map_err(|status| format!("flush: {status:?}"))?;
    Ok(written.into_inner())
}

struct Latency {
    mean_us: f64,
    median_us: f64,
}

fn summary(mut nanos: Vec<u64>) -> Latency {
    nanos.sort_unstable();
    // The slowest hundredth is other programs on the machine.
    nanos.truncate(nanos.len() * 99 / 100);
    let sum: u64 = nanos.iter().sum();
    Latency {
        mean_us: float(sum) / 1e3 / float(u64_from(nanos.len().max(1))),
        median_us: float(nanos.get(nanos.len() / 2).copied().unwrap_or(0)) / 1e3,
    }
}

/// Reads at random, one after the other, in turns with the volume and without it.
fn read_in_turns(device: &VolumeDevice, file: &File, time: Duration) -> Outcome<[Latency; 2]> {
    let mut rng = Rng::new(99);
    let mut buffer = Buffer::new(BLOCK);
    let mut nanos = [Vec::new(), Vec::new()];
    let end = Instant::now() + time;
    while Instant::now() < end {
        let turn = rng.below(2);
        let begin = Instant::now();
        if turn == 0 {
            let lba = rng.below(VOLUME / 4096);
            device.read(lba * 4096, buffer.bytes_mut()).map_err(|status| format!("{status:?}"))?;
        } else {
            let at = rng.below(BACKING / 4096);
            file.read_exact_at(buffer.bytes_mut(), at * 4096)?;
        }
        nanos[usize::from(turn == 1)].push(u64::try_from(begin.elapsed().as_nanos())?);
    }
    Ok(nanos.map(summary))
}

/// Threads that read side by side.
const READERS: u64 = 8;

/// How long they read in one way, before it is the turn of the other one.
const TURN: Duration = Duration::from_millis(100);

/// Reads that many threads do in a turn, each one after the other, and how long it took.
fn read_a_turn(seed: u64, read: &(dyn Fn(u64, &mut [u8]) -> bool + Sync)) -> (u64, Duration) {
    let (count, begin) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let count = &count;
            scope.spawn(move || {
                let mut rng = Rng::new(seed * READERS + reader);
                let mut buffer = Buffer::new(BLOCK);
                let mut done = 0;
                while begin.elapsed() < TURN && read(rng.next_u64(), buffer.bytes_mut()) {
                    done += 1;
                }
                count.fetch_add(done, Relaxed);
            });
        }
    });
    (count.into_inner(), begin.elapsed())
}

/// Random reads per second of many threads, in turns with the volume and without it: medians of all turns.
fn read_side_by_side(device: &VolumeDevice, file: &File, time: Duration) -> [f64; 2] {
    let with = |random: u64, buffer: &mut [u8]| {
        device.read(random % (VOLUME / 4096) * 4096, buffer).is_ok()
    };
    let without = |random: u64, buffer: &mut [u8]| {
        file.read_exact_at(buffer, random % (BACKING / 4096) * 4096).is_ok()
    };
    let mut rates = [Vec::new(), Vec::new()];
    let begin = Instant::now();
    for turn in 0.. {
        if begin.elapsed() > time {
            break;
        }
        let way: &(dyn Fn(u64, &mut [u8]) -> bool + Sync) =
            if turn % 2 == 0 { &with } else { &without };
        let (reads, took) = read_a_turn(turn, way);
        rates[usize::from(turn % 2 == 1)].push(float(reads) / took.as_secs_f64());
    }
    rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(0.0)
    })
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let path = Path::new(argument(0).ok_or(
        "volume FILE [SECONDS [THREADS [uring|threads [direct|buffered|no-trim [BATCHES]]]]]",
    )?);
    let seconds = Duration::from_secs(argument(1).map_or(Ok(5), str::parse)?);
    let threads = argument(2).map_or(Ok(2), str::parse)?;
    let mut options = VolumeOptions::default();
    if argument(3) == Some("threads") {
        options.io = VolumeIo::Threads;
    }
    options.direct = argument(4) != Some("buffered");
    options.trim = argument(4) != Some("no-trim");
    if let Some(batches) = argument(5) {
        options.engine.batches = batches.parse()?;
    }
    if !path.exists() {
        make(path)?;
    }
    let device = VolumeDevice::open(VolumeBacking::open(path, true)?, options.clone())?.device;
    let piece = vec![0xA5; 1 << 20];
    for at in 0..VOLUME >> 20 {
        device.write(at << 20, &piece, false).map_err(|status| format!("{status:?}"))?;
    }
    device.flush().map_err(|status| format!("{status:?}"))?;
    write_randomly(&device, threads, Duration::from_secs(1))?;
    let before = device.details();
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let blocks = write_randomly(&device, threads, seconds)?;
    let (took, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let after = device.details();
    let sent: u64 = Sent::ALL.iter().map(|of| after.stats.sent(*of) - before.stats.sent(*of)).sum();
    // O_DIRECT of open(2) on Linux.
    let direct = if options.direct { 0o40000 } else { 0 };
    let file = OpenOptions::new().read(true).custom_flags(direct).open(path)?;
    let cpu_reading = cpu_seconds();
    let [with, without] = read_in_turns(&device, &file, seconds)?;
    let cpu_reading = cpu_seconds() - cpu_reading;
    let [deep, deep_bypass] = read_side_by_side(&device, &file, seconds);
    device.close()?;
    let mib = |blocks: u64| float(blocks) / 256.0;
    writeln!(
        std::io::stdout(),
        "{{\"io\": \"{}\", \"threads\": {threads}, \"write_iops\": {:.0}, \"user_mib_s\": {:.1}, \
         \"sent_mib_s\": {:.1}, \"waf\": {:.3}, \"waited\": {:.3}, \"write_cpu\": {:.2}, \"read_us\": {:.2}, \
         \"bypass_us\": {:.2}, \"read_median_us\": {:.2}, \"bypass_median_us\": {:.2}, \
         \"read_cpu\": {:.2}, \"deep_reads\": {deep:.0}, \"deep_bypass\": {deep_bypass:.0}}}",
        before.io,
        float(blocks) / took,
        mib(blocks) / took,
        mib(sent) / took,
        float(sent) / float(blocks.max(1)),
        after.stalls.total.saturating_sub(before.stalls.total).as_secs_f64()
            / took
            / float(threads),
        cpu / took,
        with.mean_us,
        without.mean_us,
        with.median_us,
        without.median_us,
        cpu_reading / seconds.as_secs_f64(),
    )?;
    Ok(())
}
