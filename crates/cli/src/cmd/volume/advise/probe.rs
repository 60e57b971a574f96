//! Measures a file or a device: sequential against random writes of several sizes. Overwrites it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onefold_units::Rng;
use onefold_units::convert::{float, index64};
use onefold_volume::Buffer;
use serde_json::{Value, json};

/// Writers at once: the queue depth. Fewer than a drive has dies would hide that a write rewrites two units, side by side.
const WRITERS: u64 = 32;

/// Bytes of a sequential write.
const SEQUENTIAL: u64 = 1 << 20;

/// Sizes of random writes, up to those of the largest indirection units.
const SIZES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Writes of a unit that begin in the middle of one rewrite two: half of the bandwidth, or what the price of a request leaves of
/// that. Less than this is none.
const SLOWER: f64 = 1.3;

/// Random writes of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random {
    /// Bytes of a write.
    pub(super) bytes: u64,
    /// Bytes per second at multiples of the size.
    pub(super) aligned: f64,
    /// Bytes per second from the middle of one multiple to that of the next; not of the smallest size.
    pub(super) shifted: Option<f64>,
}

/// What was measured, in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) sequential: f64,
    /// By size of a write.
    pub(super) random: Vec<Random>,
    /// How often the measured space was overwritten at random before and while the smallest writes were measured. Less than
    /// once is far from a steady state.
    pub(super) passes: f64,
    direct: bool,
}

impl Measured {
    /// The indirection unit: the size that suffers most from beginning in the middle, or 4 KiB. What a request costs by itself, on
    /// virtual disks much, is the same in both places, so it does not look like a unit.
    pub(super) fn unit(&self) -> u64 {
        let slower = |random: &Random| {
            let shifted = random.shifted?;
            Some((random.aligned / shifted.max(1.0), random.bytes))
        };
        let found = self.random.iter().filter_map(slower).filter(|(ratio, _)| *ratio >= SLOWER);
        found.max_by(|one, other| one.0.total_cmp(&other.0)).map_or(SIZES[0], |(_, bytes)| bytes)
    }

    pub(super) fn to_json(&self) -> Value {
        let random = |random: &Random| {
            json!({
                "bytes": random.bytes,
                "bytes_per_s": random.aligned,
                "shifted_bytes_per_s": random.shifted,
            })
        };
        json!({
            "sequential_bytes_per_s": self.sequential,
            "random": self.random.iter().map(random).collect::<Vec<_>>(),
            "unit_bytes": self.unit(),
            "passes": self.passes,
            "direct": self.direct,
        })
    }
}

/// Measures for `time` per number. `bytes` of the file are overwritten.
pub(super) fn measure(path: &Path, bytes: u64, time: Duration) -> io::Result<Measured> {
    let direct = OpenOptions::new().write(true).custom_flags(direct_flag()).open(path);
    let (file, direct) = match direct {
        Ok(file) => (file, true),
        Err(_) => (OpenOptions::new().write(true).open(path)?, false),
    };
    // All of it is written once, so that nothing measured is the file system finding room.
    write(&file, bytes, SEQUENTIAL, &Order::Once)?;
    let sequential = write(&file, bytes, SEQUENTIAL, &Order::InTurn(time))?.1;
    // Smallest last: what the larger ones left is nearer to a steady state of random writes.
    let mut random = Vec::new();
    let mut written = 0;
    for size in SIZES.into_iter().rev() {
        let mut at = |shift| -> io::Result<f64> {
            let (amount, speed) = write(&file, bytes, size, &Order::Random { time, shift })?;
            written += amount;
            Ok(speed)
        };
        let shifted = if size > SIZES[0] { Some(at(size / 2)?) } else { None };
        random.insert(0, Random { bytes: size, aligned: at(0)?, shifted });
    }
    Ok(Measured { sequential, random, passes: float(written) / float(bytes), direct })
}

fn direct_flag() -> i32 {
    rustix::fs::OFlags::DIRECT.bits().cast_signed()
}

enum Order {
    Once,
    InTurn(Duration),
    /// At multiples of the size, and so many bytes behind them.
    Random {
        time: Duration,
        shift: u64,
    },
}

/// Writes with several writers. Gives the bytes, and bytes per second with the flush at the end.
fn write(file: &File, bytes: u64, size: u64, order: &Order) -> io::Result<(u64, f64)> {
    let places = bytes / size;
    let shift = if let Order::Random { shift, .. } = order { *shift } else { 0 };
    let (turn, over, begin) = (AtomicU64::new(0), AtomicBool::new(false), Instant::now());
    let work = |seed: u64| -> io::Result<u64> {
        let mut buffer = Buffer::new(index64(size));
        let mut rng = Rng::new(seed);
        // Drives compress zeroes.
        buffer.bytes_mut().chunks_mut(8).for_each(|word| {
            let random = rng.below(u64::MAX).to_le_bytes();
            word.copy_from_slice(&random[..word.len()]);
        });
        let mut count = 0;
        while !over.load(Relaxed) {
            let next = turn.fetch_add(1, Relaxed);
            let place = match order {
                Order::Once if next >= places => break,
                Order::Once => next,
                Order::InTurn(_) => next % places,
                Order::Random { shift: 0, .. } => rng.below(places),
                Order::Random { .. } => rng.below(places - 1),
            };
            file.write_all_at(buffer.bytes(), place * size + shift)?;
            count += 1;
            if let Order::InTurn(time) | Order::Random { time, .. } = order
                && begin.elapsed() >= *time
            {
                over.store(true, Relaxed);
            }
        }
        Ok(count)
    };
    let counts: Vec<io::Result<u64>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|seed| scope.spawn(move || work(seed))).collect();
        let end = |writer: std::thread::ScopedJoinHandle<'_, io::Result<u64>>| {
            writer.join().unwrap_or_else(|_| Err(io::Error::other("a writer ended badly")))
        };
        writers.into_iter().map(end).collect()
    });
    let written = counts.into_iter().sum::<io::Result<u64>>()? * size;
    file.sync_data()?;
    Ok((written, float(written) / begin.elapsed().as_secs_f64().max(1e-6)))
}

/// Makes a file to be measured.
pub(super) fn make(path: &Path, bytes: u64) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.set_len(bytes)
}

/// Bytes of a file or of a block device.
pub(super) fn size_of(path: &Path) -> io::Result<u64> {
    use std::io::Seek;
    File::open(path)?.seek(io::SeekFrom::End(0))
}

#[cfg(test)]
mod tests {
    use super::{Duration, Measured, Random, make, measure};

    #[test]
    fn a_file_is_measured_and_what_exists_is_not_touched() {
        let path = std::env::temp_dir().join(format!("onefold-probe-{}", std::process::id()));
        make(&path, 4 << 20).unwrap();
        assert!(make(&path, 4 << 20).is_err(), "what exists is not touched");
        let found = measure(&path, 4 << 20, Duration::from_millis(20));
        std::fs::remove_file(&path).unwrap();
        let found = found.unwrap();
        let speeds = |random: &Random| random.aligned > 0.0 && random.shifted != Some(0.0);
        assert!(found.sequential > 0.0 && found.random.iter().all(speeds));
        assert_eq!((found.random[0].bytes, found.random[0].shifted), (4096, None));
    }

    #[test]
    fn the_unit_is_the_size_that_suffers_most_from_the_middle_and_not_a_price_per_request() {
        let unit = |speeds: &[(u64, f64, f64)]| {
            let random = speeds.iter().map(|(bytes, aligned, shifted)| Random {
                bytes: *bytes,
                aligned: *aligned,
                shifted: (*bytes > 4096).then_some(*shifted),
            });
            Measured { sequential: 150.0, random: random.collect(), passes: 1.0, direct: true }
                .unit()
        };
        let qlc = [
            (4096, 30.0, 0.0),
            (8192, 60.0, 40.0),
            (16_384, 120.0, 60.0),
            (32_768, 120.0, 80.0),
            (65_536, 120.0, 96.0),
        ];
        assert_eq!(unit(&qlc), 16_384);
        // Twice the bandwidth for twice the size: each request costs the same.
        let virtual_disk = [(4096, 30.0, 0.0), (8192, 60.0, 59.0), (16_384, 120.0, 118.0)];
        assert_eq!(unit(&virtual_disk), 4096);
    }
}
