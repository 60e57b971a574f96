//! A log block of the modes `sung` and `han`: one transaction (Sung 2022, sec. III-E; volume.md, section 3, V2).
//!
//! Begin 32: magic 4 | version 2 | pairs 2 | uuid 16 | seq 8. Then up to 506 pairs of 8 B: original block 4 |
//! transformed block 4. Commit 16, the last of the block: incarnation 4 | file 2 | 0 2 | address 4 | crc 4.
//!
//! The crc covers the 4 KiB with its four bytes as zeroes, so Begin, pairs and Commit are of one write or the block is
//! refused. There is no room for the head of other blocks beside 506 pairs.

use onefold_units::convert::u64_from;
use onefold_units::{Location, Seq};

use super::error::BlockError;
use super::fields::Fields;
use super::kind::{BLOCK_BYTES, BLOCK_VERSION};
use crate::bytes::Writer;

/// Pairs of a transaction at most.
pub const TRANSACTION_PAIRS_MAX: usize = 506;

const MAGIC: u32 = 0x5456_464F; // "OFVT"
const BEGIN_BYTES: usize = 32;
const COMMIT_AT: usize = BLOCK_BYTES - 16;
const CRC_AT: usize = BLOCK_BYTES - 4;

/// Where a block of the exported device lies from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The block of the exported device (*original*).
    pub lba: u32,
    /// The block of the backing (*transformed*); [`Location::UNMAPPED`] after a TRIM.
    pub to: Location,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number; those of a volume follow each other without gaps.
    pub seq: Seq,
    /// The mount that wrote it.
    pub incarnation: u32,
    /// The log (`sung`: 0) or map file (`han`: the partition) that it belongs to.
    pub file: u16,
    /// What changed, in order.
    pub pairs: Vec<Pair>,
}

impl Transaction {
    /// Writes the block that is to lie at `address`. Panics if `block` is not one block or there are too many pairs.
    pub fn encode(&self, uuid: &[u8; 16], address: u32, block: &mut [u8]) {
        assert_eq!(block.len(), BLOCK_BYTES, "bytes of a block");
        assert!(self.pairs.len() <= TRANSACTION_PAIRS_MAX, "{} pairs", self.pairs.len());
        block.fill(0);
        let mut writer = Writer::new(&mut block[..COMMIT_AT]);
        writer.uint(u64::from(MAGIC), 4);
        writer.uint(u64::from(BLOCK_VERSION), 2);
        writer.uint(u64_from(self.pairs.len()), 2);
        writer.bytes(uuid);
        writer.uint(self.seq.raw(), 8);
        for pair in &self.pairs {
            writer.uint(u64::from(pair.lba), 4);
            writer.uint(u64::from(pair.to.raw()), 4);
        }
        let mut writer = Writer::new(&mut block[COMMIT_AT..CRC_AT]);
        writer.uint(u64::from(self.incarnation), 4);
        writer.uint(u64::from(self.file), 2);
        writer.uint(0, 2);
        writer.uint(u64::from(address), 4);
        let sum = checksum(block);
        block[CRC_AT..].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads the block at `address`.
    ///
    /// # Errors
    /// See [`BlockError`].
    pub fn decode(block: &[u8], uuid: &[u8; 16], address: u32) -> Result<Self, BlockError> {
        if block.len() != BLOCK_BYTES {
            return Err(BlockError::Size { found: block.len() });
        }
        let mut begin = Fields::new(&block[..COMMIT_AT]);
        if begin.u32()? != MAGIC {
            return Err(BlockError::NotOurs);
        }
        let found = begin.u16()?;
        if found != BLOCK_VERSION {
            return Err(BlockError::Version { found });
        }
        let mut commit = Fields::new(&block[COMMIT_AT..]);
        let (incarnation, file) = (commit.u32()?, commit.u16()?);
        commit.skip(2)?;
        let (place, sum) = (commit.u32()?, commit.u32()?);
        if sum != checksum(block) {
            return Err(BlockError::Checksum);
        }
        let (count, owner) = (usize::from(begin.u16()?), begin.array()?);
        if owner != *uuid {
            return Err(BlockError::OtherVolume { found: owner });
        }
        if place != address {
            return Err(BlockError::Misplaced { found: place.into(), expected: address.into() });
        }
        let seq = begin.seq()?;
        let pair =
            |fields: &mut Fields<'_>| Ok(Pair { lba: fields.u32()?, to: fields.location()? });
        Ok(Self { seq, incarnation, file, pairs: begin.list(count, 8, pair)? })
    }
}

fn checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crate::checksum(&block[..CRC_AT]), &[0; 4])
}

const _: () = assert!(BEGIN_BYTES + 8 * TRANSACTION_PAIRS_MAX == COMMIT_AT);

#[cfg(test)]
mod tests {
    use super::super::testing::UUID;
    use super::{BLOCK_BYTES, BlockError, Pair, TRANSACTION_PAIRS_MAX, Transaction};
    use onefold_units::{Location, Seq};

    const ADDRESS: u32 = 0x0302_0100;

    fn transaction(pairs: usize) -> Transaction {
        let pair = Pair { lba: 0x0A0B_0C0D, to: Location::new(0x0102_0304) };
        Transaction { seq: Seq::new(9), incarnation: 3, file: 2, pairs: vec![pair; pairs] }
    }

    fn encoded(pairs: usize) -> Vec<u8> {
        let mut block = vec![0xEE; BLOCK_BYTES];
        transaction(pairs).encode(&UUID, ADDRESS, &mut block);
        block
    }

    fn decode(block: &[u8]) -> Result<Transaction, BlockError> {
        Transaction::decode(block, &UUID, ADDRESS)
    }

    #[test]
    fn golden_there_and_back() {
        let block = encoded(1);
        assert_eq!(block[..8], *b"OFVT\x01\0\x01\0");
        assert_eq!(block[8..24], UUID);
        assert_eq!(block[24..40], [9, 0, 0, 0, 0, 0, 0, 0, 0x0D, 0x0C, 0x0B, 0x0A, 4, 3, 2, 1]);
        assert!(block[40..4080].iter().all(|byte| *byte == 0));
        assert_eq!(block[4080..4092], [3, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 3]);
        for pairs in [0, 1, TRANSACTION_PAIRS_MAX] {
            assert_eq!(decode(&encoded(pairs)), Ok(transaction(pairs)));
        }
    }

    #[test]
    fn damage_and_strangers_are_refused() {
        let block = encoded(TRANSACTION_PAIRS_MAX);
        for at in 0..block.len() {
            let mut damaged = block.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {at}");
        }
        assert_eq!(decode(&block[1..]), Err(BlockError::Size { found: BLOCK_BYTES - 1 }));
        let other = Transaction::decode(&block, &[1; 16], ADDRESS);
        assert_eq!(other, Err(BlockError::OtherVolume { found: UUID }));
        let astray = Transaction::decode(&block, &UUID, 5);
        assert_eq!(astray, Err(BlockError::Misplaced { found: ADDRESS.into(), expected: 5 }));
    }

    #[test]
    fn a_count_that_does_not_fit_is_refused() {
        let mut block = encoded(0);
        block[6..8].copy_from_slice(&507_u16.to_le_bytes());
        let sum = super::checksum(&block);
        block[4092..].copy_from_slice(&sum.to_le_bytes());
        assert!(matches!(decode(&block), Err(BlockError::Malformed(_))));
    }
}
