//! A disk and its control export, past the page cache of the kernel: it does not hear of remaps.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use onefold_format::{
    REMAP_BLOCK_BYTES, RangeResult, RemapCaps, RemapFlags, RemapReply, RemapVector, ReplyContent,
    VectorRange,
};
use onefold_units::convert::index64;

use crate::blocks::Blocks;
use crate::error::DeviceError;
use crate::layout::BLOCK_BYTES;

/// Slots of a control export.
const SLOTS: u32 = 256;

/// An open disk.
#[derive(Debug)]
pub(crate) struct Direct {
    disk: File,
    control: File,
    bytes: u64,
}

impl Direct {
    /// Opens a disk (a file of FUSE, or a block device) and its control export.
    pub(crate) fn open(disk: &Path, control: &Path) -> Result<Self, DeviceError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| DeviceError::File { what, path, source }
        };
        let mut file = open(disk).map_err(failed("open", disk))?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed("find the size of", disk))?;
        let opened = Self {
            disk: file,
            control: open(control).map_err(failed("open", control))?,
            bytes: bytes / BLOCK_BYTES * BLOCK_BYTES,
        };
        match opened.caps() {
            Some(caps) if u64::from(caps.granularity_bytes) > BLOCK_BYTES => {
                Err(DeviceError::Unit { control: control.into(), found: caps.granularity_bytes })
            }
            Some(_) => Ok(opened),
            None => {
                Err(DeviceError::NoControl { disk: disk.to_owned(), control: control.to_owned() })
            }
        }
    }

    /// What the device can do. `None` if what was taken for its control export is none.
    fn caps(&self) -> Option<RemapCaps> {
        match self.exchange(&[0; REMAP_BLOCK_BYTES]).ok()?.content {
            ReplyContent::Caps(caps) => Some(caps),
            ReplyContent::Results(_) | ReplyContent::Refusal(_) => None,
        }
    }

    /// Has a block executed and reads the reply. Processes have slots of their own, mostly; a reply of another one is noticed
    /// by whoever needs it.
    fn exchange(&self, block: &[u8; REMAP_BLOCK_BYTES]) -> io::Result<RemapReply> {
        let slot = u64::from(std::process::id() % SLOTS) * BLOCK_BYTES;
        self.execute(block, slot)?;
        let mut reply = [0; REMAP_BLOCK_BYTES];
        read(&self.control, &mut reply, slot)?;
        RemapReply::decode(&reply).map_err(io::Error::other)
    }

    fn execute(&self, block: &[u8], slot: u64) -> io::Result<()> {
        write(&self.control, block, slot)
    }
}

impl Blocks for Direct {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        read(&self.disk, buffer, at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        write(&self.disk, bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync_data()
    }

    fn remap(&self, ranges: &[VectorRange]) -> io::Result<()> {
        let vector =
            RemapVector { flags: RemapFlags::COPY, cmd_id: 0, ranges: ranges.to_vec() }.encode();
        self.execute(&vector.map_err(io::Error::other)?, 0)
    }

    fn is_equal(&self, range: VectorRange) -> io::Result<bool> {
        let flags = RemapFlags::VERIFY_EQUAL;
        let vector = RemapVector { flags, cmd_id: 0, ranges: vec![range] }.encode();
        let reply = self.exchange(&vector.map_err(io::Error::other)?)?;
        let skipped = |result: &RangeResult| result.skipped;
        Ok(match reply.content {
            ReplyContent::Results(results) => results.iter().map(skipped).eq([0]),
            ReplyContent::Caps(_) | ReplyContent::Refusal(_) => false,
        })
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path)
}

/// Memory for `bytes` bytes, and where in it they begin so that they lie at a multiple of a block.
fn aligned(bytes: usize) -> (Vec<u8>, usize) {
    let block = index64(BLOCK_BYTES);
    let memory = vec![0; bytes + block];
    let start = memory.as_ptr().addr().wrapping_neg() % block;
    (memory, start)
}

fn read(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    let (mut memory, start) = aligned(buffer.len());
    let place = &mut memory[start..start + buffer.len()];
    file.read_exact_at(place, at)?;
    buffer.copy_from_slice(place);
    Ok(())
}

fn write(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let (mut memory, start) = aligned(bytes.len());
    let place = &mut memory[start..start + bytes.len()];
    place.copy_from_slice(bytes);
    file.write_all_at(place, at)
}
