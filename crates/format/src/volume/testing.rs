//! What the tests of volume records share.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::sample::Index;

use super::block::{BlockHead, HEAD_BYTES, seal};
use super::error::BlockError;
use super::kind::{BLOCK_BYTES, BlockKind};

pub(super) const UUID: [u8; 16] = *b"a volume's UUID!";
pub(super) const ADDRESS: u64 = 0x0504_0302_0100;

/// The first 48 bytes of a block at [`ADDRESS`], with its checksum taken as right.
pub(super) fn golden_head(block: &[u8], kind: u8, generation: u64) -> Vec<u8> {
    let start = [b'O', b'F', b'V', b'B', 1, 0, kind, 0];
    let crc = &block[8..12];
    let address = [0, 1, 2, 3, 4, 5, 0, 0];
    [&start[..], crc, &[0; 4], &UUID, &address, &generation.to_le_bytes()].concat()
}

/// A block flipped in any byte, cut short, read elsewhere or by another volume is refused.
pub(super) fn assert_refuses_damage<T: Debug>(
    block: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, BlockError>,
) {
    decode(block).unwrap();
    for at in 0..block.len() {
        let mut damaged = block.to_vec();
        damaged[at] ^= 0x10;
        let error = decode(&damaged).unwrap_err();
        let expected = match at {
            0..4 => error == BlockError::NotOurs,
            4..6 => matches!(error, BlockError::Version { .. }),
            _ => error == BlockError::Checksum,
        };
        assert!(expected, "byte {at}: {error}");
    }
    let short = decode(&block[1..]).unwrap_err();
    assert_eq!(short, BlockError::Size { found: BLOCK_BYTES - 1 });
    assert_eq!(decode(&[]).unwrap_err(), BlockError::Size { found: 0 });
}

/// A block with a right head and this behind it.
pub(super) fn forged(kind: BlockKind, content: &[u8]) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    block[HEAD_BYTES..HEAD_BYTES + content.len()].copy_from_slice(content);
    reseal(kind, &mut block);
    block
}

/// Makes the head of a block right that a test changed.
pub(super) fn reseal(kind: BlockKind, block: &mut [u8]) {
    seal(block, &BlockHead { kind, uuid: UUID, address: ADDRESS, generation: 7 });
}

/// The error of `decode` for `block` with `value` at `at` and a right checksum.
pub(super) fn lie<T: Debug>(
    (kind, block): (BlockKind, &[u8]),
    (at, value): (usize, u8),
    decode: impl Fn(&[u8]) -> Result<T, BlockError>,
) -> String {
    let mut block = block.to_vec();
    block[at] = value;
    reseal(kind, &mut block);
    decode(&block).unwrap_err().to_string()
}

/// Up to `len` bytes: any at all, or zeroes with a few others, which are accepted more often.
pub(super) fn content(len: usize) -> impl Strategy<Value = Vec<u8>> {
    let sparse = vec((any::<Index>(), any::<u8>()), 0..12);
    let few = sparse.prop_map(move |places| {
        let mut bytes = vec![0; len];
        for (at, value) in places {
            // Where the fields and counts are, half of the time.
            let reach = if value & 1 == 0 { len } else { len.min(64) };
            bytes[at.index(reach)] = value >> 1;
        }
        bytes
    });
    proptest::prop_oneof![vec(any::<u8>(), 0..=len), few]
}
