//! Requests to a member of a volume at any byte.

use std::sync::RwLock;

use onefold_units::Status;
use onefold_volume::MemberId;

use super::Shared;
use crate::driver::WholeBlocks;

/// A member of a volume, as blocks.
struct Blocks<'a> {
    shared: &'a Shared,
    member: MemberId,
}

impl WholeBlocks for Blocks<'_> {
    fn read_blocks(&self, lba: u64, buffer: &mut [u8]) -> Result<(), Status> {
        self.shared.read_blocks(self.member, lba, buffer)
    }

    fn write_blocks(&self, lba: u64, data: &[u8], fua: bool) -> Result<(), Status> {
        self.shared.write_blocks(self.member, lba, data, fua)
    }

    fn zero_blocks(&self, lba: u64, blocks: u64) -> Result<(), Status> {
        self.shared.trim_blocks(self.member, lba, blocks)
    }

    fn rewrite(&self) -> &RwLock<()> {
        &self.shared.rewrite
    }
}

impl Shared {
    const fn blocks(&self, member: MemberId) -> Blocks<'_> {
        Blocks { shared: self, member }
    }

    pub(super) fn read(&self, member: MemberId, offset: u64, buf: &mut [u8]) -> Result<(), Status> {
        self.blocks(member).read_bytes(offset, buf)
    }

    pub(super) fn write(
        &self,
        member: MemberId,
        offset: u64,
        data: &[u8],
        fua: bool,
    ) -> Result<(), Status> {
        self.when_there_is_space(|| self.blocks(member).write_bytes(offset, data, fua))
    }

    /// Makes a range read as zeroes.
    pub(super) fn zero(&self, member: MemberId, offset: u64, len: u64) -> Result<(), Status> {
        self.when_there_is_space(|| self.blocks(member).zero_bytes(offset, len))
    }
}
