//! Requests at any byte: what covers a block in part reads and rewrites it.
//!
//! A rewrite has the device to itself ([`WholeBlocks::rewrite`]): a write to the same block in between would be lost.

use std::sync::{PoisonError, RwLock};

use onefold_units::convert::{index64, u64_from};
use onefold_units::{PAGE_BYTES, Status};

/// A byte range cut at blocks: a part of a first block, whole blocks, a part of a last one. A range within one block is
/// all first part.
struct Cut {
    /// Bytes before the first whole block.
    head: u64,
    /// Bytes of whole blocks.
    body: u64,
    /// Bytes behind the last whole block.
    tail: u64,
}

impl Cut {
    fn new(offset: u64, len: u64) -> Self {
        let head = (offset.next_multiple_of(PAGE_BYTES) - offset).min(len);
        let body = (len - head) / PAGE_BYTES * PAGE_BYTES;
        Self { head, body, tail: len - head - body }
    }

    const fn is_aligned(&self) -> bool {
        self.head == 0 && self.tail == 0
    }
}

/// A device of whole blocks of 4 KiB, of which requests at any byte are made.
pub(crate) trait WholeBlocks {
    /// Reads whole blocks.
    fn read_blocks(&self, lba: u64, buffer: &mut [u8]) -> Result<(), Status>;

    /// Writes whole blocks.
    fn write_blocks(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), Status>;

    /// Makes whole blocks read as zeroes.
    fn zero_blocks(&self, lba: u64, blocks: u64) -> Result<(), Status>;

    /// Writes of whole blocks share it; what reads and rewrites has it alone.
    fn rewrite(&self) -> &RwLock<()>;

    /// Reads a range that lies on the device.
    fn read_bytes(&self, offset: u64, buf: &mut [u8]) -> Result<(), Status> {
        let cut = Cut::new(offset, u64_from(buf.len()));
        let (head, rest) = buf.split_at_mut(index64(cut.head));
        let (body, tail) = rest.split_at_mut(index64(cut.body));
        if !head.is_empty() {
            self.read_part(offset, head)?;
        }
        if !body.is_empty() {
            self.read_blocks((offset + cut.head) / PAGE_BYTES, body)?;
        }
        if tail.is_empty() { Ok(()) } else { self.read_part(offset + cut.head + cut.body, tail) }
    }

    /// Reads a part of a block.
    fn read_part(&self, offset: u64, part: &mut [u8]) -> Result<(), Status> {
        let mut block = vec![0; index64(PAGE_BYTES)];
        self.read_blocks(offset / PAGE_BYTES, &mut block)?;
        let from = index64(offset % PAGE_BYTES);
        part.copy_from_slice(&block[from..from + part.len()]);
        Ok(())
    }

    /// Writes a range that lies on the device.
    fn write_bytes(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), Status> {
        let cut = Cut::new(offset, u64_from(data.len()));
        if cut.is_aligned() {
            let _shared = self.rewrite().read().unwrap_or_else(PoisonError::into_inner);
            return self.write_blocks(offset / PAGE_BYTES, data, fua);
        }
        let _alone = self.rewrite().write().unwrap_or_else(PoisonError::into_inner);
        let (head, rest) = data.split_at(index64(cut.head));
        let (body, tail) = rest.split_at(index64(cut.body));
        if !head.is_empty() {
            self.write_part(offset, head, fua)?;
        }
        if !body.is_empty() {
            self.write_blocks((offset + cut.head) / PAGE_BYTES, body, fua)?;
        }
        if tail.is_empty() {
            Ok(())
        } else {
            self.write_part(offset + cut.head + cut.body, tail, fua)
        }
    }

    /// Rewrites a part of a block, alone.
    fn write_part(&self, offset: u64, part: &[u8], fua: bool) -> Result<(), Status> {
        let mut block = vec![0; index64(PAGE_BYTES)];
        self.read_blocks(offset / PAGE_BYTES, &mut block)?;
        let from = index64(offset % PAGE_BYTES);
        block[from..from + part.len()].copy_from_slice(part);
        self.write_blocks(offset / PAGE_BYTES, &block, fua)
    }

    /// Makes a range that lies on the device read as zeroes.
    fn zero_bytes(&self, offset: u64, len: u64) -> Result<(), Status> {
        let cut = Cut::new(offset, len);
        let _alone = self.rewrite().write().unwrap_or_else(PoisonError::into_inner);
        if cut.head > 0 {
            self.write_part(offset, &vec![0; index64(cut.head)], false)?;
        }
        if cut.body > 0 {
            self.zero_blocks((offset + cut.head) / PAGE_BYTES, cut.body / PAGE_BYTES)?;
        }
        if cut.tail > 0 {
            let at = offset + cut.head + cut.body;
            self.write_part(at, &vec![0; index64(cut.tail)], false)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Cut;

    #[test]
    fn ranges_are_cut_at_blocks() {
        let cut = |offset, len| {
            let cut = Cut::new(offset, len);
            (cut.head, cut.body, cut.tail)
        };
        assert_eq!(cut(0, 8192), (0, 8192, 0));
        assert_eq!(cut(512, 1024), (1024, 0, 0));
        assert_eq!(cut(512, 8192), (3584, 4096, 512));
        assert_eq!(cut(4096, 100), (0, 0, 100));
    }
}
