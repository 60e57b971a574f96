//! Labels of volumes in the modes `sung` and `han`.

use onefold_format::volume::{VolumeLabel, VolumeMode};
use onefold_modes::Areas;
use onefold_units::PAGE_BYTES;
use onefold_volume::{Geometry, MountError};

use super::error::VolumeError;
use super::spec::{VolumeSpec, random_uuid, share, spare_basis_points};

/// The label of a volume on a backing of so many blocks. A *segment* is a partition (`sung` only).
pub(super) fn label(spec: &VolumeSpec, blocks: u64) -> Result<VolumeLabel, VolumeError> {
    let (mode, name) = (spec.mode, spec.mode.name());
    if spec.unit_bytes.is_some_and(|unit| unit != PAGE_BYTES) {
        return Err(VolumeError::Mode {
            mode: name,
            what: "writes blocks of 4 KiB: leave out --unit",
        });
    }
    if spec.thin {
        return Err(VolumeError::Mode {
            mode: name,
            what: "holds all that it exports: leave out --thin",
        });
    }
    let partition = match spec.segment_bytes {
        None => Areas::default_partition(mode, blocks),
        Some(_) if mode == VolumeMode::Han => {
            let what = "has four equal partitions: leave out --segment";
            return Err(VolumeError::Mode { mode: name, what });
        }
        Some(bytes) => VolumeSpec::blocks_of("partitions", bytes, ", 4 GiB at most")?,
    };
    let areas =
        |logical| Areas::new(mode, blocks, partition, logical).map_err(MountError::Geometry);
    let largest = areas(1)?;
    let space = largest.data_blocks();
    let logical_blocks = match spec.bytes {
        Some(bytes) => VolumeSpec::whole_blocks(bytes)?,
        None => share(space, 1.0 - spec.op).min(largest.logical_max()),
    };
    areas(logical_blocks)?;
    let geometry = Geometry {
        backing_blocks: blocks,
        segment_blocks: partition,
        zone_blocks: 0,
        unit_blocks: 1,
        logical_blocks,
        compress: None,
    };
    Ok(VolumeLabel {
        name: spec.name.clone(),
        op_basis_points: spare_basis_points(space, logical_blocks),
        ..geometry.label(mode, [random_uuid()?, random_uuid()?])
    })
}
