//! The journal of a file system in a zone of its own (Choi 2022; zoned.md, section 4).
//!
//! The chunk of the first journal write is pinned: its data zone is a conventional one that reclaim leaves alone. Choi 2022 has
//! the file system mark its journal writes; here a range of blocks is given. Which chunk is pinned is not stored.

use std::ops::Range;

use onefold_units::ZoneId;
use onefold_units::convert::narrow;

use crate::chunks::Part;
use crate::config::JournalMode;
use crate::geometry::ZoneKind;
use crate::stats::Sent;
use crate::volume::Volume;

impl Volume {
    /// How many of these blocks of a chunk are the journal's.
    pub(crate) fn journal_blocks(&self, chunk: u32, offset: u32, blocks: u32) -> u64 {
        let start = u64::from(chunk) * u64::from(self.geometry.zone_blocks()) + u64::from(offset);
        let end = start + u64::from(blocks);
        let within = |range: &Range<u64>| range.end.min(end).saturating_sub(range.start.max(start));
        self.options.journal_ranges.iter().map(within).sum()
    }

    /// From now on the journal lies in these blocks, in order and apart. A chunk that is pinned stays so (zoned.md, section 4:
    /// `one` never unpins).
    pub fn set_journal(&mut self, ranges: Vec<Range<u64>>) {
        self.options.journal_ranges = ranges;
        if self.pinned.is_none() {
            self.pin_at_attach();
        }
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

    /// The chunk that is pinned, if one is.
    #[must_use]
    pub const fn pinned(&self) -> Option<u32> {
        self.pinned
    }

    /// Counts a part that is written, and pins its chunk if it is the first of the journal.
    pub(crate) fn count_written(&mut self, part: &Part, device: u32) {
        let journal = self.journal_blocks(part.chunk, part.offset, part.blocks);
        self.stats.count(device, Sent::Journal, journal);
        self.stats.count(device, Sent::User, u64::from(part.blocks) - journal);
        if journal == 0 || self.options.journal != JournalMode::One {
            return;
        }
        let pinned = *self.pinned.get_or_insert(part.chunk);
        if pinned != part.chunk {
            self.stats.journal_outside += journal;
        }
    }

    /// A volume that was opened again goes on with the chunk of the first journal block, if that lies in a conventional zone.
    /// Differs from Choi 2022, where the mark is stored: the format stays that of the kernel.
    pub(crate) fn pin_at_attach(&mut self) {
        let first = self.options.journal_ranges.first().map(|range| range.start);
        let Some(first) = first
            .filter(|first| self.options.journal == JournalMode::One && *first < self.blocks())
        else {
            return;
        };
        let chunk = narrow(first / u64::from(self.geometry.zone_blocks()));
        let conventional = |zone: &ZoneId| self.zones.get(*zone).kind != ZoneKind::Sequential;
        self.pinned = self.meta.entry(chunk).data.filter(conventional).map(|_| chunk);
    }

    /// Whether reclaim has to leave a zone alone.
    pub(crate) fn is_pinned(&self, zone: ZoneId) -> bool {
        self.pinned == Some(self.zones.get(zone).chunk)
    }

    /// The sequential data zone of the pinned chunk, which has to move into its buffer once.
    pub(crate) fn misplaced_journal(&self) -> Option<ZoneId> {
        let zone = self.meta.entry(self.pinned?).data?;
        self.zones.get(zone).is_sequential().then_some(zone)
    }
}
