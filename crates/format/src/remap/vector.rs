//! A remap command as a host sends it: 4 KiB, the head of [`wire`](super::wire) with the flags as its
//! code, and up to 168 ranges of 24 B: dst 8 | src 8 | len 4 | 0 4. Source: remap.md section 2.
//!
//! A vector that decodes is well formed; whether its ranges lie on the device and its targets are
//! disjoint is for the device to say.

use onefold_units::convert::{low16, u64_from};

use super::wire::{Block, Head, REMAP_BLOCK_BYTES, REMAP_RANGES_MAX, RemapBlockError};
use crate::bytes::Reader;

/// How a remap is executed: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemapFlags(u16);

impl RemapFlags {
    /// The source keeps its content. The default, without a bit.
    pub const COPY: Self = Self(0);
    /// The source is unmapped at completion.
    pub const MOVE: Self = Self(1);
    /// The source is unmapped by the first flush submitted after the completion.
    pub const MOVE_ON_FLUSH: Self = Self(1 << 1);
    /// All ranges or none, also over power cuts.
    pub const ATOMIC: Self = Self(1 << 2);
    /// Only units with equal contents are remapped.
    pub const VERIFY_EQUAL: Self = Self(1 << 3);
    /// Skip instead of copying what cannot be remapped.
    pub const NO_FALLBACK: Self = Self(1 << 4);

    const ALL: u16 = (1 << 5) - 1;

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether each flag of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits, for formats.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The flags that `bits` mean.
    pub const fn from_bits(bits: u16) -> Result<Self, RemapBlockError> {
        match bits & !Self::ALL {
            0 => Ok(Self(bits)),
            unknown => Err(RemapBlockError::Flags { unknown }),
        }
    }

    /// The flags among `bits` that this build knows.
    #[must_use]
    pub(super) const fn known(bits: u16) -> Self {
        Self(bits & Self::ALL)
    }
}

/// The units `dst..dst + len` get the content of `src..src + len`, in units of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorRange {
    /// First target.
    pub dst: u64,
    /// First source.
    pub src: u64,
    /// Number of units, at least 1.
    pub len: u32,
}

/// A remap command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemapVector {
    /// How to execute it.
    pub flags: RemapFlags,
    /// The host's number of the command: one that was done is not done again. 0 = none.
    pub cmd_id: u128,
    /// 1 to [`REMAP_RANGES_MAX`] ranges.
    pub ranges: Vec<VectorRange>,
}

impl RemapVector {
    /// The block to send.
    ///
    /// # Errors
    /// Whatever [`RemapVector::decode`] would refuse.
    pub fn encode(&self) -> Result<[u8; REMAP_BLOCK_BYTES], RemapBlockError> {
        self.check()?;
        let ranges = low16(u64_from(self.ranges.len()));
        let head = Head { code: self.flags.bits(), ranges, content: 0, cmd_id: self.cmd_id };
        Ok(Block::Vector.write(&head, |writer| {
            for range in &self.ranges {
                writer.uint(range.dst, 8);
                writer.uint(range.src, 8);
                writer.uint(u64::from(range.len), 4);
                writer.uint(0, 4);
            }
        }))
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Tells apart what is no vector, damage, and each rule of the command that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, RemapBlockError> {
        let (head, mut reader) = Block::Vector.read(bytes)?;
        let flags = RemapFlags::from_bits(head.code)?;
        let found = usize::from(head.ranges);
        let ranges = head.list(&mut reader, read_range).ok_or(RemapBlockError::Ranges { found })?;
        let vector = Self { flags, cmd_id: head.cmd_id, ranges };
        vector.check()?;
        Ok(vector)
    }

    fn check(&self) -> Result<(), RemapBlockError> {
        let moves = self.flags.contains(RemapFlags::MOVE);
        if moves && self.flags.contains(RemapFlags::MOVE_ON_FLUSH) {
            return Err(RemapBlockError::TwoMoves);
        }
        if moves && self.cmd_id == 0 {
            return Err(RemapBlockError::MoveWithoutId);
        }
        let found = self.ranges.len();
        if !(1..=REMAP_RANGES_MAX).contains(&found) {
            return Err(RemapBlockError::Ranges { found });
        }
        self.ranges.iter().enumerate().try_for_each(|(at, range)| range.check(at))
    }
}

impl VectorRange {
    fn check(&self, at: usize) -> Result<(), RemapBlockError> {
        if self.len == 0 {
            return Err(RemapBlockError::Empty { at });
        }
        let len = u64::from(self.len);
        let ends = self.dst.checked_add(len).is_some() && self.src.checked_add(len).is_some();
        if ends { Ok(()) } else { Err(RemapBlockError::Beyond { at }) }
    }
}

fn read_range(reader: &mut Reader<'_>) -> Option<VectorRange> {
    let range = VectorRange { dst: reader.uint(8)?, src: reader.uint(8)?, len: reader.u32()? };
    reader.u32()?;
    Some(range)
}

#[cfg(test)]
mod tests {
    use super::{RemapFlags, RemapVector, VectorRange};
    use crate::REMAP_RANGES_MAX;
    use crate::remap::wire::{RemapBlockError, seal};

    const RANGE: VectorRange =
        VectorRange { dst: 0x0807_0605_0403_0201, src: 0x100F_0E0D_0C0B_0A09, len: 0x1413_1211 };

    fn vector(ranges: Vec<VectorRange>) -> RemapVector {
        RemapVector { flags: RemapFlags::ATOMIC.with(RemapFlags::MOVE), cmd_id: 7, ranges }
    }

    fn refusal(vector: &RemapVector) -> RemapBlockError {
        vector.encode().unwrap_err()
    }

    #[test]
    fn golden_bytes() {
        let bytes = vector(vec![RANGE, VectorRange { dst: 1, src: 2, len: 3 }]).encode().unwrap();
        assert_eq!(bytes[..16], *b"OFRV\x01\x00\x05\x00\x02\x00\0\0\0\0\0\0");
        assert_eq!(bytes[16..32], 7_u128.to_le_bytes());
        let mut without_crc = bytes;
        without_crc[32..36].fill(0);
        assert_eq!(bytes[32..36], crate::checksum(&without_crc).to_le_bytes());
        let first: Vec<u8> = [0; 28].into_iter().chain(1..=20).chain([0; 4]).collect();
        assert_eq!(bytes[36..88], first);
        assert_eq!(bytes[88..98], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert!(bytes[112..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn there_and_back() {
        for count in [1, REMAP_RANGES_MAX] {
            let vector = vector(vec![RANGE; count]);
            assert_eq!(RemapVector::decode(&vector.encode().unwrap()), Ok(vector));
        }
        let last = VectorRange { dst: u64::MAX - 5, src: u64::MAX - 5, len: 5 };
        let copy = RemapVector { ranges: vec![last], ..RemapVector::default() };
        assert_eq!(RemapVector::decode(&copy.encode().unwrap()), Ok(copy));
    }

    #[test]
    fn each_rule_is_kept() {
        let found = REMAP_RANGES_MAX + 1;
        assert_eq!(refusal(&vector(vec![])), RemapBlockError::Ranges { found: 0 });
        assert_eq!(refusal(&vector(vec![RANGE; found])), RemapBlockError::Ranges { found });
        let empty = VectorRange { len: 0, ..RANGE };
        assert_eq!(refusal(&vector(vec![RANGE, empty])), RemapBlockError::Empty { at: 1 });
        for beyond in [VectorRange { dst: u64::MAX, ..RANGE }, VectorRange { src: !0, ..RANGE }] {
            assert_eq!(refusal(&vector(vec![beyond])), RemapBlockError::Beyond { at: 0 });
        }
        let anonymous = RemapVector { cmd_id: 0, ..vector(vec![RANGE]) };
        assert_eq!(refusal(&anonymous), RemapBlockError::MoveWithoutId);
        let flags = RemapFlags::MOVE.with(RemapFlags::MOVE_ON_FLUSH);
        assert_eq!(
            refusal(&RemapVector { flags, ..vector(vec![RANGE]) }),
            RemapBlockError::TwoMoves
        );
    }

    /// A sender need not keep them: the same rules under a true checksum.
    #[test]
    fn each_rule_is_checked() {
        let decode = |at: usize, value: &[u8]| {
            let mut bytes = vector(vec![RANGE]).encode().unwrap();
            bytes[at..][..value.len()].copy_from_slice(value);
            seal(&mut bytes);
            RemapVector::decode(&bytes).unwrap_err()
        };
        assert_eq!(decode(6, &[0xE0]), RemapBlockError::Flags { unknown: 0xE0 });
        assert_eq!(decode(7, &[1]), RemapBlockError::Flags { unknown: 0x100 });
        assert_eq!(decode(6, &[3]), RemapBlockError::TwoMoves);
        assert_eq!(decode(16, &[0; 16]), RemapBlockError::MoveWithoutId);
        assert_eq!(decode(8, &[0]), RemapBlockError::Ranges { found: 0 });
        assert_eq!(decode(8, &[169]), RemapBlockError::Ranges { found: 169 });
        assert_eq!(decode(8, &[2]), RemapBlockError::Empty { at: 1 });
        assert_eq!(decode(64, &[0xFF; 8]), RemapBlockError::Beyond { at: 0 });
        assert_eq!(
            decode(8, &[169]).to_string(),
            "the remap vector has 169 ranges, expected 1 to 168; split it"
        );
    }

    #[test]
    fn flags_are_a_set() {
        let flags = RemapFlags::ATOMIC.with(RemapFlags::VERIFY_EQUAL);
        assert_eq!(RemapFlags::from_bits(flags.bits()), Ok(flags));
        assert!(flags.contains(RemapFlags::ATOMIC) && flags.contains(RemapFlags::COPY));
        assert!(!flags.contains(RemapFlags::ATOMIC.with(RemapFlags::MOVE)));
        let each = [
            RemapFlags::COPY,
            RemapFlags::MOVE,
            RemapFlags::MOVE_ON_FLUSH,
            RemapFlags::ATOMIC,
            RemapFlags::VERIFY_EQUAL,
            RemapFlags::NO_FALLBACK,
        ];
        assert_eq!(each.map(RemapFlags::bits), [0, 1, 2, 4, 8, 16]);
    }
}
