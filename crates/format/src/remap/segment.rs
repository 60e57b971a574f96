//! A segment of the remap log in NVRAM: a head and the entries of one superblock.
//!
//! Head, 32 B: magic 2 | version 1 | 0 1 | superblock 4 | epoch 8 | life 8 | 0 4 | crc 4. Entries of
//! 24 B follow without gaps; what is left of the segment is unused. A segment starts at an aligned
//! 64 B block, so its head never straddles two.

use onefold_units::SuperblockId;

use super::RemapEntry;
use crate::bytes::{Reader, Writer, checked_body, seal};

const MAGIC: u64 = 0x5352; // "RS"
const VERSION: u64 = 1;

/// Whose entries a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHead {
    /// The superblock of the entries' slots.
    pub superblock: SuperblockId,
    /// Epoch of that superblock: entries of an earlier one are void.
    pub epoch: u64,
    /// Number of this use of the segment, never given out twice on the device.
    pub life: u64,
}

impl SegmentHead {
    /// Bytes of the head.
    pub const BYTES: usize = 32;

    /// The bytes of the head.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(MAGIC, 2);
        writer.uint(VERSION, 1);
        writer.uint(0, 1);
        writer.uint(u64::from(self.superblock.raw()), 4);
        writer.uint(self.epoch, 8);
        writer.uint(self.life, 8);
        seal(&mut bytes);
        bytes
    }

    /// Reads a head; `None` if the segment is free or the head is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = Reader::new(checked_body(bytes)?);
        let known = reader.uint(2)? == MAGIC && reader.uint(1)? == VERSION;
        reader.uint(1)?;
        let superblock = SuperblockId::new(reader.u32()?);
        let (epoch, life) = (reader.uint(8)?, reader.uint(8)?);
        known.then_some(Self { superblock, epoch, life })
    }
}

/// Entries that fit a segment of `segment_bytes`.
#[must_use]
pub const fn entries_per_segment(segment_bytes: u32) -> u32 {
    // Head and entry, in u32.
    segment_bytes.saturating_sub(32) / 24
}

/// The head and the intact entries of a segment, in their order. `None` if it is free or its head
/// is torn.
#[must_use]
pub fn decode_segment(bytes: &[u8]) -> Option<(SegmentHead, Vec<RemapEntry>)> {
    let (head, entries) = bytes.split_first_chunk()?;
    let head = SegmentHead::decode(head)?;
    let (entries, _) = entries.as_chunks();
    Some((head, entries.iter().filter_map(|entry| RemapEntry::decode(entry, head.life)).collect()))
}

#[cfg(test)]
mod tests {
    use super::{SegmentHead, decode_segment, entries_per_segment};
    use crate::RemapEntry;
    use onefold_units::{Lpn, Seq, SuperblockId};

    const HEAD: SegmentHead =
        SegmentHead { superblock: SuperblockId::new(0x0403_0201), epoch: 0x1234, life: 0x5678 };

    fn entry(n: u16) -> RemapEntry {
        let at = u32::from(n);
        let stride = if n == 0 { 1 } else { 3 };
        RemapEntry {
            seq: Seq::new(9),
            target: Lpn::new(100 * at),
            slot: 7 * at,
            len: n + 1,
            stride,
        }
    }

    #[test]
    fn golden_bytes() {
        let bytes = HEAD.encode();
        assert_eq!(
            bytes[..28],
            [
                b'R', b'S', 1, 0, 1, 2, 3, 4, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0x78, 0x56, 0, 0, 0, 0,
                0, 0, 0, 0, 0, 0
            ]
        );
        assert_eq!(SegmentHead::decode(&bytes), Some(HEAD));
        assert_eq!(SegmentHead::decode(&[0; 32]), None);
        for bit in 0..32 * 8 {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHead::decode(&torn), None, "bit {bit}");
        }
        let mut newer = bytes;
        newer[2] = 2;
        crate::bytes::seal(&mut newer);
        assert_eq!(SegmentHead::decode(&newer), None);
    }

    #[test]
    fn a_head_never_straddles_two_blocks() {
        assert_eq!(64 % SegmentHead::BYTES, 0);
    }

    #[test]
    fn holes_are_skipped() {
        assert_eq!([256, 512, 1024, 31, 0].map(entries_per_segment), [9, 20, 41, 0, 0]);
        let mut bytes = [0; 256];
        bytes[..32].copy_from_slice(&HEAD.encode());
        for n in [0, 2, 8] {
            let at = 32 + usize::from(n) * RemapEntry::BYTES;
            bytes[at..][..24].copy_from_slice(&entry(n).encode(HEAD.life));
        }
        // A place with an entry of the segment's life before.
        bytes[32 + 24..][..24].copy_from_slice(&entry(1).encode(HEAD.life - 1));
        let found = vec![entry(0), entry(2), entry(8)];
        assert_eq!(decode_segment(&bytes), Some((HEAD, found)));
        // Cut short, and without a head.
        assert_eq!(decode_segment(&bytes[..32]), Some((HEAD, vec![])));
        assert_eq!(decode_segment(&bytes[..31]), None);
        bytes[30] ^= 1;
        assert_eq!(decode_segment(&bytes), None);
    }
}
