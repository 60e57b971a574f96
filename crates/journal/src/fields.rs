//! Integers at fixed places of a record. A field that does not lie in the record reads as zero: records are read whole, so
//! that only a mistake in this crate could ask for one, and it must not end the process.

/// `N` bytes from `at` on.
fn bytes<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let field = at.checked_add(N).and_then(|end| record.get(at..end));
    field.and_then(|field| field.try_into().ok()).unwrap_or([0; N])
}

pub(crate) fn byte(record: &[u8], at: usize) -> u8 {
    record.get(at).copied().unwrap_or(0)
}

pub(crate) fn le16(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(record, at))
}

pub(crate) fn le32(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(record, at))
}

pub(crate) fn le64(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(record, at))
}

pub(crate) fn be16(record: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes(record, at))
}

pub(crate) fn be32(record: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes(record, at))
}

pub(crate) fn be64(record: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes(record, at))
}

/// A number whose halves lie apart.
pub(crate) fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
