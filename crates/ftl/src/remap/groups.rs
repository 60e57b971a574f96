//! The log of each superblock: what was written to NVRAM and flash about units that share its slots.
//!
//! This is the content of segments and log pages. A controller reads it from there; here it is kept in
//! memory, because a simulation stores no bytes and reading back what was just written costs a real
//! device time for nothing. What it holds of it is only used where the modelled controller would have read
//! the log, and the reads are charged there.

use onefold_format::{RemapEntry, SyncedLog};
use onefold_units::convert::{index, u32_from};
use onefold_units::{Ppn, SuperblockId};

use super::RemapConfig;

/// Segment of schemes that have none: entries without a place in NVRAM.
pub(crate) const NO_SEGMENT: u32 = u32::MAX;

/// Counts of one store of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) entries: u32,
    /// Units the entries are about.
    pub(crate) units: u32,
    /// Units that still are where the entries say, each counted once.
    pub(crate) live: u32,
}

onefold_units::keep!(Tally { entries, units, live });

impl Tally {
    fn add(&mut self, entry: &RemapEntry) {
        self.entries += 1;
        self.units += u32::from(entry.len);
    }

    fn remove(&mut self, entry: &RemapEntry) {
        self.entries -= 1;
        self.units -= u32::from(entry.len);
    }

    /// Entries that are not, as [`Tally::live_entries`] has it.
    pub(crate) fn dead_entries(&self) -> u32 {
        self.entries.saturating_sub(self.live_entries())
    }

    /// Entries that are live, if dead units are spread evenly (remap.md section 5).
    pub(crate) fn live_entries(&self) -> u32 {
        if self.entries == self.units {
            return self.live;
        }
        let share = u64::from(self.entries) * u64::from(self.live);
        u32_from(usize::try_from(share.div_ceil(u64::from(self.units.max(1)))).unwrap_or(0))
    }
}

/// A segment of NVRAM in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) id: u32,
    /// Number of this use among all uses: seeds the checksums.
    pub(crate) life: u64,
    pub(crate) entries: Vec<RemapEntry>,
    /// Entries before this one are on the medium; `None`: not even its header is.
    pub(crate) written: Option<u32>,
    /// It is from before a power cut and takes no more entries: what became of those that were being
    /// written then is not known.
    pub(crate) sealed: bool,
}

onefold_units::keep!(Segment { id, life, entries, written, sealed });

/// A log page on flash.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogPage {
    pub(crate) ppn: Ppn,
    pub(crate) entries: Vec<RemapEntry>,
}

onefold_units::keep!(LogPage { ppn, entries });

/// The log of one superblock. Entries of one unit are in the order of their sequence numbers: pages
/// first, then segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) pages: Vec<LogPage>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) flash: Tally,
    pub(crate) nvram: Tally,
    /// Units whose mapping by an entry in NVRAM ended, once for each time, since segments were last
    /// taken out.
    pub(crate) ended: Vec<u32>,
}

onefold_units::keep!(Group { pages, segments, flash, nvram, ended });

impl Group {
    /// Entries from the oldest to the newest, and whether they are on flash.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&RemapEntry, bool)> {
        let pages = self.pages.iter().flat_map(|page| &page.entries);
        let segments = self.segments.iter().flat_map(|segment| &segment.entries);
        pages.map(|entry| (entry, true)).chain(segments.map(|entry| (entry, false)))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.segments.is_empty()
    }

    /// Entries the last segment can still take.
    pub(crate) fn room(&self, per_segment: u32) -> u32 {
        let last = self.segments.last().filter(|segment| !segment.sealed);
        last.map_or(0, |segment| per_segment.saturating_sub(u32_from(segment.entries.len())))
    }

    /// Lengthens one of the last entries by `entry` if it follows on and is not on the medium yet. Where
    /// several units share the slots that collection moves, their runs grow side by side. A unit is in a
    /// group once per number, so the order of its entries stays that of their numbers.
    pub(crate) fn merge(&mut self, entry: &RemapEntry, run_max: u16) -> bool {
        const LOOKS: usize = 4;
        let Some(segment) = self.segments.last_mut() else { return false };
        let written = index(segment.written.unwrap_or(0));
        let unwritten = segment.entries.get_mut(written..).unwrap_or_default();
        for last in unwritten.iter_mut().rev().take(LOOKS) {
            if let Some(joined) = last.joined(entry, run_max, RemapConfig::STRIDE_MAX) {
                *last = joined;
                self.nvram.units += u32::from(entry.len);
                self.nvram.live += u32::from(entry.len);
                return true;
            }
        }
        false
    }

    /// Takes all segments out.
    pub(crate) fn take_segments(&mut self) -> Vec<Segment> {
        self.nvram = Tally::default();
        self.ended.clear();
        std::mem::take(&mut self.segments)
    }

    /// Adds a segment whose units are all live.
    pub(crate) fn push_segment(&mut self, segment: Segment) {
        for entry in &segment.entries {
            self.nvram.add(entry);
            self.nvram.live += u32::from(entry.len);
        }
        self.segments.push(segment);
    }

    /// Adds an entry to the last segment, which has room.
    pub(crate) fn push(&mut self, entry: RemapEntry) {
        self.nvram.add(&entry);
        self.nvram.live += u32::from(entry.len);
        if let Some(segment) = self.segments.last_mut() {
            segment.entries.push(entry);
        }
    }

    /// Adds a segment that was found on the medium, behind the others.
    pub(crate) fn restore_segment(&mut self, segment: Segment, live: u32) {
        for entry in &segment.entries {
            self.nvram.add(entry);
        }
        self.nvram.live += live;
        self.segments.push(segment);
    }

    /// Takes some pages out; the others stay in their order.
    pub(crate) fn take_pages(&mut self, is_old: impl Fn(&LogPage) -> bool) -> Vec<LogPage> {
        let (old, rest) = std::mem::take(&mut self.pages).into_iter().partition(is_old);
        self.pages = rest;
        let old: Vec<LogPage> = old;
        for entry in old.iter().flat_map(|page| &page.entries) {
            self.flash.remove(entry);
        }
        old
    }

    /// Takes the pages from `from` on out.
    pub(crate) fn pop_pages(&mut self, from: usize) -> Vec<LogPage> {
        let pages = self.pages.split_off(from);
        for entry in pages.iter().flat_map(|page| &page.entries) {
            self.flash.remove(entry);
        }
        pages
    }

    /// Adds a page to those on flash. Its units are not counted as live here: they may be already.
    pub(crate) fn push_page(&mut self, page: LogPage) {
        for entry in &page.entries {
            self.flash.add(entry);
        }
        self.pages.push(page);
    }
}

/// Segments of NVRAM: which are free, and which will be once the medium is synchronised.
///
/// A segment is given back when its live entries are elsewhere and what made the others stale is
/// programmed. Before it is overwritten, all of that has to be durable against a power cut of the
/// host, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    pub(crate) free: Vec<u32>,
    pub(crate) waiting: Vec<u32>,
    pub(crate) total: u32,
    /// How often each was taken into use.
    pub(crate) uses: Vec<u32>,
    /// Memory of segments that were given back.
    pub(crate) spare: Vec<Vec<RemapEntry>>,
}

onefold_units::keep!(Segments { free, waiting, total, uses } but { spare });

impl Segments {
    /// All of them free, the lowest first.
    pub(crate) fn new(total: u32) -> Self {
        Self {
            free: (0..total).rev().collect(),
            waiting: Vec::new(),
            total,
            uses: vec![0; index(total)],
            spare: Vec::new(),
        }
    }

    pub(crate) fn free_count(&self) -> u32 {
        u32_from(self.free.len())
    }

    /// Whether one is free, now or once the medium is synchronised.
    pub(crate) const fn has_spare(&self) -> bool {
        !(self.free.is_empty() && self.waiting.is_empty())
    }

    /// The medium was synchronised.
    pub(crate) fn synced(&mut self) {
        self.free.append(&mut self.waiting);
    }
}

/// Superblocks that hold log pages (RMM superblocks of Wu 2022).
#[derive(Clone, Debug, Default)]
pub(crate) struct LogSuperblocks {
    /// Where the next page goes, and its next program.
    pub(crate) open: Option<(SuperblockId, u32)>,
    /// Taken, and empty.
    pub(crate) ready: Vec<SuperblockId>,
    /// Full ones, or closed short.
    pub(crate) closed: Vec<SuperblockId>,
    /// Pages of each superblock of the device that a group refers to.
    pub(crate) live: Vec<u32>,
    /// Superblocks with pages that power failed in, and how far the log was synchronised then: up to there
    /// only, a damaged page is one that was whole before.
    pub(crate) torn: Vec<(SuperblockId, SyncedLog)>,
}

onefold_units::keep!(LogSuperblocks { open, ready, closed, live, torn });

impl LogSuperblocks {
    pub(crate) fn new(superblocks: u32) -> Self {
        Self { live: vec![0; index(superblocks)], ..Self::default() }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        u32_from(self.ready.len() + self.closed.len() + usize::from(self.open.is_some()))
    }
}
