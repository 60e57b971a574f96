//! What the blocks of 4 KiB between host and device have in common: a head of 64 B.
//!
//! Head: magic 4 | version 2 | code 2 | ranges 2 | content 2 | 0 4 | command id 16 | crc 4 | 0 28.
//! The crc covers the 4 KiB with these four bytes as zeroes.

use crate::bytes::{Reader, Writer};

/// Bytes of a vector or a reply.
pub const REMAP_BLOCK_BYTES: usize = 4096;

/// Ranges of one vector.
pub const REMAP_RANGES_MAX: usize = 168;

pub(super) const HEAD_BYTES: usize = 64;
const VERSION: u16 = 1;
const CRC_AT: usize = 32;

/// Why a block is no remap command or reply, or cannot become one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemapBlockError {
    /// Not one block.
    #[error("the {block} has {found} bytes, expected {REMAP_BLOCK_BYTES}")]
    Size {
        /// Which kind of block.
        block: &'static str,
        /// Bytes there are.
        found: usize,
    },
    /// Something else.
    #[error("this is no {block}: the magic number at byte 0 is missing")]
    Magic {
        /// Which kind of block.
        block: &'static str,
    },
    /// Made by a newer Onefold.
    #[error("the {block} has version {found}, this Onefold knows version {expected}")]
    Version {
        /// Which kind of block.
        block: &'static str,
        /// Version found.
        found: u16,
        /// Version this build writes and reads.
        expected: u16,
    },
    /// Changed on its way.
    #[error("the {block} is damaged: the checksum at byte {CRC_AT} is wrong, send it again")]
    Damaged {
        /// Which kind of block.
        block: &'static str,
    },
    /// Flags of a newer Onefold.
    #[error(
        "the remap vector has unknown flags {unknown:#06x} at byte 6, ask for the capabilities"
    )]
    Flags {
        /// The bits that mean nothing.
        unknown: u16,
    },
    /// MOVE and `MOVE_ON_FLUSH` at once.
    #[error("the remap vector says MOVE and MOVE_ON_FLUSH, expected at most one of them")]
    TwoMoves,
    /// A MOVE that could be executed twice.
    #[error("a MOVE needs a command id other than 0 (byte 16), so that a repeat does nothing")]
    MoveWithoutId,
    /// No range, or more than fit.
    #[error("the remap vector has {found} ranges, expected 1 to {REMAP_RANGES_MAX}; split it")]
    Ranges {
        /// Ranges there are.
        found: usize,
    },
    /// A range of nothing.
    #[error("range {at} of the remap vector has length 0, expected at least 1 unit of 4 KiB")]
    Empty {
        /// Which range, from 0.
        at: usize,
    },
    /// A range that ends past all devices.
    #[error("range {at} of the remap vector ends past unit 2^64")]
    Beyond {
        /// Which range, from 0.
        at: usize,
    },
    /// A name of a snapshot that breaks the rules.
    #[error(
        "the name of a snapshot has 1 to 63 letters, digits, `.`, `_` and `-`, and begins with a \
         letter or a digit"
    )]
    Name,
    /// A command about snapshots that this build does not know.
    #[error("the snapshot command has action {found}, expected 1 to 5")]
    Action {
        /// What was found.
        found: u16,
    },
    /// More snapshots than a table holds.
    #[error("there are {found} snapshots, at most 41 fit the table: delete one first")]
    Snapshots {
        /// How many.
        found: usize,
    },
    /// A field of a reply that means nothing.
    #[error("the remap reply has a {field} that this Onefold does not know")]
    Reply {
        /// Which field.
        field: &'static str,
    },
}

/// The two directions.
#[derive(Clone, Copy)]
pub(super) enum Block {
    Vector,
    Reply,
    /// A command about snapshots.
    Snapshot,
    /// The table of snapshots.
    Table,
}

/// The head, apart from what is the same in each.
pub(super) struct Head {
    /// Flags of a vector, status of a reply.
    pub(super) code: u16,
    pub(super) ranges: u16,
    /// What follows in a reply; 0 in a vector.
    pub(super) content: u16,
    pub(super) cmd_id: u128,
}

impl Head {
    /// What follows the head for each range. `None` if there are more than a block holds.
    pub(super) fn list<T>(
        &self,
        reader: &mut Reader<'_>,
        read: impl Fn(&mut Reader<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let ranges = usize::from(self.ranges);
        (ranges <= REMAP_RANGES_MAX).then_some(())?;
        (0..ranges).map(|_| read(reader)).collect()
    }
}

impl Block {
    const fn magic(self) -> u64 {
        match self {
            Self::Vector => 0x5652_464F,   // "OFRV"
            Self::Reply => 0x5252_464F,    // "OFRR"
            Self::Snapshot => 0x4353_464F, // "OFSC"
            Self::Table => 0x5453_464F,    // "OFST"
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Vector => "remap vector",
            Self::Reply => "remap reply",
            Self::Snapshot => "snapshot command",
            Self::Table => "snapshot table",
        }
    }

    /// Whether a block begins like one of these.
    pub(super) fn claims(self, bytes: &[u8]) -> bool {
        Reader::new(bytes).uint(4) == Some(self.magic())
    }

    /// A block with `head` and what `fill` writes behind it.
    pub(super) fn write(
        self,
        head: &Head,
        fill: impl FnOnce(&mut Writer<'_>),
    ) -> [u8; REMAP_BLOCK_BYTES] {
        let mut bytes = [0; REMAP_BLOCK_BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(self.magic(), 4);
        writer.uint(u64::from(VERSION), 2);
        writer.uint(u64::from(head.code), 2);
        writer.uint(u64::from(head.ranges), 2);
        writer.uint(u64::from(head.content), 2);
        writer.uint(0, 4);
        writer.bytes(&head.cmd_id.to_le_bytes());
        writer.bytes(&[0; HEAD_BYTES - CRC_AT]);
        fill(&mut writer);
        seal(&mut bytes);
        bytes
    }

    /// The head of a block, and a reader of what follows it.
    pub(super) fn read(self, bytes: &[u8]) -> Result<(Head, Reader<'_>), RemapBlockError> {
        let (block, damaged) = (self.name(), RemapBlockError::Damaged { block: self.name() });
        let whole: &[u8; REMAP_BLOCK_BYTES] =
            bytes.try_into().map_err(|_| RemapBlockError::Size { block, found: bytes.len() })?;
        let mut reader = Reader::new(whole);
        if reader.uint(4) != Some(self.magic()) {
            return Err(RemapBlockError::Magic { block });
        }
        let found = reader.u16().ok_or_else(|| damaged.clone())?;
        if found != VERSION {
            return Err(RemapBlockError::Version { block, found, expected: VERSION });
        }
        let intact = whole[CRC_AT..HEAD_BYTES].starts_with(&checksum(whole).to_le_bytes());
        let head = read_head(&mut reader).filter(|_| intact).ok_or(damaged)?;
        Ok((head, reader))
    }
}

fn read_head(reader: &mut Reader<'_>) -> Option<Head> {
    let (code, ranges, content) = (reader.u16()?, reader.u16()?, reader.u16()?);
    reader.bytes(4)?;
    let cmd_id = reader.u128()?;
    reader.bytes(HEAD_BYTES - CRC_AT)?;
    Some(Head { code, ranges, content, cmd_id })
}

pub(super) fn seal(block: &mut [u8; REMAP_BLOCK_BYTES]) {
    let sum = checksum(block);
    block[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(block: &[u8; REMAP_BLOCK_BYTES]) -> u32 {
    let sum = crc32c::crc32c_append(crate::checksum(&block[..CRC_AT]), &[0; 4]);
    crc32c::crc32c_append(sum, &block[CRC_AT + 4..])
}

#[cfg(test)]
mod tests {
    use super::{Block, Head, REMAP_BLOCK_BYTES, RemapBlockError};

    #[test]
    fn refusals_tell_what_is_wrong() {
        let head = Head { code: 1, ranges: 2, content: 3, cmd_id: 4 };
        let block = Block::Vector.write(&head, |_| ());
        let read = |bytes: &[u8]| Block::Vector.read(bytes).map(|(head, _)| head.cmd_id);
        let (name, found) = ("remap vector", REMAP_BLOCK_BYTES - 1);
        assert_eq!(read(&block), Ok(4));
        assert_eq!(read(&block[1..]), Err(RemapBlockError::Size { block: name, found }));
        assert_eq!(read(&[0; REMAP_BLOCK_BYTES]), Err(RemapBlockError::Magic { block: name }));
        let reply = Block::Reply.read(&block).map(|(head, _)| head.cmd_id);
        assert_eq!(reply, Err(RemapBlockError::Magic { block: "remap reply" }));
        let mut newer = block;
        newer[4] = 2;
        let version = RemapBlockError::Version { block: name, found: 2, expected: 1 };
        assert_eq!(read(&newer), Err(version));
        for at in 6..REMAP_BLOCK_BYTES {
            let mut damaged = block;
            damaged[at] ^= 0x10;
            let expected = RemapBlockError::Damaged { block: name };
            assert_eq!(read(&damaged), Err(expected), "byte {at}");
        }
    }
}
