//! How much the members may hold together (`crate::snapshots::space`).

use onefold_format::volume::{DIRECTORY_ENTRIES, RUN_BLOCK_RECORDS};
use onefold_units::convert::{narrow, u64_from};

use crate::checkpoint::{IMAGE, RECORDS_PER_PAGE};
use crate::io::Refusal;
use crate::limits::SEGMENTS_SPARE;
use crate::range::Range;
use crate::snapshots::SnapshotError;
use crate::snapshots::space::{Capacity, Census, LOG_PER_LIVE, Usage};
use crate::volume::Volume;

impl Volume {
    /// How full the volume is.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let capacity_blocks =
            if self.can_fill() { self.capacity().most } else { self.layout.logical_max() };
        Usage { data_blocks: self.segments.data_total(), capacity_blocks }
    }

    fn capacity(&self) -> Capacity {
        let census = self.members.census(&self.map);
        let [least, most] = self.map_live(census);
        let takes = |live| self.map_takes_with(census.members, live);
        let limit = |map| self.limit(census.members, map);
        Capacity {
            most: limit(takes(least)),
            now: limit(takes(most).max(self.segments.meta_segments())),
            pages: self.map.admitted(),
        }
    }

    /// Blocks of data beside so many log segments of the map.
    fn limit(&self, members: u64, map: u32) -> u64 {
        let kept = self.low_with(self.layout.kept_for(members)) + SEGMENTS_SPARE + map;
        let segments = self.layout.usable_segments().saturating_sub(kept);
        u64::from(segments) * u64::from(self.layout.sure_room(&self.options))
    }

    /// Most log segments that so many live blocks of the map are left in. What the device alone takes at most counts in any case.
    pub(crate) fn map_takes(&self, live: u64) -> u32 {
        self.map_takes_with(self.member_count(), live)
    }

    fn map_takes_with(&self, members: u64, live: u64) -> u32 {
        let segments = narrow((live * LOG_PER_LIVE).div_ceil(self.segment_blocks().into()));
        let begun = if members == 1 { 0 } else { self.layout.checkpoint_segments(members) };
        self.layout.map_segments(self.members.largest()).max(segments + begun)
    }

    /// Live blocks of the map, however much the members come to differ: with few runs, and with those that there are.
    ///
    /// Each page of each member may get an image of its own. But of those that cannot be written no more come than there are, and what
    /// the cleaner moves is moved for all that have it. So it is the lower one of two bounds.
    fn map_live(&self, census: Census) -> [u64; 2] {
        let Census { members, pages, writable } = census;
        let runs = self.checkpoint.runs().list.iter();
        let runs: u64 = runs.map(|run| u64_from(run.blocks.len())).sum();
        let there = self.segments.meta_live().saturating_sub(runs);
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

    /// Whether writes can come to the end of the space.
    #[must_use]
    pub fn can_fill(&self) -> bool {
        !self.members.is_alone() || self.layout.is_thin()
    }

    /// Whether a range may be written, all of whose pages are ready.
    pub(crate) fn need_space(&mut self, slot: usize, range: Range) -> Result<(), Refusal> {
        if !self.can_fill() {
            return Ok(());
        }
        let Capacity { most, now, pages } = self.members.capacity();
        let begun = if self.members.is_alone() { 0 } else { self.map.admitted() - pages };
        let data = self.segments.data_total() + begun * IMAGE * LOG_PER_LIVE;
        let left = now.saturating_sub(data);
        if range.blocks <= left && self.members.is_alone() {
            return Ok(());
        }
        let takes = self.members.takes(&self.map, slot, range);
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
        self.members.wait_for_room();
        self.checkpoint.want();
        Err(Refusal::Busy)
    }

    /// Whether there is room for the map of the member that is wished for.
    pub(super) fn need_space_for_member(&self) -> Result<(), SnapshotError> {
        let (data, capacity) = (self.segments.data_total(), self.capacity().most);
        if data <= capacity {
            Ok(())
        } else if self.is_freeing() {
            Err(SnapshotError::Busy)
        } else {
            Err(SnapshotError::NoSpace { data, capacity })
        }
    }

    /// Log segments of the map come and go with checkpoints.
    pub(crate) fn measure_capacity(&mut self) {
        // Taken by the host, what the map may still grow to would be taken from the cleaner.
        let grows =
            self.map_takes(self.segments.meta_live()).saturating_sub(self.segments.meta_segments());
        self.members.keep_more(self.layout.kept_for(self.member_count()) + grows);
        self.members.measured(self.capacity());
    }
}
