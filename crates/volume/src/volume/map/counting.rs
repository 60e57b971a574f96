//! Making live counts exact after a recovery (`crate::map::counting`).

use onefold_units::Lba;
use onefold_units::convert::u64_from;

use crate::map::images::Replaced;
use crate::map::page::PAGE_ENTRIES_U64;
use crate::map::preload::{TOGETHER, UNDER_WAY_MAX};
use crate::map::{Map, Ready};
use crate::volume::Volume;

impl Volume {
    /// Pages that recovery changed have to be read before the live counts are right.
    pub(crate) fn count_pages(&mut self, pages: impl IntoIterator<Item = usize>) {
        self.counting.add(pages);
    }

    /// A page was read, and records of recovery replaced these blocks in it.
    pub(crate) fn note_replaced(&mut self, key: usize, replaced: Vec<Replaced>) {
        if self.is_counted() {
            return;
        }
        let page = Map::of_key(key).1;
        if !self.counting.is_judged(page) {
            self.counting.note(key, replaced);
            self.judge(page);
        }
    }

    /// Judges a page if it is there in every member (invariant 1).
    fn judge(&mut self, page: usize) -> bool {
        let keys: Vec<usize> = self.members.slots().map(|slot| Map::key(slot, page)).collect();
        let there = |key: &usize| !matches!(self.map.ready(*key), Ready::Missing | Ready::Loading);
        if !keys.iter().all(there) {
            return false;
        }
        for (at, location) in self.counting.judge(page, &keys) {
            let lba = Lba::new(u64_from(page) * PAGE_ENTRIES_U64 + u64_from(at));
            let held = |slot| self.map.peek(Map::lba_of(slot, lba)).at == location;
            if self.members.slots().any(held) {
                continue;
            }
            let segment = self.layout.segment_of(location);
            let unread = |slot| self.map.ready(Map::key(slot, page)) == Ready::Damaged;
            if self.members.slots().any(unread) {
                self.segments.doubt(segment);
            } else {
                self.lose(location);
                self.segments.defer(segment, self.layout.quarters_of(location));
            }
        }
        true
    }

    /// Reads the pages that recovery changed, a few at a time. When all were read, the live counts are right.
    pub(crate) fn step_counting(&mut self) {
        if self.is_counted() || !self.recovery_counts() || self.frozen.is_some() {
            return;
        }
        // All of the map is being read anyway, and nobody waits for these pages.
        if self.is_preloading() && self.members.is_alone() {
            return;
        }
        // The pages of all members have to be in memory at once.
        let most = if self.members.is_alone() { UNDER_WAY_MAX } else { 1 };
        let (mut waiting, mut at) = (0, self.counting.waiting());
        let (mut missing, mut loading) = (Vec::new(), false);
        while at > 0 && waiting < most && missing.len() < TOGETHER {
            at -= 1;
            let page = self.counting.page(at);
            if self.counting.is_judged(page) || self.judge(page) {
                self.counting.pass(at);
            } else {
                waiting += 1;
                loading |= self.miss_of_all(page, &mut missing);
            }
        }
        // Many at a time: they share blocks of runs, and their images lie side by side.
        if missing.len() >= TOGETHER || !loading {
            self.load_missing(&missing);
        }
        if self.counting.waiting() == 0 {
            self.all_counted();
            self.checkpoint.want();
        }
    }

    /// Adds the keys of a page that have to be read. Whether one is being read already.
    fn miss_of_all(&mut self, page: usize, missing: &mut Vec<usize>) -> bool {
        let number = self.checkpoint.committed() + 1;
        let mut loading = false;
        for slot in self.members.slots() {
            let key = Map::key(slot, page);
            self.map.keep(key, number);
            match self.map.ready(key) {
                Ready::Missing if !self.is_coming(slot) => missing.push(key),
                Ready::Loading => loading = true,
                _ => {}
            }
        }
        loading
    }

    /// Reads as many of these pages as there is room for.
    fn load_missing(&mut self, keys: &[usize]) {
        let fit = (0..keys.len()).take_while(|before| self.make_room(before + 1)).count();
        self.load_pages(&keys[..fit], false);
    }

    /// Every page that recovery changed was read: the live counts are right from now on.
    pub(crate) fn all_counted(&mut self) {
        self.checkpoint.runs_mut().for_each(|run| run.counted = true);
        self.segments.forget_deferred();
        self.counting.clear();
    }
}
