//! What a checkpoint takes from the map: the records of its run, and the pages of the sweep. And the reading of pages that
//! recovery changed, until the live counts are right.

use onefold_format::volume::RunRecord;
use onefold_units::convert::{index64, u64_from};

use super::{COUNTED_AT_ONCE, RECORDS_PER_PAGE, RUNS_MAX, SWEEP_MIN};
use crate::faults::first_lba;
use crate::map::{Entries, Page, Ready};
use crate::volume::Volume;

impl Volume {
    /// Reads the pages that recovery changed, a few at a time. When all were read, the live counts are right.
    pub(crate) fn step_counting(&mut self) {
        if self.is_counted() || !self.recovery_counts() || self.frozen.is_some() {
            return;
        }
        let mut waits = false;
        while let Some(page) = self.checkpoint.to_count.last().copied() {
            let ready = self.map.ready(page);
            if self.map.is_counted(page) || ready == Ready::Damaged {
                self.checkpoint.to_count.pop();
                continue;
            }
            if ready == Ready::Missing && self.faults.len() < COUNTED_AT_ONCE {
                self.load_page(page);
                // The next one from the other end, until this one is read.
                let last = self.checkpoint.to_count.len() - 1;
                self.checkpoint.to_count.swap(0, last);
                if self.map.ready(page) == Ready::Loading && last > 0 {
                    continue;
                }
            }
            waits = true;
            break;
        }
        if !waits && self.checkpoint.to_count.is_empty() {
            self.all_counted();
            self.checkpoint.want();
        }
    }

    /// Whether what recovery found is in a run that counts. A page that is read before would lack it.
    fn recovery_counts(&self) -> bool {
        self.recovered.is_none()
            && self.checkpoint.work.as_ref().is_none_or(|work| work.run.counted)
    }

    /// Whether the live counts are exact (`crate::runs`, invariant 2).
    pub(crate) fn is_counted(&self) -> bool {
        self.recovery_counts() && self.checkpoint.runs.all_counted()
    }

    /// Every page that recovery changed was read: the live counts are right from now on.
    pub(crate) fn all_counted(&mut self) {
        for run in &mut self.checkpoint.runs.list {
            run.counted = true;
        }
        self.segments.forget_deferred();
    }

    /// Everything that changed since the last capture, in the order of blocks. A page that maps nothing any more is one
    /// record.
    pub(super) fn capture_records(&mut self, number: u64) -> Vec<RunRecord> {
        let mut records = self.recovered.take().unwrap_or_default();
        for page in 0..self.map.len() {
            if !self.map.is_dirty(page) {
                continue;
            }
            let from = records.len();
            self.map.capture(page, number, |lba, entry| {
                records.push(RunRecord { lba, birth: 0, location: entry.at, crc: entry.crc });
            });
            if self.map.maps_nothing(page) {
                records.truncate(from);
                records.push(RunRecord::page_gone(first_lba(page)));
            }
            self.map.mark_stale(page);
        }
        records
    }

    /// The pages whose images are written now, with their content. The sweep stops at a page that is not in memory, and
    /// asks for it.
    pub(super) fn choose_sweep(&mut self, number: u64) -> Vec<(usize, Option<Entries>)> {
        let mut chosen = Vec::new();
        self.checkpoint.prefetch.clear();
        // A page that is read now would lack what recovery found.
        if !self.is_counted() {
            return chosen;
        }
        let (pages, from) = (self.map.len(), self.checkpoint.cursor);
        let least = SWEEP_MIN.max(u64_from(pages) / RUNS_MAX);
        let mut budget = least.max(self.map.dirty_entries() / RECORDS_PER_PAGE);
        for step in 0..pages {
            let page = (from + step) % pages;
            if self.map.is_stale(page) || self.map.is_dirty(page) {
                let nothing = self.map.ready(page) == Ready::Yes && self.map.maps_nothing(page);
                if budget == 0 && !nothing {
                    return chosen;
                }
                if self.map.ready(page) != Ready::Yes {
                    self.prefetch(page, budget);
                    return chosen;
                }
                self.map.keep(page, number);
                let entries = self.map.page(page).map(Page::copy);
                chosen.push((page, entries.filter(|_| !nothing)));
                budget -= u64::from(!nothing);
            }
            self.checkpoint.cursor = (page + 1) % pages;
            self.checkpoint.swept += 1;
        }
        chosen
    }

    /// Asks for the stale pages that the next sweep begins with.
    pub(super) fn prefetch(&mut self, first: usize, budget: u64) {
        let pages = self.map.len();
        let missing: Vec<_> = (0..pages)
            .map(|step| (first + step) % pages)
            .filter(|page| self.map.is_stale(*page) && self.map.ready(*page) == Ready::Missing)
            .take(index64(budget.min(64)))
            .collect();
        for page in missing {
            self.checkpoint.prefetch.insert(page);
            self.load_page(page);
        }
    }
}
