//! What the targets share: taking inputs apart, and making checksums right, since no fuzzer guesses
//! a checksum and everything behind it would never run.

pub mod memory;
pub mod nbd;

/// Splits off the first byte as a choice.
#[must_use]
pub fn choice(data: &[u8]) -> Option<(u8, &[u8])> {
    data.split_first().map(|(first, rest)| (*first, rest))
}

/// The input, cut or filled with zeroes to `N` bytes.
#[must_use]
pub fn exactly<const N: usize>(data: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let len = data.len().min(N);
    bytes[..len].copy_from_slice(&data[..len]);
    bytes
}

/// Puts the right checksum over all but the last four bytes into these.
pub fn seal(bytes: &mut [u8]) {
    if let Some(body) = bytes.len().checked_sub(4) {
        let sum = onefold_format::checksum(&bytes[..body]);
        bytes[body..].copy_from_slice(&sum.to_le_bytes());
    }
}
