//! Pinned chunks: those of the journal whose conventional zones reclaim leaves alone, and when the journal goes there although it
//! could be appended ([`crate::rest`]).

use std::collections::BTreeSet;

use onefold_units::ZoneId;
use onefold_units::convert::narrow;

use crate::queues::Part;
use crate::volume::Volume;

impl Volume {
    /// The chunks that are pinned.
    #[must_use]
    pub const fn pinned(&self) -> &BTreeSet<u32> {
        &self.pinned
    }

    /// The host writes so many blocks of the journal, and so many in all.
    pub(crate) fn count_for_rest(&mut self, journal: u64, all: u64) {
        let ranges = self.options.journal_ranges.iter();
        let lap = ranges.map(|range| range.end - range.start).sum();
        self.rest.count(journal, all, lap);
    }

    /// Whether a write of the journal goes to its chunk although it could be appended. It never waits there.
    pub(crate) fn rests(&self, part: &Part) -> bool {
        if !self.rest.is_due() || self.is_rewritten(part) {
            return false;
        }
        match self.meta.entry(part.chunk).data {
            Some(zone) => !self.zones.get(zone).is_sequential() && !self.zones.get(zone).locked,
            None => self.zones.room(0).0 > 0,
        }
    }

    /// If nothing of the journal is left in a pinned chunk that it rested in, reclaim may have it.
    pub(crate) fn unpin_if_left(&mut self, chunk: u32) {
        if !self.set.appends() || !self.pinned.contains(&chunk) || self.holds_journal(chunk) {
            return;
        }
        self.pinned.remove(&chunk);
        self.changes += 1;
        if let Some(data) = self.meta.entry(chunk).data {
            self.free_if_empty(data);
        }
    }

    /// Whether the data zone of a chunk is a conventional one and has a block of the journal, or may
    /// get one: a write under way has no valid block yet, and reclaim would copy what it writes.
    pub(crate) fn holds_journal(&self, chunk: u32) -> bool {
        let Some(data) = self.meta.entry(chunk).data else { return false };
        let zone = self.zones.get(data);
        !zone.is_sequential() && (zone.active > 0 || self.has_valid_journal(chunk, data))
    }

    fn has_valid_journal(&self, chunk: u32, data: ZoneId) -> bool {
        let (start, end) = (self.lba(chunk, 0), self.lba(chunk + 1, 0));
        self.options.journal_ranges.iter().any(|range| {
            let (first, last) = (range.start.max(start), range.end.min(end));
            let blocks = || narrow(first - start)..narrow(last - start);
            first < last && self.meta.first_valid(data, blocks()).is_some()
        })
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
