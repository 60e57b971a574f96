//! Requests of an opening, whose failures name device and block.

use onefold_format::DMZ_BLOCK_BYTES;
use onefold_units::convert::index;

use crate::backing::Backing;
use crate::error::MountError;

pub(crate) fn read(
    backing: &mut dyn Backing,
    device: usize,
    at: u64,
    bytes: &mut [u8],
) -> Result<(), MountError> {
    backing.read(device, at, bytes).map_err(|_| MountError::Device { device, at })
}

pub(crate) fn write(
    backing: &mut dyn Backing,
    device: usize,
    at: u64,
    bytes: &[u8],
) -> Result<(), MountError> {
    backing.write(device, at, bytes).map_err(|_| MountError::Device { device, at })
}

pub(crate) fn flush(backing: &mut dyn Backing, device: usize) -> Result<(), MountError> {
    backing.flush(device).map_err(|_| MountError::Device { device, at: 0 })
}

pub(crate) fn read_set(
    backing: &mut dyn Backing,
    at: u64,
    blocks: u32,
) -> Result<Vec<u8>, MountError> {
    let mut bytes = vec![0; index(blocks) * DMZ_BLOCK_BYTES];
    read(backing, 0, at, &mut bytes)?;
    bytes[..DMZ_BLOCK_BYTES].fill(0);
    Ok(bytes)
}
