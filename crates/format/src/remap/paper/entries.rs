//! Entries: one remapped unit each.

use onefold_units::convert::{low16, low32};
use onefold_units::{Lpn, Ppn, Seq};

use super::fields::{CRC_15, FieldWriter, take_lpn, take_torn};
use super::{HEAD_BYTES, PaperRangeError};
use crate::remap::bits::BitReader;

/// One remapped unit, 16 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P16Entry {
    /// Slot in the superblock, below 2^21.
    pub slot: u32,
    /// Sequence number of the mapping, below 2^42.
    pub seq: Seq,
    /// The unit, below 2^31.
    pub target: Lpn,
    /// The unit that lost the slot, if it was moved; below 2^31.
    pub source: Option<Lpn>,
}

/// One remapped unit in a global log, 16 B: the log has entries of all superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G16Entry {
    /// Where the unit is.
    pub ppn: Ppn,
    /// Sequence number of the mapping, less than 2^30 from the base of the log page.
    pub seq: Seq,
    /// The unit, below 2^31.
    pub target: Lpn,
    /// The unit that lost the slot, if it was moved; below 2^31.
    pub source: Option<Lpn>,
}

/// One remapped unit and the command it belongs to, 24 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct A24Entry {
    /// The unit.
    pub entry: P16Entry,
    /// First target of the command, below 2^31.
    pub start: Lpn,
    /// Units of the command, 1 to 65,536.
    pub len: u32,
    /// Whether the command counts only as a whole.
    pub atomic: bool,
}

const LEN_MAX: u64 = 1 << 16;
const SEQ_REACH: u64 = 1 << 30;
pub(super) const A24_CHECKED_BITS: usize = 177;

impl P16Entry {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    /// Entries in a segment or a log page of `bytes`.
    #[must_use]
    pub const fn per_container(bytes: u32) -> u32 {
        bytes.saturating_sub(HEAD_BYTES) / 16
    }

    /// The bytes of the entry.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("P16 entry", &mut bytes);
        self.put(&mut fields)?;
        fields.finish();
        Ok(bytes)
    }

    /// Reads an entry; `None` if there is none or it is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        Self::take(&mut BitReader::new(bytes))
    }

    /// Writes the fields, which are the first of an A24 entry, too.
    fn put(&self, fields: &mut FieldWriter<'_>) -> Result<(), PaperRangeError> {
        fields.torn();
        fields.put("slot", u64::from(self.slot), 21)?;
        fields.put("seq", self.seq.raw(), 42)?;
        fields.torn();
        fields.put("target", u64::from(self.target.raw()), 31)?;
        fields.put("move flag", u64::from(self.source.is_some()), 1)?;
        fields.put("source", self.source.map_or(0, |lpn| u64::from(lpn.raw())), 31)
    }

    fn take(reader: &mut BitReader<'_>) -> Option<Self> {
        take_torn(reader)?;
        let (slot, seq) = (low32(reader.take(21)?), Seq::new(reader.take(42)?));
        take_torn(reader)?;
        let target = take_lpn(reader)?;
        let moved = reader.take(1)? == 1;
        let source = Some(take_lpn(reader)?).filter(|_| moved);
        Some(Self { slot, seq, target, source })
    }
}

impl G16Entry {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    /// Entries in a log page of `bytes`.
    #[must_use]
    pub const fn per_page(bytes: u32) -> u32 {
        bytes.saturating_sub(HEAD_BYTES) / 16
    }

    /// The bytes of the entry in a log page with the base `base`.
    pub fn encode(&self, base: Seq) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("G16 entry", &mut bytes);
        let distance = self.seq.raw().abs_diff(base.raw());
        fields.check("distance of seq from its base", distance, 0, SEQ_REACH - 1)?;
        fields.torn();
        fields.put("PPN", u64::from(self.ppn.raw()), 32)?;
        fields.put("target", u64::from(self.target.raw()), 31)?;
        fields.torn();
        fields.put("source", self.source.map_or(0, |lpn| u64::from(lpn.raw())), 31)?;
        fields.put("move flag", u64::from(self.source.is_some()), 1)?;
        fields.put("seq", self.seq.raw() % (2 * SEQ_REACH), 31)?;
        fields.finish();
        Ok(bytes)
    }

    /// Reads an entry; `None` if there is none or it is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES], base: Seq) -> Option<Self> {
        let mut reader = BitReader::new(bytes);
        take_torn(&mut reader)?;
        let ppn = Ppn::new(low32(reader.take(32)?));
        let target = take_lpn(&mut reader)?;
        take_torn(&mut reader)?;
        let source = take_lpn(&mut reader)?;
        let source = Some(source).filter(|_| reader.take(1) == Some(1));
        let seq = nearest(base.raw(), reader.take(31)?)?;
        Some(Self { ppn, seq: Seq::new(seq), target, source })
    }
}

impl A24Entry {
    /// Bytes of an entry.
    pub const BYTES: usize = 24;

    /// Entries in a segment of `bytes`.
    #[must_use]
    pub const fn per_segment(bytes: u32) -> u32 {
        bytes.saturating_sub(HEAD_BYTES) / 24
    }

    /// The bytes of the entry.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("A24 entry", &mut bytes);
        self.entry.put(&mut fields)?;
        fields.torn();
        fields.put("start", u64::from(self.start.raw()), 31)?;
        fields.check("len", u64::from(self.len), 1, LEN_MAX)?;
        fields.put("len", u64::from(self.len) - 1, 16)?;
        fields.put("atomic flag", u64::from(self.atomic), 1)?;
        fields.finish();
        let last = low16(CRC_15.of(&bytes, A24_CHECKED_BITS)) << 1 | u16::from(self.atomic);
        bytes[22..].copy_from_slice(&last.to_le_bytes());
        Ok(bytes)
    }

    /// Reads an entry; `None` if there is none, or it is torn or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = BitReader::new(bytes);
        let entry = P16Entry::take(&mut reader)?;
        take_torn(&mut reader)?;
        let start = take_lpn(&mut reader)?;
        let len = low32(reader.take(16)?) + 1;
        let atomic = reader.take(1)? == 1;
        let intact = reader.take(15)? == CRC_15.of(bytes, A24_CHECKED_BITS);
        intact.then_some(Self { entry, start, len, atomic })
    }
}

/// The number nearest to `base` that ends in the 31 bits `low`.
fn nearest(base: u64, low: u64) -> Option<u64> {
    let above = low.wrapping_sub(base) % (2 * SEQ_REACH);
    if above < SEQ_REACH {
        base.checked_add(above)
    } else {
        base.checked_sub(2 * SEQ_REACH - above)
    }
}
