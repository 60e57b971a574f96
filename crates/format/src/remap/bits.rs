//! Fields of any number of bits, least significant bit first.

use onefold_units::convert::{low8, low64};

use crate::bytes::{Reader, Writer};

/// Writes fields of up to 64 bits one after the other.
pub(crate) struct BitWriter<'a> {
    bytes: Writer<'a>,
    /// Bits that do not fill eight bytes yet.
    waiting: u128,
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes: Writer::new(bytes), waiting: 0, count: 0 }
    }

    /// The low `bits` of `value`, which has no higher ones.
    pub(crate) fn put(&mut self, value: u64, bits: u32) {
        debug_assert!(bits >= 64 - value.leading_zeros(), "{value} does not fit {bits} bits");
        self.waiting |= u128::from(value) << self.count;
        self.count += bits;
        if self.count >= 64 {
            self.bytes.uint(low64(self.waiting), 8);
            self.waiting >>= 64;
            self.count -= 64;
        }
    }

    /// Writes what is left, filled with zeroes to a whole byte.
    pub(crate) fn finish(mut self) {
        while self.count > 0 {
            self.bytes.uint(u64::from(low8(low64(self.waiting))), 1);
            self.waiting >>= 8;
            self.count = self.count.saturating_sub(8);
        }
    }
}

/// Reads fields of up to 64 bits one after the other.
pub(crate) struct BitReader<'a> {
    bytes: Reader<'a>,
    waiting: u128,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: Reader::new(bytes), waiting: 0, count: 0 }
    }

    /// The next `bits`. `None` past the end.
    pub(crate) fn take(&mut self, bits: u32) -> Option<u64> {
        while self.count < bits {
            self.waiting |= u128::from(self.bytes.u8()?) << self.count;
            self.count += 8;
        }
        let field = self.waiting & !(u128::MAX << bits);
        self.waiting >>= bits;
        self.count -= bits;
        Some(low64(field))
    }
}

/// Bits that `value` takes; 0 for 0.
pub(crate) const fn width(value: u64) -> u32 {
    64 - value.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::{BitReader, BitWriter, width};

    #[test]
    fn fields_of_every_width_there_and_back() {
        let fields: Vec<(u64, u32)> =
            (0..=64).map(|bits| (u64::MAX.checked_shr(64 - bits).unwrap_or(0), bits)).collect();
        let mut bytes = [0; 260]; // 0 + 1 + .. + 64 bits
        let mut writer = BitWriter::new(&mut bytes);
        for (value, bits) in &fields {
            assert_eq!(width(*value), *bits);
            writer.put(*value, *bits);
        }
        writer.finish();
        assert_eq!(bytes, [0xFF; 260]);
        let mut reader = BitReader::new(&bytes);
        for (value, bits) in fields {
            assert_eq!(reader.take(bits), Some(value));
        }
        assert_eq!(reader.take(0), Some(0));
        assert_eq!(reader.take(1), None);
    }

    #[test]
    fn the_first_field_is_in_the_lowest_bits() {
        let mut bytes = [0xEE; 3];
        let mut writer = BitWriter::new(&mut bytes);
        for (value, bits) in [(1, 1), (0b10, 2), (0x155, 9)] {
            writer.put(value, bits);
        }
        writer.finish();
        // 1, then 10b above it, then 1_0101_0101b; the third byte is not touched.
        assert_eq!(bytes, [0b1010_1101, 0b0000_1010, 0xEE]);
    }
}
