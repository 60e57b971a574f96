//! One run of remapped units, 24 B: seq 8 | target 4 | slot 4 | len 2 | stride - 1 2 | crc 4.
//!
//! Slots of a run follow one another; its units are a stride apart. A device with superblocks of one
//! die gives neighbouring units to one die after the other, so what was written in one piece is one
//! run per superblock, with the number of dies as stride.
//!
//! The checksum covers the life of the segment, 8 B, and the 20 bytes before it. So the rest of an
//! entry of an earlier life never passes, nor does one that a power cut tore.

use onefold_units::{Lpn, Seq};

use crate::bytes::{Reader, Writer};

/// The `len` units from `target`, each `stride` from the one before, map to the `len` slots from
/// `slot` of one superblock. Source: Wu 2022, Table II, as an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RemapEntry {
    /// Sequence number of the mapping; collection keeps it.
    pub seq: Seq,
    /// First unit.
    pub target: Lpn,
    /// First slot in the superblock.
    pub slot: u32,
    /// Number of units, at least 1.
    pub len: u16,
    /// From one unit to the next, at least 1; 1 if there is only one.
    pub stride: u16,
}

onefold_units::keep!(RemapEntry { seq, target, slot, len, stride });

impl RemapEntry {
    /// Bytes of one entry in a segment.
    pub const BYTES: usize = 24;
    const BODY: usize = Self::BYTES - 4;

    /// One unit.
    #[must_use]
    pub const fn single(seq: Seq, target: Lpn, slot: u32) -> Self {
        Self { seq, target, slot, len: 1, stride: 1 }
    }

    /// Whether this is an entry at all: it has a number, a length and a stride, and ends within 32
    /// bits.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        if self.seq.raw() == 0 || self.len == 0 || self.stride == 0 {
            return false;
        }
        let slots_end = self.slot.checked_add(u32::from(self.len));
        let ends = self.target.checked_add(self.span()).is_some() && slots_end.is_some();
        ends && (self.len > 1 || self.stride == 1)
    }

    /// Units from the first to the last, those between included.
    fn span(&self) -> u32 {
        // At most 65,534 x 65,535 + 1.
        u32::from(self.len.saturating_sub(1)) * u32::from(self.stride) + 1
    }

    /// The units in their order, each with its slot.
    pub fn units(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (stride, mut lpn) = (u32::from(self.stride), self.target.raw());
        (self.slot..self.slot + u32::from(self.len)).map(move |slot| {
            let unit = (lpn, slot);
            // Past the last unit the number may leave 32 bits; nobody sees it.
            lpn = lpn.wrapping_add(stride);
            unit
        })
    }

    /// The slot that a unit maps to; `None` if the run does not have it.
    #[must_use]
    pub fn slot_of(&self, lpn: u32) -> Option<u32> {
        let distance = lpn.checked_sub(self.target.raw()).filter(|far| *far < self.span())?;
        let stride = u32::from(self.stride);
        distance.is_multiple_of(stride).then(|| self.slot + distance / stride)
    }

    /// The part from unit `first` to unit `last` of the run, counted from 0.
    #[must_use]
    pub fn part(&self, first: u16, last: u16) -> Self {
        let target = self.target.raw() + u32::from(first) * u32::from(self.stride);
        Self {
            seq: self.seq,
            target: Lpn::new(target),
            slot: self.slot + u32::from(first),
            len: last - first + 1,
            stride: if first == last { 1 } else { self.stride },
        }
    }

    /// This run and `next` as one, if `next` goes on where it ends: same number, the following slots,
    /// and one stride of at most `stride_max` for all units. `None` if not, or beyond `len_max` units.
    #[must_use]
    #[inline]
    pub fn joined(&self, next: &Self, len_max: u16, stride_max: u16) -> Option<Self> {
        let len = self.len.checked_add(next.len).filter(|len| *len <= len_max)?;
        let slot = self.slot + u32::from(self.len);
        if self.seq != next.seq || slot != next.slot {
            return None;
        }
        let last = self.target.raw() + (self.span() - 1);
        let stride = u16::try_from(next.target.raw().checked_sub(last)?).ok()?;
        let fits = |run: &Self| run.len == 1 || run.stride == stride;
        ((1..=stride_max).contains(&stride) && fits(self) && fits(next)).then_some(Self {
            len,
            stride,
            ..*self
        })
    }

    /// The bytes of the entry, in a segment that lives its `life`. Panics if it is not valid: no
    /// reader would accept it.
    #[must_use]
    pub fn encode(&self, life: u64) -> [u8; Self::BYTES] {
        assert!(self.is_valid(), "{self:?} is no remap entry");
        let mut bytes = [0; Self::BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(self.seq.raw(), 8);
        writer.uint(u64::from(self.target.raw()), 4);
        writer.uint(u64::from(self.slot), 4);
        writer.uint(u64::from(self.len), 2);
        // Builds that knew no strides wrote zeroes here.
        writer.uint(u64::from(self.stride - 1), 2);
        let sum = checksum(life, &bytes[..Self::BODY]);
        bytes[Self::BODY..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads an entry; `None` if there is none, or it is torn or of another life.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES], life: u64) -> Option<Self> {
        let (body, sum) = bytes.split_at(Self::BODY);
        let mut reader = Reader::new(body);
        let entry = Self {
            seq: Seq::new(reader.uint(8)?),
            target: Lpn::new(reader.u32()?),
            slot: reader.u32()?,
            len: reader.u16()?,
            stride: reader.u16()?.checked_add(1)?,
        };
        // The cheap test comes first: the free places of a segment are zeroes.
        let intact = entry.is_valid() && Reader::new(sum).u32()? == checksum(life, body);
        intact.then_some(entry)
    }
}

fn checksum(life: u64, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crate::checksum(&life.to_le_bytes()), body)
}

#[cfg(test)]
mod tests {
    use super::RemapEntry;
    use onefold_units::{Lpn, Seq};

    const ENTRY: RemapEntry = RemapEntry {
        seq: Seq::new(0x0807_0605_0403_0201),
        target: Lpn::new(0x0C0B_0A09),
        slot: 0x100F_0E0D,
        len: 0x1211,
        stride: 0x1414,
    };

    #[test]
    fn golden_bytes() {
        let bytes = ENTRY.encode(7);
        let body: Vec<u8> = (1..=20).collect();
        assert_eq!(bytes[..20], body);
        let mut covered = vec![7, 0, 0, 0, 0, 0, 0, 0];
        covered.extend(&body);
        assert_eq!(bytes[20..], crate::checksum(&covered).to_le_bytes());
        assert_eq!(RemapEntry::decode(&bytes, 7), Some(ENTRY));
    }

    #[test]
    fn neither_torn_nor_of_another_life() {
        let bytes = ENTRY.encode(7);
        assert_eq!(RemapEntry::decode(&bytes, 8), None);
        assert_eq!(RemapEntry::decode(&bytes, 7 << 32), None);
        for bit in 0..RemapEntry::BYTES * 8 {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RemapEntry::decode(&torn, 7), None, "bit {bit}");
        }
        // Any part of the three stores, over zeroes or over an entry of an earlier life.
        let earlier =
            RemapEntry { seq: Seq::new(9), target: Lpn::new(8), slot: 7, len: 2, stride: 3 };
        let earlier = earlier.encode(6);
        for before in [[0; RemapEntry::BYTES], earlier] {
            for stores in 0..7 {
                let mut mixed = before;
                for word in (0..3).filter(|word| stores >> word & 1 == 1) {
                    mixed[word * 8..][..8].copy_from_slice(&bytes[word * 8..][..8]);
                }
                assert_eq!(RemapEntry::decode(&mixed, 7), None, "stores {stores:03b}");
            }
        }
    }

    /// Bytes whose checksum is right, as only a defect elsewhere would leave them.
    #[test]
    fn what_is_no_entry_is_refused_in_spite_of_its_checksum() {
        let sealed = |entry: RemapEntry| {
            let mut bytes = [0; RemapEntry::BYTES];
            bytes[..8].copy_from_slice(&entry.seq.raw().to_le_bytes());
            bytes[8..12].copy_from_slice(&entry.target.raw().to_le_bytes());
            bytes[12..16].copy_from_slice(&entry.slot.to_le_bytes());
            bytes[16..18].copy_from_slice(&entry.len.to_le_bytes());
            bytes[18..20].copy_from_slice(&entry.stride.wrapping_sub(1).to_le_bytes());
            let sum = super::checksum(7, &bytes[..20]);
            bytes[20..].copy_from_slice(&sum.to_le_bytes());
            bytes
        };
        let last = u32::MAX - u32::from(ENTRY.len);
        let unit = u32::MAX - (u32::from(ENTRY.len) - 1) * u32::from(ENTRY.stride) - 1;
        let longest = RemapEntry { target: Lpn::new(unit), slot: last, ..ENTRY };
        assert_eq!(sealed(longest), longest.encode(7));
        assert_eq!(RemapEntry::decode(&sealed(longest), 7), Some(longest));
        let wrong = [
            RemapEntry { len: 0, ..ENTRY },
            RemapEntry { seq: Seq::new(0), ..ENTRY },
            RemapEntry { target: Lpn::new(unit + 1), ..ENTRY },
            RemapEntry { slot: last + 1, ..ENTRY },
            RemapEntry { stride: 0, ..ENTRY },
            RemapEntry { len: 1, ..ENTRY },
        ];
        for entry in wrong {
            assert_eq!(RemapEntry::decode(&sealed(entry), 7), None, "{entry:?}");
        }
    }

    /// What builds wrote before there were strides.
    #[test]
    fn an_entry_without_a_stride_has_neighbouring_units() {
        let mut bytes = RemapEntry { stride: 1, ..ENTRY }.encode(7);
        assert_eq!(bytes[18..20], [0, 0]);
        let entry = RemapEntry::decode(&bytes, 7);
        assert_eq!(entry, Some(RemapEntry { stride: 1, ..ENTRY }));
        bytes[18] = 1;
        assert_eq!(RemapEntry::decode(&bytes, 7), None, "the checksum covers the stride");
    }

    fn run(target: u32, slot: u32, len: u16, stride: u16) -> RemapEntry {
        RemapEntry { seq: Seq::new(5), target: Lpn::new(target), slot, len, stride }
    }

    #[test]
    fn units_slots_and_parts_of_a_run() {
        let entry = run(10, 4, 4, 3);
        let units: Vec<_> = entry.units().collect();
        assert_eq!(units, [(10, 4), (13, 5), (16, 6), (19, 7)]);
        for lpn in 0..30 {
            let slot = units.iter().find(|unit| unit.0 == lpn).map(|unit| unit.1);
            assert_eq!(entry.slot_of(lpn), slot, "unit {lpn}");
        }
        assert_eq!(entry.part(1, 2), run(13, 5, 2, 3));
        assert_eq!(entry.part(2, 2), run(16, 6, 1, 1));
        assert_eq!(entry.part(0, 3), entry);
        let end = run(u32::MAX - 1, 0, 1, 1);
        assert_eq!(end.units().collect::<Vec<_>>(), [(u32::MAX - 1, 0)]);
    }

    #[test]
    fn runs_are_joined_where_one_goes_on_as_the_other() {
        let joined = |a: &RemapEntry, b: &RemapEntry| a.joined(b, 100, 50);
        let whole = run(10, 4, 5, 3);
        for cut in 0..4 {
            let parts = (whole.part(0, cut), whole.part(cut + 1, 4));
            assert_eq!(joined(&parts.0, &parts.1), Some(whole), "after {cut}");
            assert_eq!(joined(&parts.1, &parts.0), None);
        }
        // Another slot, unit, stride or number; too far apart; too long.
        let next = run(25, 9, 2, 3);
        assert_eq!(joined(&whole, &next), Some(run(10, 4, 7, 3)));
        let others = [
            run(25, 8, 2, 3),
            run(26, 9, 2, 3),
            run(25, 9, 2, 4),
            run(22, 9, 2, 3),
            run(0, 9, 1, 1),
            RemapEntry { seq: Seq::new(6), ..next },
            run(25, 9, 96, 3),
        ];
        for other in others {
            assert_eq!(joined(&whole, &other), None, "{other:?}");
        }
        let far = |stride: u16| joined(&run(0, 0, 1, 1), &run(stride.into(), 1, 1, 1));
        assert_eq!((far(50), far(51), far(0)), (Some(run(0, 0, 2, 50)), None, None));
        assert_eq!(run(0, 0, 9, 1).joined(&run(9, 9, 1, 1), u16::MAX, 0), None);
    }
}
