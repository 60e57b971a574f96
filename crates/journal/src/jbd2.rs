//! The journal of ext3 and ext4: its header, and where its parts lie. All numbers are big-endian.
//!
//! Source: include/linux/jbd2.h; "Journal (jbd2)" of the kernel's ext4 documents.

use crate::blocks::{Stop, expect};
use crate::fields::be32;
use crate::ring::{Extent, Ring};

/// First word of every block that jbd2 writes for itself.
pub(crate) const MAGIC: u32 = 0xC03B_3998;

/// Bytes of the header that are looked at.
pub(crate) const HEADER_BYTES: usize = 1024;

/// Kinds of blocks: descriptor, commit, header of versions 1 and 2, revocation.
pub(crate) const DESCRIPTOR: u32 = 1;
pub(crate) const COMMIT: u32 = 2;
const HEADER_V1: u32 = 3;
const HEADER_V2: u32 = 4;
pub(crate) const REVOKE: u32 = 5;

const FAST_COMMIT: u32 = 0x20;

/// What a journal header says, in blocks of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) block_bytes: u32,
    /// Blocks with header and fast-commit area.
    pub(crate) blocks: u32,
    /// First block of the log.
    pub(crate) first: u32,
    /// First block behind the log.
    pub(crate) end: u32,
    /// Tail of the log; 0 if it is empty.
    pub(crate) start: u32,
    /// Whether the file system says that there is a fast-commit area, which the journal says only when it was mounted.
    pub(crate) is_fast: bool,
}

impl Header {
    /// Whether the bytes begin like a journal header.
    pub(crate) fn is_one(bytes: &[u8]) -> bool {
        be32(bytes, 0) == MAGIC && matches!(be32(bytes, 4), HEADER_V1 | HEADER_V2)
    }

    pub(crate) fn parse(bytes: &[u8], is_fast: bool) -> Result<Self, Stop> {
        expect(Self::is_one(bytes), "its journal has no header")?;
        let (blocks, first) = (be32(bytes, 0x10), be32(bytes, 0x14));
        let has_features = be32(bytes, 4) == HEADER_V2;
        let says_fast = has_features && be32(bytes, 0x28) & FAST_COMMIT != 0;
        let fast = match (is_fast || says_fast, be32(bytes, 0x54)) {
            (false, _) => 0,
            // The kernel's default, JBD2_DEFAULT_FAST_COMMIT_BLOCKS.
            (true, 0) => 256,
            (true, count) => count,
        };
        let (block_bytes, start) = (be32(bytes, 0xC), be32(bytes, 0x1C));
        expect(
            block_bytes.is_power_of_two() && (1024..=65536).contains(&block_bytes),
            "its journal has an impossible block size",
        )?;
        let end = blocks.checked_sub(fast).filter(|end| first > 0 && first < *end);
        let Some(end) = end else {
            return Err(Stop::Rejected("its journal has no room for a log"));
        };
        expect(
            start == 0 || (first..end).contains(&start),
            "the tail of its journal lies outside of the log",
        )?;
        Ok(Self { block_bytes, blocks, first, end, start, is_fast })
    }

    /// Whether the other header describes the same journal, at any time of its life.
    pub(crate) const fn is_like(&self, other: &Self) -> bool {
        self.block_bytes == other.block_bytes
            && self.blocks == other.blocks
            && self.first == other.first
            && self.end == other.end
    }

    /// Position of block `number` in the journal, in bytes.
    pub(crate) fn position(&self, number: u32) -> u64 {
        u64::from(number) * u64::from(self.block_bytes)
    }

    /// Position of the tail in the log, in bytes; `None` if the log is empty.
    pub(crate) fn tail(&self) -> Option<u64> {
        (self.start != 0).then(|| self.position(self.start - self.first))
    }

    /// The parts of a journal that lies in `whole` and whose header is at byte `at` of the device.
    pub(crate) fn divide(&self, whole: &Ring, at: u64) -> Result<Parts, Stop> {
        let bytes = self.position(self.blocks);
        expect(whole.bytes() >= bytes, "its journal is longer than the file it lies in")?;
        let log = whole.part(self.position(self.first), self.position(self.end));
        let header = Extent { at, bytes: u64::from(self.block_bytes) };
        let fast = whole.part(self.position(self.end), bytes);
        Ok(Parts { log, header, fast })
    }
}

/// Where the parts of a journal lie.
pub(crate) struct Parts {
    pub(crate) log: Ring,
    pub(crate) header: Extent,
    /// The fast-commit area, maybe empty.
    pub(crate) fast: Ring,
}
