//! Victims that cannot be read now: the backing store refused a read, and may do it later.
//!
//! 1. Nothing is given up for that. The slots that were not moved stay where they are, and valid.
//! 2. A victim that is set aside is no candidate until another one was collected, or none is left. So one bad place of the
//!    backing costs a failed read now and then, and not the room of all other superblocks.

use onefold_nand::{Media, MediaError};
use onefold_units::convert::index;

use crate::ftl::Ftl;
use crate::superblock::State;

impl<M: Media> Ftl<M> {
    /// Ends the running collection of a pool before its victim is drained.
    #[cold]
    pub(crate) fn set_aside(&mut self, pool: u32, why: MediaError) {
        let Some(running) = self.pools[index(pool)].collection else { return };
        let (_, place) = self.place_in_pool(running.victim);
        let pool_state = &mut self.pools[index(pool)];
        pool_state.collection = None;
        pool_state.aside.push((place, why));
        if let Some(remap) = &mut self.remap {
            remap.referrers[index(pool)].clear();
        }
        self.judge_hunger(pool);
    }

    /// Makes candidates of what was set aside. Tells why, if anything was.
    pub(crate) fn reconsider(&mut self, pool: u32) -> Option<MediaError> {
        let aside = std::mem::take(&mut self.pools[index(pool)].aside);
        let why = aside.last().map(|(_, why)| *why);
        for (place, _) in aside {
            let superblock = self.nand.geometry().superblock_of_pool(pool, place);
            let block = &mut self.superblocks[superblock.index()];
            block.state = State::Closed;
            let valid = block.valid;
            self.pools[index(pool)].victims.insert(place, valid);
        }
        why
    }
}
