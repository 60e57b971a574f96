//! What a recording costs on drives: each aged, then the requests replayed by dependencies in
//! virtual time.
//!
//! Every drive is made to hold the disk of the recording ([`onefold_sim::scaled`]): blocks get half
//! the pages until half a drive would be too small, then their number does the rest. So a small
//! drive has about as many superblocks as the large one, and the same share of spare area.
//!
//! With a volume, both runs of a drive are on flash of the same size: as much as a volume needs to
//! export the disk. The drive alone has the difference as free space. Both hold the same data at
//! the same addresses before.

mod cost;
mod life;
mod list;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use onefold_config::{Age, Config, ConfigError, Load};
use onefold_device::VolumeSpec;
use onefold_sim::result::Program;
use onefold_sim::{Control, Setup, SimError, scaled, simulate};
use onefold_tracefile::Options;
use onefold_units::convert::float;

use super::behind::{BehindError, volume_keys};
pub use cost::DriveCost;
pub use life::Life;
pub use list::{Drive, ListError, parse};

/// Sizes of drives tried until a volume on one exports the disk.
const SIZES_MAX: u32 = 32;

/// The state of drives unless it is said: as full as a drive in use, and every page written twice.
pub const AGE: Age = Age { fill: 0.9, overwrite: 1.0 };

/// What is replayed, and how.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// The recording.
    pub requests: &'a Path,
    /// Bytes of the disk that was recorded.
    pub disk_bytes: u64,
    /// How long the program ran, for the life of drives.
    pub seconds: f64,
    /// State of each drive before.
    pub age: Age,
    /// Whether each drive is run behind a volume as well.
    pub volume: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Version and commit of the program that asks.
    pub program: Program,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrivesError {
    /// The drive cannot be built at this size.
    #[error("drive {drive}: {source}")]
    Config {
        /// Its name.
        drive: String,
        /// What is wrong.
        source: Box<ConfigError>,
    },
    /// There is no volume on the drive.
    #[error("a volume on drive {drive}: {source}")]
    Behind {
        /// Its name.
        drive: String,
        /// What is wrong.
        source: Box<BehindError>,
    },
    /// No drive of a size that was tried holds a volume that exports the disk.
    #[error("a volume on drive {drive} exports {exported} bytes at most, the disk has {disk}")]
    TooSmall {
        /// Its name.
        drive: String,
        /// The largest that was made.
        exported: u64,
        /// Bytes of the disk.
        disk: u64,
    },
    /// A run failed.
    #[error("drive {drive}: {source}")]
    Run {
        /// Its name.
        drive: String,
        /// What is wrong.
        source: Box<SimError>,
    },
}

impl DrivesError {
    /// Whether somebody ended the runs.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Run { source, .. } if matches!(**source, SimError::Interrupted))
    }
}

/// A drive of the right size and in the right state, alone or with a volume.
struct Sized<'a> {
    drive: &'a Drive,
    config: Config,
    /// The keys that make the drive of the list this one.
    keys: Vec<String>,
}

/// Runs every drive of a list, so many at once. The results are in the order of the list, each
/// drive alone before the one behind a volume.
///
/// # Errors
/// The first in the order of the list; see [`DrivesError`].
pub fn run(
    drives: &[Drive],
    replay: &Replay<'_>,
    threads: usize,
    interrupt: Option<&AtomicBool>,
) -> Result<Vec<DriveCost>, DrivesError> {
    let mut jobs = Vec::new();
    for drive in drives {
        jobs.extend(sized(drive, replay)?);
    }
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<_>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    let cost = job.run(replay, interrupt);
                    *done[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(cost);
                }
            });
        }
    });
    let costs =
        done.into_iter().map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner));
    costs.flatten().collect()
}

impl Sized<'_> {
    fn run(
        &self,
        replay: &Replay<'_>,
        interrupt: Option<&AtomicBool>,
    ) -> Result<DriveCost, DrivesError> {
        let failed =
            |source| DrivesError::Run { drive: self.drive.name.clone(), source: Box::new(source) };
        let setup = Setup {
            config: self.config.clone().with_load(&Load::Trace(replay.requests.to_owned())),
            trace_options: Options::default(),
            seed: replay.seed,
            program: replay.program.clone(),
        };
        let control = Control { interrupt, ..Control::default() };
        let run = simulate(&setup, &control).map_err(failed)?;
        if run.partial {
            return Err(failed(SimError::Interrupted));
        }
        cost::of(self, run, replay.seconds).map_err(|source| self.drive.refused(source))
    }
}

/// The runs of a drive.
fn sized<'a>(drive: &'a Drive, replay: &Replay<'_>) -> Result<Vec<Sized<'a>>, DrivesError> {
    let refused = |source| drive.refused(source);
    let disk = replay.disk_bytes;
    let made = |bytes| scaled(&drive.config, bytes, replay.seed).map_err(refused);
    if !replay.volume {
        let config = made(disk)?;
        let exported = config.logical_bytes().map_err(refused)?;
        return Ok(vec![aged(drive, &config, Vec::new(), (exported, replay)).map_err(refused)?]);
    }
    let step = (disk / 64).max(16 << 20);
    let mut bytes = disk.saturating_add(disk / 4).saturating_add(step);
    let mut largest = 0;
    for _ in 0..SIZES_MAX {
        let config = made(bytes)?;
        let (keys, exported) = behind(&config).map_err(|source| DrivesError::Behind {
            drive: drive.name.clone(),
            source: Box::new(source),
        })?;
        if exported >= disk {
            let capacity = config.logical_bytes().map_err(refused)?;
            let alone = aged(drive, &config, Vec::new(), (capacity, replay));
            let with = aged(drive, &config, keys, (exported, replay));
            return Ok(vec![alone.map_err(refused)?, with.map_err(refused)?]);
        }
        largest = largest.max(exported);
        bytes = bytes.saturating_add(step);
    }
    Err(DrivesError::TooSmall { drive: drive.name.clone(), exported: largest, disk })
}

/// The keys of a volume that uses what a drive offers, remapping for its cleaner and streams; and
/// the bytes that the volume exports.
fn behind(drive: &Config) -> Result<(Vec<String>, u64), BehindError> {
    let mut keys = volume_keys(drive, &VolumeSpec::default())?;
    let ftl = drive.ssd(0)?.ftl;
    if ftl.remap.scheme.name() != "none" {
        keys.push("volume.clean_move=remap".to_owned());
    }
    if ftl.streams > 1 {
        keys.push("volume.streams=hot-cold".to_owned());
    }
    let volume = drive.with_sets(&keys, &["volume"])?.volume()?;
    Ok((keys, volume.map_or(0, |volume| volume.logical_bytes())))
}

/// A drive of which the disk takes the first bytes, and holds as much of them as its age says.
fn aged<'a>(
    drive: &'a Drive,
    scaled: &Config,
    volume: Vec<String>,
    (exported, replay): (u64, &Replay<'_>),
) -> Result<Sized<'a>, ConfigError> {
    let mut keys = volume;
    keys.extend(replay.age.sets((float(replay.disk_bytes) / float(exported)).min(1.0)));
    let config = scaled.with_sets(&keys, &["volume", "precondition"])?;
    let spec = *scaled.geometry()?.spec();
    let size = [
        format!("geometry.pages={}", spec.pages),
        format!("geometry.blocks={}", spec.blocks),
        format!("capacity.logical={}B", scaled.logical_bytes()?),
    ];
    Ok(Sized { drive, config, keys: size.into_iter().chain(keys).collect() })
}
