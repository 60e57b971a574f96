//! A drive with the volume that `onefold volume create` would make on it.

use onefold_config::{Config, ConfigError};
use onefold_device::{VolumeError, VolumeSpec};
use onefold_units::PAGE_BYTES;

/// Why a drive cannot have such a volume.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BehindError {
    /// The drive and the volume do not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no such volume.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// The keys that put a volume of mode `log` between a drive and its host: the one of `spec`, as
/// `onefold volume create` makes it. Without a unit or a superblock of its own it takes those of the drive.
///
/// # Errors
/// See [`BehindError`].
pub fn volume_keys(drive: &Config, spec: &VolumeSpec) -> Result<Vec<String>, BehindError> {
    let mut keys = vec!["volume.mode=log".to_owned(), format!("volume.op={}", spec.op)];
    keys.extend(spec.unit_bytes.map(|bytes| format!("volume.unit={bytes}B")));
    if !drive.is_zoned() {
        let layered = drive.with_sets(&keys, &["volume"])?;
        let unit_blocks = layered.volume()?.map_or(1, |volume| volume.geometry.unit_blocks);
        let unit_bytes = spec.unit_bytes.or_else(|| Some(u64::from(unit_blocks) * PAGE_BYTES));
        let superblock_bytes =
            Some(spec.superblock_bytes.unwrap_or(drive.geometry()?.superblock_row_bytes()));
        let spec = VolumeSpec { unit_bytes, superblock_bytes, ..spec.clone() };
        let segment_blocks = spec.label(drive.logical_bytes()? / PAGE_BYTES)?.segment_blocks;
        keys.push(format!("volume.log_segment={}B", u64::from(segment_blocks) * PAGE_BYTES));
    }
    Ok(keys)
}
