//! Fields of any number of bits, and checksums over them.

use onefold_units::Lpn;
use onefold_units::convert::low32;

use super::PaperRangeError;
use crate::remap::bits::{BitReader, BitWriter};

/// Writes the fields of one layout and refuses what they have no room for.
pub(super) struct FieldWriter<'a> {
    layout: &'static str,
    bits: BitWriter<'a>,
}

impl<'a> FieldWriter<'a> {
    pub(super) const fn new(layout: &'static str, bytes: &'a mut [u8]) -> Self {
        Self { layout, bits: BitWriter::new(bytes) }
    }

    pub(super) fn torn(&mut self) {
        self.bits.put(1, 1);
    }

    pub(super) fn put(
        &mut self,
        field: &'static str,
        value: u64,
        bits: u32,
    ) -> Result<(), PaperRangeError> {
        self.check(field, value, 0, (1 << bits) - 1)?;
        self.bits.put(value, bits);
        Ok(())
    }

    pub(super) fn check(
        &self,
        field: &'static str,
        value: u64,
        least: u64,
        most: u64,
    ) -> Result<(), PaperRangeError> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(PaperRangeError { layout: self.layout, field, value, least, most })
    }

    pub(super) fn finish(self) {
        self.bits.finish();
    }
}

pub(super) fn take_torn(reader: &mut BitReader<'_>) -> Option<()> {
    (reader.take(1)? == 1).then_some(())
}

pub(super) fn take_lpn(reader: &mut BitReader<'_>) -> Option<Lpn> {
    reader.take(31).map(low32).map(Lpn::new)
}

/// A checksum over bits that fill no bytes.
pub(super) struct BitCrc {
    width: u32,
    polynomial: u64,
    initial: u64,
}

pub(super) const CRC_15: BitCrc = BitCrc { width: 15, polynomial: 0x4599, initial: 0 };
pub(super) const CRC_16: BitCrc = BitCrc { width: 16, polynomial: 0x1021, initial: 0xFFFF };

impl BitCrc {
    /// Over the first `bits` of `bytes`, from bit 0 up.
    pub(super) fn of(&self, bytes: &[u8], bits: usize) -> u64 {
        let mut sum = self.initial;
        for at in 0..bits {
            let bit = u64::from(bytes[at / 8] >> (at % 8) & 1);
            let carry = sum >> (self.width - 1) & 1;
            sum = sum << 1 & ((1 << self.width) - 1);
            if carry != bit {
                sum ^= self.polynomial;
            }
        }
        sum
    }
}
