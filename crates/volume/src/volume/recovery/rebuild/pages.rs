//! Pages of the map that are gone, from the headers of the log.
//!
//! Headers alone cannot tell whether a block was trimmed: the batch with the trim may have been given back. But the last checkpoint
//! knows how many blocks of each log segment are live. So where the newest versions that headers tell of are as many as that, they are
//! those that are live; where they are more, some of them are dead, nobody knows which, and all of them are *lost*.
//!
//! 1. All live blocks are among the newest versions: whatever replaced one is dead by itself, or there, or in a log segment that cannot
//!    be read. So those of a log segment that has as many as are live are the live ones.
//! 2. That does not hold for what an opening may have left out. A block with such a version says nothing, nor does any log segment
//!    that has one of its versions.
//! 3. A block without any version maps nothing, if no log segment with live blocks is unread, and some have more live blocks than the
//!    rest of the map knows of. Where none has, a repair may have been cut off that gave them up: then nothing counts them any more, and
//!    what held them may be gone.

use std::collections::{BTreeMap, BTreeSet};

use onefold_format::volume::{RunRecord, Version};
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location, LogSegmentId};

use super::survey::{Survey, batch_at, survey};
use crate::backing::Backing;
use crate::log::Stream;
use crate::map::page::{Entry, PAGE_ENTRIES_U64};
use crate::recovery::replay::is_whole;
use crate::volume::Volume;
use crate::zones::ZoneReport;

/// Marks writes of the device.
const DEVICE: u32 = 0;

/// What headers say of blocks of which the map says nothing any more.
#[derive(Default)]
struct Versions {
    /// The newest version of each block that has one.
    newest: BTreeMap<u64, Entry>,
    /// Log segments with versions of each.
    places: BTreeMap<u64, BTreeSet<LogSegmentId>>,
    /// Blocks of which nothing is sure.
    doubtful: BTreeSet<u64>,
}

impl Volume {
    /// Finds what pages that are gone said when the last checkpoint was taken, batch `seq` being its last, as far as headers tell; all of
    /// the map was read as it was then. Gives records of the device, sorted. `live` are the quarters of log segments that were live then.
    pub(crate) fn salvage(
        &self,
        backing: &mut dyn Backing,
        zones: &ZoneReport,
        (seq, live): (u64, &[u32]),
    ) -> Vec<RunRecord> {
        let survey = survey(backing, &self.layout, Some(zones), self.label.uuid);
        if survey.hidden > 0 {
            return Vec::new();
        }
        let unknown = self.unknown_blocks();
        let versions = self.versions_of(backing, &unknown, &survey, seq);
        let unread = |id: LogSegmentId| self.segments.of(id).gone || survey.ragged.contains(&id);
        let data = |id: LogSegmentId| self.segments.of(id).stream != Stream::Meta;
        let mut counts: BTreeMap<LogSegmentId, u32> = BTreeMap::new();
        let known = (0..self.layout.geometry().logical_blocks).map(Lba::new);
        let known = known.map(|lba| self.map.peek(lba).at).filter(|at| at.is_block());
        for at in known {
            *counts.entry(self.layout.segment_of(at)).or_default() += self.layout.quarters_of(at);
        }
        let all =
            || (0..).map(LogSegmentId::new).zip(live).filter(|(id, live)| **live > 0 && data(*id));
        let tells_all = all().all(|(id, _)| !unread(id))
            && all().any(|(id, live)| counts.get(&id).is_none_or(|known| known < live));
        for entry in versions.newest.values() {
            let counted = counts.entry(self.layout.segment_of(entry.at)).or_default();
            *counted += self.layout.quarters_of(entry.at);
        }
        let tells = |id: LogSegmentId| {
            !unread(id) && counts.get(&id).copied() == live.get(id.index()).copied()
        };
        let doubted: BTreeSet<LogSegmentId> =
            versions.doubtful.iter().flat_map(|lba| &versions.places[lba]).copied().collect();
        let told = |lba: &u64| {
            let Some(entry) = versions.newest.get(lba) else {
                return (tells_all && !versions.doubtful.contains(lba)).then_some(Entry::UNMAPPED);
            };
            let segment = self.layout.segment_of(entry.at);
            let sure = !versions.doubtful.contains(lba) && !doubted.contains(&segment);
            (sure && tells(segment)).then_some(*entry)
        };
        let record = |lba: &u64| {
            let Entry { at, crc } = told(lba)?;
            Some(RunRecord { lba: Lba::new(*lba), birth: 0, location: at, crc })
        };
        unknown.iter().filter_map(record).collect()
    }

    /// Blocks of the device of which neither a page nor a run tells.
    fn unknown_blocks(&self) -> BTreeSet<u64> {
        let pages = (0..self.map.pages()).filter(|page| self.is_lost(self.map.image(*page)));
        let blocks = pages.flat_map(|page| {
            let first = u64_from(page) * PAGE_ENTRIES_U64;
            first..(first + PAGE_ENTRIES_U64).min(self.layout.geometry().logical_blocks)
        });
        blocks.filter(|lba| self.map.peek(Lba::new(*lba)).at == Location::LOST).collect()
    }

    fn versions_of(
        &self,
        backing: &mut dyn Backing,
        unknown: &BTreeSet<u64>,
        survey: &Survey,
        seq: u64,
    ) -> Versions {
        let mut versions = Versions::default();
        let mut ends = survey.ends(&self.layout);
        for seen in survey.batches.iter().take_while(|seen| seen.seq() <= seq) {
            let counts = ends.surely_counts(seen);
            if seen.is_meta() {
                continue;
            }
            let Some(found) = batch_at(backing, &self.label.uuid, seen) else { continue };
            let counts = counts && (seen.is_durable || is_whole(backing, &found).unwrap_or(false));
            for trim in found.batch.trims.iter().filter(|trim| trim.birth == DEVICE) {
                let end = trim.lba.raw().saturating_add(trim.blocks);
                for lba in unknown.range(trim.lba.raw()..end.max(trim.lba.raw())) {
                    versions.trimmed(*lba, counts);
                }
            }
            for (at, one) in found.batch.located(seen.start) {
                let Version { lba, birth, crc, source } = one;
                let alive = source.is_none_or(Location::is_block);
                if alive && birth == DEVICE && unknown.contains(&lba.raw()) {
                    let segment = self.layout.segment_of(at);
                    versions.written(lba.raw(), Entry { at, crc }, segment, counts);
                }
            }
        }
        versions
    }
}

impl Versions {
    fn written(&mut self, lba: u64, entry: Entry, segment: LogSegmentId, counts: bool) {
        self.newest.insert(lba, entry);
        self.places.entry(lba).or_default().insert(segment);
        if !counts {
            self.doubtful.insert(lba);
        }
    }

    fn trimmed(&mut self, lba: u64, counts: bool) {
        if counts {
            self.newest.remove(&lba);
        } else {
            self.places.entry(lba).or_default();
            self.doubtful.insert(lba);
        }
    }
}
