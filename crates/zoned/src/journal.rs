//! The journal of a file system in zones of its own: which chunks are pinned.
//!
//! With `one` (Choi 2022; zoned.md, section 4) the chunk of the first journal write is pinned: its data zone is a conventional one
//! that reclaim leaves alone. Choi 2022 has the file system mark its journal writes; here ranges of blocks are given. With `set`
//! (section 5) every chunk is pinned that the journal touches, and no longer when it does not. Which chunks are pinned is not
//! stored.

use std::collections::BTreeSet;
use std::ops::Range;

use onefold_units::ZoneId;
use onefold_units::convert::{narrow, u64_from};

use crate::chunks::Part;
use crate::config::JournalMode;
use crate::geometry::ZoneKind;
use crate::stats::Sent;
use crate::volume::Volume;

/// A set takes no more than this part of all zones (25 %).
const SET_PART: u64 = 4;

impl Volume {
    /// How many of these blocks of a chunk are the journal's.
    pub(crate) fn journal_blocks(&self, chunk: u32, offset: u32, blocks: u32) -> u64 {
        let start = u64::from(chunk) * u64::from(self.geometry.zone_blocks()) + u64::from(offset);
        let end = start + u64::from(blocks);
        let within = |range: &Range<u64>| range.end.min(end).saturating_sub(range.start.max(start));
        self.options.journal_ranges.iter().map(within).sum()
    }

    /// From now on the journal lies in these blocks, in order and apart. With `one` a chunk that is pinned stays so (zoned.md,
    /// section 4); with `set` chunks that the journal has left are reclaimed as any other.
    pub fn set_journal(&mut self, ranges: Vec<Range<u64>>) {
        self.options.journal_ranges = ranges;
        self.place_journal();
        self.pump();
    }

    /// Where the journal lies, as far as it is known.
    #[must_use]
    pub fn journal(&self) -> &[Range<u64>] {
        &self.options.journal_ranges
    }

    /// What becomes of the journal.
    #[must_use]
    pub const fn journal_mode(&self) -> JournalMode {
        self.options.journal
    }

    /// The chunks that are pinned.
    #[must_use]
    pub const fn pinned(&self) -> &BTreeSet<u32> {
        &self.pinned
    }

    /// Zones that are the journal's.
    #[must_use]
    pub fn journal_zones(&self) -> u64 {
        let has_zone = |chunk: &&u32| self.meta.entry(**chunk).data.is_some();
        u64_from(self.pinned.iter().filter(has_zone).count())
    }

    /// Counts a part that is written, and pins its chunk if that is due with the first journal write.
    pub(crate) fn count_written(&mut self, part: &Part, device: u32) {
        let journal = self.journal_blocks(part.chunk, part.offset, part.blocks);
        self.stats.count(device, Sent::Journal, journal);
        self.stats.count(device, Sent::User, u64::from(part.blocks) - journal);
        if journal == 0 || self.pinned.contains(&part.chunk) {
            return;
        }
        let pins = match self.options.journal {
            JournalMode::Off => return,
            JournalMode::One => self.pinned.is_empty(),
            JournalMode::Set => self.pins_chunks(),
        };
        if pins {
            self.pinned.insert(part.chunk);
        } else {
            self.stats.journal_outside += journal;
        }
    }

    /// The journal was found, moved or lost: chunks of it that lie in conventional zones are pinned at once, the others with
    /// their first write.
    ///
    /// Differs from Choi 2022, where the mark is stored: the format stays that of the kernel.
    pub(crate) fn place_journal(&mut self) {
        let mut touched = self.journal_chunks();
        match self.options.journal {
            JournalMode::Off => return,
            JournalMode::One if !self.pinned.is_empty() => return,
            JournalMode::One => touched.truncate(1),
            JournalMode::Set if !self.pins_chunks() => touched.clear(),
            JournalMode::Set => {}
        }
        let before = self.pinned.len();
        self.pinned.retain(|chunk| touched.contains(chunk));
        if self.pinned.len() < before {
            self.stats.journal_demotions += 1;
            self.changes += 1;
        }
        let conventional = |zone: &ZoneId| self.zones.get(*zone).kind != ZoneKind::Sequential;
        let is_there = |chunk: &u32| self.meta.entry(*chunk).data.is_some_and(|z| conventional(&z));
        self.pinned.extend(touched.into_iter().filter(is_there));
    }

    /// The chunks that the journal touches, in the order of its blocks.
    fn journal_chunks(&self) -> Vec<u32> {
        let zone_blocks = u64::from(self.geometry.zone_blocks());
        let blocks = self.blocks();
        let inside = self.options.journal_ranges.iter().filter(|range| range.start < blocks);
        let chunks = inside.flat_map(|range| {
            narrow(range.start / zone_blocks)..narrow(range.end.min(blocks).div_ceil(zone_blocks))
        });
        let mut chunks: Vec<u32> = chunks.collect();
        chunks.dedup();
        chunks
    }

    /// Whether the set is made of pinned chunks: that leaves half of the conventional zones (zoned.md, section 5).
    fn pins_chunks(&self) -> bool {
        let chunks = u64_from(self.journal_chunks().len());
        2 * chunks <= self.zones.conventional().into()
            && SET_PART * chunks <= self.geometry.zones().into()
    }

    /// Whether reclaim has to leave a mapped zone alone.
    pub(crate) fn is_pinned(&self, zone: ZoneId) -> bool {
        self.pinned.contains(&self.zones.get(zone).chunk)
    }

    /// The sequential data zones of pinned chunks, each of which has to move into its buffer once.
    pub(crate) fn misplaced_journal(&self) -> Vec<ZoneId> {
        let zones = self.pinned.iter().filter_map(|chunk| self.meta.entry(*chunk).data);
        zones.filter(|zone| self.zones.get(*zone).is_sequential()).collect()
    }
}
