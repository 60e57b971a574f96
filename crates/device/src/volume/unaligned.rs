//! Requests at any byte: what covers a block in part reads and rewrites it.
//!
//! A rewrite has the volume to itself (`Shared::rewrite`): a write to the same block in between would be lost.

use std::sync::PoisonError;

use onefold_units::convert::index64;
use onefold_units::{PAGE_BYTES, Status};
use onefold_volume::MemberId;

use super::Shared;

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

impl Shared {
    pub(super) fn read(&self, member: MemberId, offset: u64, buf: &mut [u8]) -> Result<(), Status> {
        let len = u64::try_from(buf.len()).map_err(|_| Status::InvalidField)?;
        self.check_range(offset, len)?;
        let cut = Cut::new(offset, len);
        let (head, rest) = buf.split_at_mut(index64(cut.head));
        let (body, tail) = rest.split_at_mut(index64(cut.body));
        if !head.is_empty() {
            self.read_part(member, offset, head)?;
        }
        self.read_blocks(member, (offset + cut.head) / PAGE_BYTES, body)?;
        if tail.is_empty() {
            Ok(())
        } else {
            self.read_part(member, offset + cut.head + cut.body, tail)
        }
    }

    fn read_part(&self, member: MemberId, offset: u64, part: &mut [u8]) -> Result<(), Status> {
        let mut block = vec![0; index64(PAGE_BYTES)];
        self.read_blocks(member, offset / PAGE_BYTES, &mut block)?;
        let from = index64(offset % PAGE_BYTES);
        part.copy_from_slice(&block[from..from + part.len()]);
        Ok(())
    }

    pub(super) fn write(
        &self,
        member: MemberId,
        offset: u64,
        data: &[u8],
        fua: bool,
    ) -> Result<(), Status> {
        let len = u64::try_from(data.len()).map_err(|_| Status::InvalidField)?;
        self.check_range(offset, len)?;
        let cut = Cut::new(offset, len);
        self.when_there_is_space(|| self.write_cut(member, offset, (data, &cut), fua))
    }

    fn write_cut(
        &self,
        member: MemberId,
        offset: u64,
        (data, cut): (&[u8], &Cut),
        fua: bool,
    ) -> Result<(), Status> {
        if cut.is_aligned() {
            let _shared = self.rewrite.read().unwrap_or_else(PoisonError::into_inner);
            return self.write_blocks(member, offset / PAGE_BYTES, data, fua);
        }
        let _alone = self.rewrite.write().unwrap_or_else(PoisonError::into_inner);
        let (head, rest) = data.split_at(index64(cut.head));
        let (body, tail) = rest.split_at(index64(cut.body));
        if !head.is_empty() {
            self.write_part(member, offset, head, fua)?;
        }
        if !body.is_empty() {
            self.write_blocks(member, (offset + cut.head) / PAGE_BYTES, body, fua)?;
        }
        if tail.is_empty() {
            Ok(())
        } else {
            self.write_part(member, offset + cut.head + cut.body, tail, fua)
        }
    }

    fn write_part(
        &self,
        member: MemberId,
        offset: u64,
        part: &[u8],
        fua: bool,
    ) -> Result<(), Status> {
        let mut block = vec![0; index64(PAGE_BYTES)];
        self.read_blocks(member, offset / PAGE_BYTES, &mut block)?;
        let from = index64(offset % PAGE_BYTES);
        block[from..from + part.len()].copy_from_slice(part);
        self.write_blocks(member, offset / PAGE_BYTES, &block, fua)
    }

    /// Makes a range read as zeroes.
    pub(super) fn zero(&self, member: MemberId, offset: u64, len: u64) -> Result<(), Status> {
        self.check_range(offset, len)?;
        let cut = Cut::new(offset, len);
        self.when_there_is_space(|| self.zero_cut(member, offset, &cut))
    }

    fn zero_cut(&self, member: MemberId, offset: u64, cut: &Cut) -> Result<(), Status> {
        let _alone = self.rewrite.write().unwrap_or_else(PoisonError::into_inner);
        if cut.head > 0 {
            self.write_part(member, offset, &vec![0; index64(cut.head)], false)?;
        }
        if cut.body > 0 {
            self.trim_blocks(member, (offset + cut.head) / PAGE_BYTES, cut.body / PAGE_BYTES)?;
        }
        if cut.tail > 0 {
            self.write_part(
                member,
                offset + cut.head + cut.body,
                &vec![0; index64(cut.tail)],
                false,
            )?;
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
