//! Header of a superblock, 64 B: magic 4 | version 2 | kind 1 | 0 | id 4 | erases 4 | epoch 8 |
//! seq 8 | geometry 8 | 0 .. | crc 4.

use onefold_units::{Seq, SuperblockId};

use crate::bytes::{Reader, Writer, checked_body, seal};

const BYTES: usize = 64;
const MAGIC: u64 = 0x4853_464F; // "OFSH"

/// Version of the superblock header.
pub const HEAD_VERSION: u64 = 1;

/// What a superblock holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperblockKind {
    /// Units of the host and translation pages.
    Data,
    /// Pages of an L2P checkpoint.
    Checkpoint,
    /// Pages of the remap log.
    Log,
}

impl SuperblockKind {
    const fn code(self) -> u64 {
        match self {
            Self::Data => 1,
            Self::Checkpoint => 2,
            Self::Log => 3,
        }
    }
}

/// Header of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRecord {
    /// Content.
    pub kind: SuperblockKind,
    /// The superblock it was written to.
    pub superblock: SuperblockId,
    /// Erases so far.
    pub erases: u32,
    /// Number of this allocation among all allocations of the device's life (remap.md, H28).
    pub epoch: u64,
    /// Last sequence number given out before the allocation.
    pub seq: Seq,
    /// Checksum of the geometry the device was created with.
    pub geometry: u64,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// Erased, never opened since.
    Erased,
    /// Torn or damaged: nothing in the superblock can be trusted.
    Damaged,
    /// Opened.
    Opened(HeadRecord),
}

impl HeadRecord {
    /// The bytes of the header.
    #[must_use]
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(MAGIC, 4);
        writer.uint(HEAD_VERSION, 2);
        writer.uint(self.kind.code(), 1);
        writer.uint(0, 1);
        writer.uint(u64::from(self.superblock.raw()), 4);
        writer.uint(u64::from(self.erases), 4);
        writer.uint(self.epoch, 8);
        writer.uint(self.seq.raw(), 8);
        writer.uint(self.geometry, 8);
        seal(&mut bytes);
        bytes
    }
}

impl HeadState {
    /// Reads the header of `superblock` on a device whose geometry has the checksum `geometry`. A
    /// header of another superblock or geometry is damage.
    #[must_use]
    pub fn decode(bytes: &[u8; BYTES], superblock: SuperblockId, geometry: u64) -> Self {
        if bytes.iter().all(|byte| *byte == 0xFF) {
            return Self::Erased;
        }
        checked_body(bytes)
            .and_then(decode_body)
            .filter(|head| head.superblock == superblock && head.geometry == geometry)
            .map_or(Self::Damaged, Self::Opened)
    }
}

fn decode_body(body: &[u8]) -> Option<HeadRecord> {
    let mut reader = Reader::new(body);
    let known = reader.uint(4)? == MAGIC && reader.uint(2)? == HEAD_VERSION;
    let kind = match reader.u8()? {
        1 => SuperblockKind::Data,
        2 => SuperblockKind::Checkpoint,
        3 => SuperblockKind::Log,
        _ => return None,
    };
    reader.u8()?;
    let (superblock, erases) = (SuperblockId::new(reader.u32()?), reader.u32()?);
    let (epoch, seq) = (reader.uint(8)?, Seq::new(reader.uint(8)?));
    let geometry = reader.uint(8)?;
    known.then_some(HeadRecord { kind, superblock, erases, epoch, seq, geometry })
}

#[cfg(test)]
mod tests {
    use super::{HeadRecord, HeadState, SuperblockKind};
    use onefold_units::{Seq, SuperblockId};

    #[test]
    fn there_and_back_and_not_from_elsewhere() {
        let superblock = SuperblockId::new(5);
        let head = HeadRecord {
            kind: SuperblockKind::Data,
            superblock,
            erases: 3,
            epoch: 9,
            seq: Seq::new(77),
            geometry: 1234,
        };
        let bytes = head.encode();
        assert_eq!(bytes[..9], *b"OFSH\x01\x00\x01\x00\x05");
        assert_eq!(HeadState::decode(&bytes, superblock, 1234), HeadState::Opened(head));
        assert_eq!(HeadState::decode(&bytes, SuperblockId::new(6), 1234), HeadState::Damaged);
        assert_eq!(HeadState::decode(&bytes, superblock, 1235), HeadState::Damaged);
        assert_eq!(HeadState::decode(&[0xFF; 64], superblock, 1234), HeadState::Erased);
    }
}
