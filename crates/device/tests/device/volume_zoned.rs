//! A volume on an emulated SSD with zones, or on a block device with zones: made, written, cleaned, ended without notice, opened
//! again, checked.

use std::path::PathBuf;

use crate::common::versions::{self, Versions};
use crate::common::{TEXT, with_conventional, zones};
use onefold_device::{
    Access, BlockDevice, Image, Journals, VolumeBacking, VolumeDevice, VolumeError, VolumeOptions,
    VolumeSpec, ZnsConfig, ZoneLimits, ZonedDevice,
};
use onefold_format::volume::VolumeMode;
use onefold_units::Rng;
use onefold_volume::{Backing, Sent, inspect};

const BLOCK: u64 = 4096;

/// 40 zones of 1 MiB of which 768 KiB can be written.
fn config() -> ZnsConfig {
    let limits = ZoneLimits { max_open: Some(5), max_active: Some(6) };
    ZnsConfig { limits, ..zones(40, 192) }
}

/// Where zones are.
enum Place {
    /// In an image in this folder.
    Image(tempfile::TempDir, Box<ZnsConfig>),
    Device(PathBuf),
}

impl Place {
    fn new() -> Self {
        Self::of(&config())
    }

    fn of(config: &ZnsConfig) -> Self {
        let this = Self::Image(tempfile::tempdir().unwrap(), Box::new(*config));
        drop(Image::create(&this.path(), config, TEXT.to_owned()).unwrap());
        this
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Image(folder, _) => folder.path().join("zoned.img"),
            Self::Device(path) => path.clone(),
        }
    }

    fn backing(&self) -> VolumeBacking {
        let Self::Image(_, config) = self else {
            return VolumeBacking::open(&self.path(), true).unwrap();
        };
        let image = Image::open(&self.path(), Access::Exclusive).unwrap();
        VolumeBacking::zoned(ZonedDevice::open(image, config).unwrap().device)
    }

    fn make(&self, force: bool) -> Result<(), VolumeError> {
        let backing = self.backing();
        let made = VolumeDevice::format(&backing, &spec(), force).map(drop);
        backing.close().unwrap();
        made
    }

    fn open(&self) -> VolumeDevice {
        VolumeDevice::open(self.backing(), VolumeOptions::default()).unwrap().device
    }

    /// The volume and the device below it are whole.
    fn check(&self) {
        let mut backing = self.backing();
        let blocks = backing.blocks();
        let found = inspect(&mut backing, blocks, true).unwrap();
        assert_eq!(found.found, 0, "{:?}", found.findings);
        drop(backing);
        let Self::Image(_, config) = self else { return };
        let image = Image::open(&self.path(), Access::ReadOnly).unwrap();
        let report = onefold_device::check_zoned(&image, config, Some(&mut |_, _| {})).unwrap();
        assert!(!report.is_damaged(), "{report:?}");
    }
}

fn spec() -> VolumeSpec {
    VolumeSpec { op: 0.2, ..VolumeSpec::default() }
}

#[test]
fn what_was_flushed_survives_cleaning_and_ends_of_the_process() {
    keeps_what_was_flushed(&Place::new());
}

/// Labels and roots in conventional zones, and some of the data; the rest in zones with a write pointer.
#[test]
fn a_volume_on_conventional_and_sequential_zones_keeps_what_was_flushed() {
    let config = ZnsConfig { zones: 30, ..config() };
    let place = Place::of(&with_conventional(&config, 6));
    keeps_what_was_flushed(&place);
    let device = place.backing();
    let found = device.as_zoned().unwrap().report(onefold_units::ZoneId::new(0), None).unwrap();
    assert!(found.zones[..6].iter().all(|zone| zone.conventional && zone.write_pointer.is_none()));
    let details = device.as_zoned().unwrap().details().unwrap();
    assert!(details.conventional.unwrap().stored_bytes > 4 * 4096, "labels, roots and data");
}

/// Conventional zones are trimmed where others are reset.
#[test]
fn a_trim_gives_conventional_blocks_back() {
    let place = Place::of(&with_conventional(&config(), 6));
    let mut backing = place.backing();
    Backing::write(&mut backing, 256, &[7; 3 * 4096]).unwrap();
    Backing::write(&mut backing, 6 * 256, &[8; 4096]).unwrap();
    let stored = |backing: &VolumeBacking| {
        backing.as_zoned().unwrap().details().unwrap().conventional.unwrap().stored_bytes
    };
    assert_eq!(stored(&backing), 3 * 4096);
    Backing::trim(&mut backing, 256, 2).unwrap();
    assert_eq!(stored(&backing), 4096);
    let mut found = [0xEE; 3 * 4096];
    Backing::read(&mut backing, 256, &mut found).unwrap();
    assert!(found[..8192] == [0; 8192] && found[8192..] == [7; 4096]);
    assert!(Backing::trim(&mut backing, 6 * 256, 1).is_err());
}

/// In a guest, as few kernels of hosts have zones:
/// `ONEFOLD_ZONED_DEVICE=/dev/nullb0 cargo test -p onefold-device --test device volume_zoned:: -- --ignored`.
#[test]
#[ignore = "needs a block device with zones, named by ONEFOLD_ZONED_DEVICE, whose content is lost"]
fn a_block_device_with_zones_keeps_what_was_flushed() {
    let path = std::env::var_os("ONEFOLD_ZONED_DEVICE").expect("ONEFOLD_ZONED_DEVICE names one");
    let place = Place::Device(path.into());
    place.backing().zones().expect("the kernel reports its zones").expect("it has zones");
    keeps_what_was_flushed(&place);
}

/// Overwrites most of the space several times; each round ends without notice or in good order.
fn keeps_what_was_flushed(folder: &Place) {
    folder.make(true).unwrap();
    let mut rng = Rng::new(11);
    let mut device = folder.open();
    let blocks = device.size() / BLOCK;
    let mut all = Versions::new(blocks);
    let mut cleaned = 0;
    for round in 0..6 {
        for n in 0..blocks / 4 {
            all.write(&device, rng.below(blocks - 8), 1 + rng.below(8), false);
            if n % 97 == 0 {
                all.flush(&device);
            }
        }
        cleaned += device.details().stats.cleaned_segments;
        if round % 3 == 2 {
            all.flush(&device);
            device.close().unwrap();
        }
        drop(device);
        folder.check();
        device = folder.open();
        all.verify(&device);
    }
    assert!(cleaned > 0, "the test has to make cleaning work");
    device.close().unwrap();
}

#[test]
fn zones_decide_what_a_volume_is_like() {
    let folder = Place::new();
    let label = VolumeSpec::default().label_on(&folder.backing()).unwrap();
    assert_eq!((label.segment_blocks, label.devices[0].zone_blocks), (192, 256));
    assert_eq!(label.devices[0].blocks, 40 * 256);
    for (spec, part) in [
        (VolumeSpec { mode: VolumeMode::Sung, ..VolumeSpec::default() }, "overwrites in place"),
        (
            VolumeSpec { segment_bytes: Some(1 << 20), ..VolumeSpec::default() },
            "leave out --segment",
        ),
    ] {
        let error = spec.label_on(&folder.backing()).map(drop).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn data_in_zones_is_not_lost_without_force() {
    let folder = Place::new();
    let backing = folder.backing();
    backing.as_zoned().unwrap().write(30 * 256, &[7; 4096], false).unwrap();
    backing.close().unwrap();
    drop(backing);
    let error = folder.make(false).unwrap_err();
    assert!(error.to_string().contains("holds data in zones"), "{error}");
    folder.make(true).unwrap();
    let error = folder.make(false).unwrap_err();
    assert!(error.to_string().contains("holds a volume"), "{error}");
    folder.check();
}

/// The first two blocks of a device that is the journal of an ext4, with a ring of blocks 2 to 299 that is in use.
fn journal_device() -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let fields = [(0x04, 400_u32), (0x18, 2), (0x38, 0xEF53), (0x60, 0x8)];
    for (at, value) in fields {
        bytes[1024 + at..][..4].copy_from_slice(&value.to_le_bytes());
    }
    let fields = [(0, 0xC03B_3998_u32), (4, 4), (0xC, 4096), (0x10, 300), (0x14, 2), (0x1C, 2)];
    for (at, value) in fields {
        bytes[4096 + at..][..4].copy_from_slice(&value.to_be_bytes());
    }
    bytes
}

/// A journal that is made on a volume in use is found; its blocks go to zones of their own, which is counted, and the volume is whole.
#[test]
fn a_journal_gets_zones_of_its_own() {
    let place = Place::new();
    place.make(false).unwrap();
    let device = place.open();
    let journal = || device.details().journal.expect("it is looked for on zones");
    assert!(journal().ranges.is_empty());
    device.write(0, &journal_device(), true).unwrap();
    // It is read a second later.
    let tries = (0..600).take_while(|_| journal().ranges.is_empty());
    tries.for_each(|_| std::thread::sleep(std::time::Duration::from_millis(100)));
    assert_eq!(journal().ranges.len(), 2, "ring and header");
    for lap in 1..4 {
        for block in 2..300 {
            device.write(block * BLOCK, &versions::content(block, lap), block % 10 == 0).unwrap();
        }
    }
    device.flush().unwrap();
    let details = device.details();
    assert_eq!(details.stats.sent(Sent::Journal) + details.stats.absorbed, 3 * 298);
    assert!((2..=4).contains(&journal().segments), "{:?}", journal());
    assert_eq!((details.stats.journal_copied, details.stats.journal_demotions), (0, 0));
    device.close().unwrap();
    drop(device);
    place.check();

    let mut options = VolumeOptions::default();
    options.journals = Journals::Off;
    let device = VolumeDevice::open(place.backing(), options.clone()).unwrap().device;
    assert!(device.details().journal.is_none());
    device.close().unwrap();
    drop(device);
    options.journals = Journals::Set(onefold_journal::Setting::Off);
    let device = VolumeDevice::open(place.backing(), options).unwrap().device;
    assert!(device.details().journal.is_some_and(|journal| journal.ranges.is_empty()));
    device.close().unwrap();
    drop(device);
}
