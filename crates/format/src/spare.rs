//! Spare area of one slot, 24 B: lpn 5 | seq 6 | kind 1 | data crc 4 | epoch 4 | crc 4.
//!
//! Differs from remap.md section 3 (16 B): header and data have a checksum each, so that a scan can
//! trust the header without reading the data, and the low bits of the superblock's epoch tell a slot
//! of an earlier life of the superblock.

use onefold_units::{Lpn, Seq};

use crate::bytes::{Reader, Writer, checked_body, seal};

const BYTES: usize = 24;
const SEQ_BYTES: usize = 6;

/// The highest sequence number that media hold.
pub(crate) const SEQ_MAX: u64 = (1 << (8 * SEQ_BYTES)) - 1;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SlotKind {
    /// A unit of the host, or a translation page (LPNs past the logical capacity).
    #[default]
    Data,
    /// A tail page: reverse map of the superblock.
    Tail,
    /// A page of an L2P checkpoint; the lpn field is its index.
    Map,
    /// Nothing: it completes a flash page.
    Filler,
    /// A unit whose content was lost to an uncorrectable read; reading it is an error.
    Lost,
    /// A page of the remap log; the lpn field is the data superblock it is about.
    Log,
}

onefold_units::keep_enum!(SlotKind { Data, Tail, Map, Filler, Lost, Log });

/// The spare area of a programmed slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareRecord {
    /// Kind of content.
    pub kind: SlotKind,
    /// Logical unit, or index of a map page.
    pub lpn: Lpn,
    /// Sequence number of the write (kept by collection).
    pub seq: Seq,
    /// Checksum of the unit; 0 where no data is stored.
    pub data_crc: u32,
    /// Low 32 bits of the epoch of the superblock.
    pub epoch_low: u32,
}

/// What a spare area says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpareState {
    /// Never programmed since the erase.
    Erased,
    /// Torn or damaged.
    Damaged,
    /// Programmed.
    Programmed(SpareRecord),
}

impl SpareRecord {
    /// The bytes of the spare area.
    #[must_use]
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(u64::from(self.lpn.raw()), 5);
        writer.uint(self.seq.raw(), SEQ_BYTES);
        writer.uint(self.kind.code(), 1);
        writer.uint(u64::from(self.data_crc), 4);
        writer.uint(u64::from(self.epoch_low), 4);
        seal(&mut bytes);
        bytes
    }
}

impl SpareState {
    /// Reads a spare area.
    #[must_use]
    pub fn decode(bytes: &[u8; BYTES]) -> Self {
        if bytes.iter().all(|byte| *byte == 0xFF) {
            return Self::Erased;
        }
        checked_body(bytes).and_then(decode_body).map_or(Self::Damaged, Self::Programmed)
    }
}

fn decode_body(body: &[u8]) -> Option<SpareRecord> {
    let mut reader = Reader::new(body);
    let lpn = u32::try_from(reader.uint(5)?).ok()?;
    let seq = reader.uint(SEQ_BYTES)?;
    let kind = SlotKind::from_code(reader.u8()?)?;
    let (data_crc, epoch_low) = (reader.u32()?, reader.u32()?);
    Some(SpareRecord { kind, lpn: Lpn::new(lpn), seq: Seq::new(seq), data_crc, epoch_low })
}

impl SlotKind {
    pub(crate) const fn code(self) -> u64 {
        match self {
            Self::Data => 1,
            Self::Tail => 2,
            Self::Map => 3,
            Self::Filler => 4,
            Self::Lost => 5,
            Self::Log => 6,
        }
    }

    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Data),
            2 => Some(Self::Tail),
            3 => Some(Self::Map),
            4 => Some(Self::Filler),
            5 => Some(Self::Lost),
            6 => Some(Self::Log),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SlotKind, SpareRecord, SpareState};
    use onefold_units::{Lpn, Seq};

    #[test]
    fn golden_bytes() {
        let record = SpareRecord {
            kind: SlotKind::Data,
            lpn: Lpn::new(0x0403_0201),
            seq: Seq::new(0x0605_0403_0201),
            data_crc: 0xDDCC_BBAA,
            epoch_low: 7,
        };
        let bytes = record.encode();
        assert_eq!(
            bytes[..20],
            [1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 1, 0xAA, 0xBB, 0xCC, 0xDD, 7, 0, 0, 0]
        );
        assert_eq!(SpareState::decode(&bytes), SpareState::Programmed(record));
        assert_eq!(SpareState::decode(&[0xFF; 24]), SpareState::Erased);
        for bit in 0..24 * 8 {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SpareState::decode(&torn), SpareState::Damaged, "bit {bit}");
        }
    }
}
