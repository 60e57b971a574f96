//! The journal of a file system in zones of its own: where it goes.
//!
//! With `one` (Choi 2022; zoned.md, section 4) the chunk of the first journal write is pinned: its data zone is a conventional one
//! that reclaim leaves alone. Choi 2022 has the file system mark its journal writes; here ranges of blocks are given. With `set`
//! (section 5) its blocks are appended to sequential zones ([`crate::append`]), unless they rest in pinned chunks
//! ([`crate::pinned`]) or there are no such zones. Where the journal is no more it loses those zones. Which chunks are pinned is not
//! stored.

use std::ops::Range;

use onefold_units::convert::{narrow, u32_from, u64_from};
use onefold_units::{Nanos, ZoneId};

use crate::block_map::{BlockMap, Stream};
use crate::config::{JournalMode, QUIET};
use crate::geometry::ZoneKind;
use crate::journal_set::Placement;
use crate::queues::Part;
use crate::stats::Sent;
use crate::volume::Volume;

/// A set takes no more than this part of all zones: 25 %.
const SET_PART: u64 = 4;

impl Volume {
    /// How many of these blocks of a chunk are the journal's.
    pub(crate) fn journal_blocks(&self, chunk: u32, offset: u32, blocks: u32) -> u64 {
        let start = self.lba(chunk, offset);
        let end = start + u64::from(blocks);
        let within = |range: &Range<u64>| range.end.min(end).saturating_sub(range.start.max(start));
        self.options.journal_ranges.iter().map(within).sum()
    }

    /// A block of a chunk.
    pub(crate) fn lba(&self, chunk: u32, offset: u32) -> u64 {
        u64::from(chunk) * u64::from(self.geometry.zone_blocks()) + u64::from(offset)
    }

    /// From now on the journal lies in these blocks, in order and apart; `hot` are those of them that are rewritten at any time.
    /// With `one` a chunk that is pinned stays so (zoned.md, section 4); with `set` the journal gives up what it has left.
    pub fn set_journal(&mut self, now: Nanos, ranges: Vec<Range<u64>>, hot: Vec<Range<u64>>) {
        self.now = self.now.max(now);
        self.options.journal_ranges = ranges;
        self.options.journal_hot = hot;
        self.place_journal(Nanos::ZERO);
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

    /// Zones that are the journal's.
    #[must_use]
    pub fn journal_zones(&self) -> u64 {
        let has_zone = |chunk: &&u32| self.meta.entry(**chunk).data.is_some();
        u64_from(self.pinned.iter().filter(has_zone).count() + self.set.map.zones().len())
    }

    /// Blocks of the journal that lie in sequential zones of its own.
    #[must_use]
    pub fn appended_blocks(&self) -> u64 {
        u64_from(self.set.map.len())
    }

    /// Counts a part that is written to a zone of its chunk, and pins the chunk if that is due with the first journal write.
    pub(crate) fn count_written(&mut self, part: &Part, zone: ZoneId) {
        let (device, sequential) =
            (self.zones.get(zone).device, self.zones.get(zone).is_sequential());
        if self.is_rewritten(part) {
            self.stats.count(device, Sent::JournalReturned, part.blocks.into());
            return;
        }
        let journal = self.journal_blocks(part.chunk, part.offset, part.blocks);
        if journal > 0 {
            self.stats.note_journal(self.now, zone);
        }
        self.stats.count(device, Sent::Journal, journal);
        self.stats.count(device, Sent::User, u64::from(part.blocks) - journal);
        self.count_for_rest(journal, part.blocks.into());
        if journal == 0 || self.pinned.contains(&part.chunk) {
            return;
        }
        let pins = match (self.options.journal, self.set.placement()) {
            (JournalMode::Off, _) => return,
            (JournalMode::One, _) => self.pinned.is_empty(),
            (JournalMode::Set, Placement::Pinned) => true,
            (JournalMode::Set, Placement::Appended { pins, .. }) => {
                pins && !sequential && self.meta.entry(part.chunk).data == Some(zone)
            }
            (JournalMode::Set, Placement::Chunks) => false,
        };
        if pins {
            self.pinned.insert(part.chunk);
        } else {
            self.stats.journal_outside += journal;
        }
    }

    /// A volume was opened. Where a set may still be in use that is not known yet, there is time to find its journal.
    pub(crate) fn attach_journal(&mut self) {
        let is_known = !self.options.journal_ranges.is_empty();
        let waits = self.options.journal == JournalMode::Set && !is_known;
        self.place_journal(if waits { QUIET } else { Nanos::ZERO });
    }

    /// The journal was found, moved or lost: chunks of it that lie in conventional zones are pinned at once, the others with
    /// their first write. What it has left in sequential zones goes back to its chunks, `grace` later.
    ///
    /// Differs from Choi 2022, where the mark is stored: the format stays that of the kernel.
    fn place_journal(&mut self, grace: Nanos) {
        if self.options.journal == JournalMode::One && !self.pinned.is_empty() {
            return;
        }
        let placement = self.placement();
        let mut touched = self.journal_chunks();
        match (placement, self.options.journal) {
            (Placement::Pinned, JournalMode::One) => touched.truncate(1),
            (Placement::Pinned, _) => {}
            (Placement::Appended { pins: true, .. }, _) => {
                touched.retain(|chunk| self.holds_journal(*chunk));
            }
            _ => touched.clear(),
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
        let may_rest = matches!(placement, Placement::Appended { pins: true, .. });
        let chunks = u32_from(self.journal_chunks().len());
        self.rest.place(may_rest, chunks, self.zones.conventional());
        let appends = matches!(placement, Placement::Appended { .. });
        let spans = if appends { self.spans() } else { Vec::new() };
        self.set.place(placement, spans, self.now + grace);
        self.close_set_zones();
    }

    /// Where the journal goes: to sequential zones if they are there, else to pinned chunks if that leaves half of the
    /// conventional zones; in no case to more than a quarter of all zones.
    ///
    /// Differs from zoned.md, section 5, which pins wherever it can: a zone that is missing in the cache makes reclaim copy more than
    /// the journal's blocks were (docs/zoned-studies.md).
    ///
    /// Beyond zoned.md: sequential zones of the journal are taken from what the reserved ones are there for, see
    /// [`Layout::journal_zones_max`](crate::Layout::journal_zones_max).
    fn placement(&self) -> Placement {
        let chunks = u64_from(self.journal_chunks().len());
        match self.options.journal {
            JournalMode::Off => return Placement::Chunks,
            _ if chunks == 0 => return Placement::Chunks,
            JournalMode::One => return Placement::Pinned,
            JournalMode::Set => {}
        }
        let is_little = |zones: u64| SET_PART * zones <= self.geometry.zones().into();
        let may_pin = 2 * chunks <= self.zones.conventional().into() && is_little(chunks);
        let instead = if may_pin { Placement::Pinned } else { Placement::Chunks };
        let zone_blocks = u64::from(self.geometry.zone_blocks());
        let blocks_of = |wanted| {
            let spans = self.spans();
            let of = spans.iter().filter(|(_, stream)| *stream == wanted);
            of.map(|(range, _)| range.end - range.start).sum::<u64>()
        };
        let log = match blocks_of(Stream::Log) {
            0 => 0,
            blocks => blocks.div_ceil(zone_blocks) + 1,
        };
        // A header alone is dead where it was as soon as it is written again; a fast-commit area takes a while.
        let hot = match blocks_of(Stream::Hot) {
            0 => 0,
            1 => 1,
            blocks => blocks.div_ceil(zone_blocks) + 1,
        };
        // One more may be needed for a moment, while what was overwritten is on its way.
        if !is_little(log + hot) || log + hot >= self.set.zones_max().into() {
            return instead;
        }
        let (log, hot) = (narrow(log), narrow(hot));
        let room = self.layout.journal_room(&self.geometry);
        let fits = self.set.zones_max() <= BlockMap::slots_in(self.geometry.zone_blocks(), room);
        if fits { Placement::Appended { log, hot, pins: may_pin } } else { instead }
    }

    /// The blocks of the journal by stream, in order and apart.
    fn spans(&self) -> Vec<(Range<u64>, Stream)> {
        let mut spans = Vec::new();
        for range in &self.options.journal_ranges {
            let mut at = range.start;
            for hot in &self.options.journal_hot {
                let hot = hot.start.max(at)..hot.end.min(range.end);
                if !hot.is_empty() {
                    spans.push((at..hot.start, Stream::Log));
                    at = hot.end;
                    spans.push((hot, Stream::Hot));
                }
            }
            spans.push((at..range.end, Stream::Log));
        }
        spans.retain(|(range, _)| !range.is_empty());
        spans
    }

    /// The chunks that the journal touches, in the order of its blocks.
    pub(crate) fn journal_chunks(&self) -> Vec<u32> {
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
}
