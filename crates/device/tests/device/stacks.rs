//! Layers on layers in real time: what the top promised holds, however the process ends.
//!
//! `ONEFOLD_SEEDS=50 cargo test -p onefold-device --test device stacks::` runs more histories.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::versions::Versions;
use crate::common::{TEXT, buffered, open, roomy, zones};
use onefold_buffer::PolicySpec;
use onefold_device::{
    Access, BlockDevice, DmzCache, DmzDevices, DmzOptions, DmzVolume, Due, Extent, Image, Layer,
    OnFull, VolumeBacking, VolumeDevice, VolumeError, VolumeOptions, VolumeSpec, ZnsConfig,
    ZoneLimits, ZonedDevice,
};
use onefold_ftl::RemapScheme;
use onefold_nand::{Geometry, GeometrySpec};
use onefold_ssd::SsdConfig;
use onefold_testkit::for_each_seed;
use onefold_units::{Rng, Status};

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

/// How the places of a stack are made, and how they are opened.
struct Stack {
    make: fn(&Path),
    open: fn(&Path) -> Box<dyn Layer>,
}

/// A log on a zoned volume on a file and an emulated SSD with zones.
const LOG_ON_DMZ: Stack = Stack {
    make: |folder| {
        make_zones(folder);
        VolumeBacking::create(&folder.join("cache"), 10 * MIB).unwrap().close().unwrap();
        let devices = |made| {
            let cache = VolumeBacking::open(&folder.join("cache"), true).unwrap();
            beside_zones(folder, cache, made)
        };
        devices(false).format("below", false).unwrap();
        let below = open_dmz(devices(true));
        VolumeDevice::format(&below, &spec(), false).unwrap();
        below.close().unwrap();
    },
    open: |folder| {
        let cache = VolumeBacking::open(&folder.join("cache"), true).unwrap();
        Box::new(open_log(open_dmz(beside_zones(folder, cache, true))))
    },
};

/// A log on a log on an emulated SSD with a buffer that remaps.
const LOG_ON_LOG: Stack = Stack {
    make: |folder| {
        drop(Image::create(&folder.join("ssd"), &ssd(), TEXT.to_owned()).unwrap());
        let drive = || VolumeBacking::ssd(open(&folder.join("ssd"), &ssd()).device);
        let backing = drive();
        VolumeDevice::format(&backing, &spec(), false).unwrap();
        let below = VolumeBacking::layer(open_log(backing));
        VolumeDevice::format(&below, &spec(), false).unwrap();
        below.close().unwrap();
    },
    open: |folder| {
        let drive = VolumeBacking::ssd(open(&folder.join("ssd"), &ssd()).device);
        Box::new(open_log(VolumeBacking::layer(open_log(drive))))
    },
};

/// A zoned volume on two emulated SSDs, of which that for random writes has a buffer.
const DMZ_ON_SSDS: Stack = Stack {
    make: |folder| {
        make_zones(folder);
        drop(Image::create(&folder.join("ssd"), &ssd(), TEXT.to_owned()).unwrap());
        let cache = VolumeBacking::ssd(open(&folder.join("ssd"), &ssd()).device);
        let devices = beside_zones(folder, cache, false);
        devices.format("", false).unwrap();
        devices.close().unwrap();
    },
    open: |folder| {
        let cache = VolumeBacking::ssd(open(&folder.join("ssd"), &ssd()).device);
        Box::new(dmz(beside_zones(folder, cache, true)))
    },
};

/// A zoned volume whose cache is a log on a file.
const DMZ_ON_LOG: Stack = Stack {
    make: |folder| {
        make_zones(folder);
        let file = VolumeBacking::create(&folder.join("file"), 40 * MIB).unwrap();
        VolumeDevice::format(&file, &spec(), false).unwrap();
        let devices = beside_zones(folder, VolumeBacking::layer(open_log(file)), false);
        devices.format("", false).unwrap();
        devices.close().unwrap();
    },
    open: |folder| {
        let file = VolumeBacking::open(&folder.join("file"), true).unwrap();
        Box::new(dmz(beside_zones(folder, VolumeBacking::layer(open_log(file)), true)))
    },
};

fn spec() -> VolumeSpec {
    VolumeSpec { op: 0.4, segment_bytes: Some(64 * BLOCK), ..VolumeSpec::default() }
}

/// 72 MiB with a buffer, that can remap.
fn ssd() -> SsdConfig {
    let mut config = roomy(RemapScheme::Lh);
    let spec = GeometrySpec { blocks: 320, ..*config.geometry.spec() };
    config.geometry = Geometry::new(spec).unwrap();
    config.ftl.logical_units *= 2;
    config.buffer = buffered(PolicySpec::parse("lru").unwrap()).buffer;
    config
}

fn zns() -> ZnsConfig {
    let limits = ZoneLimits { max_open: None, max_active: None };
    ZnsConfig { limits, ..zones(44, 256) }
}

fn make_zones(folder: &Path) {
    drop(Image::create(&folder.join("zones"), &zns(), TEXT.to_owned()).unwrap());
}

fn beside_zones(folder: &Path, cache: VolumeBacking, made: bool) -> DmzDevices {
    let image = Image::open(&folder.join("zones"), Access::Exclusive).unwrap();
    let zoned = VolumeBacking::zoned(ZonedDevice::open(image, &zns()).unwrap().device);
    let cache =
        if made { DmzCache::open(cache, true).unwrap() } else { DmzCache::to_make(cache, false) };
    DmzDevices { cache: Some(cache), zoned }
}

fn open_log(backing: VolumeBacking) -> VolumeDevice {
    let mut options = VolumeOptions::default();
    options.engine.batch_blocks = 32;
    options.engine.checkpoint_blocks = 512;
    VolumeDevice::open(backing, options).unwrap().device
}

fn dmz(devices: DmzDevices) -> DmzVolume {
    DmzVolume::open(devices, DmzOptions::default()).unwrap().device
}

fn open_dmz(devices: DmzDevices) -> VolumeBacking {
    VolumeBacking::layer(dmz(devices))
}

/// Overwrites a part that makes all layers clean; each round ends without notice or in good order.
fn keeps_what_was_flushed(stack: &Stack, case: &'static str) {
    for_each_seed(("onefold-device", "device", case), 2, |seed| {
        let folder = tempfile::tempdir().unwrap();
        (stack.make)(folder.path());
        let mut rng = Rng::new(seed);
        let mut top = (stack.open)(folder.path());
        let blocks = (top.size() / BLOCK).min(1500);
        let mut all = Versions::new(blocks);
        for round in 0..4 {
            for n in 0..blocks / 4 {
                let fua = rng.below(50) == 0;
                all.write(&*top, rng.below(blocks - 8), 1 + rng.below(8), fua);
                if n % 97 == 0 {
                    all.flush(&*top);
                }
            }
            if round == 2 {
                all.flush(&*top);
                top.close().unwrap();
            }
            // Without a close, as if the process had been killed.
            drop(top);
            top = (stack.open)(folder.path());
            all.verify(&*top);
        }
        top.close().unwrap();
        drop(top);
        let top = (stack.open)(folder.path());
        all.verify(&*top);
    });
}

#[test]
fn a_log_on_a_zoned_volume_keeps_what_was_flushed() {
    keeps_what_was_flushed(&LOG_ON_DMZ, "a_log_on_a_zoned_volume_keeps_what_was_flushed");
}

#[test]
fn a_log_on_a_log_keeps_what_was_flushed() {
    keeps_what_was_flushed(&LOG_ON_LOG, "a_log_on_a_log_keeps_what_was_flushed");
}

#[test]
fn a_zoned_volume_on_two_emulated_ssds_keeps_what_was_flushed() {
    keeps_what_was_flushed(
        &DMZ_ON_SSDS,
        "a_zoned_volume_on_two_emulated_ssds_keeps_what_was_flushed",
    );
}

#[test]
fn a_zoned_volume_whose_cache_is_a_log_keeps_what_was_flushed() {
    keeps_what_was_flushed(
        &DMZ_ON_LOG,
        "a_zoned_volume_whose_cache_is_a_log_keeps_what_was_flushed",
    );
}

/// What lies below is full before the top is: writes fail with the status of that, and reads go on.
#[test]
fn no_space_below_is_told_and_reads_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = VolumeBacking::create(&folder.path().join("file"), 36 * MIB).unwrap();
    let thin = VolumeSpec { bytes: Some(64 * MIB), thin: true, ..spec() };
    VolumeDevice::format(&file, &thin, false).unwrap();
    let below = VolumeBacking::layer(open_log(file));
    VolumeDevice::format(&below, &spec(), true).unwrap();
    let top = open_log(below);
    let data = vec![7; 256 << 10];
    let mut offset = 0;
    let refused = loop {
        let written = top.write(offset, &data, false).and_then(|_| top.flush());
        if let Err(status) = written {
            break status;
        }
        offset += 256 << 10;
        assert!(offset < top.size(), "the volume below has room for half of that");
    };
    assert_eq!(refused, Status::NoSpace);
    let mut found = vec![0; data.len()];
    top.read(0, &mut found).unwrap();
    assert!(found == data, "reads go on");
}

/// A layer that takes no changes while it is said to be full.
struct Fillable {
    inner: VolumeDevice,
    full: Arc<AtomicBool>,
}

impl Fillable {
    fn room(&self) -> Result<(), Status> {
        if self.full.load(Ordering::Relaxed) { Err(Status::NoSpace) } else { Ok(()) }
    }
}

impl BlockDevice for Fillable {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.inner.read(offset, buf)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.room()?;
        self.inner.write(offset, data, fua)
    }

    fn flush(&self) -> Result<Due, Status> {
        self.inner.flush()
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.inner.trim(offset, len)
    }

    fn write_zeroes(&self, offset: u64, len: u64, unmap: bool, fua: bool) -> Result<Due, Status> {
        self.room()?;
        self.inner.write_zeroes(offset, len, unmap, fua)
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.inner.extent(offset, len)
    }
}

impl Layer for Fillable {
    fn close(&self) -> Result<(), VolumeError> {
        self.inner.close()
    }
}

/// A zoned volume whose cache is full for a while. The metadata of a flush has no room then.
#[test]
fn a_flush_fails_or_waits_while_there_is_no_room_below() {
    for on_full in [OnFull::Error, OnFull::Block] {
        let folder = tempfile::tempdir().unwrap();
        (DMZ_ON_LOG.make)(folder.path());
        let inner = open_log(VolumeBacking::open(&folder.path().join("file"), true).unwrap());
        let full = Arc::new(AtomicBool::new(false));
        let cache = VolumeBacking::layer(Fillable { inner, full: Arc::clone(&full) });
        let devices = beside_zones(folder.path(), cache, true);
        let options = DmzOptions { on_full, ..DmzOptions::default() };
        let top = DmzVolume::open(devices, options).unwrap().device;
        let data = vec![7; 256 << 10];
        top.write(0, &data, false).unwrap();
        full.store(true, Ordering::Relaxed);
        if on_full == OnFull::Error {
            assert_eq!(top.flush(), Err(Status::NoSpace));
            full.store(false, Ordering::Relaxed);
            while top.flush().is_err() {
                std::thread::sleep(Duration::from_millis(10));
            }
        } else {
            let flushing = top.clone();
            let flush = std::thread::spawn(move || flushing.flush());
            std::thread::sleep(Duration::from_millis(500));
            assert!(!flush.is_finished(), "there is no room");
            full.store(false, Ordering::Relaxed);
            flush.join().unwrap().unwrap();
        }
        // Without a close, as if the process had been killed.
        drop(top);
        let top = (DMZ_ON_LOG.open)(folder.path());
        let mut found = vec![0; data.len()];
        top.read(0, &mut found).unwrap();
        assert!(found == data, "{on_full:?}");
        top.close().unwrap();
    }
}

/// Volumes below are closed with the one on them.
#[test]
fn closing_the_top_closes_all() {
    let folder = tempfile::tempdir().unwrap();
    (LOG_ON_LOG.make)(folder.path());
    let drive = open(&folder.path().join("ssd"), &ssd()).device;
    let below = open_log(VolumeBacking::ssd(drive.clone()));
    let top = open_log(VolumeBacking::layer(below.clone()));
    top.write(0, &[1; 4096], false).unwrap();
    top.close().unwrap();
    assert!(below.write(0, &[1; 4096], false).is_err());
    assert!(drive.write(0, &[1; 4096], false).is_err());
    drop((top, below, drive));
    let opened = open(&folder.path().join("ssd"), &ssd());
    assert!(opened.was_clean);
    let below = VolumeDevice::open(VolumeBacking::ssd(opened.device), VolumeOptions::default());
    assert!(below.map_err(|error: VolumeError| error).unwrap().recovery.clean);
}
