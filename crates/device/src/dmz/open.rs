//! Making and opening zoned volumes.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use onefold_journal::{Detector, Setting};
use onefold_units::{Nanos, PAGE_BYTES};
use onefold_zoned::{Geometry, Identity, Layout, Options, Recovery, format, mount};

use super::threads;
use super::{DmzDevices, DmzError, DmzVolume, Shared, State};
use crate::driver::{Guarded, Jobs, Threads};
use crate::volume::{VolumeError, random_uuid};

/// How to run a zoned volume. None of it is stored: the format is dm-zoned's.
#[derive(Clone, Debug, Default)]
pub struct DmzOptions {
    /// What the engine is run with; where the journal is, the detector says.
    pub engine: Options,
    /// Where the journal of the file system on it is.
    pub ranges: Setting,
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
        let detector = Detector::new(volume.blocks(), options.ranges, Nanos::ZERO);
        let shared = Arc::new(Shared {
            uuid: volume.uuid(),
            state: Guarded::new(State::new(volume, detector)),
            changes: Jobs::default(),
            others: Jobs::default(),
            devices,
            recovery,
            took,
            rewrite: RwLock::new(()),
            size,
            zone_blocks: geometry.zone_blocks(),
        });
        let threads = Threads::new(&shared);
        threads::start(&threads).map_err(VolumeError::Thread)?;
        shared.turn(&mut shared.state());
        let device = Self { shared, _threads: Arc::new(threads) };
        Ok(DmzOpened { device, recovery, took })
    }
}
