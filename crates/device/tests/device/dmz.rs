//! A volume of policy `dmz` on a file and an emulated SSD with zones: made, written, reclaimed, ended without notice, opened
//! again, checked, repaired.

mod sums;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::common::versions::{Versions, content};
use crate::common::{TEXT, with_conventional, zones};
use onefold_device::{
    Access, BlockDevice, DmzCache, DmzDevices, DmzError, DmzOptions, DmzVolume, Image, Select,
    VolumeBacking, ZnsConfig, ZoneAction, ZoneLimits, ZonedDevice,
};
use onefold_journal::Setting;
use onefold_units::{Rng, Status, ZoneId};
use onefold_zoned::{Action, Finding, JournalMode, LayoutError, MountError, Options, ZoneKind};

const BLOCK: u64 = 4096;
/// Blocks of a zone.
const ZONE: u64 = 256;

/// 32 zones, all of which can be written.
fn config() -> ZnsConfig {
    zones(32, 256)
}

struct Folder {
    place: tempfile::TempDir,
    config: ZnsConfig,
    /// Beside the zoned device there is a regular one.
    has_cache: bool,
    /// The cache gets checksums.
    checksums: bool,
}

impl Folder {
    fn new() -> Self {
        Self::with(&config(), 10 * ZONE)
    }

    /// One device with ten conventional zones.
    fn single() -> Self {
        Self::with(&with_conventional(&config(), 10), 10 * ZONE)
    }

    /// A cache with checksums, and room for these beside its ten zones.
    fn summed() -> Self {
        let folder = Self::with(&config(), 10 * ZONE);
        std::fs::remove_file(folder.path("cache.img")).unwrap();
        drop(DmzCache::create(&folder.path("cache.img"), 10 * ZONE * BLOCK, true).unwrap());
        Self { checksums: true, ..folder }
    }

    fn with(config: &ZnsConfig, cache_blocks: u64) -> Self {
        let has_cache = config.conventional.is_none();
        let (place, config) = (tempfile::tempdir().unwrap(), *config);
        let this = Self { place, config, has_cache, checksums: false };
        drop(Image::create(&this.path("zoned.img"), &config, TEXT.to_owned()).unwrap());
        let cache = VolumeBacking::create(&this.path("cache.img"), cache_blocks * BLOCK).unwrap();
        cache.close().unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn zoned(&self) -> ZonedDevice {
        let image = Image::open(&self.path("zoned.img"), Access::Exclusive).unwrap();
        ZonedDevice::open(image, &self.config).unwrap().device
    }

    fn devices(&self) -> DmzDevices {
        let cache = self.has_cache.then(|| DmzCache::open(self.cache(), true).unwrap());
        DmzDevices { cache, zoned: VolumeBacking::zoned(self.zoned()) }
    }

    fn cache(&self) -> VolumeBacking {
        VolumeBacking::open(&self.path("cache.img"), true).unwrap()
    }

    fn make(&self, force: bool) -> Result<(), DmzError> {
        let cache = self.has_cache.then(|| DmzCache::to_make(self.cache(), self.checksums));
        let devices = DmzDevices { cache, zoned: VolumeBacking::zoned(self.zoned()) };
        let made = devices.format("test", force).map(drop);
        devices.close().unwrap();
        made
    }

    fn open(&self, options: DmzOptions) -> Result<DmzVolume, DmzError> {
        DmzVolume::open(self.devices(), options).map(|opened| opened.device)
    }

    fn findings(&self) -> Vec<Finding> {
        let devices = self.devices();
        let found = devices.inspect().unwrap().inspection.findings;
        devices.close().unwrap();
        found
    }
}

/// The image stays locked until the last handle has gone.
fn close(device: DmzVolume) {
    device.close().unwrap();
    drop(device);
}

#[test]
fn what_was_flushed_is_there_after_the_devices_were_left() {
    keeps_what_was_flushed(&Folder::new(), &DmzOptions::default());
}

#[test]
fn what_was_flushed_is_there_on_one_device_with_conventional_zones() {
    keeps_what_was_flushed(&Folder::single(), &DmzOptions::default());
}

#[test]
fn what_was_flushed_is_there_in_a_cache_with_checksums() {
    keeps_what_was_flushed(&Folder::summed(), &DmzOptions::default());
}

/// Five of the twelve chunks have blocks of a journal, which is too large for the cache.
#[test]
fn what_was_flushed_is_there_beside_an_appended_journal() {
    let (first, end) = (4 * ZONE + 100, 8 * ZONE + 100);
    let ranges = Setting::Ranges(vec![(first * BLOCK, end * BLOCK)]);
    let options = with_journal(JournalMode::Set, ranges);
    let folder = Folder::new();
    keeps_what_was_flushed(&folder, &options);
    let devices = folder.devices();
    assert!(devices.inspect().unwrap().inspection.appended_blocks() > 0);
    devices.close().unwrap();
}

fn with_journal(journal: JournalMode, ranges: Setting) -> DmzOptions {
    DmzOptions {
        engine: Options { journal, ..Options::default() },
        ranges,
        ..DmzOptions::default()
    }
}

/// Twelve chunks share a cache of eight zones, so every round reclaims; then the process "dies".
fn keeps_what_was_flushed(folder: &Folder, options: &DmzOptions) {
    folder.make(false).unwrap();
    let blocks = 12 * ZONE;
    let mut all = Versions::new(blocks);
    let mut rng = Rng::new(7);
    let mut reclaimed = 0;
    for _ in 0..4 {
        let device = folder.open(options.clone()).unwrap();
        all.verify(&device);
        for _ in 0..60 {
            let at = rng.below(blocks - 8);
            for block in at..at + 1 + rng.below(8) {
                all.write(&device, block, 1, rng.below(20) == 0);
            }
            if rng.below(10) == 0 {
                all.flush(&device);
            }
        }
        let stats = device.details().stats;
        reclaimed += Action::ALL.map(|action| stats.reclaims(action).completed).iter().sum::<u64>();
        // Without a close, as if the process had been killed.
    }
    assert!(reclaimed > 0, "it came to that");
    let device = folder.open(options.clone()).unwrap();
    all.verify(&device);
    close(device);
    assert_eq!(folder.findings(), []);
    let checked = folder.devices().inspect().unwrap();
    assert!(!checked.inspection.has_to_recover(), "a volume that was closed is whole");
}

#[test]
fn requests_at_any_byte_and_trims() {
    let folder = Folder::new();
    folder.make(false).unwrap();
    let device = folder.open(DmzOptions::default()).unwrap();
    let size = usize::try_from(3 * ZONE * BLOCK).unwrap();
    let mut model = vec![0; size];
    let mut rng = Rng::new(3);
    for step in 0..200_u32 {
        let at = usize::try_from(rng.below(3 * ZONE * BLOCK - 40_000)).unwrap();
        let len = usize::try_from(1 + rng.below(40_000)).unwrap();
        let offset = u64::try_from(at).unwrap();
        if step % 5 == 0 {
            device.trim(offset, u64::try_from(len).unwrap()).unwrap();
            model[at..at + len].fill(0);
        } else {
            let byte = u8::try_from(step).unwrap();
            device.write(offset, &vec![byte; len], step % 7 == 0).unwrap();
            model[at..at + len].fill(byte);
        }
        let mut found = vec![0xEE; len + 100];
        device.read(offset, &mut found).unwrap();
        assert_eq!(found, model[at..at + len + 100], "step {step}");
    }
    assert_eq!(device.read(device.size(), &mut [0; 1]), Err(Status::InvalidField));
    let last = device.size() - BLOCK;
    assert!(!device.extent(last, BLOCK).unwrap().mapped);
    assert!(device.extent(0, BLOCK).unwrap().mapped);
    device.close().unwrap();
    assert_eq!(device.read(0, &mut [0; 1]), Err(Status::Poisoned));
}

#[test]
fn what_cannot_carry_a_volume_is_refused() {
    let folder = Folder::new();
    let no_zones = VolumeBacking::create(&folder.path("plain.img"), 1 << 20).unwrap();
    let cache = DmzCache::to_make(folder.cache(), false);
    let devices = DmzDevices { cache: Some(cache), zoned: no_zones };
    assert!(matches!(devices.format("", false), Err(DmzError::NotZoned)));
    drop(devices);
    assert!(matches!(
        folder.open(DmzOptions::default()),
        Err(DmzError::Mount(MountError::NoRoot(_)))
    ));

    let capacity = Folder::with(&ZnsConfig { capacity_blocks: 192, ..config() }, 10 * ZONE);
    let error = capacity.make(false).unwrap_err();
    assert!(matches!(error, DmzError::Capacity { zone: 0, capacity: 192, size: 256 }));
    let limits = ZoneLimits { max_open: Some(5), max_active: Some(14) };
    let active = Folder::with(&ZnsConfig { limits, ..config() }, 10 * ZONE);
    let error = active.make(false).unwrap_err();
    assert!(matches!(error, DmzError::Active { limit: 14, zones: 32 }));
    let small = Folder::with(&config(), 2 * ZONE);
    let few = LayoutError::Conventional { found: 2, needed: 3 };
    assert!(
        matches!(small.make(false), Err(DmzError::Mount(MountError::Layout(found))) if found == few)
    );
    let odd = Folder::with(&config(), 10 * ZONE + 1);
    let few = Folder::with(&with_conventional(&config(), 2), 10 * ZONE);
    let none = LayoutError::Conventional { found: 2, needed: 3 };
    assert!(
        matches!(few.make(false), Err(DmzError::Mount(MountError::Layout(found))) if found == none)
    );
    let without = Folder { has_cache: false, ..Folder::new() };
    assert!(matches!(without.make(false), Err(DmzError::NoCache)));
    let both = Folder { has_cache: true, ..Folder::single() };
    assert!(matches!(both.make(false), Err(DmzError::CacheBeside { conventional: 10 })));
    assert!(matches!(odd.make(false), Err(DmzError::CacheSize { .. })));
}

#[test]
fn what_devices_hold_is_not_overwritten_unless_it_is_forced() {
    let folder = Folder::new();
    let zoned = folder.zoned();
    zoned.write(0, &[1; 4096], true).unwrap();
    zoned.close().unwrap();
    drop(zoned);
    assert!(matches!(folder.make(false), Err(DmzError::Holds { device: "zoned device", .. })));
    folder.make(true).unwrap();
    assert!(matches!(folder.make(false), Err(DmzError::Holds { .. })));
    let single = Folder::single();
    single.make(false).unwrap();
    assert!(matches!(single.make(false), Err(DmzError::Holds { device: "zoned device", .. })));
    single.make(true).unwrap();
}

/// Somebody reset a zone behind the back of the volume.
#[test]
fn a_zone_that_lost_its_data_is_refused_and_given_up_by_a_repair() {
    for folder in [Folder::new(), Folder::single()] {
        gives_up_what_a_zone_lost(&folder);
    }
}

fn gives_up_what_a_zone_lost(folder: &Folder) {
    folder.make(false).unwrap();
    let device = folder.open(DmzOptions::default()).unwrap();
    for chunk in 0..8 {
        device.write(chunk * ZONE * BLOCK, &content(chunk * ZONE, 1), false).unwrap();
    }
    device.flush().unwrap();
    // The next chunk waits until reclaim has moved another one to a zone.
    device.write(8 * ZONE * BLOCK, &content(8 * ZONE, 1), true).unwrap();
    close(device);
    let devices = folder.devices();
    let inspection = devices.inspect().unwrap().inspection;
    let moved = (0..8).find_map(|chunk| {
        let data = inspection.zones_of(chunk).0?;
        let geometry = inspection.geometry();
        let zone = u32::try_from(geometry.start(data) / ZONE).unwrap();
        let is_sequential = geometry.kind(data) == ZoneKind::Sequential;
        is_sequential.then_some((u64::from(chunk), zone))
    });
    let (chunk, zone) = moved.expect("a chunk in a sequential zone");
    devices.close().unwrap();
    drop(devices);
    let zoned = folder.zoned();
    zoned.manage(Select::One(ZoneId::new(zone)), ZoneAction::Reset).unwrap();
    zoned.flush().unwrap();
    zoned.close().unwrap();
    drop(zoned);
    let refused = folder.open(DmzOptions::default());
    assert!(matches!(refused, Err(DmzError::Mount(MountError::Lost(_)))));
    assert!(matches!(folder.findings()[..], [Finding::Lost(_)]));
    folder.devices().repair().unwrap();
    assert_eq!(folder.findings(), []);
    let device = folder.open(DmzOptions::default()).unwrap();
    for other in 0..9 {
        let mut found = vec![0xEE; 4096];
        device.read(other * ZONE * BLOCK, &mut found).unwrap();
        let version = u64::from(other != chunk);
        assert_eq!(found, content(other * ZONE, version), "chunk {other}");
    }
    close(device);
}

/// A range that the user gives is the journal, and the detector is not asked.
#[test]
fn a_journal_that_is_named_is_pinned() {
    let folder = Folder::new();
    folder.make(false).unwrap();
    let ranges = Setting::Ranges(vec![(ZONE * BLOCK, 2 * ZONE * BLOCK)]);
    let options = with_journal(JournalMode::One, ranges);
    let device = folder.open(options.clone()).unwrap();
    assert_eq!(device.details().pinned, BTreeSet::new());
    device.write(ZONE * BLOCK, &content(ZONE, 1), true).unwrap();
    assert_eq!(device.details().pinned, BTreeSet::from([1]));
    close(device);
    let device = folder.open(options).unwrap();
    assert_eq!(device.details().pinned, BTreeSet::from([1]), "the pin is found again at attach");
    close(device);
}
