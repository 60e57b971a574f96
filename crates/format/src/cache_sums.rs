//! The regular device of a volume of policy `dmz` with checksums of all that it holds (`docs/spec.md`, section 11.3).
//!
//! All in blocks of 4 KiB: a header, the blocks that the volume sees, the dirty bits of their regions, a checksum of each block, and
//! a copy of the header. Block 0 is not what dm-zoned, `dmzadm` and builds without checksums look for there, so they refuse the
//! device; what they would accept begins a block later, where no zone begins.
//!
//! | what | bytes |
//! |---|---|
//! | header | magic 8, version 4, blocks of a region 4, UUID 16, blocks of data 8, blocks of the device 8, crc32c 4 |
//! | sector of dirty bits | a bit for each region, the lowest first, 508; crc32c 4 |
//! | block of checksums | for each block of a region: its crc32c, exclusive or that of a block of zeroes, 4 |

use onefold_units::convert::{index64, u64_from};
use thiserror::Error;

use crate::bytes::{Reader, Writer, checked_body, seal};
use crate::checksum;

/// First bytes of a header.
pub const CACHE_SUMS_MAGIC: &[u8; 8] = b"ONEFSUMS";
/// The only version there is.
pub const CACHE_SUMS_VERSION: u32 = 1;
/// Bytes of a block.
pub const CACHE_BLOCK_BYTES: usize = 4096;
/// Blocks with one dirty bit, and whose checksums fill a block.
pub const CACHE_REGION_BLOCKS: u64 = 1024;

const HEADER_BYTES: usize = 52;
/// A sector is written as a whole: what a power cut leaves of a block of bits has no damaged sector.
const SECTOR_BYTES: usize = 512;
const SECTOR_BITS_BYTES: usize = SECTOR_BYTES - 4;
const SECTORS: usize = CACHE_BLOCK_BYTES / SECTOR_BYTES;
/// Regions whose bits are in one block.
const BLOCK_BITS: u64 = u64_from(SECTORS * SECTOR_BITS_BYTES * 8);

/// Why a header does not count.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheHeaderError {
    /// There is none, or it is damaged.
    #[error("it has no header of a cache with checksums, or a damaged one")]
    None,
    /// It is of a newer build.
    #[error(
        "the checksums of the cache have version {0}, expected {CACHE_SUMS_VERSION}: a newer build made them"
    )]
    Version(u32),
    /// Its regions have another size.
    #[error(
        "the checksums of the cache have regions of {0} blocks, expected {CACHE_REGION_BLOCKS}"
    )]
    Region(u32),
}

/// What lies where on a device with checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLayout {
    data_blocks: u64,
}

impl CacheLayout {
    /// That of a device with so many blocks of data.
    #[must_use]
    pub const fn new(data_blocks: u64) -> Self {
        Self { data_blocks }
    }

    /// The largest one that fits a device, with data in whole pieces; without data if not even one does.
    #[must_use]
    pub fn fitting(blocks: u64, piece_blocks: u64) -> Self {
        let mut pieces = blocks / piece_blocks;
        while pieces > 0 && Self::new(pieces * piece_blocks).blocks() > blocks {
            pieces -= 1;
        }
        Self::new(pieces * piece_blocks)
    }

    /// Blocks that the volume sees.
    #[must_use]
    pub const fn data_blocks(&self) -> u64 {
        self.data_blocks
    }

    /// The first of them.
    #[must_use]
    pub const fn data_at(&self) -> u64 {
        1
    }

    /// Regions of data; the last one may be shorter.
    #[must_use]
    pub const fn regions(&self) -> u64 {
        self.data_blocks.div_ceil(CACHE_REGION_BLOCKS)
    }

    /// First block of dirty bits.
    #[must_use]
    pub const fn bits_at(&self) -> u64 {
        self.data_at() + self.data_blocks
    }

    /// Blocks of dirty bits.
    #[must_use]
    pub const fn bits_blocks(&self) -> u64 {
        self.regions().div_ceil(BLOCK_BITS)
    }

    /// First block of checksums; there are as many as regions.
    #[must_use]
    pub const fn sums_at(&self) -> u64 {
        self.bits_at() + self.bits_blocks()
    }

    /// The copy of the header.
    #[must_use]
    pub const fn copy_at(&self) -> u64 {
        self.sums_at() + self.regions()
    }

    /// All blocks.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.copy_at() + 1
    }
}

/// The header of a device with checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHeader {
    /// Identity.
    pub uuid: [u8; 16],
    /// What lies where.
    pub layout: CacheLayout,
}

impl CacheHeader {
    /// The block.
    #[must_use]
    pub fn encode(&self) -> [u8; CACHE_BLOCK_BYTES] {
        let mut block = [0; CACHE_BLOCK_BYTES];
        let mut writer = Writer::new(&mut block);
        writer.bytes(CACHE_SUMS_MAGIC);
        writer.uint(CACHE_SUMS_VERSION.into(), 4);
        writer.uint(CACHE_REGION_BLOCKS, 4);
        writer.bytes(&self.uuid);
        writer.uint(self.layout.data_blocks(), 8);
        writer.uint(self.layout.blocks(), 8);
        seal(&mut block[..HEADER_BYTES]);
        block
    }

    /// Reads a block that may be a header.
    ///
    /// # Errors
    /// It is none, is damaged, or of another version.
    pub fn decode(block: &[u8]) -> Result<Self, CacheHeaderError> {
        let none = CacheHeaderError::None;
        let body = block.get(..HEADER_BYTES).and_then(checked_body).ok_or(none)?;
        let mut reader = Reader::new(body);
        if reader.bytes(8) != Some(CACHE_SUMS_MAGIC.as_slice()) {
            return Err(none);
        }
        let version = reader.u32().ok_or(none)?;
        if version != CACHE_SUMS_VERSION {
            return Err(CacheHeaderError::Version(version));
        }
        let region = reader.u32().ok_or(none)?;
        if u64::from(region) != CACHE_REGION_BLOCKS {
            return Err(CacheHeaderError::Region(region));
        }
        let uuid = reader.bytes(16).and_then(|bytes| bytes.try_into().ok()).ok_or(none)?;
        let (data, blocks) = (reader.uint(8).ok_or(none)?, reader.uint(8).ok_or(none)?);
        // What leaves no room for checksums would make sums of sizes overflow. Nobody makes a device without data, and nobody
        // could look for a volume in it.
        let layout = CacheLayout::new(data);
        if data == 0 || data >= blocks || blocks > u64::MAX / 8192 || layout.blocks() != blocks {
            return Err(none);
        }
        Ok(Self { uuid, layout })
    }
}

/// The dirty bits of all regions, as they lie on the device.
#[derive(Clone, Debug)]
pub struct CacheBits {
    blocks: Vec<[u8; CACHE_BLOCK_BYTES]>,
}

/// The byte and the bit in it of a region, in its block.
fn place(region: u64) -> (usize, usize, u8) {
    let within = index64(region % BLOCK_BITS);
    let (byte, bit) = (within / 8, within % 8);
    let at = byte / SECTOR_BITS_BYTES * SECTOR_BYTES + byte % SECTOR_BITS_BYTES;
    (index64(region / BLOCK_BITS), at, 1 << bit)
}

impl CacheBits {
    /// No region is dirty.
    #[must_use]
    pub fn clean(layout: &CacheLayout) -> Self {
        Self { blocks: vec![[0; CACHE_BLOCK_BYTES]; index64(layout.bits_blocks())] }
    }

    /// Those that were read, and how many sectors of them are damaged: no region is dirty there.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> (Self, u64) {
        let (mut blocks, mut damaged) = (Vec::new(), 0);
        for chunk in bytes.chunks_exact(CACHE_BLOCK_BYTES) {
            let mut block = [0; CACHE_BLOCK_BYTES];
            block.copy_from_slice(chunk);
            for sector in block.chunks_exact_mut(SECTOR_BYTES) {
                if checked_body(sector).is_none() {
                    damaged += 1;
                    sector.fill(0);
                }
            }
            blocks.push(block);
        }
        (Self { blocks }, damaged)
    }

    /// Whether a region is dirty.
    #[must_use]
    pub fn is_dirty(&self, region: u64) -> bool {
        let (block, at, bit) = place(region);
        self.blocks[block][at] & bit != 0
    }

    /// Makes a region dirty or clean.
    pub fn set(&mut self, region: u64, dirty: bool) {
        let (block, at, bit) = place(region);
        let byte = &mut self.blocks[block][at];
        *byte = if dirty { *byte | bit } else { *byte & !bit };
    }

    /// The block with the bit of a region: its number among these blocks.
    #[must_use]
    pub const fn block_of(region: u64) -> u64 {
        region / BLOCK_BITS
    }

    /// A block as it is written.
    #[must_use]
    pub fn encode(&self, block: u64) -> [u8; CACHE_BLOCK_BYTES] {
        let mut block = self.blocks[index64(block)];
        block.chunks_exact_mut(SECTOR_BYTES).for_each(seal);
        block
    }
}

/// The checksum of a block as it is stored: 0 for zeroes, so that what nobody wrote has the right one.
#[must_use]
pub fn cache_sum(block: &[u8]) -> u32 {
    const ZEROES: [u8; CACHE_BLOCK_BYTES] = [0; CACHE_BLOCK_BYTES];
    static OF_ZEROES: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| checksum(&ZEROES));
    checksum(block) ^ *OF_ZEROES
}

/// A block of checksums, from its bytes.
#[must_use]
pub fn decode_cache_sums(block: &[u8]) -> Vec<u32> {
    let word =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
    block.chunks_exact(4).map(word).collect()
}

/// Its bytes.
#[must_use]
pub fn encode_cache_sums(sums: &[u32]) -> Vec<u8> {
    sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: CacheHeader = CacheHeader { uuid: [7; 16], layout: CacheLayout::new(2560) };

    #[test]
    fn golden_bytes() {
        let block = HEADER.encode();
        let expected = [
            b"ONEFSUMS".as_slice(),
            &[1, 0, 0, 0, 0, 4, 0, 0],
            &[7; 16],
            &[0, 10, 0, 0, 0, 0, 0, 0, 6, 10, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(block[..48], expected);
        assert_eq!(block[48..52], checksum(&expected).to_le_bytes());
        assert_eq!(block[52..], [0; 4044]);
        let mut bits = CacheBits::clean(&CacheLayout::new(5000 * CACHE_REGION_BLOCKS));
        bits.set(9, true);
        bits.set(4064, true);
        let block = bits.encode(0);
        assert_eq!(block[..3], [0, 2, 0]);
        assert_eq!(block[508..512], checksum(&block[..508]).to_le_bytes());
        assert_eq!(block[512..514], [1, 0]);
        assert_eq!(encode_cache_sums(&[0x0102_0304, 5]), [4, 3, 2, 1, 5, 0, 0, 0]);
        assert_eq!(decode_cache_sums(&[4, 3, 2, 1, 5, 0, 0, 0]), [0x0102_0304, 5]);
        assert_eq!(cache_sum(&[0; 4096]), 0);
        assert_eq!(cache_sum(&[1; 4096]), checksum(&[1; 4096]) ^ checksum(&[0; 4096]));
    }

    #[test]
    fn a_header_comes_back_and_damage_is_noticed() {
        let block = HEADER.encode();
        assert_eq!(CacheHeader::decode(&block), Ok(HEADER));
        for at in 0..HEADER_BYTES {
            let mut damaged = block;
            damaged[at] ^= 4;
            assert_eq!(CacheHeader::decode(&damaged), Err(CacheHeaderError::None), "byte {at}");
        }
        let other = |at: usize, byte: u8| {
            let mut other = block;
            other[at] = byte;
            seal(&mut other[..HEADER_BYTES]);
            CacheHeader::decode(&other).unwrap_err()
        };
        assert_eq!(other(8, 2), CacheHeaderError::Version(2));
        assert_eq!(other(13, 8), CacheHeaderError::Region(2048));
        assert_eq!(other(39, 0xFF), CacheHeaderError::None);
        assert_eq!(CacheHeader::decode(&[]), Err(CacheHeaderError::None));
        // Looking for a volume in it was a panic.
        let empty = CacheHeader { layout: CacheLayout::new(0), ..HEADER };
        assert_eq!(CacheHeader::decode(&empty.encode()), Err(CacheHeaderError::None));
    }

    /// dm-zoned looks at the first block for its magic; where its set would begin, it finds the block behind.
    #[test]
    fn a_header_is_no_root_record() {
        assert!(crate::DmzRoot::decode(&HEADER.encode()).is_err());
        assert_ne!(HEADER.layout.data_at() % 64, 0);
    }

    #[test]
    fn a_layout_fills_the_device_with_whole_pieces() {
        for blocks in [0, 255, 256, 257, 259, 260, 261, 5000, 262_144, 40_000_000] {
            let layout = CacheLayout::fitting(blocks, 256);
            let larger = CacheLayout::new(layout.data_blocks() + 256);
            assert!(layout.data_blocks() == 0 || layout.blocks() <= blocks);
            assert!(larger.blocks() > blocks);
        }
        assert_eq!(CacheLayout::new(262_144).blocks(), 262_144 + 256 + 3);
    }

    #[test]
    fn each_region_has_its_own_bit() {
        let layout = CacheLayout::new(40_000 * CACHE_REGION_BLOCKS);
        assert_eq!(layout.bits_blocks(), 2);
        for region in [0, 7, 8, 4063, 4064, 32_511, 32_512, 39_999] {
            let mut bits = CacheBits::clean(&layout);
            bits.set(region, true);
            let bytes: Vec<u8> = (0..2).flat_map(|block| bits.encode(block)).collect();
            let (mut back, damaged) = CacheBits::decode(&bytes);
            assert_eq!(damaged, 0);
            let dirty: Vec<u64> = (0..40_000).filter(|one| back.is_dirty(*one)).collect();
            assert_eq!(dirty, [region]);
            back.set(region, false);
            assert!(!back.is_dirty(region));
            let mut rotten = bytes.clone();
            rotten[index64(CacheBits::block_of(region)) * 4096 + place(region).1] ^=
                place(region).2;
            let (rotten, damaged) = CacheBits::decode(&rotten);
            assert_eq!((damaged, rotten.is_dirty(region)), (1, false));
        }
    }
}
