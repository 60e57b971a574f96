//! Where the bytes of an ext3 or ext4 file lie: extents, or the classic block map.
//!
//! Source: "Block map" and "Extent tree" of the kernel's ext4 documents.
//!
//! What bounds the work on hostile maps: an extent node is entered only by the entry that names its first block, and these
//! grow from entry to entry, so that no node is entered twice; a classic map may name a block again and again, but then it
//! is in too many pieces soon ([`Ring::push`]).

use onefold_units::convert::index;

use crate::blocks::{Blocks, Stop, expect};
use crate::fields::{joined, le16, le32};
use crate::ring::{Extent, Ring};

const EXTENT_MAGIC: u16 = 0xF30A;
const DEPTH_MAX: u16 = 5;
/// Extents longer than that are not written; that much shorter they are.
const WRITTEN_MAX: u16 = 32768;
/// A record of an extent node, and its head.
const RECORD: usize = 12;

/// The file system that a file lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Byte of the device where it begins.
    pub(crate) at: u64,
    pub(crate) block_bytes: u32,
    /// Its blocks.
    pub(crate) blocks: u64,
}

impl Geometry {
    /// Byte of the device where a block begins.
    pub(crate) fn byte_of(&self, block: u64) -> Result<u64, Stop> {
        expect(block > 0 && block < self.blocks, "a block lies outside of the file system")?;
        let byte = block.checked_mul(self.block_bytes.into()).and_then(|b| b.checked_add(self.at));
        byte.ok_or(Stop::Rejected("a block lies outside of the file system"))
    }

    fn extent(&self, block: u64, blocks: u64) -> Result<Extent, Stop> {
        let at = self.byte_of(block)?;
        let last = block.checked_add(blocks).filter(|end| *end <= self.blocks);
        expect(blocks > 0 && last.is_some(), "an extent ends outside of the file system")?;
        Ok(Extent { at, bytes: blocks.saturating_mul(self.block_bytes.into()) })
    }
}

/// Where the first `blocks` blocks of a file lie, by the 60 bytes `root` of its inode.
pub(crate) fn map(
    source: &mut Blocks,
    geometry: Geometry,
    root: &[u8],
    blocks: u64,
) -> Result<Ring, Stop> {
    let mut walk =
        Walk { source, geometry, ring: Ring::default(), next: 0, blocks, missing: false };
    if le16(root, 0) == EXTENT_MAGIC {
        walk.extents(root, le16(root, 6), 0)?;
    } else {
        walk.classic(root)?;
    }
    if walk.missing {
        return Err(Stop::Missing);
    }
    expect(walk.next >= blocks, "its journal has holes")?;
    let ring = walk.ring;
    expect(ring.is_disjoint(), "its journal uses a block twice")?;
    Ok(ring)
}

struct Walk<'a> {
    source: &'a mut Blocks,
    geometry: Geometry,
    ring: Ring,
    /// Block of the file that comes next, as long as nothing is missing.
    next: u64,
    /// Blocks of the file.
    blocks: u64,
    /// Something was left out because a block is not there yet.
    missing: bool,
}

impl Walk<'_> {
    /// The content of a block of the map, if it is there.
    fn node(&mut self, block: u64) -> Result<Option<Vec<u8>>, Stop> {
        let at = self.geometry.byte_of(block)?;
        match self.source.read(at, index(self.geometry.block_bytes)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Stop::Missing) => {
                self.missing = true;
                Ok(None)
            }
            Err(rejected) => Err(rejected),
        }
    }

    /// A node of an extent tree whose first block of the file has to be `first`.
    fn extents(&mut self, node: &[u8], depth: u16, first: u32) -> Result<(), Stop> {
        let (entries, max) = (usize::from(le16(node, 2)), usize::from(le16(node, 4)));
        let sound = le16(node, 0) == EXTENT_MAGIC
            && le16(node, 6) == depth
            && depth <= DEPTH_MAX
            && (1..=max).contains(&entries)
            && (max + 1) * RECORD <= node.len();
        expect(sound, "the extent tree of its journal is damaged")?;
        let mut expected = first;
        let mut is_first = true;
        for entry in node[RECORD..].chunks_exact(RECORD).take(entries) {
            let begin = le32(entry, 0);
            let follows = if is_first { begin == expected } else { begin >= expected };
            expect(follows, "the extents of its journal are not in order")?;
            is_first = false;
            if depth == 0 {
                self.leaf(entry, begin)?;
                expected = begin.saturating_add(u32::from(le16(entry, 4)));
            } else {
                let block = joined(le16(entry, 8).into(), le32(entry, 4));
                if let Some(child) = self.node(block)? {
                    self.extents(&child, depth - 1, begin)?;
                }
                expected = begin.saturating_add(1);
            }
        }
        Ok(())
    }

    fn leaf(&mut self, entry: &[u8], begin: u32) -> Result<(), Stop> {
        let len = le16(entry, 4);
        expect((1..=WRITTEN_MAX).contains(&len), "an extent of its journal is not written")?;
        let extent =
            self.geometry.extent(joined(le16(entry, 6).into(), le32(entry, 8)), len.into())?;
        if self.missing {
            return Ok(());
        }
        expect(u64::from(begin) == self.next, "its journal has holes")?;
        self.next += u64::from(len);
        self.ring.push(extent)
    }

    /// Twelve direct blocks, then one tree each of one, two and three levels.
    fn classic(&mut self, root: &[u8]) -> Result<(), Stop> {
        self.pointers(&root[..12 * 4], 0)?;
        for (level, pointer) in (1..=3).zip(root[12 * 4..].chunks_exact(4)) {
            self.pointers(pointer, level)?;
        }
        Ok(())
    }

    /// Follows pointers to trees of `level` levels.
    fn pointers(&mut self, pointers: &[u8], level: u32) -> Result<(), Stop> {
        let fan_out = u64::from(self.geometry.block_bytes / 4);
        for pointer in pointers.chunks_exact(4) {
            if self.next >= self.blocks {
                break;
            }
            let block = u64::from(le32(pointer, 0));
            expect(block != 0, "its journal has holes")?;
            if level == 0 {
                let extent = self.geometry.extent(block, 1)?;
                self.next += 1;
                if !self.missing {
                    self.ring.push(extent)?;
                }
            } else if let Some(node) = self.node(block)? {
                self.pointers(&node, level - 1)?;
            } else {
                // What it covers is left out, so that its siblings can be asked for at once.
                self.next = self.next.saturating_add(fan_out.saturating_pow(level));
            }
        }
        Ok(())
    }
}
