//! A copy of a disk, with holes where it has zeroes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use onefold_device::BlockDevice;
use onefold_units::Status;
use onefold_units::convert::index64;

use crate::TryError;

/// Bytes that are copied in one step.
const STEP: u64 = 1 << 20;
/// Bytes of which zeroes are looked for.
const BLOCK: usize = 4096;

/// Copies what a device holds into a new file, with holes where it has zeroes.
///
/// # Errors
/// The file is there already, or one of both cannot be read or written.
pub fn copy(device: &impl BlockDevice, path: &Path) -> Result<(), TryError> {
    let failed = TryError::io("write", path);
    let unread = |status: Status| TryError::Device { action: "read", status };
    let file = File::create_new(path).map_err(&failed)?;
    file.set_len(device.size()).map_err(&failed)?;
    let mut buffer = vec![0; index64(STEP)];
    let mut at = 0;
    while at < device.size() {
        let extent = device.extent(at, device.size() - at).map_err(unread)?;
        let end = at + extent.len;
        while extent.mapped && at < end {
            let part = &mut buffer[..index64((end - at).min(STEP))];
            device.read(at, part).map_err(unread)?;
            put(&file, at, part).map_err(&failed)?;
            at += onefold_units::convert::u64_from(part.len());
        }
        at = end;
    }
    Ok(())
}

/// Writes the blocks that are not zeroes.
fn put(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    for (offset, block) in (at..).step_by(BLOCK).zip(bytes.chunks(BLOCK)) {
        if block.iter().any(|byte| *byte != 0) {
            file.write_all_at(block, offset)?;
        }
    }
    Ok(())
}
