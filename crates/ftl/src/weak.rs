//! Superblocks that are emptied before their time: a read of the host needed retries there, or failed.
//!
//! Collection takes them next, in the background and while there is more free space than it keeps for itself. One that was
//! only retried is used again; one with a failed read is retired.

use onefold_nand::Media;
use onefold_units::Ppn;
use onefold_units::convert::index;

use crate::FtlError;
use crate::ftl::Ftl;
use crate::superblock::State;

impl<M: Media> Ftl<M> {
    /// Judges the superblock of a slot by a read of the host. One that is still written, or collected already, is left as it is.
    #[cold]
    pub(crate) fn judge_read<T>(&mut self, ppn: Ppn, read: &Result<T, FtlError>) {
        let failed = matches!(read, Err(FtlError::Unreadable { .. }));
        if !failed && !self.nand.was_retried() {
            return;
        }
        let (superblock, _) = self.nand.geometry().split(ppn);
        let block = &mut self.superblocks[superblock.index()];
        if block.state != State::Closed {
            return;
        }
        block.failing |= failed;
        let (pool, place) = self.place_in_pool(superblock);
        self.pools[index(pool)].weak.insert(place);
        self.judge_hunger(pool);
    }
}
