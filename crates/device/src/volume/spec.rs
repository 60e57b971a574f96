//! What a volume to be made is like.

use onefold_format::volume::{Codec, VolumeMode, VolumeName};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;

use super::error::VolumeError;

/// What a volume to be made is like.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// Its name.
    pub name: VolumeName,
    /// How it places and cleans.
    pub mode: VolumeMode,
    /// Bytes that it exports; `None`: what is left of the log space after `op`.
    pub bytes: Option<u64>,
    /// Share of log space that stays free where `bytes` is absent (volume.md, section 5.1: 0.2).
    pub op: f64,
    /// `bytes` may be more than the log can hold; mode `log` only.
    pub thin: bool,
    /// Bytes of a log segment, in mode `sung` of a partition; `None`: chosen by the size of the
    /// backing and by `superblock_bytes`.
    pub segment_bytes: Option<u64>,
    /// Bytes of the indirection unit of the backing; `None`: what that tells
    /// ([`VolumeBacking::unit_bytes`](crate::VolumeBacking::unit_bytes)).
    pub unit_bytes: Option<u64>,
    /// Bytes that the backing erases together; `None`: what that tells
    /// ([`VolumeBacking::superblock_bytes`](crate::VolumeBacking::superblock_bytes)).
    pub superblock_bytes: Option<u64>,
    /// How to compress blocks where that saves room. Mode `log` only.
    pub compress: Option<Codec>,
}

impl Default for VolumeSpec {
    fn default() -> Self {
        Self {
            name: VolumeName::default(),
            mode: VolumeMode::Log,
            bytes: None,
            op: 0.2,
            thin: false,
            segment_bytes: None,
            unit_bytes: None,
            superblock_bytes: None,
            compress: None,
        }
    }
}

impl VolumeSpec {
    pub(super) fn whole_blocks(bytes: u64) -> Result<u64, VolumeError> {
        let (what, limit) = ("a volume", "");
        if bytes.is_multiple_of(PAGE_BYTES) {
            return Ok(bytes / PAGE_BYTES);
        }
        Err(VolumeError::Size { what, bytes, multiple: PAGE_BYTES, limit })
    }

    pub(super) fn blocks_of(
        what: &'static str,
        bytes: u64,
        limit: &'static str,
    ) -> Result<u32, VolumeError> {
        let blocks = u32::try_from(bytes / PAGE_BYTES).ok();
        let whole = bytes > 0 && bytes.is_multiple_of(PAGE_BYTES) && bytes <= 4 << 30;
        blocks.filter(|_| whole).ok_or(VolumeError::Size {
            what,
            bytes,
            multiple: PAGE_BYTES,
            limit,
        })
    }
}

/// Share of the log space that the exported blocks leave free, in 1/10,000.
pub(super) fn spare_basis_points(log: u64, logical_blocks: u64) -> u16 {
    let spare = log.saturating_sub(logical_blocks);
    u16::try_from(spare * 10_000 / log.max(1)).unwrap_or(10_000)
}

pub(super) fn share(blocks: u64, share: f64) -> u64 {
    onefold_units::convert::floor_u64(float(blocks) * share.clamp(0.0, 1.0))
}

pub(crate) fn random_uuid() -> Result<[u8; 16], VolumeError> {
    let mut uuid = [0; 16];
    rustix::rand::getrandom(&mut uuid[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| VolumeError::Random(error.into()))?;
    // Version 4, variant 1 of RFC 9562.
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    Ok(uuid)
}
