//! A volume on an emulated SSD in the same process, whose cleaner moves blocks by remap.

use crate::common::{Folder, roomy};
use onefold_device::{BlockDevice, VolumeBacking, VolumeDevice, VolumeOptions, VolumeSpec};
use onefold_ftl::RemapScheme;
use onefold_units::{PAGE_BYTES, Rng};
use onefold_volume::{Sent, Stats};

const BLOCK: u64 = PAGE_BYTES;

/// What a block holds after a write of it.
fn content(lba: u64, version: u64) -> Vec<u8> {
    let word = (lba << 32 | version).to_le_bytes();
    word.iter().copied().cycle().take(usize::try_from(BLOCK).unwrap()).collect()
}

fn spec() -> VolumeSpec {
    VolumeSpec { op: 0.25, segment_bytes: Some(64 * BLOCK), ..VolumeSpec::default() }
}

fn options(remap: bool) -> VolumeOptions {
    let mut options = VolumeOptions::default();
    options.remap = remap;
    options.engine.batch_blocks = 32;
    options.engine.checkpoint_blocks = 1024;
    options
}

/// Fills a volume and overwrites it at random, opens it again without closing it, and compares what it holds. Gives what
/// it counted, and pages that its SSD programmed for the fallback of remaps.
fn overwrite(scheme: RemapScheme, remap: bool) -> (Stats, u64) {
    let folder = Folder::new(&roomy(scheme));
    let ssd = folder.open().device;
    let backing = VolumeBacking::ssd(ssd.clone());
    VolumeDevice::format(&backing, &spec(), false).unwrap();
    let device = VolumeDevice::open(backing.clone(), options(remap)).unwrap().device;
    let blocks = device.size() / BLOCK;
    let mut versions = vec![0; usize::try_from(blocks).unwrap()];
    let mut rng = Rng::new(7);
    for n in 0..3 * blocks {
        let lba = if n < blocks { n } else { rng.below(blocks) };
        device.write(lba * BLOCK, &content(lba, n), false).unwrap();
        versions[usize::try_from(lba).unwrap()] = n;
    }
    device.flush().unwrap();
    let stats = device.details().stats;
    drop(device);
    let programs = ssd.details().unwrap().ftl.programs.of(onefold_units::Cause::Fallback);
    let device = VolumeDevice::open(backing, options(remap)).unwrap().device;
    let mut buffer = vec![0; usize::try_from(BLOCK).unwrap()];
    for (lba, version) in (0..).zip(&versions) {
        device.read(lba * BLOCK, &mut buffer).unwrap();
        assert!(buffer == content(lba, *version), "block {lba}");
    }
    device.close().unwrap();
    drop((device, ssd));
    assert!(folder.is_whole());
    (stats, programs)
}

#[test]
fn the_cleaner_of_a_volume_on_an_ssd_copies_nothing() {
    let (stats, fallbacks) = overwrite(RemapScheme::Lh, true);
    assert!(stats.cleaned_segments > 50 && stats.remapped > 500, "{stats:?}");
    assert_eq!((stats.sent(Sent::Cleaning), stats.failed_remaps, fallbacks), (0, 0, 0));
}

#[test]
fn it_copies_where_it_cannot_remap_or_is_told_to() {
    for (scheme, remap) in [(RemapScheme::None, true), (RemapScheme::Lh, false)] {
        let (stats, fallbacks) = overwrite(scheme, remap);
        assert!(stats.sent(Sent::Cleaning) > 500, "{stats:?}");
        assert_eq!((stats.remapped, stats.failed_remaps, fallbacks), (0, 0, 0));
    }
}
