//! The streams of a volume on an emulated SSD: each has flash blocks of its own there.

use crate::common::{Folder, roomy};
use onefold_device::{BlockDevice, VolumeBacking, VolumeDevice, VolumeOptions, VolumeSpec};
use onefold_ftl::RemapScheme;
use onefold_units::{Cause, PAGE_BYTES, Rng};

const BLOCK: u64 = PAGE_BYTES;

/// Writes to a volume of which a tenth is hot, on an SSD with so many streams. Gives the pages that the SSD programmed for the
/// volume, and for its garbage collection.
fn work(streams: u32) -> (u64, u64) {
    let mut config = roomy(RemapScheme::None);
    config.ftl.streams = streams;
    let folder = Folder::new(&config);
    let ssd = folder.open().device;
    let backing = VolumeBacking::ssd(ssd.clone());
    let spec = VolumeSpec { op: 0.25, segment_bytes: Some(64 * BLOCK), ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false).unwrap();
    let mut options = VolumeOptions::default();
    options.engine.batch_blocks = 32;
    options.engine.checkpoint_blocks = 1024;
    options.engine.hot_cold = true;
    let device = VolumeDevice::open(backing, options).unwrap().device;
    let blocks = device.size() / BLOCK;
    let mut rng = Rng::new(7);
    let block = vec![7; usize::try_from(BLOCK).unwrap()];
    for n in 0..3 * blocks {
        let lba = match n {
            _ if n < blocks => n,
            _ if rng.below(10) < 9 => rng.below(blocks / 10),
            _ => rng.below(blocks),
        };
        device.write(lba * BLOCK, &block, false).unwrap();
    }
    device.flush().unwrap();
    let programs = ssd.details().unwrap().ftl.programs;
    device.close().unwrap();
    drop((device, ssd));
    assert!(folder.is_whole());
    (programs.of(Cause::User), programs.of(Cause::Gc))
}

/// Log segments of one stream die together. With flash blocks of their own few pages of them are
/// copied; where batches of all streams lie in the same flash blocks, more than every fourth is.
/// Threads decide which batch is sent first, so counts vary: from 4 % to 11 % of the user's pages
/// with flash blocks of their own, from 34 % to 48 % without.
#[test]
fn streams_of_a_volume_have_flash_blocks_of_their_own() {
    let (user, mixed) = work(1);
    assert!(mixed > user / 4, "one stream: {mixed} of {user} pages are copied");
    // Of the host, hot, of the cleaner, of the map.
    let (_, apart) = work(4);
    assert!(apart < mixed / 2, "{mixed} pages are copied with one stream, {apart} with four");
}
