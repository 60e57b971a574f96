//! Heads of what holds entries: segments of NVRAM and log pages on flash.

use onefold_units::convert::{low16, low32};
use onefold_units::{Seq, SuperblockId};

use super::PaperRangeError;
use super::fields::{CRC_16, FieldWriter, take_torn};
use crate::bytes::Reader;
use crate::remap::bits::BitReader;

/// Head of a segment of P16 or A24 entries, 16 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P16SegmentHead {
    /// Last sequence number when the segment was allocated, below 2^42.
    pub seq: Seq,
    /// Number of the segment among those of its superblock, below 2^21.
    pub number: u32,
    /// The superblock of the entries' slots, below 2^20.
    pub superblock: SuperblockId,
    /// The segment after it, below 2^23 - 1.
    pub next: Option<u32>,
    /// Low 20 bits of the superblock's epoch.
    pub epoch_low: u32,
}

/// Head of a log page of P16 entries, 16 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P16LogPageHead {
    /// The superblock of the entries' slots.
    pub superblock: SuperblockId,
    /// Entries in the page.
    pub entries: u16,
    /// No meaning is defined.
    pub flags: u16,
    /// Epoch of the superblock, below 2^48.
    pub epoch: u64,
}

const NO_SEGMENT: u64 = (1 << 23) - 1;
const PAGE_CHECKED_BITS: usize = 112;

impl P16SegmentHead {
    /// Bytes of the head.
    pub const BYTES: usize = 16;

    /// The bytes of the head.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("P16 segment head", &mut bytes);
        fields.torn();
        fields.put("seq", self.seq.raw(), 42)?;
        fields.put("number", u64::from(self.number), 21)?;
        fields.torn();
        fields.put("superblock", u64::from(self.superblock.raw()), 20)?;
        if let Some(next) = self.next {
            fields.check("next segment", u64::from(next), 0, NO_SEGMENT - 1)?;
        }
        fields.put("next segment", self.next.map_or(NO_SEGMENT, u64::from), 23)?;
        fields.put("low bits of the epoch", u64::from(self.epoch_low), 20)?;
        fields.finish();
        Ok(bytes)
    }

    /// Reads a head; `None` if the segment is free or the head is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = BitReader::new(bytes);
        take_torn(&mut reader)?;
        let (seq, number) = (Seq::new(reader.take(42)?), low32(reader.take(21)?));
        take_torn(&mut reader)?;
        let superblock = SuperblockId::new(low32(reader.take(20)?));
        let next = Some(reader.take(23)?).filter(|next| *next != NO_SEGMENT).map(low32);
        let epoch_low = low32(reader.take(20)?);
        Some(Self { seq, number, superblock, next, epoch_low })
    }
}

impl P16LogPageHead {
    /// Bytes of the head.
    pub const BYTES: usize = 16;

    /// The bytes of the head.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("P16 log page head", &mut bytes);
        fields.put("superblock", u64::from(self.superblock.raw()), 32)?;
        fields.put("entries", u64::from(self.entries), 16)?;
        fields.put("flags", u64::from(self.flags), 16)?;
        fields.put("epoch", self.epoch, 48)?;
        fields.finish();
        let sum = low16(CRC_16.of(&bytes, PAGE_CHECKED_BITS));
        bytes[14..].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// Reads a head; `None` if there is none or it is damaged.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let superblock = SuperblockId::new(reader.u32()?);
        let (entries, flags) = (reader.u16()?, reader.u16()?);
        let epoch = reader.uint(6)?;
        let intact = reader.uint(2)? == CRC_16.of(bytes, PAGE_CHECKED_BITS);
        intact.then_some(Self { superblock, entries, flags, epoch })
    }
}
