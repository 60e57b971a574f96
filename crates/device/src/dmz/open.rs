//! Making and opening zoned volumes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onefold_journal::Setting;
use onefold_units::{Nanos, PAGE_BYTES};
use onefold_zoned::{Geometry, Identity, Layout, Options, Recovery, format, mount};

use super::state::{Served, Shared};
use super::{DmzDevices, DmzError, DmzVolume};
use crate::driver::{Driver, Jobs, Threads, Watch, work};
use crate::volume::{OnFull, VolumeError, random_uuid};

/// Threads for everything but changes of the zoned device: enough for the queue of a drive, and a flush beside it.
const THREADS: usize = 4;

/// How to run a zoned volume. None of it is stored: the format is dm-zoned's.
#[derive(Clone, Debug, Default)]
pub struct DmzOptions {
    /// What the engine is run with; where the journal is, the detector says.
    pub engine: Options,
    /// Where the journal of the file system on it is.
    pub ranges: Setting,
    /// What becomes of writes for which there is no space.
    pub on_full: OnFull,
}

/// A zoned volume that was made, or would be.
#[derive(Clone, Debug)]
pub struct DmzMade {
    /// Its zones.
    pub geometry: Geometry,
    /// Sizes of its metadata.
    pub layout: Layout,
    /// Its names.
    pub identity: Identity,
}

/// A zoned volume that was opened, and how.
pub struct DmzOpened {
    /// The volume.
    pub device: DmzVolume,
    /// What had to be put right.
    pub recovery: Recovery,
    /// How long it took.
    pub took: Duration,
}

fn new_identity(name: &str, devices: usize) -> Result<Identity, VolumeError> {
    let uuid = random_uuid()?;
    let [a, b, c, d, ..] = uuid;
    // `dmzadm` takes no volume without a name.
    let own = format!("dmz-{a:02x}{b:02x}{c:02x}{d:02x}");
    let name = if name.is_empty() { &own } else { name };
    let mut label = [0; 32];
    let len = name.len().min(label.len());
    label[..len].copy_from_slice(&name.as_bytes()[..len]);
    let device_uuids = (0..devices).map(|_| random_uuid()).collect::<Result<_, _>>()?;
    Ok(Identity { label, uuid, device_uuids })
}

impl DmzDevices {
    /// Says what volume fits, and changes nothing.
    ///
    /// # Errors
    /// None does.
    pub fn plan(&self, name: &str) -> Result<DmzMade, DmzError> {
        let geometry = self.look()?.geometry;
        let layout =
            Layout::new(&geometry, geometry.zones()).map_err(onefold_zoned::MountError::Layout)?;
        let identity = new_identity(name, geometry.devices())?;
        Ok(DmzMade { geometry, layout, identity })
    }

    /// Makes a volume, as `dmzadm --format` does.
    ///
    /// # Errors
    /// A device holds something and `force` is not given, or no volume fits. Nothing was changed then.
    pub fn format(&self, name: &str, force: bool) -> Result<DmzMade, DmzError> {
        let mut looked = self.look()?;
        let geometry = looked.geometry.clone();
        if !force && let Some((device, what)) = self.contents(&geometry) {
            return Err(DmzError::Holds { device, what });
        }
        let identity = new_identity(name, geometry.devices())?;
        if let Some(cache) = &self.cache {
            // Nothing is changed before it is known that a volume fits.
            Self::sets(&geometry).map_err(onefold_zoned::MountError::Layout)?;
            cache.make(geometry.zone_blocks())?;
        }
        let layout = format(&mut looked, &geometry, &identity)?;
        Ok(DmzMade { geometry, layout, identity })
    }
}

impl DmzVolume {
    /// Opens the volume on its devices and recovers it.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn open(devices: DmzDevices, options: DmzOptions) -> Result<DmzOpened, DmzError> {
        let begin = Instant::now();
        let mut looked = devices.look()?;
        let geometry = looked.geometry.clone();
        if options.engine.kernel_flush {
            return Err(DmzError::KernelFlush);
        }
        // A request carries its bytes, and the detector says where journals are.
        let engine = Options {
            bytes: true,
            journal_ranges: Vec::new(),
            journal_hot: Vec::new(),
            ..options.engine
        };
        let (volume, recovery) = mount(&mut looked, &geometry, engine, Nanos::ZERO)?;
        let took = begin.elapsed();
        let size = volume.blocks() * PAGE_BYTES;
        let watch = Watch::new(volume.blocks(), options.ranges);
        let shared = Shared {
            uuid: volume.uuid(),
            changes: Jobs::default(),
            others: Jobs::default(),
            devices,
            recovery,
            took,
            size,
            zone_blocks: geometry.zone_blocks(),
        };
        let waits_for_space = options.on_full == OnFull::Block;
        let driver = Driver::new(Served { volume }, shared, Some(watch), waits_for_space);
        let driver = Arc::new(driver);
        let threads = Threads::new(&driver);
        start(&threads).map_err(VolumeError::Thread)?;
        driver.turn(&mut driver.state());
        let device = Self { driver, _threads: Arc::new(threads) };
        Ok(DmzOpened { device, recovery, took })
    }
}

/// Starts the threads of a volume.
fn start(threads: &Threads<Served>) -> std::io::Result<()> {
    threads.start("dmz-io-0".to_owned(), |driver| work(driver, &driver.shared.changes))?;
    let others = |number| {
        let run = |driver: &Driver<Served>| work(driver, &driver.shared.others);
        threads.start(format!("dmz-io-{number}"), run)
    };
    (1..=THREADS).try_for_each(others)?;
    threads.start("dmz-journal".to_owned(), Driver::watch)
}
