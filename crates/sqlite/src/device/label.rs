//! The label of a database on a device: block 0 (docs/spec.md, section 12).

use onefold_format::checksum;
use onefold_units::convert::index64;

use crate::layout::BLOCK_BYTES;

const MAGIC: [u8; 8] = *b"OFSQLDB\0";
const VERSION: u16 = 1;
/// A block.
pub(super) const BYTES: usize = index64(BLOCK_BYTES);
/// Where the checksum of the block is.
const SUM_AT: usize = BYTES - 4;

/// What a label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// Number of the database, random.
    pub(crate) id: u128,
    /// Bytes of the WAL.
    pub(crate) wal_bytes: u64,
    /// Bytes of the database file.
    pub(crate) database_bytes: u64,
}

/// What block 0 of a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A label.
    Label(Label),
    /// One that is damaged, or of another version.
    Damaged,
    /// Something else.
    Nothing,
}

impl Label {
    /// The block to write.
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut block = [0; BYTES];
        block[..8].copy_from_slice(&MAGIC);
        block[8..10].copy_from_slice(&VERSION.to_le_bytes());
        block[16..32].copy_from_slice(&self.id.to_le_bytes());
        block[32..40].copy_from_slice(&self.wal_bytes.to_le_bytes());
        block[40..48].copy_from_slice(&self.database_bytes.to_le_bytes());
        let sum = checksum(&block[..SUM_AT]);
        block[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        block
    }

    /// Reads a block.
    pub(crate) fn decode(block: &[u8; BYTES]) -> Found {
        if block[..8] != MAGIC {
            return Found::Nothing;
        }
        let sum = checksum(&block[..SUM_AT]);
        if block[SUM_AT..] != sum.to_le_bytes() || block[8..10] != VERSION.to_le_bytes() {
            return Found::Damaged;
        }
        let word = |at: usize| {
            block[at..].first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_le_bytes(*bytes))
        };
        Found::Label(Self {
            id: u128::from(word(24)) << 64 | u128::from(word(16)),
            wal_bytes: word(32),
            database_bytes: word(40),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_survives_and_damage_is_seen() {
        let label = Label { id: 7 << 100 | 5, wal_bytes: 1 << 40, database_bytes: 4096 };
        let block = label.encode();
        assert_eq!(Label::decode(&block), Found::Label(label));
        for at in [9, 16, 31, 40, 2000, BYTES - 1] {
            let mut damaged = block;
            damaged[at] ^= 1;
            assert_eq!(Label::decode(&damaged), Found::Damaged, "byte {at}");
        }
        assert_eq!(Label::decode(&[0; BYTES]), Found::Nothing);
    }

    #[test]
    fn another_version_is_refused() {
        let mut block = Label { id: 1, wal_bytes: 2, database_bytes: 3 }.encode();
        block[8] = 2;
        let sum = checksum(&block[..SUM_AT]);
        block[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Label::decode(&block), Found::Damaged);
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let block = Label { id: 0x0102, wal_bytes: 0x0304, database_bytes: 0x0506 }.encode();
        assert_eq!(block[..18], *b"OFSQLDB\0\x01\0\0\0\0\0\0\0\x02\x01");
        assert_eq!((block[32], block[33], block[40], block[41]), (4, 3, 6, 5));
    }
}
