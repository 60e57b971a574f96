//! Pages of the map that lay in a zone that is offline (`crate::zones`, invariant 7).

use std::collections::BTreeSet;

use onefold_format::volume::{DirectoryEntry, RunRecord};
use onefold_units::{Location, Nanos, ZoneId};

use crate::backing::{Backing, settle};
use crate::error::MountError;
use crate::findings::Findings;
use crate::frozen::Frozen;
use crate::map::Map;
use crate::volume::Volume;
use crate::zones::{ZoneError, ZoneReport};

/// Records of the only member, with older ones where there are none.
fn beneath(
    older: Vec<RunRecord>,
    mut records: Vec<(usize, Vec<RunRecord>)>,
) -> Vec<(usize, Vec<RunRecord>)> {
    let mut all = records.pop().map_or_else(Vec::new, |(_, records)| records);
    let known: BTreeSet<u64> = all.iter().map(|record| record.lba.raw()).collect();
    let gone = all.iter().filter(|record| record.is_page_gone());
    let gone: BTreeSet<usize> = gone.map(|record| Map::place(record.lba).0).collect();
    let beneath = |record: &RunRecord| {
        !known.contains(&record.lba.raw()) && !gone.contains(&Map::place(record.lba).0)
    };
    all.extend(older.into_iter().filter(beneath));
    all.sort_by_key(|record| record.lba);
    if all.is_empty() { Vec::new() } else { vec![(0, all)] }
}

impl Volume {
    /// Whether the image of a page is gone for good.
    pub(crate) fn is_lost(&self, image: DirectoryEntry) -> bool {
        let gone = |at| self.segments.of(self.layout.segment_of(at)).gone;
        image.page.is_block() && (gone(image.page) || gone(image.sums))
    }

    /// The first page whose image is gone, in any member, and the zone where it was.
    fn lost_page(&self) -> Option<(usize, ZoneId)> {
        let keys = self.members.slots().flat_map(|slot| self.map.keys_of(slot));
        let lost = |key: &usize| self.is_lost(self.map.image(*key));
        let key = keys.into_iter().find(lost)?;
        let image = self.map.image(key);
        let segments = [image.page, image.sums].map(|at| self.layout.segment_of(at));
        let zone = segments.into_iter().find(|segment| self.segments.of(*segment).gone)?;
        Some((Map::of_key(key).1, ZoneId::new(zone.raw())))
    }

    /// What of the map lay in a zone that is offline, if anything did. Without its records a run is of no use.
    pub(crate) fn lost_map(&self) -> Option<ZoneError> {
        let gone = |at: &Location| self.segments.of(self.layout.segment_of(*at)).gone;
        if let Some(at) = self.checkpoint.places().find(gone) {
            let zone = ZoneId::new(self.layout.segment_of(at).raw());
            return Some(ZoneError::Checkpoint { zone, what: "run" });
        }
        self.lost_page().map(|(_, zone)| ZoneError::Map { zone })
    }

    /// Goes on without what lay in zones that are offline, if that is asked for. Nothing is written yet; the last batch of the root is
    /// number `seq`.
    pub(crate) fn do_without_lost(
        &mut self,
        backing: &mut dyn Backing,
        zones: &ZoneReport,
        seq: u64,
    ) -> Result<(), ZoneError> {
        match self.lost_map() {
            None => Ok(()),
            Some(error) if !self.options.give_up_zones || !error.can_be_given_up() => Err(error),
            Some(_) => {
                self.give_up_lost(backing, zones, seq);
                Ok(())
            }
        }
    }

    /// Takes over what headers tell of pages that are gone, and counts what is live without the rest of them. All of the map is read.
    fn give_up_lost(&mut self, backing: &mut dyn Backing, zones: &ZoneReport, seq: u64) {
        // Nothing else goes on meanwhile, and there is no limit to the pages in memory.
        self.frozen = Some(Frozen::ReadOnly);
        let mut damaged = Findings::default();
        // What headers tell is what was there when the root was written (`crate::volume::recovery::rebuild`). Its counts have to be exact.
        if self.members.is_alone() && self.checkpoint.runs().all_counted() {
            let recovered = self.checkpoint.take_recovered();
            let live = self.live_before(&recovered);
            self.load_all(backing, &mut damaged);
            let salvaged = self.salvage(backing, zones, (seq, &live));
            while self.map.evict(u64::MAX) {}
            self.checkpoint.set_recovered(beneath(salvaged, recovered));
            for record in self.checkpoint.recovered().iter().flat_map(|(_, records)| records) {
                self.map.mark_stale(Map::place(record.lba).0, self.checkpoint.runs_end());
            }
        }
        self.load_all(backing, &mut damaged);
        // What a page that is damaged points to is not known.
        for wrong in self.recount().unwrap_or_default() {
            self.segments.of_mut(wrong.segment).quarters = wrong.found;
        }
        self.segments.count_anew();
        self.checkpoint.set_exact();
        self.frozen = None;
    }

    /// Quarters of live blocks of log segments before these records were found behind the root.
    fn live_before(&self, recovered: &[(usize, Vec<RunRecord>)]) -> Vec<u32> {
        let mut live: Vec<u32> =
            self.segments.iter().map(|(_, segment)| segment.quarters).collect();
        let records = recovered.iter().flat_map(|(_, records)| records);
        for record in records.filter(|record| record.location.is_block()) {
            let at = record.location;
            live[self.layout.segment_of(at).index()] -= self.layout.quarters_of(at);
        }
        live
    }

    /// Writes the pages anew that are gone: what no run told of them is an error to read from now on.
    pub(crate) fn rewrite_lost(&mut self, backing: &mut dyn Backing) -> Result<(), MountError> {
        while let Some((page, _)) = self.lost_page() {
            // What recovery found is counted by the first one.
            self.checkpoint.sweep_from(page);
            self.want_checkpoint();
            if !settle(self, backing, Nanos::ZERO) {
                return Err(MountError::Backing("pages of the map were written anew"));
            }
        }
        Ok(())
    }
}
