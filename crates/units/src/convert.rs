//! The integer conversions of the core, in one place, so that no layer writes `as`.
//!
//! Onefold runs on targets whose `usize` has at least 32 bits and at most 64 bits.
#![expect(clippy::as_conversions, reason = "the one place where integer widths change")]
#![expect(clippy::cast_possible_truncation, reason = "each truncation is asserted or is the point")]
#![expect(clippy::cast_precision_loss, reason = "ratios need no more than 53 bits")]
#![expect(clippy::cast_sign_loss, reason = "negative input saturates to zero, as documented")]

/// A table index from a `u32` address.
#[must_use]
#[inline]
pub const fn index(value: u32) -> usize {
    value as usize
}

/// A table index from a `u64` that the caller knows to be in memory range.
///
/// Panics where `usize` has 32 bits and the value does not fit.
#[must_use]
#[inline]
pub const fn index64(value: u64) -> usize {
    assert!(value <= usize::MAX as u64, "index does not fit the address space of this machine");
    value as usize
}

/// A count of things in memory as `u64`.
#[must_use]
#[inline]
pub const fn u64_from(value: usize) -> u64 {
    value as u64
}

/// A count of things in memory as `u32`. Panics above `u32::MAX`.
#[must_use]
#[inline]
pub const fn u32_from(value: usize) -> u32 {
    assert!(value as u64 <= u32::MAX as u64, "count does not fit 32 bits");
    value as u32
}

/// A `u64` known to fit 32 bits. Panics above `u32::MAX`.
#[must_use]
#[inline]
pub const fn narrow(value: u64) -> u32 {
    assert!(value <= u32::MAX as u64, "value does not fit 32 bits");
    value as u32
}

/// The low 64 bits.
#[must_use]
#[inline]
pub const fn low64(value: u128) -> u64 {
    value as u64
}

/// The low 32 bits.
#[must_use]
#[inline]
pub const fn low32(value: u64) -> u32 {
    value as u32
}

/// The low 16 bits.
#[must_use]
#[inline]
pub const fn low16(value: u64) -> u16 {
    value as u16
}

/// The low 8 bits.
#[must_use]
#[inline]
pub const fn low8(value: u64) -> u8 {
    value as u8
}

/// The upper 64 bits of a 64 x 64 bit product.
#[must_use]
#[inline]
pub const fn high_product(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// An integer as a float, for ratios.
#[must_use]
#[inline]
pub const fn float(value: u64) -> f64 {
    value as f64
}

/// The integer part of a float; negative and NaN become 0, above the range becomes `u64::MAX`.
#[must_use]
#[inline]
pub const fn floor_u64(value: f64) -> u64 {
    value as u64
}
