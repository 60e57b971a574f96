//! Content that tells who wrote it: each sector says which operation wrote which block.

use std::cell::Cell;

use onefold_units::convert::{index64, u64_from};

pub(crate) const BLOCK: usize = 4096;
pub(crate) const SECTOR: usize = 512;

thread_local! {
    static NOISE: Cell<bool> = const { Cell::new(false) };
}

/// Whether blocks have sectors that do not compress, by who wrote them: any number of them.
pub(crate) fn with_noise(noise: bool) {
    NOISE.set(noise);
}

/// How many sectors of a block, from the first one on, do not compress.
pub(crate) fn noisy_sectors(op: u64, lba: u64) -> usize {
    let of = word(op, lba, 9) >> 32;
    if NOISE.get() { [0, 0, 0, 1, 2, 3, 4, 5, 6, 8][index64(of % 10)] } else { 0 }
}

/// The rest of a sector that does not compress.
fn noise(seed: u64) -> [u8; SECTOR - 24] {
    let mut bytes = [0; SECTOR - 24];
    let mut word = seed;
    for place in bytes.as_chunks_mut::<8>().0 {
        word = word.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
        *place = (word ^ word >> 29).to_le_bytes();
    }
    bytes
}

/// Compared as a whole: byte by byte it was 40 % of the time of the campaign.
const ZEROES: [u8; SECTOR] = [0; SECTOR];

fn word(op: u64, lba: u64, sector: u64) -> u64 {
    (op ^ lba.rotate_left(40) ^ sector.rotate_left(20)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
}

/// Fills a block of the host with the stamp of operation `op`. Operation 0 is nothing: zeroes.
pub(crate) fn fill(block: &mut [u8], op: u64, lba: u64) {
    block.fill(0);
    if op == 0 {
        return;
    }
    let noisy = noisy_sectors(op, lba);
    for (sector, bytes) in block.chunks_mut(SECTOR).enumerate() {
        bytes[..8].copy_from_slice(&op.to_le_bytes());
        bytes[8..16].copy_from_slice(&lba.to_le_bytes());
        let word = word(op, lba, u64_from(sector));
        bytes[16..24].copy_from_slice(&word.to_le_bytes());
        if sector < noisy {
            bytes[24..].copy_from_slice(&noise(word));
        }
    }
}

/// The blocks of a write.
pub(crate) fn stamped(op: u64, lba: u64, blocks: u64) -> Vec<u8> {
    let mut bytes = vec![0; index64(blocks) * BLOCK];
    for (lba, block) in (lba..).zip(bytes.chunks_mut(BLOCK)) {
        fill(block, op, lba);
    }
    bytes
}

/// Which operation wrote this block of the host; 0 for zeroes, `None` for anything else.
pub(crate) fn read_stamp(block: &[u8], lba: u64) -> Option<u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let op = number(&block[..8]);
    let noisy = if op == 0 { 0 } else { noisy_sectors(op, lba) };
    let good = |(sector, bytes): (usize, &[u8])| {
        let found = [number(&bytes[..8]), number(&bytes[8..16]), number(&bytes[16..24])];
        let expected = if op == 0 { [0; 3] } else { [op, lba, word(op, lba, u64_from(sector))] };
        let rest = if sector < noisy { &noise(expected[2])[..] } else { &ZEROES[24..] };
        found == expected && bytes[24..] == *rest
    };
    block.chunks(SECTOR).enumerate().all(good).then_some(op)
}

/// Which block of the host this is, and which operation wrote it; `None` if none did.
pub(crate) fn op_of(block: &[u8]) -> Option<(u64, u64)> {
    let lba = u64::from_le_bytes(block[8..16].try_into().expect("8 bytes"));
    let op = read_stamp(block, lba).filter(|op| *op > 0)?;
    Some((lba, op))
}
