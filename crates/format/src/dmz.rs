//! The metadata of the Linux target dm-zoned, version 2, bit for bit (zoned.md, section 3).
//!
//! Root record, the first of 4,096 bytes otherwise zero: magic 4 | version 4 | generation 8 | own block 8 | metadata blocks 4 |
//! reserved zones 4 | chunks 4 | map blocks 4 | bitmap blocks 4 | crc 4 | label 32 | UUID 16 | UUID of the device 16. With a
//! journal block map, which is no part of dm-zoned, the version has its highest bit set and blocks of that map 4 follow. What it
//! says of checksums ([`DmzSums`]) lies where dm-zoned has nothing. The map
//! has 8 bytes per chunk: data zone 4 | buffer zone 4, all ones for none. Validity has a bit per block, the lowest first.

mod sums;

pub use sums::{DMZ_BLOCK_SUMS, DMZ_SUM_BLOCKS_MAX, DmzSums};

use onefold_units::ZoneId;
use onefold_units::convert::{index, low8, low32, u32_from};
use thiserror::Error;

use crate::bytes::{Reader, Writer};

/// Bytes of a metadata block.
pub const DMZ_BLOCK_BYTES: usize = 4096;

/// Map entries of a metadata block.
pub const DMZ_BLOCK_ENTRIES: u32 = 512;

/// Validity bits of a metadata block.
pub const DMZ_BLOCK_BITS: u32 = 32_768;

/// First bytes of a root record, little-endian.
pub const DMZ_MAGIC: u32 = 0x445A_4244;

/// The version that is written and read.
pub const DMZ_VERSION: u32 = 2;

/// Set in the version of a volume with a journal block map: the kernel target, `dmzadm` and older builds refuse it, because the
/// version is higher than the one they know.
pub const DMZ_JOURNAL_MAP: u32 = 1 << 31;

const CRC_AT: usize = 44;
const JOURNAL_AT: usize = 112;
const NO_ZONE: u32 = u32::MAX;

/// The root record of a metadata set, or its copy on a zoned device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmzRoot {
    /// Counts metadata flushes; the valid set with the highest one counts. 0 in copies on zoned devices.
    pub generation: u64,
    /// Where the record lies: 4 KiB block over all devices one after the other.
    pub block: u64,
    /// Blocks of a set, this one included.
    pub metadata_blocks: u32,
    /// Sequential zones that only reclaim may take.
    pub reserved: u32,
    /// Chunks of the exported device.
    pub chunks: u32,
    /// Blocks of the map.
    pub map_blocks: u32,
    /// Blocks of validity bits.
    pub bitmap_blocks: u32,
    /// Name, zero-terminated if it is shorter.
    pub label: [u8; 32],
    /// Of the set of devices.
    pub uuid: [u8; 16],
    /// Of the device the record is on.
    pub device_uuid: [u8; 16],
    /// Blocks of the journal block map, behind those of a set. Not known to dm-zoned: with 0 the record is dm-zoned's, else it
    /// has [`DMZ_JOURNAL_MAP`].
    pub journal_blocks: u32,
    /// Checksums of the set, in bytes that dm-zoned leaves alone; none in copies.
    pub sums: Option<DmzSums>,
}

/// Why bytes are not a root record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DmzRootError {
    /// Too short, or it begins otherwise.
    #[error("no dm-zoned root record: it begins with {found:#010x}, expected {DMZ_MAGIC:#010x}")]
    Magic {
        /// The first four bytes.
        found: u32,
    },
    /// Another version.
    #[error("dm-zoned metadata version {found}, expected {DMZ_VERSION}: format it anew")]
    Version {
        /// What it says.
        found: u32,
    },
    /// Damaged, or torn by a power cut.
    #[error("the checksum of the root record is {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// What it says.
        found: u32,
        /// What its bytes have.
        expected: u32,
    },
}

impl DmzRoot {
    /// The bytes of the record.
    #[must_use]
    pub fn encode(&self) -> Box<[u8; DMZ_BLOCK_BYTES]> {
        let mut block = Box::new([0; DMZ_BLOCK_BYTES]);
        let mut writer = Writer::new(&mut block[..]);
        writer.uint(DMZ_MAGIC.into(), 4);
        let map = if self.journal_blocks > 0 { DMZ_JOURNAL_MAP } else { 0 };
        writer.uint((DMZ_VERSION | map).into(), 4);
        writer.uint(self.generation, 8);
        writer.uint(self.block, 8);
        for field in [
            self.metadata_blocks,
            self.reserved,
            self.chunks,
            self.map_blocks,
            self.bitmap_blocks,
            0,
        ] {
            writer.uint(field.into(), 4);
        }
        writer.bytes(&self.label);
        writer.bytes(&self.uuid);
        writer.bytes(&self.device_uuid);
        writer.uint(self.journal_blocks.into(), 4);
        if let Some(sums) = &self.sums {
            sums.encode(self.generation, &mut block[..]);
        }
        let sum = crc32(low32(self.generation), &block[..]);
        block[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
        block
    }

    /// The record in a block.
    ///
    /// # Errors
    /// [`DmzRootError`] if it is none, has another version or a wrong checksum. What the fields say is not judged.
    pub fn decode(block: &[u8]) -> Result<Self, DmzRootError> {
        let mut whole = [0; DMZ_BLOCK_BYTES];
        let len = block.len().min(DMZ_BLOCK_BYTES);
        whole[..len].copy_from_slice(&block[..len]);
        let mut reader = Reader::new(&whole);
        let mut word = || reader.u32().unwrap_or_default();
        let (magic, version) = (word(), word());
        if magic != DMZ_MAGIC {
            return Err(DmzRootError::Magic { found: magic });
        }
        if version & !DMZ_JOURNAL_MAP != DMZ_VERSION {
            return Err(DmzRootError::Version { found: version });
        }
        let mut wide = || u64::from(word()) | u64::from(word()) << 32;
        let (generation, block) = (wide(), wide());
        let [metadata_blocks, reserved, chunks, map_blocks, bitmap_blocks, found] =
            [word(), word(), word(), word(), word(), word()];
        let (mut label, mut uuid, mut device_uuid) = ([0; 32], [0; 16], [0; 16]);
        label.copy_from_slice(&whole[48..80]);
        uuid.copy_from_slice(&whole[80..96]);
        device_uuid.copy_from_slice(&whole[96..112]);
        let has_map = version & DMZ_JOURNAL_MAP != 0;
        let journal_blocks = Reader::new(&whole[JOURNAL_AT..]).u32().filter(|_| has_map);
        whole[CRC_AT..CRC_AT + 4].fill(0);
        let expected = crc32(low32(generation), &whole);
        if found != expected {
            return Err(DmzRootError::Checksum { found, expected });
        }
        Ok(Self {
            generation,
            block,
            metadata_blocks,
            reserved,
            chunks,
            map_blocks,
            bitmap_blocks,
            label,
            uuid,
            device_uuid,
            journal_blocks: journal_blocks.unwrap_or(0),
            sums: DmzSums::decode(generation, &whole),
        })
    }
}

/// Where a chunk lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DmzMapEntry {
    /// Its data zone.
    pub data: Option<ZoneId>,
    /// The zone that takes what cannot be written there.
    pub buffer: Option<ZoneId>,
}

impl DmzMapEntry {
    /// Bytes of an entry.
    pub const BYTES: usize = 8;

    /// The bytes of the entry.
    #[must_use]
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (field, zone) in bytes.chunks_mut(4).zip([self.data, self.buffer]) {
            field.copy_from_slice(&zone.map_or(NO_ZONE, ZoneId::raw).to_le_bytes());
        }
        bytes
    }

    /// The entry in these bytes. Whether there are such zones is not judged.
    #[must_use]
    pub fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let mut reader = Reader::new(&bytes);
        let mut zone = || reader.u32().filter(|raw| *raw != NO_ZONE).map(ZoneId::new);
        Self { data: zone(), buffer: zone() }
    }
}

/// CRC-32 with the reflected polynomial 0xEDB88320 from a start value, not inverted at the end, as Linux has it.
fn crc32(start: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc_table();
    bytes
        .iter()
        .fold(start, |crc, byte| TABLE[usize::from(low8(u64::from(crc)) ^ byte)] ^ (crc >> 8))
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = u32_from(byte);
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        table[index(u32_from(byte))] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> DmzRoot {
        DmzRoot {
            generation: 0x1_0000_0005,
            block: 16_384,
            metadata_blocks: 82,
            reserved: 16,
            chunks: 62,
            map_blocks: 1,
            bitmap_blocks: 80,
            label: *b"t\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            uuid: [7; 16],
            device_uuid: [9; 16],
            journal_blocks: 0,
            sums: None,
        }
    }

    #[test]
    fn checksums_of_another_generation_do_not_count() {
        let sums = DmzSums { first: 16_368, tables: vec![0x0102_0304, 5] };
        let with = DmzRoot { sums: Some(sums), ..root() };
        let bytes = with.encode();
        assert_eq!(bytes[128..140], [b'D', b'B', b'Z', b'C', 1, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(bytes[144..160], [0xF0, 0x3F, 0, 0, 2, 0, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0]);
        assert_eq!(DmzRoot::decode(&bytes[..]), Ok(with));
        // As the kernel target writes it: what it does not know stays, the generation and the checksum are its own.
        let mut kernel = bytes;
        kernel[8] += 1;
        kernel[CRC_AT..CRC_AT + 4].fill(0);
        let sum = crc32(6, &kernel[..]);
        kernel[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
        let found = DmzRoot::decode(&kernel[..]).unwrap();
        assert_eq!(found, DmzRoot { generation: 0x1_0000_0006, ..root() });
    }

    #[test]
    fn a_journal_block_map_is_a_version_that_others_refuse() {
        let bytes = DmzRoot { journal_blocks: 0x0102, ..root() }.encode();
        assert_eq!((&bytes[4..8], &bytes[112..116]), (&[2, 0, 0, 128][..], &[2, 1, 0, 0][..]));
        let found = DmzRoot::decode(&bytes[..]).unwrap();
        assert_eq!(found, DmzRoot { journal_blocks: 0x0102, ..root() });
        // As dm-zoned and builds without journal block maps judge it.
        assert!(u32::from_le_bytes(bytes[4..8].try_into().unwrap()) > DMZ_VERSION);
        assert_eq!(root().encode()[112..], [0; DMZ_BLOCK_BYTES - 112], "nothing of our own");
    }

    #[test]
    fn the_checksum_is_the_crc_32_of_linux() {
        // The check value of CRC-32 is that of "123456789" from all ones, inverted.
        assert_eq!(!crc32(!0, b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(0, &[0; 64]), 0);
    }

    #[test]
    fn every_field_lies_where_the_kernel_has_it() {
        let bytes = root().encode();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(&bytes[..4], b"DBZD");
        assert_eq!([word(4), word(8), word(12), word(16), word(20)], [2, 5, 1, 16_384, 0]);
        assert_eq!([word(24), word(28), word(32), word(36), word(40)], [82, 16, 62, 1, 80]);
        assert_eq!((bytes[48], bytes[80], bytes[96], bytes[112]), (b't', 7, 9, 0));
        let mut blank = bytes.clone();
        blank[44..48].fill(0);
        assert_eq!(word(44), crc32(5, &blank[..]), "the low word of the generation begins it");
    }

    #[test]
    fn a_record_comes_back_and_damage_is_told() {
        let bytes = root().encode();
        assert_eq!(DmzRoot::decode(&bytes[..]), Ok(root()));
        for at in [8, 30, 44, 47, 60, 100, 4095] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            let found = DmzRoot::decode(&damaged[..]);
            assert!(matches!(found, Err(DmzRootError::Checksum { .. })), "byte {at}");
        }
        assert_eq!(DmzRoot::decode(&[]), Err(DmzRootError::Magic { found: 0 }));
        let mut old = bytes;
        old[4] = 1;
        assert_eq!(DmzRoot::decode(&old[..]), Err(DmzRootError::Version { found: 1 }));
    }

    #[test]
    fn map_entries_come_back() {
        let entry = DmzMapEntry { data: Some(ZoneId::new(0x0102)), buffer: None };
        assert_eq!(entry.encode(), [2, 1, 0, 0, 255, 255, 255, 255]);
        assert_eq!(DmzMapEntry::decode(entry.encode()), entry);
        assert_eq!(DmzMapEntry::decode([255; 8]), DmzMapEntry::default());
    }
}
