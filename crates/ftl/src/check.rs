//! Recounting everything: the invariants of `ftl`, for tests and after runs.

use onefold_nand::Media;
use onefold_units::convert::{index, u32_from, u64_from};
use onefold_units::{Ppn, SuperblockId};

use crate::ftl::Ftl;
use crate::layout::LOST;
use crate::superblock::State;

/// A broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Invariant 1.
    #[error("unit {lpn} maps to slot {ppn}, which is not valid or belongs to unit {owner}")]
    Mapping {
        /// Unit.
        lpn: u32,
        /// Slot it maps to.
        ppn: u32,
        /// Unit that the reverse map names.
        owner: u32,
    },
    /// Invariant 2, superblocks.
    #[error("superblock {superblock} counts {counted} valid slots and has {found}")]
    SuperblockCount {
        /// Superblock.
        superblock: u32,
        /// Its counter.
        counted: u32,
        /// Its bits.
        found: u32,
    },
    /// Invariant 2, pools.
    #[error("pool {pool} counts {counted} valid slots and has {found}")]
    PoolCount {
        /// Pool.
        pool: u32,
        /// Its counter.
        counted: u32,
        /// The sum over its superblocks.
        found: u32,
    },
    /// Invariant 2, closed superblocks.
    #[error("pool {pool} counts {counted} closed superblocks and has {found}")]
    ClosedCount {
        /// Pool.
        pool: u32,
        /// Its counter.
        counted: u32,
        /// Its closed superblocks, and the one that is collected.
        found: u32,
    },
    /// Valid slots that no unit maps to.
    #[error("{valid} slots are valid, {mapped} units are mapped and {staged} wait for a program")]
    Orphans {
        /// Valid slots.
        valid: u64,
        /// Mapped units.
        mapped: u64,
        /// Slots kept valid until their successor is programmed.
        staged: u64,
    },
    /// Invariant 2 of `remap`.
    #[error("slot {ppn} counts {counted} references and has {found}")]
    References {
        /// Slot.
        ppn: u32,
        /// Its counter.
        counted: u32,
        /// Units that map to it, and staged units that replace it.
        found: u32,
    },
    /// A remapped unit has no live entry, or several.
    #[error("{live} log entries map unit {lpn} to its slot, expected one")]
    Entries {
        /// Unit.
        lpn: u32,
        /// Entries.
        live: u32,
    },
    /// The counters of a group.
    #[error("the log of superblock {superblock} counts {counted} live units and has {found}")]
    GroupCount {
        /// Superblock.
        superblock: u32,
        /// Its counters.
        counted: u32,
        /// Its live units.
        found: u32,
    },
    /// A segment of NVRAM is used twice, or lost.
    #[error("segment {segment} of the remap log is in {uses} places, expected one")]
    Segment {
        /// Segment.
        segment: u32,
        /// Places: groups, the free list, the list of those that wait.
        uses: u32,
    },
    /// A log superblock counts wrong, or a superblock that is not one has log pages.
    #[error("log superblock {superblock} counts {counted} live pages and has {found}")]
    LogPages {
        /// Superblock.
        superblock: u32,
        /// Its counter.
        counted: u32,
        /// Pages that groups refer to.
        found: u32,
    },
    /// A free superblock holds data.
    #[error("free superblock {superblock} has {valid} valid slots")]
    FreeHoldsData {
        /// Superblock.
        superblock: u32,
        /// Its valid slots.
        valid: u32,
    },
}

impl<M: Media> Ftl<M> {
    /// Recounts everything. Takes time in proportion to the device.
    ///
    /// # Errors
    /// The first invariant found broken.
    pub fn check(&self) -> Result<(), Violation> {
        let mut mapped = 0;
        for (lpn, ppn) in self.map.l2p.below(LOST) {
            mapped += 1;
            self.check_mapping(u32_from(lpn), ppn)?;
        }
        let mut pools = vec![(0, 0); self.pools.len()];
        let mut valid = 0;
        for (at, block) in (0..).zip(&self.superblocks) {
            let superblock = SuperblockId::new(at);
            let found = self.valid.count(superblock);
            if found != block.valid {
                let counted = block.valid;
                return Err(Violation::SuperblockCount { superblock: at, counted, found });
            }
            if block.state == State::Free && found > 0 {
                return Err(Violation::FreeHoldsData { superblock: at, valid: found });
            }
            let (pool, _) = self.place_in_pool(superblock);
            let pool = &mut pools[index(pool)];
            pool.0 += found;
            pool.1 += u32::from(matches!(block.state, State::Closed | State::Collecting));
            valid += u64::from(found);
        }
        for ((pool, state), (found, closed)) in (0..).zip(&self.pools).zip(pools) {
            if found != state.valid {
                return Err(Violation::PoolCount { pool, counted: state.valid, found });
            }
            if closed != state.closed {
                let (counted, found) = (state.closed, closed);
                return Err(Violation::ClosedCount { pool, counted, found });
            }
        }
        let replaced = self.frontiers.iter().flat_map(|frontier| &frontier.staged);
        let staged = u64_from(replaced.filter(|unit| unit.replaces.is_some()).count());
        self.check_remap()?;
        if self.remap.is_some() || valid == mapped + staged {
            Ok(())
        } else {
            Err(Violation::Orphans { valid, mapped, staged })
        }
    }

    fn check_mapping(&self, lpn: u32, ppn: u32) -> Result<(), Violation> {
        let at = Ppn::new(ppn);
        let owner = self.map.p2l.find(at.index()).unwrap_or(u32::MAX);
        let (superblock, slot) = self.nand.geometry().split(at);
        let remapped = self.remap.as_ref().is_some_and(|remap| remap.units.has(lpn));
        if (remapped || owner == lpn) && self.valid.get(superblock, slot) {
            Ok(())
        } else {
            Err(Violation::Mapping { lpn, ppn, owner })
        }
    }
}
