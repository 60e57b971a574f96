//! Room in the log: what a remap or a collection reserves before it begins (remap.md, H14 and H15).

use onefold_nand::Media;
use onefold_units::convert::{index, u32_from};
use onefold_units::{Nanos, SuperblockId};

use super::ranks::Ranks;
use super::{Remap, RemapScheme};
use crate::FtlError;
use crate::ftl::Ftl;

/// Segments that only compaction may use.
const COMPACTION_RESERVE: u32 = 2;

/// For whom room is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// A command of the host: it leaves the reserve of collection alone, and may collect.
    Host,
    /// Collection: it does not collect to go on collecting.
    Collection,
}

/// Entries that a command needs, by superblock: a list, and where in it each superblock is. Without
/// a search, and without memory of its own for each command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    list: Vec<(SuperblockId, u32)>,
    /// By superblock, one more than its place in the list; 0 = not in it.
    places: Vec<u32>,
}

onefold_units::keep!(Needs { list, places });

impl Needs {
    pub(crate) fn new(superblocks: u32) -> Self {
        Self { list: Vec::new(), places: vec![0; index(superblocks)] }
    }

    pub(crate) fn clear(&mut self) {
        for (superblock, _) in self.list.drain(..) {
            self.places[superblock.index()] = 0;
        }
    }

    /// One more entry about a superblock.
    pub(crate) fn add(&mut self, superblock: SuperblockId) {
        let place = &mut self.places[superblock.index()];
        if *place == 0 {
            self.list.push((superblock, 1));
            *place = u32_from(self.list.len());
        } else {
            self.list[index(*place) - 1].1 += 1;
        }
    }

    /// Each superblock once.
    pub(crate) fn list(&self) -> &[(SuperblockId, u32)] {
        &self.list
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl Remap {
    /// Segments that have to stay free. Collection has 2 % of the log for itself (remap.md
    /// section 4).
    fn floor(&self, whom: For) -> u32 {
        match whom {
            For::Host => COMPACTION_RESERVE + (self.segments.total / 50).max(1),
            For::Collection => COMPACTION_RESERVE,
        }
    }

    /// Segments that have to be free for `needs`: entries by superblock, each superblock once.
    fn segments_wanted(&self, needs: &[(SuperblockId, u32)], whom: For) -> u32 {
        let per_segment = self.per_segment();
        let extra = |(superblock, entries): &(SuperblockId, u32)| {
            let room = self.groups[superblock.index()].room(per_segment);
            entries.saturating_sub(room).div_ceil(per_segment)
        };
        self.floor(whom) + needs.iter().map(extra).sum::<u32>()
    }

    /// Entries a global log holds at most.
    fn global_capacity(&self) -> u64 {
        self.config.log_bytes / u64::from(self.config.entry_bytes())
    }

    /// Whether a global log has room for more entries. Collection has 2 % for itself.
    fn global_fits(&self, entries: u64, whom: For) -> bool {
        let capacity = self.global_capacity();
        let reserve = if whom == For::Host { capacity / 50 } else { 0 };
        self.global_entries + entries + reserve <= capacity
    }

    /// Whether few enough entries in NVRAM are live that compacting comes before destaging
    /// (remap.md section 5).
    fn is_worth_compacting(&self) -> bool {
        let live = self.ranks.as_ref().map_or(0, Ranks::live_entries);
        let capacity = u64::from(self.segments.total) * u64::from(self.per_segment());
        self.is_below_watermark(live, capacity)
    }

    /// Whether so few of the entries that a log takes are live that rewriting it pays.
    fn is_below_watermark(&self, live: u64, capacity: u64) -> bool {
        live * 100 < capacity * u64::from(self.config.watermark)
    }

    /// A group that gives segments back if it is compacted: the one that most died in, or else the
    /// one that gives most.
    fn compactable(&self) -> Option<SuperblockId> {
        let per_segment = self.per_segment();
        let gain = |at: SuperblockId| {
            let group = &self.groups[at.index()];
            let needed = group.nvram.live_entries().div_ceil(per_segment);
            u32_from(group.segments.len()).saturating_sub(needed)
        };
        let deadest = self.ranks.as_ref()?.deadest()?;
        if gain(deadest) > 0 {
            return Some(deadest);
        }
        let all = (0..u32_from(self.groups.len())).map(SuperblockId::new);
        let best = all.max_by_key(|at| (gain(*at), std::cmp::Reverse(*at)))?;
        (gain(best) > 0).then_some(best)
    }
}

impl<M: Media> Ftl<M> {
    /// Makes sure that these entries can be appended: entries by superblock, each superblock once.
    /// `false` if the log has no room for them.
    pub(crate) fn reserve_log(
        &mut self,
        now: Nanos,
        needs: &[(SuperblockId, u32)],
        whom: For,
    ) -> Result<bool, FtlError> {
        let Some(remap) = &self.remap else { return Ok(false) };
        let ok = match remap.config.scheme {
            RemapScheme::None => false,
            RemapScheme::Opt => true,
            RemapScheme::Gf | RemapScheme::Gn => {
                let entries = needs.iter().map(|(_, entries)| u64::from(*entries)).sum();
                self.reserve_global(now, entries, whom)
            }
            RemapScheme::Ln | RemapScheme::Lh => {
                let enough = remap.segments_wanted(needs, whom) <= remap.segments.free_count();
                enough || self.make_segments(now, needs, whom)?
            }
        };
        if !ok && let Some(remap) = &mut self.remap {
            remap.stats.log_full += 1;
        }
        Ok(ok)
    }

    /// Whether the log takes these entries of the host without making room.
    pub(crate) fn has_log_room(&self, needs: &[(SuperblockId, u32)]) -> bool {
        let Some(remap) = &self.remap else { return false };
        let entries: u64 = needs.iter().map(|(_, entries)| u64::from(*entries)).sum();
        match remap.config.scheme {
            RemapScheme::None => false,
            RemapScheme::Opt => true,
            RemapScheme::Gf | RemapScheme::Gn => remap.global_fits(entries, For::Host),
            RemapScheme::Ln | RemapScheme::Lh => {
                remap.segments_wanted(needs, For::Host) <= remap.segments.free_count()
            }
        }
    }

    #[cold]
    fn make_segments(
        &mut self,
        now: Nanos,
        needs: &[(SuperblockId, u32)],
        whom: For,
    ) -> Result<bool, FtlError> {
        loop {
            if self.remap.as_ref().is_some_and(|remap| !remap.segments.waiting.is_empty()) {
                self.sync()?;
            }
            let Some(remap) = &self.remap else { return Ok(false) };
            let wanted = remap.segments_wanted(needs, whom);
            if wanted <= remap.segments.free_count() {
                return Ok(true);
            }
            if wanted > remap.segments.total {
                return Ok(false);
            }
            let made = self.compact_some(now)? || self.destage_largest(now, whom)?;
            let Some(remap) = &self.remap else { return Ok(false) };
            // A group that was rewritten in vain may have room now all the same.
            let idle = remap.segments.waiting.is_empty();
            if !made && idle {
                let wanted = remap.segments_wanted(needs, whom);
                return Ok(wanted <= remap.segments.free_count());
            }
        }
    }

    /// Compacts the group that most died in. `false` if that gives no segment back.
    fn compact_some(&mut self, now: Nanos) -> Result<bool, FtlError> {
        let Some(remap) = &mut self.remap else { return Ok(false) };
        let per_segment = remap.per_segment();
        // Nothing much died since it was last in vain.
        let idle = u64::from(per_segment).max(u64::from(remap.segments.total) / 4);
        if remap.dead < remap.in_vain_at + idle || !remap.is_worth_compacting() {
            return Ok(false);
        }
        let made = match remap.compactable() {
            Some(superblock) => self.compact(now, superblock)?,
            None => false,
        };
        if !made && let Some(remap) = &mut self.remap {
            remap.in_vain_at = remap.dead;
        }
        Ok(made)
    }

    /// Moves the group with most segments in NVRAM to flash. `false` if there is none, or no room.
    pub(crate) fn destage_largest(&mut self, now: Nanos, whom: For) -> Result<bool, FtlError> {
        let hybrid = self.remap.as_ref().is_some_and(|r| r.config.scheme == RemapScheme::Lh);
        match self.largest_group() {
            Some(superblock) if hybrid => self.destage(now, superblock, whom),
            _ => Ok(false),
        }
    }

    fn reserve_global(&mut self, now: Nanos, entries: u64, whom: For) -> bool {
        let Some(remap) = &mut self.remap else { return false };
        if remap.global_fits(entries, whom) {
            return true;
        }
        let capacity = remap.global_capacity();
        let live = u64::from(remap.units.count());
        if !remap.config.compacts || !remap.is_below_watermark(live, capacity) {
            return false;
        }
        self.compact_global(now);
        self.remap.as_ref().is_some_and(|remap| remap.global_fits(entries, whom))
    }
}
