//! The remap primitive: logical units that share slots, and the log that keeps who shares what
//! (remap.md; Wu 2022).
//!
//! A remap changes the map without programming data, so nothing on flash says who maps to a slot but
//! for the unit it was written for. The log does: an *entry* says that a run of units maps to a run
//! of slots since a sequence number. Entries about the slots of one superblock form its *group*, so
//! that collecting it needs no other group. Groups live in *segments* of NVRAM and, with the scheme LH,
//! on flash in *log pages* as well (RMM segments and RMM pages of the paper).
//!
//! 1. The record of a unit's present mapping (slot, entry or trim record, whichever has the highest
//!    sequence number) is never given up before its successor is durable. All others may go or stay:
//!    recovery takes the highest.
//! 2. A slot is valid while its count of references is not zero.
//! 3. A superblock is erased before its group is given up.

mod append;
mod bits;
mod check;
mod collect;
mod command;
mod config;
mod damage;
mod dedup;
mod execute;
mod found;
mod global;
mod groups;
mod live;
mod log_pages;
mod maintain;
mod numbered;
mod piece;
mod plan;
mod port;
mod ranks;
mod recover;
mod referrers;
mod refs;
mod request;
mod ring;
mod room;
mod store;
mod tables;
#[cfg(test)]
mod tests;

use onefold_nand::Geometry;
use onefold_units::SuperblockId;
use onefold_units::convert::{index, narrow};

pub use config::{RemapConfig, RemapScheme};
pub use dedup::Deduplicated;
pub use maintain::Maintenance;
pub use request::{RemapCaps, RemapDone, RemapError, RemapOptions, RemapOutcome, RemapRange};
pub use tables::RemapTables;

pub(crate) use collect::Primary;
pub(crate) use found::FoundLog;
pub(crate) use piece::Piece;
pub(crate) use ring::Ring;

use bits::RemappedUnits;
use groups::{Group, LogSuperblocks, Segments};
use port::NvramPort;
use ranks::Ranks;
use referrers::Referrers;
use refs::Refs;
use room::Needs;

use crate::layout::Layout;

/// What remapping counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemapStats {
    /// Units remapped without a program.
    pub remapped: u64,
    /// Units written whose content was stored already.
    pub deduplicated: u64,
    /// Units copied instead.
    pub copied: u64,
    /// Units left as they were.
    pub skipped: u64,
    /// Entries written to the log for the host.
    pub entries: u64,
    /// Those of them whose units lie apart.
    pub strided_entries: u64,
    /// Entries that collection wrote again.
    pub moved_entries: u64,
    /// Referrers that a collected slot took over as its owner.
    pub absorbed: u64,
    /// Groups rewritten within NVRAM.
    pub compactions: u64,
    /// Groups moved to flash.
    pub destages: u64,
    /// Log superblocks collected.
    pub log_collections: u64,
    /// Time spent looking up referrers for collection, in ns.
    pub lookup_ns: u64,
    /// Remaps refused for want of room in the log.
    pub log_full: u64,
}

onefold_units::keep!(RemapStats {
    remapped,
    deduplicated,
    copied,
    skipped,
    entries,
    strided_entries,
    moved_entries,
    absorbed,
    compactions,
    destages,
    log_collections,
    lookup_ns,
    log_full
});

impl RemapStats {
    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            remapped: self.remapped - earlier.remapped,
            deduplicated: self.deduplicated - earlier.deduplicated,
            copied: self.copied - earlier.copied,
            skipped: self.skipped - earlier.skipped,
            entries: self.entries - earlier.entries,
            strided_entries: self.strided_entries - earlier.strided_entries,
            moved_entries: self.moved_entries - earlier.moved_entries,
            absorbed: self.absorbed - earlier.absorbed,
            compactions: self.compactions - earlier.compactions,
            destages: self.destages - earlier.destages,
            log_collections: self.log_collections - earlier.log_collections,
            lookup_ns: self.lookup_ns - earlier.lookup_ns,
            log_full: self.log_full - earlier.log_full,
        }
    }
}

/// State of remapping.
#[derive(Clone, Debug)]
pub(crate) struct Remap {
    pub(crate) config: RemapConfig,
    pub(crate) refs: Refs,
    pub(crate) units: RemappedUnits,
    /// By superblock.
    pub(crate) groups: Vec<Group>,
    /// Which groups come first when room is made. Global logs have no use for it.
    pub(crate) ranks: Option<Ranks>,
    pub(crate) segments: Segments,
    pub(crate) superblocks: LogSuperblocks,
    /// By pool.
    pub(crate) referrers: Vec<Referrers>,
    /// Superblocks whose groups have entries that are not on the medium yet.
    pub(crate) unwritten: Vec<SuperblockId>,
    /// Entries of a global log, dead ones included.
    pub(crate) global_entries: u64,
    /// Pages of them that were programmed.
    pub(crate) global_pages: u64,
    pub(crate) port: NvramPort,
    /// Slots moved by collection: whether places looked up before still hold.
    pub(crate) relocations: u64,
    /// Dead units noted so far, and how many there were when compacting was last in vain.
    pub(crate) dead: u64,
    pub(crate) in_vain_at: u64,
    /// How many have to be dead before collecting the log can gain anything.
    pub(crate) collect_from: u64,
    /// Scratch of the running command.
    pub(crate) needs: Needs,
    /// By superblock, the last piece of a command about it (see `plan`).
    pub(crate) runs: Vec<u32>,
    pub(crate) stats: RemapStats,
}

onefold_units::keep!(Remap { refs, units, groups, segments, superblocks, referrers, unwritten, global_entries,
    global_pages, port, relocations, dead, in_vain_at, collect_from, needs, runs, stats } each { ranks } but {
    config });

impl Remap {
    /// `None` where remaps are copies.
    pub(crate) fn new(config: RemapConfig, geometry: &Geometry, layout: &Layout) -> Option<Self> {
        if config.scheme == RemapScheme::None {
            return None;
        }
        let superblocks = geometry.superblocks();
        let segments = if config.scheme.is_local() {
            narrow(config.log_bytes / u64::from(config.segment_bytes))
        } else {
            0
        };
        Some(Self {
            config,
            refs: Refs::new(geometry.total_slots()),
            units: RemappedUnits::new(layout.units),
            groups: vec![Group::default(); index(superblocks)],
            ranks: config.scheme.is_local().then(|| Ranks::new(superblocks)),
            segments: Segments::new(segments),
            superblocks: LogSuperblocks::new(superblocks),
            referrers: vec![Referrers::default(); index(geometry.pools())],
            unwritten: Vec::new(),
            global_entries: 0,
            global_pages: 0,
            port: NvramPort::new(&config),
            relocations: 0,
            dead: 0,
            in_vain_at: 0,
            collect_from: 0,
            needs: Needs::new(superblocks),
            runs: vec![0; index(superblocks)],
            stats: RemapStats::default(),
        })
    }

    /// Entries of a segment; without bounds where there are none.
    pub(crate) fn per_segment(&self) -> u32 {
        if self.config.scheme.is_local() { self.config.entries_per_segment() } else { u32::MAX }
    }

    /// The mapping of a unit by a remap to `superblock` ended.
    #[inline]
    pub(crate) fn note_dead(&mut self, superblock: SuperblockId, lpn: u32, in_flash: bool) {
        if in_flash {
            self.groups[superblock.index()].flash.live -= 1;
        } else {
            let is_local = self.ranks.is_some();
            self.change(superblock, |group| {
                group.nvram.live -= 1;
                if is_local {
                    group.ended.push(lpn);
                }
            });
        }
        self.dead += 1;
    }
}
