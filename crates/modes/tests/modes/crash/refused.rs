//! What these modes do not have is refused, in words.

use onefold_format::volume::{VolumeMode, root_addresses};
use onefold_modes::format;
use onefold_units::Rng;
use onefold_volume::{MountError, ZoneError, rebuild, scrub};

use super::setups::{partitioned, random};
use crate::harness::disk::Disk;
use crate::harness::image::{Image, block};
use crate::harness::setup::OPTIONS;
use crate::harness::stamp::BLOCK;
use crate::harness::zones::{ZoneSetup, Zones};

/// Nothing but a root says which tables count.
#[test]
fn a_volume_without_roots_is_not_rebuilt() {
    let setup = random(VolumeMode::Sung, &mut Rng::new(1));
    let mut image = setup.format().view().clone();
    for at in root_addresses(setup.backing_blocks) {
        image.set(at, block(&[0x55; BLOCK]));
    }
    let mut disk = Disk::new(image);
    let refused = rebuild(&mut disk, setup.file_blocks, setup.options);
    assert!(matches!(refused, Err(MountError::NoRebuild(_))), "{refused:?}");
}

/// Data has no checksums to compare with.
#[test]
fn modes_without_checksums_are_not_scrubbed() {
    let setup = partitioned(VolumeMode::Sung, 64 * 134, 2100, OPTIONS);
    let refused = scrub(&mut setup.format(), setup.backing_blocks, true, |_| ());
    assert!(matches!(refused, Err(MountError::NoSums(_))), "{refused:?}");
}

#[test]
fn zones_are_refused() {
    let zones = ZoneSetup { size: 150, capacity: 64, limit: None, conventional: 0 };
    let mut image = Image::new(70 * 150);
    image.zones = Some(Zones::new(zones, image.blocks()));
    let label = partitioned(VolumeMode::Sung, 9000, 900, OPTIONS).label();
    let refused = format(&mut Disk::new(image), &label);
    let expected = ZoneError::Mode { mode: VolumeMode::Sung };
    assert!(matches!(refused, Err(MountError::Zones(found)) if found == expected));
}
