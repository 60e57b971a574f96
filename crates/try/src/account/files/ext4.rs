//! The tables of ext2, ext3 and ext4 that lie where `mkfs` put them: superblocks, group
//! descriptors, bitmaps and inode tables.
//!
//! Source: chapter "Layout" of the kernel's ext4 documents.

use std::ops::Range;

use super::read::Read;

const MAGIC: u16 = 0xEF53;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
const RO_COMPAT_SPARSE_SUPER: u32 = 0x1;

/// Most groups of a file system that is looked at: 128 TiB of groups of 128 MiB.
const GROUPS_MAX: u64 = 1 << 20;

/// A superblock, as far as tables follow from it.
struct Super {
    bytes: Vec<u8>,
    at: u64,
    block: u64,
    blocks: u64,
    per_group: u64,
    first: u64,
    descriptor: u64,
}

/// The tables of the file system that begins at a byte; `None` where its superblock makes no sense.
pub(super) fn tables(at: u64, disk: u64, read: Read<'_>) -> Option<Vec<Range<u64>>> {
    let header = Super::read(at, disk, read)?;
    let groups = (header.blocks - header.first).div_ceil(header.per_group);
    if groups > GROUPS_MAX {
        return None;
    }
    let table_blocks = (groups * header.descriptor).div_ceil(header.block);
    let reserved = u64::from(header.le16(0xCE));
    let mut ranges = Vec::new();
    for group in (0..groups).filter(|group| header.has_copy(*group)) {
        let start = header.first + group * header.per_group;
        // Descriptors of `meta_bg` lie in the groups, where they are not looked for.
        let tables = if header.has(INCOMPAT_META_BG) { 0 } else { table_blocks + reserved };
        ranges.push(header.range(start, 1 + tables));
    }
    if header.has(INCOMPAT_META_BG) {
        return Some(ranges);
    }
    let mut descriptors = vec![0; usize::try_from(table_blocks * header.block).ok()?];
    if !read(at + (header.first + 1) * header.block, &mut descriptors) {
        return Some(ranges);
    }
    let inode_bytes = if header.le32(0x4C) == 0 { 128 } else { u64::from(header.le16(0x58)) };
    let inodes = (u64::from(header.le32(0x28)) * inode_bytes).div_ceil(header.block);
    let width = usize::try_from(header.descriptor).ok()?;
    for descriptor in descriptors.chunks_exact(width).take(usize::try_from(groups).ok()?) {
        let place = |low: usize| {
            let high = if width >= 64 { le32(descriptor, low + 0x20) } else { 0 };
            u64::from(high) << 32 | u64::from(le32(descriptor, low))
        };
        for (block, count) in [(place(0), 1), (place(4), 1), (place(8), inodes)] {
            if block > 0 && block.checked_add(count).is_some_and(|end| end <= header.blocks) {
                ranges.push(header.range(block, count));
            }
        }
    }
    Some(ranges)
}

impl Super {
    fn read(at: u64, disk: u64, read: Read<'_>) -> Option<Self> {
        let mut bytes = vec![0; 1024];
        let is_read = read(at.checked_add(1024)?, &mut bytes);
        if !is_read || le16(&bytes, 0x38) != MAGIC || le32(&bytes, 0x18) > 6 {
            return None;
        }
        let is_64bit = le32(&bytes, 0x60) & INCOMPAT_64BIT != 0;
        let high = if is_64bit { le32(&bytes, 0x150) } else { 0 };
        let header = Self {
            at,
            block: 1024 << le32(&bytes, 0x18),
            blocks: u64::from(high) << 32 | u64::from(le32(&bytes, 4)),
            per_group: le32(&bytes, 0x20).into(),
            first: le32(&bytes, 0x14).into(),
            descriptor: if is_64bit { le16(&bytes, 0xFE).into() } else { 32 },
            bytes,
        };
        let end = header.blocks.checked_mul(header.block)?.checked_add(at)?;
        let fits = end <= disk && header.first < header.blocks && header.per_group > 0;
        let whole = (32..=1024).contains(&header.descriptor) && header.descriptor.is_power_of_two();
        (fits && whole).then_some(header)
    }

    fn has(&self, incompat: u32) -> bool {
        self.le32(0x60) & incompat != 0
    }

    /// Whether a group begins with a copy of superblock and group descriptors.
    fn has_copy(&self, group: u64) -> bool {
        if self.le32(0x5C) & COMPAT_SPARSE_SUPER2 != 0 {
            return group == 0
                || [0x24C, 0x250].into_iter().any(|at| u64::from(self.le32(at)) == group);
        }
        let is_sparse = self.le32(0x64) & RO_COMPAT_SPARSE_SUPER != 0;
        !is_sparse || group <= 1 || [3, 5, 7].into_iter().any(|base| is_power(group, base))
    }

    /// So many blocks as bytes of the disk, cut at the end of the file system.
    fn range(&self, first: u64, count: u64) -> Range<u64> {
        let end = first.saturating_add(count).min(self.blocks);
        self.at + first.min(end) * self.block..self.at + end * self.block
    }

    fn le16(&self, at: usize) -> u16 {
        le16(&self.bytes, at)
    }

    fn le32(&self, at: usize) -> u32 {
        le32(&self.bytes, at)
    }
}

fn is_power(mut number: u64, base: u64) -> bool {
    while number > 1 && number.is_multiple_of(base) {
        number /= base;
    }
    number == 1
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
