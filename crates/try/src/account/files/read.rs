//! Reading a disk.

/// Reads bytes of a disk at an offset. Whether they could be read.
pub(super) type Read<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> bool;
