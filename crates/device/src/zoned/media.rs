//! The media of a zoned namespace in an image file: a part of it for each kind of zones.

use onefold_nand::{Geometry, MediaError};
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsLayout, ZnsMedia, ZnsRecoverError};
use onefold_units::SuperblockId;

use crate::image::Image;
use crate::media::FileMedia;

/// The parts of an image that is one of `config`; `make` gets each, its geometry, and its bytes of NVRAM.
pub(super) fn parts<M>(
    image: &Image,
    config: &ZnsConfig,
    make: impl Fn(FileMedia, Geometry, u64) -> Result<M, MediaError>,
) -> Result<ZnsMedia<M>, ZnsRecoverError> {
    let layout = ZnsLayout::new(config)?;
    let part = |geometry: Geometry, first, at, bytes| {
        let medium = FileMedia::on(image, image.layout().part(first, at, bytes), geometry);
        make(medium, geometry, bytes)
    };
    let conventional = config.conventional.zip(layout.conventional()).map(|(device, share)| {
        part(device.geometry, share.first_superblock, share.nvram_at, share.nvram_bytes)
    });
    Ok(ZnsMedia {
        sequential: part(*layout.geometry(), SuperblockId::new(0), 0, layout.nvram_bytes())?,
        conventional: conventional.transpose()?,
    })
}

/// The medium of each part of an open namespace, always in the same order.
pub(super) fn of(zns: &mut Zns<FileMedia>) -> impl Iterator<Item = &mut FileMedia> {
    let (sequential, conventional) = zns.media_mut();
    [Some(sequential), conventional].into_iter().flatten()
}
