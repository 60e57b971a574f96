//! A volume of whatever mode its label says.

use onefold_format::volume::{VolumeLabel, VolumeMode};
use onefold_volume::{
    Backing, Engine, Inspection, MountError, Options, Recovery, mount, mount_read_only, read_label,
};

use crate::partitioned;

/// Makes an empty volume. What the backing held is lost.
///
/// # Errors
/// The geometry cannot work, or the backing failed.
pub fn format(backing: &mut dyn Backing, label: &VolumeLabel) -> Result<(), MountError> {
    match label.mode {
        VolumeMode::Log => onefold_volume::format(backing, label),
        VolumeMode::Sung | VolumeMode::Han => partitioned::format(backing, label),
    }
}

/// Opens the volume on a backing with so many blocks.
///
/// # Errors
/// It is none, or damaged. Nothing was changed then, unless the backing failed.
pub fn open(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<(Box<dyn Engine>, Recovery), MountError> {
    let label = read_label(backing, blocks)?;
    Ok(match label.mode {
        VolumeMode::Log => {
            let (volume, recovery) = mount(backing, blocks, options)?;
            (Box::new(volume), recovery)
        }
        VolumeMode::Sung | VolumeMode::Han => {
            let (volume, recovery) = partitioned::mount(backing, blocks, &label, options)?;
            (Box::new(volume), recovery)
        }
    })
}

/// Opens the volume for reading only: nothing is written. What is missing although it had been
/// durable, and everything after it, is left out; the number of the last batch or transaction that
/// was durable says whether there is any.
///
/// # Errors
/// It is none, or damaged.
pub fn open_read_only(
    backing: &mut dyn Backing,
    blocks: u64,
    options: Options,
) -> Result<(Box<dyn Engine>, Recovery, u64), MountError> {
    let label = read_label(backing, blocks)?;
    Ok(match label.mode {
        VolumeMode::Log => {
            let (volume, recovery, durable) = mount_read_only(backing, blocks, options)?;
            (Box::new(volume), recovery, durable)
        }
        VolumeMode::Sung | VolumeMode::Han => {
            let (volume, recovery, durable) =
                partitioned::mount_read_only(backing, blocks, &label, options)?;
            (Box::new(volume), recovery, durable)
        }
    })
}

/// Looks at the volume on a backing of so many blocks without changing it; at all its data with
/// `data`.
///
/// # Errors
/// There is no volume that could be opened.
pub fn inspect(
    backing: &mut dyn Backing,
    blocks: u64,
    data: bool,
) -> Result<Inspection, MountError> {
    let label = read_label(backing, blocks)?;
    match label.mode {
        VolumeMode::Log => onefold_volume::inspect(backing, blocks, data),
        VolumeMode::Sung | VolumeMode::Han => partitioned::inspect(backing, blocks, label, data),
    }
}
