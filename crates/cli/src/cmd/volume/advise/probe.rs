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

/// Writers at once: the queue depth.
const WRITERS: u64 = 8;

/// Bytes of a sequential write.
const SEQUENTIAL: u64 = 1 << 20;

/// Sizes of random writes, up to those of the largest indirection units.
const SIZES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// The bandwidth of the largest random writes that a size has to reach to be the unit.
const KNEE: f64 = 0.7;

/// What was measured, in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) sequential: f64,
    /// By size of a write.
    pub(super) random: Vec<(u64, f64)>,
    /// How often the measured space was overwritten at random before and while the smallest writes were measured. Less than
    /// once is far from a steady state.
    pub(super) passes: f64,
    pub(super) direct: bool,
}

impl Measured {
    /// Random writes of 4 KiB / sequential writes.
    pub(super) fn random_share(&self) -> f64 {
        self.random.first().map_or(1.0, |(_, random)| random / self.sequential.max(1.0))
    }

    /// The smallest size that has nearly the bandwidth of the largest. On a device whose cost is per request and not per
    /// unit, as virtual disks are, this is larger than its indirection unit.
    pub(super) fn knee(&self) -> Option<u64> {
        let largest = self.random.last()?.1;
        self.random.iter().find(|(_, speed)| *speed >= KNEE * largest).map(|(size, _)| *size)
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
        let (amount, speed) = write(&file, bytes, size, &Order::Random(time))?;
        written += amount;
        random.insert(0, (size, speed));
    }
    Ok(Measured { sequential, random, passes: float(written) / float(bytes), direct })
}

fn direct_flag() -> i32 {
    rustix::fs::OFlags::DIRECT.bits().cast_signed()
}

enum Order {
    Once,
    InTurn(Duration),
    Random(Duration),
}

/// Writes with several writers. Gives the bytes, and bytes per second with the flush at the end.
fn write(file: &File, bytes: u64, size: u64, order: &Order) -> io::Result<(u64, f64)> {
    let places = bytes / size;
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
                Order::Random(_) => rng.below(places),
            };
            file.write_all_at(buffer.bytes(), place * size)?;
            count += 1;
            if let Order::InTurn(time) | Order::Random(time) = order
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
    use super::{Duration, Measured, make, measure};

    #[test]
    fn a_file_is_measured_and_the_knee_is_the_smallest_fast_size() {
        let path = std::env::temp_dir().join(format!("onefold-probe-{}", std::process::id()));
        make(&path, 4 << 20).unwrap();
        assert!(make(&path, 4 << 20).is_err(), "what exists is not touched");
        let found = measure(&path, 4 << 20, Duration::from_millis(20));
        std::fs::remove_file(&path).unwrap();
        let found = found.unwrap();
        assert!(found.sequential > 0.0 && found.random.iter().all(|(_, speed)| *speed > 0.0));
        assert_eq!(found.random[0].0, 4096);
        let random = vec![(4096, 30.0), (8192, 60.0), (16_384, 110.0), (65_536, 120.0)];
        let qlc = Measured { sequential: 150.0, random, passes: 1.0, direct: true };
        assert_eq!(qlc.knee(), Some(16_384));
        assert!((qlc.random_share() - 0.2).abs() < 1e-9);
    }
}
