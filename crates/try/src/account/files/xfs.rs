//! The headers of the allocation groups of XFS, four sectors each. All numbers are big-endian.
//! Inodes and trees of XFS have no fixed place.
//!
//! Source: chapter "Allocation Groups" of "XFS Algorithms & Data Structures".

use std::ops::Range;

use super::read::Read;

/// Superblock, free space, inodes, free list.
const HEADERS: u64 = 4;

/// The headers of the file system that begins at a byte; `None` where its superblock makes no sense.
pub(super) fn headers(at: u64, disk: u64, read: Read<'_>) -> Option<Vec<Range<u64>>> {
    let mut bytes = vec![0; 512];
    if !read(at, &mut bytes) || !bytes.starts_with(b"XFSB") {
        return None;
    }
    let be32 = |at: usize| {
        u64::from(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    };
    let (block, group_blocks, groups) = (be32(4), be32(0x54), be32(0x58));
    let sector = u64::from(u16::from_be_bytes([bytes[0x66], bytes[0x67]]));
    let group_bytes = block.checked_mul(group_blocks).filter(|bytes| *bytes > HEADERS * sector)?;
    let starts = (0..groups).map(|group| at.saturating_add(group.saturating_mul(group_bytes)));
    let on_disk = starts.take_while(|start| *start < disk);
    Some(on_disk.map(|start| start..start + HEADERS * sector).collect())
}
