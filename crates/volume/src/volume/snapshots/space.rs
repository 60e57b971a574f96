//! How much the members may hold together (`crate::snapshots::space`).

use onefold_format::volume::{DIRECTORY_ENTRIES, RUN_BLOCK_RECORDS};
use onefold_units::Lba;
use onefold_units::convert::{index, index64, narrow, u32_from, u64_from};

use crate::checkpoint::{IMAGE, RECORDS_PER_PAGE};
use crate::io::Refusal;
use crate::limits::{CLEAN_RECORDS_MAX, KEPT_FOR_META, SEGMENTS_BESIDE};
use crate::map::page::PAGE_ENTRIES_U64;
use crate::map::{Map, Ready};
use crate::range::Range;
use crate::snapshots::space::{Capacity, Usage};
use crate::snapshots::{FamilyError, Life};
use crate::volume::Volume;

/// Log segments of checkpoints as a multiple of what is live there: none is emptied before half of all is dead
/// ([`Volume::meta_is_sparse`]).
const LOG_PER_LIVE: u64 = 2;

/// The members, also one that is about to come.
#[derive(Clone, Copy, Debug, Default)]
struct Census {
    members: u64,
    /// Map pages of all that map something.
    pages: u64,
    /// Those of members that can be written.
    writable: u64,
}

impl Volume {
    /// How full the volume is.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let capacity_blocks =
            if self.can_fill() { self.capacity().most } else { self.layout.logical_max() };
        Usage { data_blocks: self.segments.data_total(), capacity_blocks }
    }

    fn capacity(&self) -> Capacity {
        let census = self.census();
        let [least, most] = self.map_live(census);
        let takes = |live| self.map_takes_with(census.members, live);
        let limit = |map| self.limit(census.members, map);
        Capacity {
            most: limit(takes(least)),
            now: limit(takes(most).max(self.meta_segments())),
            pages: self.map.admitted(),
        }
    }

    fn census(&self) -> Census {
        let mut census = Census::default();
        let mut add = |slot: usize, writable: bool| {
            let mapped = |key: &usize| self.map.ready(*key) != Ready::Empty;
            let pages = u64_from(self.map.keys_of(slot).filter(mapped).count());
            census.members += 1;
            census.pages += pages;
            census.writable += if writable { pages } else { 0 };
        };
        for slot in self.family.slots() {
            let kin = self.family.of(slot);
            add(slot, !kin.read_only && matches!(kin.life, Life::Here | Life::Coming { .. }));
        }
        if let Some(wish) = self.family.wish().filter(|_| !self.family.is_one_coming()) {
            add(wish.parent, !wish.read_only);
        }
        census
    }

    /// Blocks of data beside so many log segments of the map.
    fn limit(&self, members: u64, map: u32) -> u64 {
        let kept = self.low_with(self.kept_for(members)) + SEGMENTS_BESIDE + map;
        let segments = self.layout.usable_segments().saturating_sub(kept);
        u64::from(segments) * u64::from(self.sure_room())
    }

    /// Log segments that are kept for checkpoints of so many members beside those that are kept for one of the device.
    fn kept_for(&self, members: u64) -> u32 {
        let more = self.checkpoint_segments(members).saturating_sub(KEPT_FOR_META);
        more + self.kept_for_bodies()
    }

    /// Most log segments that so many live blocks of the map are left in. What the device alone takes at most counts in any case.
    pub(crate) fn map_takes(&self, live: u64) -> u32 {
        self.map_takes_with(self.member_count(), live)
    }

    fn map_takes_with(&self, members: u64, live: u64) -> u32 {
        let segments = narrow((live * LOG_PER_LIVE).div_ceil(self.segment_blocks().into()));
        let begun = if members == 1 { 0 } else { self.checkpoint_segments(members) };
        self.layout.map_segments(self.family.largest()).max(segments + begun)
    }

    /// Live blocks of the map, however much the members come to differ: with few runs, and with those that there are.
    ///
    /// Each page of each member may get an image of its own. But of those that cannot be written no more come than there are, and what
    /// the cleaner moves is moved for all that have it. So it is the lower one of two bounds.
    fn map_live(&self, census: Census) -> [u64; 2] {
        let Census { members, pages, writable } = census;
        let runs = self.checkpoint.runs().list.iter();
        let runs: u64 = runs.map(|run| u64_from(run.blocks.len())).sum();
        let there = self.meta_live().saturating_sub(runs);
        let images = if members == 1 {
            there
        } else {
            let directories = pages.div_ceil(u64_from(DIRECTORY_ENTRIES)) + members;
            (IMAGE * pages + directories).min(there + IMAGE * writable)
        };
        let records = images / IMAGE * RECORDS_PER_PAGE;
        let few_runs =
            Self::runs_when_swept_often(members) + records.div_ceil(u64_from(RUN_BLOCK_RECORDS));
        [images + few_runs, images + few_runs.max(runs)]
    }

    /// Live blocks of a log segment that can be relied on. Any batch has a header and may be padded, also those of the host. A checkpoint
    /// sends batches that are not full, one of the host and one of the cleaner; where little of the map fits into memory, one comes
    /// after each few blocks.
    fn sure_room(&self) -> u32 {
        let (blocks, unit) = (self.segment_blocks(), self.layout.geometry().unit_blocks);
        let batches = blocks.div_ceil(self.options.batch_blocks.min(CLEAN_RECORDS_MAX + 1));
        let between = (self.options.map_pages / 2).clamp(8, index(blocks) * 64);
        let partial = 2 * blocks / u32_from(between);
        (blocks - blocks / 64).saturating_sub(unit * batches + partial).max(blocks / 8)
    }

    /// Whether writes can come to the end of the space.
    #[must_use]
    pub fn can_fill(&self) -> bool {
        !self.family.is_alone() || self.layout.is_thin()
    }

    /// Whether a range may be written, all of whose pages are ready.
    pub(crate) fn need_space(&mut self, slot: usize, range: Range) -> Result<(), Refusal> {
        if !self.can_fill() {
            return Ok(());
        }
        let Capacity { most, now, pages } = self.family.capacity();
        let begun = if self.family.is_alone() { 0 } else { self.map.admitted() - pages };
        let data = self.segments.data_total() + begun * IMAGE * LOG_PER_LIVE;
        let left = now.saturating_sub(data);
        if range.blocks <= left && self.family.is_alone() {
            return Ok(());
        }
        let takes = self.takes(slot, range);
        if takes <= left {
            return Ok(());
        }
        // Wait for what is being freed, or still counts though recovery replaced it.
        if self.is_freeing() || !self.is_counted() {
            return Err(Refusal::Busy);
        }
        if takes > most.saturating_sub(data) {
            return Err(Refusal::NoSpace);
        }
        // Wait until the map is written compactly.
        self.family.wait_for_room();
        self.checkpoint.want();
        Err(Refusal::Busy)
    }

    /// Most blocks that writing a range adds. Where others may share what is there, it is not freed, and a map page that is taken into use
    /// needs an image.
    fn takes(&self, slot: usize, range: Range) -> u64 {
        let from = range.lba.raw();
        if self.family.is_alone() {
            let is_new = |lba: &u64| !self.map.peek(Lba::new(*lba)).at.is_block();
            return u64_from((from..from + range.blocks).filter(is_new).count());
        }
        let pages = from / PAGE_ENTRIES_U64..=(from + range.blocks - 1) / PAGE_ENTRIES_U64;
        let is_new = |page: &u64| self.map.ready(Map::key(slot, index64(*page))) == Ready::Empty;
        range.blocks + u64_from(pages.filter(is_new).count()) * IMAGE * LOG_PER_LIVE
    }

    /// Whether there is room for the map of the member that is wished for.
    pub(super) fn need_space_for_member(&self) -> Result<(), FamilyError> {
        let (data, capacity) = (self.segments.data_total(), self.capacity().most);
        if data <= capacity {
            Ok(())
        } else if self.is_freeing() {
            Err(FamilyError::Busy)
        } else {
            Err(FamilyError::NoSpace { data, capacity })
        }
    }

    /// Log segments of the map come and go with checkpoints.
    pub(crate) fn measure_capacity(&mut self) {
        // Taken by the host, what the map may still grow to would be taken from the cleaner.
        let grows = self.map_takes(self.meta_live()).saturating_sub(self.meta_segments());
        self.family.keep_more(self.kept_for(self.member_count()) + grows);
        self.family.measured(self.capacity());
    }
}
