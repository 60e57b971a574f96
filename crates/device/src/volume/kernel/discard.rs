//! Trims of block devices.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

/// Tells a block device that a range holds nothing any more (`BLKDISCARD` of ioctl(2)). A device that cannot use that
/// keeps the blocks.
pub(in crate::volume) fn discard(device: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);
    // SAFETY: the kernel reads two 64-bit numbers for this code, offset and length in bytes.
    let request = unsafe { rustix::ioctl::Setter::<BLKDISCARD, [u64; 2]>::new([offset, len]) };
    // SAFETY: the request is as the code wants it; on anything but a block device it is an error.
    match unsafe { rustix::ioctl::ioctl(device, request) } {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
