//! Little-endian fields at fixed places, without a panic on short input.

/// Reads fields one after the other.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(field)
    }

    /// An unsigned integer of `len` bytes, at most 8.
    pub(crate) fn uint(&mut self, len: usize) -> Option<u64> {
        let field = self.bytes(len)?;
        let mut wide = [0; 8];
        wide.get_mut(..len)?.copy_from_slice(field);
        Some(u64::from_le_bytes(wide))
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        Some(u128::from_le_bytes(self.bytes(16)?.try_into().ok()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.uint(4).map(onefold_units::convert::low32)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.uint(2).map(onefold_units::convert::low16)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.uint(1).map(onefold_units::convert::low8)
    }
}

/// Writes fields one after the other into a fixed array.
pub(crate) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(bytes: &'a mut [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, field: &[u8]) {
        let rest = std::mem::take(&mut self.rest);
        let (head, rest) = rest.split_at_mut(field.len());
        head.copy_from_slice(field);
        self.rest = rest;
    }

    /// The low `len` bytes of `value`. Panics if the value does not fit: a format limit that the
    /// caller has to check at configuration time.
    pub(crate) fn uint(&mut self, value: u64, len: usize) {
        let wide = value.to_le_bytes();
        assert!(wide[len..].iter().all(|byte| *byte == 0), "{value} does not fit {len} bytes");
        self.bytes(&wide[..len]);
    }
}

/// Splits a record into body and the checksum in its last four bytes, if that is right.
pub(crate) fn checked_body(record: &[u8]) -> Option<&[u8]> {
    let (body, sum) = record.split_at_checked(record.len().checked_sub(4)?)?;
    (Reader::new(sum).u32()? == crate::checksum(body)).then_some(body)
}

/// Stores the checksum of a record in its last four bytes.
pub(crate) fn seal(record: &mut [u8]) {
    let at = record.len() - 4;
    let sum = crate::checksum(&record[..at]);
    record[at..].copy_from_slice(&sum.to_le_bytes());
}
