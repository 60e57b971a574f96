//! Making and opening volumes.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onefold_format::volume::{Codec, VolumeLabel, VolumeMode, VolumeName};
use onefold_units::PAGE_BYTES;
use onefold_volume::{
    Acknowledge, CleanMove, Geometry, Layout, MemberId, PaperFlush, Recovery, Trim,
};

use super::backing::VolumeBacking;
use super::bell::Bell;
use super::error::VolumeError;
use super::io_mode;
use super::journals;
use super::options::{OnFull, VolumeOptions};
use super::owner;
use super::spec::{VolumeSpec, random_uuid};
use super::state::{Opening, Served, Shared};
use super::{Driver, VolumeDevice};
use crate::driver::{Jobs, Threads, Watch, work};

/// Threads that carry out requests to the backing. Enough for its queue, and for a flush beside them.
const THREADS: usize = 4;

/// A volume that was opened, and how.
pub struct VolumeOpened {
    /// The volume.
    pub device: VolumeDevice,
    /// What recovery found.
    pub recovery: Recovery,
    /// How long it took.
    pub took: Duration,
}

impl VolumeDevice {
    /// Makes a volume on a backing.
    ///
    /// # Errors
    /// The backing holds something and `force` is not given, or it is too small. Nothing was changed then.
    pub fn format(
        backing: &VolumeBacking,
        spec: &VolumeSpec,
        force: bool,
    ) -> Result<VolumeLabel, VolumeError> {
        let label = spec.label_on(backing)?;
        make(backing, &label, force)?;
        Ok(label)
    }

    /// Makes a volume of a mode and a geometry that fit the backing, as a configuration says what they are.
    ///
    /// # Errors
    /// As [`VolumeDevice::format`].
    pub fn format_as(
        backing: &VolumeBacking,
        name: VolumeName,
        (mode, geometry): (VolumeMode, &Geometry),
        force: bool,
    ) -> Result<(), VolumeError> {
        let ids = [random_uuid()?, random_uuid()?];
        make(backing, &VolumeLabel { name, ..geometry.label(mode, ids) }, force)
    }

    /// Opens the volume on a backing and recovers it.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn open(
        backing: VolumeBacking,
        mut options: VolumeOptions,
    ) -> Result<VolumeOpened, VolumeError> {
        let begin = Instant::now();
        let blocks = backing.blocks();
        let label = onefold_volume::read_label(&mut backing.clone(), blocks)?;
        let uuid = label.uuid;
        let remaps = options.remap && can_remap(&backing, &label);
        options.engine.clean_move = if remaps { CleanMove::Remap } else { CleanMove::Copy };
        options.engine.trim = trims(&backing, options.trim);
        if options.engine.paper_flush != PaperFlush::None {
            return Err(VolumeError::PaperFlush);
        }
        if label.mode == VolumeMode::Han && options.engine.table_bytes != u64::MAX {
            let what = "has all tables in memory: leave out --map-memory";
            return Err(VolumeError::Mode { mode: label.mode.name(), what });
        }
        let setting = options.journals.setting(&label)?;
        options.engine.journal = journals::streams(setting.as_ref());
        let io = io_mode::choose(&backing, &options)?;
        let (mut volume, recovery) =
            onefold_modes::open(&mut backing.clone(), blocks, options.engine)?;
        super::scrub::repeat(&mut *volume, options.scrub)?;
        let took = begin.elapsed();
        let size = volume.logical_blocks() * PAGE_BYTES;
        let file = backing.as_file().cloned();
        let bell = match io.engine {
            "uring" => Some(Arc::new(Bell::new().map_err(VolumeError::NoUring)?)),
            _ => None,
        };
        let watch = setting.map(|setting| Watch::new(volume.logical_blocks(), setting));
        let watches = watch.is_some();
        let shared = Shared {
            jobs: Jobs::default(),
            bell: bell.clone(),
            thread_manages: file.as_ref().is_some_and(|file| file.is_block_device()),
            opening: Opening { uuid, io, remaps, recovery, took },
            backing,
            sizes: Mutex::default(),
            writes_wait: options.engine.acknowledge == Acknowledge::Complete,
            write_blocks_max: volume.write_blocks_max(),
        };
        let waits_for_space = options.on_full == OnFull::Block;
        let driver = Arc::new(Driver::new(Served::new(volume), shared, watch, waits_for_space));
        let threads = Threads::new(&driver);
        start_threads(&driver.shared, &threads).map_err(VolumeError::Thread)?;
        if let (Some(file), Some(bell)) = (&file, &bell) {
            threads.push(owner::start(&driver, file, bell).map_err(VolumeError::NoUring)?);
        }
        if watches {
            let started = threads.start("volume-journal".to_owned(), Driver::watch);
            started.map_err(VolumeError::Thread)?;
        }
        driver.turn(&mut driver.state());
        let (member, threads) = (MemberId::DEVICE, Arc::new(threads));
        let size = driver.size_of(member, size);
        let device = Self { driver, member, size, _threads: threads };
        Ok(VolumeOpened { device, recovery, took })
    }
}

/// Starts the threads of a volume; beside a ring there is little for them.
fn start_threads(shared: &Shared, threads: &Threads<Served>) -> std::io::Result<()> {
    let count = match (&shared.bell, shared.thread_manages) {
        (None, _) => THREADS,
        (Some(_), true) => 1,
        (Some(_), false) => 0,
    };
    let run = |driver: &Driver| work(driver, &driver.shared.jobs);
    (0..count).try_for_each(|number| threads.start(format!("volume-io-{number}"), run))
}

/// Makes the volume that a label describes.
fn make(backing: &VolumeBacking, label: &VolumeLabel, force: bool) -> Result<(), VolumeError> {
    if !force && let Some(what) = backing.contents(&written(label)) {
        return Err(VolumeError::Holds { what });
    }
    Ok(onefold_modes::format(&mut backing.clone(), label)?)
}

/// What making a volume overwrites at once, in bytes: the labels and the roots of mode log. Other modes begin at the ends.
fn written(label: &VolumeLabel) -> Vec<Range<u64>> {
    let Ok(layout) = Layout::new(Geometry::of(label)) else { return Vec::new() };
    let places = layout.labels().iter().chain(layout.roots());
    places.map(|at| at * PAGE_BYTES..(at + 1) * PAGE_BYTES).collect()
}

/// Which log segments are trimmed. Somebody who writes files has no use for a hole that is filled again soon.
fn trims(backing: &VolumeBacking, wanted: bool) -> Trim {
    match backing.as_file() {
        _ if !wanted => Trim::Never,
        Some(file) if file.is_regular() => Trim::Spare,
        _ => Trim::Always,
    }
}

/// Whether the cleaner can move the blocks of a volume by remap.
fn can_remap(backing: &VolumeBacking, label: &VolumeLabel) -> bool {
    let packed = Codec::of_features(label.incompat).is_some();
    label.mode == VolumeMode::Log && label.unit_blocks == 1 && !packed && backing.remaps()
}
