//! One run of remapped units, 24 B: seq 8 | target 4 | slot 4 | len 2 | 0 2 | crc 4.
//!
//! The checksum covers the life of the segment, 8 B, and the 20 bytes before it. So the rest of an
//! entry of an earlier life never passes, nor does one that a power cut tore.

use onefold_units::{Lpn, Seq};

use crate::bytes::{Reader, Writer};

/// The `len` units from `target` map to the `len` slots from `slot` of one superblock. Source: Wu
/// 2022, Table II, as an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapEntry {
    /// Sequence number of the mapping; collection keeps it.
    pub seq: Seq,
    /// First unit.
    pub target: Lpn,
    /// First slot in the superblock.
    pub slot: u32,
    /// Number of units, at least 1.
    pub len: u16,
}

impl RemapEntry {
    /// Bytes of one entry in a segment.
    pub const BYTES: usize = 24;
    const BODY: usize = Self::BYTES - 4;

    /// Whether this is an entry at all: it has a number and a length, and ends within 32 bits.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let len = u32::from(self.len);
        let ends = self.target.checked_add(len).is_some() && self.slot.checked_add(len).is_some();
        self.seq.raw() > 0 && self.len > 0 && ends
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
    };

    #[test]
    fn golden_bytes() {
        let bytes = ENTRY.encode(7);
        let body: Vec<u8> = (1..=18).chain([0, 0]).collect();
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
            RemapEntry { seq: Seq::new(9), target: Lpn::new(8), slot: 7, len: 2 }.encode(6);
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
            let sum = super::checksum(7, &bytes[..20]);
            bytes[20..].copy_from_slice(&sum.to_le_bytes());
            bytes
        };
        let last = u32::MAX - u32::from(ENTRY.len);
        let longest = RemapEntry { target: Lpn::new(last), slot: last, ..ENTRY };
        assert_eq!(sealed(longest), longest.encode(7));
        assert_eq!(RemapEntry::decode(&sealed(longest), 7), Some(longest));
        let wrong = [
            RemapEntry { len: 0, ..ENTRY },
            RemapEntry { seq: Seq::new(0), ..ENTRY },
            RemapEntry { target: Lpn::new(last + 1), ..ENTRY },
            RemapEntry { slot: last + 1, ..ENTRY },
        ];
        for entry in wrong {
            assert_eq!(RemapEntry::decode(&sealed(entry), 7), None, "{entry:?}");
        }
    }
}
