//! How much the members may hold together.
//!
//! The device alone always fits if it is not thin: that is what its size was chosen for. With other members an overwrite can
//! take space and free none, and a thin device can hold less than it exports. So their writes end where the cleaner would begin
//! to move almost full log segments (volume.md, section 5.7), and what their maps may take is left.

use onefold_units::Lba;
use onefold_units::convert::{index, index64, u32_from, u64_from};

use crate::checkpoint::room::IMAGE;
use crate::config::Options;
use crate::layout::Layout;
use crate::limits::{CLEAN_RECORDS_MAX, KEPT_FOR_META};
use crate::map::page::PAGE_ENTRIES_U64;
use crate::map::{Map, Ready};
use crate::range::Range;
use crate::snapshots::{Life, Members};

/// How full a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of data that some member has.
    pub data_blocks: u64,
    /// Most of them. With snapshots or clones, or of a thin device, they are fewer than one that is alone and not thin may have, which is
    /// at least what it exports.
    pub capacity_blocks: u64,
}

/// Log segments of checkpoints as a multiple of what is live there: none is emptied before half of all is dead
/// (`Volume::meta_is_sparse`).
pub(crate) const LOG_PER_LIVE: u64 = 2;

/// The members, also one that is about to come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Census {
    pub(crate) members: u64,
    /// Map pages of all that map something.
    pub(crate) pages: u64,
    /// Those of members that can be written.
    pub(crate) writable: u64,
}

/// How much data the members may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Once the map is written as compactly as it gets.
    pub(crate) most: u64,
    /// With what checkpoints take now.
    pub(crate) now: u64,
    /// Map pages that had been taken into use when this was measured ([`crate::map::Map::admitted`]).
    pub(crate) pages: u64,
}

impl Capacity {
    /// Not known yet.
    pub(crate) const ANY: Self = Self { most: u64::MAX, now: u64::MAX, pages: 0 };
}

impl Members {
    pub(crate) fn census(&self, map: &Map) -> Census {
        let mut census = Census::default();
        let mut add = |slot: usize, writable: bool| {
            let mapped = |key: &usize| map.ready(*key) != Ready::Empty;
            let pages = u64_from(map.keys_of(slot).filter(mapped).count());
            census.members += 1;
            census.pages += pages;
            census.writable += if writable { pages } else { 0 };
        };
        for slot in self.slots() {
            let member = self.of(slot);
            add(slot, !member.read_only && matches!(member.life, Life::Here | Life::Coming { .. }));
        }
        if let Some(wish) = self.wish().filter(|_| !self.is_one_coming()) {
            add(wish.parent, !wish.read_only);
        }
        census
    }

    /// Most blocks that writing a range adds. Where others may share what is there, it is not freed, and a map page that is taken into use
    /// needs an image.
    pub(crate) fn takes(&self, map: &Map, slot: usize, range: Range) -> u64 {
        let from = range.lba.raw();
        if self.is_alone() {
            let is_new = |lba: &u64| !map.peek(Lba::new(*lba)).at.is_block();
            return u64_from((from..from + range.blocks).filter(is_new).count());
        }
        let pages = from / PAGE_ENTRIES_U64..=(from + range.blocks - 1) / PAGE_ENTRIES_U64;
        let is_new = |page: &u64| map.ready(Map::key(slot, index64(*page))) == Ready::Empty;
        range.blocks + u64_from(pages.filter(is_new).count()) * IMAGE * LOG_PER_LIVE
    }
}

impl Layout {
    /// Log segments that are kept for checkpoints of so many members beside those that are kept for one of the device.
    pub(crate) fn kept_for(&self, members: u64) -> u32 {
        let more = self.checkpoint_segments(members).saturating_sub(KEPT_FOR_META);
        more + self.kept_for_bodies()
    }

    /// Live blocks of a log segment that can be relied on. Any batch has a header and may be padded, also those of the host. A checkpoint
    /// sends batches that are not full, one of the host and one of the cleaner; where little of the map fits into memory, one comes
    /// after each few blocks.
    pub(crate) fn sure_room(&self, options: &Options) -> u32 {
        let (blocks, unit) = (self.segment_blocks(), self.geometry().unit_blocks);
        let batches = blocks.div_ceil(options.batch_blocks.min(CLEAN_RECORDS_MAX + 1));
        let between = (options.map_pages / 2).clamp(8, index(blocks) * 64);
        let partial = 2 * blocks / u32_from(between);
        (blocks - blocks / 64).saturating_sub(unit * batches + partial).max(blocks / 8)
    }
}
