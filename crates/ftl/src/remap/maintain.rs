//! Housekeeping on demand, one step at a time: what the device does by itself when it has to.

use onefold_nand::Media;
use onefold_units::convert::u32_from;
use onefold_units::{Nanos, SuperblockId};

use super::room::For;
use crate::FtlError;
use crate::ftl::Ftl;

/// A step of housekeeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintenance {
    /// Collect one superblock of each pool.
    Collect,
    /// Rewrite the largest group of the remap log within NVRAM.
    CompactLog,
    /// Move the largest group of the remap log to flash.
    DestageLog,
    /// Collect one superblock of the remap log.
    CollectLog,
    /// Begin a checkpoint, or dump the next page of the running one.
    Checkpoint,
}

impl<M: Media> Ftl<M> {
    /// Does one step of housekeeping, if there is something to do.
    ///
    /// # Errors
    /// What the medium reported.
    pub fn maintain(&mut self, now: Nanos, step: Maintenance) -> Result<(), FtlError> {
        match step {
            Maintenance::Collect => {
                for pool in 0..u32_from(self.pools.len()) {
                    self.collect_one(now, pool)?;
                }
            }
            Maintenance::CompactLog => {
                if let Some(superblock) = self.largest_group() {
                    self.compact(now, superblock)?;
                }
            }
            Maintenance::DestageLog => {
                self.destage_largest(now, For::Host)?;
            }
            Maintenance::CollectLog => {
                self.reserve_log_pages(now, 1, For::Host)?;
                self.collect_log(now)?;
            }
            Maintenance::Checkpoint => self.checkpoint_step(now)?,
        }
        Ok(())
    }

    /// The superblock whose group has most segments in NVRAM.
    pub(crate) fn largest_group(&self) -> Option<SuperblockId> {
        let remap = self.remap.as_ref()?;
        let largest = remap.ranks.as_ref()?.largest()?;
        (!remap.groups[largest.index()].segments.is_empty()).then_some(largest)
    }
}
