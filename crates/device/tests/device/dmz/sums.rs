//! A cache with checksums: rot is an error, and who does not know of checksums takes nothing for his own.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use onefold_format::{CacheLayout, DmzRoot};
use onefold_zoned::{Inspection, Place};

use super::*;

impl Folder {
    fn cache_file(&self) -> File {
        let path = self.path("cache.img");
        OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    /// A byte of the cache rots.
    fn flip(&self, offset: u64) {
        let (file, mut byte) = (self.cache_file(), [0]);
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 8], offset).unwrap();
    }

    fn cache_block(&self, block: u64) -> [u8; 4096] {
        let mut found = [0; 4096];
        self.cache_file().read_exact_at(&mut found, block * BLOCK).unwrap();
        found
    }

    fn inspection(&self) -> Inspection {
        let devices = self.devices();
        let inspection = devices.inspect().unwrap().inspection;
        devices.close().unwrap();
        inspection
    }
}

/// Makes a volume with blocks 0 to 9 written. Gives where block 4 lies in the cache file.
fn with_ten_blocks(folder: &Folder) -> u64 {
    folder.make(false).unwrap();
    let device = folder.open(DmzOptions::default()).unwrap();
    for block in 0..10 {
        device.write(block * BLOCK, &content(block, 1), false).unwrap();
    }
    close(device);
    let Place::At { device: 0, block, .. } = folder.inspection().place(4) else {
        panic!("it is in the cache")
    };
    (block + u64::from(folder.checksums)) * BLOCK
}

#[test]
fn rot_in_the_cache_is_an_error_and_not_wrong_bytes() {
    let folder = Folder::summed();
    let at = with_ten_blocks(&folder);
    folder.flip(at + 1000);
    let devices = folder.devices();
    let mut checked = devices.inspect().unwrap();
    assert_eq!(checked.read_all(5), (10, 1, vec![4]));
    let scan = devices.cache.as_ref().unwrap().scan().unwrap();
    assert_eq!((scan.differing, scan.unreadable, scan.unknown), (1, 0, 0));
    devices.close().unwrap();
    drop((checked, devices));

    let device = folder.open(DmzOptions::default()).unwrap();
    let mut found = vec![0; 4096];
    assert_eq!(device.read(4 * BLOCK, &mut found), Err(Status::MediaError));
    assert!(device.details().cache_sums.unwrap().damaged_reads > 0);
    for block in [0, 3, 5, 9] {
        device.read(block * BLOCK, &mut found).unwrap();
        assert_eq!(found, content(block, 1));
    }
    device.write(4 * BLOCK, &content(4, 2), false).unwrap();
    device.read(4 * BLOCK, &mut found).unwrap();
    assert_eq!(found, content(4, 2));
    close(device);
    assert_eq!(folder.devices().cache.unwrap().scan().unwrap().differing, 0);
}

/// What the option is for: without it rot is read as if it had been written.
#[test]
fn without_checksums_rot_is_not_noticed() {
    let folder = Folder::new();
    let at = with_ten_blocks(&folder);
    folder.flip(at + 1000);
    let device = folder.open(DmzOptions::default()).unwrap();
    let mut found = vec![0; 4096];
    device.read(4 * BLOCK, &mut found).unwrap();
    assert_ne!(found, content(4, 1));
    assert_eq!(device.details().cache_sums, None);
    close(device);
}

/// Metadata has checksums of its own and lies twice: where one set rots the other one counts, as without these.
#[test]
fn rot_of_metadata_is_made_good_from_the_other_set() {
    let folder = Folder::summed();
    with_ten_blocks(&folder);
    let set = folder.inspection().layout.set_block(folder.inspection().geometry(), 0);
    for block in [0, 1] {
        folder.flip((1 + set + block) * BLOCK + 20);
        assert_ne!(folder.findings(), []);
        let device = folder.open(DmzOptions::default()).unwrap();
        let mut found = vec![0; 4096];
        device.read(9 * BLOCK, &mut found).unwrap();
        assert_eq!(found, content(9, 1));
        close(device);
        assert_eq!(folder.findings(), []);
        assert_eq!(folder.devices().cache.unwrap().scan().unwrap().differing, 0);
    }
}

/// The kernel, `dmzadm` and older builds look for a root record in the first block, and then in the first ones of zones.
#[test]
fn who_does_not_know_of_checksums_finds_no_volume() {
    let whole_zones = Folder { checksums: true, ..Folder::with(&config(), 10 * ZONE) };
    for folder in [Folder::summed(), whole_zones] {
        with_ten_blocks(&folder);
        let length = folder.cache_file().metadata().unwrap().len();
        for zone in 0..length / BLOCK / ZONE {
            assert!(DmzRoot::decode(&folder.cache_block(zone * ZONE)).is_err(), "zone {zone}");
        }
        assert!(DmzRoot::decode(&folder.cache_block(1)).is_ok());
        let before = std::fs::read(folder.path("cache.img")).unwrap();
        let plain = DmzCache::to_make(folder.cache(), false);
        let zoned = VolumeBacking::zoned(folder.zoned());
        let old = DmzDevices { cache: Some(plain), zoned };
        let refused = DmzVolume::open(old.clone(), DmzOptions::default()).map(drop).unwrap_err();
        let is_no_volume =
            matches!(refused, DmzError::CacheSize { .. } | DmzError::Mount(MountError::NoRoot(_)));
        assert!(is_no_volume, "{refused}");
        old.close().unwrap();
        assert_eq!(std::fs::read(folder.path("cache.img")).unwrap(), before);
        assert!(DmzCache::is_one(&folder.cache()));
    }
}

/// Whatever the file holds is kept unless it is forced, also where only checksums will lie.
#[test]
fn what_a_cache_holds_is_not_overwritten_by_checksums() {
    let folder = Folder::summed();
    let layout = CacheLayout::new(10 * ZONE);
    for block in [0, 1, layout.bits_at(), layout.sums_at(), layout.copy_at()] {
        folder.flip(block * BLOCK + 77);
        assert!(matches!(folder.make(false), Err(DmzError::Holds { device: "cache", .. })));
        folder.flip(block * BLOCK + 77);
    }
    folder.flip(500 * BLOCK);
    folder.make(true).unwrap();
    let cache = folder.devices().cache.unwrap();
    assert_eq!((cache.scan().unwrap().differing, cache.sums().unwrap().dirty_regions), (0, 0));
    drop(cache);
    assert!(matches!(folder.make(false), Err(DmzError::Holds { device: "cache", .. })));
}

/// A volume without checksums on what had some: nothing of them is left that would be found where its root record rots.
#[test]
fn a_volume_without_checksums_forgets_those_of_the_last_one() {
    let folder = Folder { checksums: true, ..Folder::with(&config(), 10 * ZONE) };
    folder.make(false).unwrap();
    let plain = Folder { checksums: false, ..folder };
    plain.make(true).unwrap();
    plain.flip(20);
    assert!(plain.devices().cache.unwrap().sums().is_none());
    close(plain.open(DmzOptions::default()).unwrap());
    assert_eq!(plain.findings(), []);
}

/// The largest number of zones that leaves room for the checksums.
#[test]
fn an_odd_cache_with_checksums_has_whole_zones() {
    for (blocks, zones) in [(10 * ZONE, 9), (10 * ZONE + 5, 9), (10 * ZONE + 6, 10)] {
        let folder = Folder { checksums: true, ..Folder::with(&config(), blocks) };
        folder.make(false).unwrap();
        assert_eq!(folder.inspection().geometry().device(0).conventional, zones, "{blocks}");
    }
}

#[test]
fn a_cache_of_no_whole_zones_is_refused_as_without_checksums() {
    let folder = Folder::new();
    let cache = DmzCache::create(&folder.path("odd.img"), (10 * ZONE + 1) * BLOCK, true).unwrap();
    let devices = DmzDevices { cache: Some(cache), zoned: VolumeBacking::zoned(folder.zoned()) };
    assert!(matches!(devices.format("", false), Err(DmzError::CacheSize { .. })));
    devices.close().unwrap();
}

/// A device with a header in its first block is told by that alone: what is left at the end of it may be anybody's.
#[test]
fn what_is_left_at_the_end_of_a_device_tells_nothing() {
    let folder = Folder::summed();
    folder.make(false).unwrap();
    assert!(DmzCache::is_one(&folder.cache()));
    folder.cache_file().write_all_at(&[0; 4096], 0).unwrap();
    assert!(!DmzCache::is_one(&folder.cache()));
    assert!(DmzCache::open(folder.cache(), false).unwrap().sums().is_some(), "its copy counts");
}
