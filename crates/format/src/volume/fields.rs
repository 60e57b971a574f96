//! Fields of volume records. A place on the logical device takes 8 B: LBA 5 | birth 3.

use onefold_units::convert::{index, low32, u32_from, u64_from};
use onefold_units::{Lba, Location, Seq};

use super::BlockError;
use crate::bytes::Reader;

/// Blocks of the largest logical device: an LBA has 40 bits.
pub const LBA_LIMIT: u64 = 1 << LBA_BITS;

/// Births have 24 bits.
pub const BIRTH_LIMIT: u32 = 1 << 24;

const LBA_BITS: u32 = 40;

/// LBA and birth in the 8 B they take. Panics if one does not fit.
pub(super) fn pack_version(lba: Lba, birth: u32) -> u64 {
    pack(lba.raw(), birth)
}

/// A number of 40 bits and one of 24 bits above it. Panics if one does not fit.
pub(super) fn pack(low: u64, high: u32) -> u64 {
    assert!(low < LBA_LIMIT, "{low} does not fit 40 bits");
    assert!(high < BIRTH_LIMIT, "{high} does not fit 24 bits");
    low | u64::from(high) << LBA_BITS
}

pub(super) const fn unpack_version(packed: u64) -> (Lba, u32) {
    (Lba::new(packed & (LBA_LIMIT - 1)), low32(packed >> LBA_BITS))
}

/// A count in front of what it counts.
pub(super) fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend(u32_from(count).to_le_bytes());
}

/// Reads fields one after the other and says so where the bytes end too early.
pub(super) struct Fields<'a> {
    reader: Reader<'a>,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes) }
    }

    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], BlockError> {
        self.reader.bytes(len).ok_or(TOO_SHORT)
    }

    pub(super) fn skip(&mut self, len: usize) -> Result<(), BlockError> {
        self.bytes(len).map(|_| ())
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BlockError> {
        self.bytes(N)?.try_into().map_err(|_| TOO_SHORT)
    }

    pub(super) fn u8(&mut self) -> Result<u8, BlockError> {
        self.reader.u8().ok_or(TOO_SHORT)
    }

    pub(super) fn u16(&mut self) -> Result<u16, BlockError> {
        self.reader.u16().ok_or(TOO_SHORT)
    }

    pub(super) fn u32(&mut self) -> Result<u32, BlockError> {
        self.reader.u32().ok_or(TOO_SHORT)
    }

    pub(super) fn u64(&mut self) -> Result<u64, BlockError> {
        self.reader.uint(8).ok_or(TOO_SHORT)
    }

    pub(super) fn seq(&mut self) -> Result<Seq, BlockError> {
        self.u64().map(Seq::new)
    }

    pub(super) fn location(&mut self) -> Result<Location, BlockError> {
        self.u32().map(Location::new)
    }

    /// LBA and birth.
    pub(super) fn version(&mut self) -> Result<(Lba, u32), BlockError> {
        self.u64().map(unpack_version)
    }

    pub(super) fn flag(&mut self) -> Result<bool, BlockError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BlockError::Malformed("a flag is neither 0 nor 1")),
        }
    }

    /// `count` items. Their number is checked against the bytes left, at `bytes_min` each, before
    /// anything is allocated.
    pub(super) fn list<T>(
        &mut self,
        count: usize,
        bytes_min: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, BlockError>,
    ) -> Result<Vec<T>, BlockError> {
        if count > self.reader.remaining() / bytes_min {
            return Err(BlockError::Malformed("a list is longer than the bytes that hold it"));
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// A count of 4 B and as many items.
    pub(super) fn counted_list<T>(
        &mut self,
        bytes_min: usize,
        read: impl FnMut(&mut Self) -> Result<T, BlockError>,
    ) -> Result<Vec<T>, BlockError> {
        let count = index(self.u32()?);
        self.list(count, bytes_min, read)
    }

    /// Refuses bytes that no field took.
    pub(super) fn end(&self) -> Result<(), BlockError> {
        match u64_from(self.reader.remaining()) {
            0 => Ok(()),
            _ => Err(BlockError::Malformed("there are bytes behind the last list")),
        }
    }
}

const TOO_SHORT: BlockError = BlockError::Malformed("the bytes end within a field");
