//! What a checkpoint takes from the map: the records of its runs, and the pages of the sweep.

use onefold_format::volume::{RUN_BLOCK_RECORDS, RunRecord};
use onefold_units::Nanos;
use onefold_units::convert::{index64, u64_from};

use crate::checkpoint::room::{IMAGE, blocks_of_sweep};
use crate::checkpoint::sweep::Sweep;
use crate::checkpoint::{
    Closing, NewRun, RECORDS_PER_PAGE, RUNS_AT_CLOSE, RUNS_HELD_MAX, RUNS_IN_A_HURRY, RUNS_MAX,
    SWEEP_MIN, SweptPage,
};
use crate::frozen::Frozen;
use crate::layout::Layout;
use crate::log::Stream;
use crate::map::page::ImageOf;
use crate::map::runs::Run;
use crate::map::{Map, Ready};
use crate::volume::Volume;

impl Volume {
    /// Whether what recovery found is in a run that counts. A page that is read before would lack it.
    pub(crate) fn recovery_counts(&self) -> bool {
        self.checkpoint.recovered().is_empty() && self.checkpoint.writes_counted()
    }

    /// Whether the live counts are exact (`crate::map::runs`, invariant 2).
    pub(crate) fn is_counted(&self) -> bool {
        self.recovery_counts() && self.checkpoint.runs().all_counted()
    }

    /// Everything that changed since the last capture: a run for each member. `swept` is where the sweep of this checkpoint began.
    pub(super) fn capture_runs(&mut self, number: u64, swept: u64) -> Vec<NewRun> {
        let mut recovered = self.checkpoint.take_recovered();
        let counted = recovered.is_empty();
        let mut runs = Vec::new();
        let unread = self.checkpoint.take_unread();
        // The sweep has passed these pages already, and comes to them again within a round from here.
        let swept = if unread.is_empty() { swept } else { self.checkpoint.swept() };
        for slot in self.members.slots().collect::<Vec<_>>() {
            let at = recovered.iter().position(|(of, _)| *of == slot);
            let mut records = at.map_or_else(Vec::new, |at| recovered.swap_remove(at).1);
            records.reserve_exact(index64(self.map.dirty_entries()));
            let run = self.checkpoint.runs().next_number + u64_from(runs.len());
            self.map.capture_member(slot, (number, run), &mut records);
            self.repeat_told(&unread, (slot, run), &mut records);
            if records.is_empty() {
                continue;
            }
            let run = Run {
                number: run,
                members: 1 << slot,
                records: u64_from(records.len()),
                counted,
                blocks: Vec::new(),
                index: Vec::new(),
                swept,
            };
            // Where images have all of it, it is not written.
            let is_swept = run.is_swept(self.checkpoint.swept(), u64_from(self.map.pages()));
            let written = if is_swept { records.len() } else { 0 };
            runs.push(NewRun { run, slot, records, written, index_written: 0 });
        }
        runs
    }

    /// Adds what runs have of pages of a member that cannot be read.
    fn repeat_told(
        &mut self,
        unread: &[usize],
        (slot, run): (usize, u64),
        records: &mut Vec<RunRecord>,
    ) {
        for key in unread.iter().copied().filter(|key| Map::of_key(*key).0 == slot) {
            let Some(told) = self.loads.told(key) else { continue };
            records.extend_from_slice(told);
            self.map.mark_stale(key, run + 1);
        }
        if !unread.is_empty() {
            records.sort_by_key(|record| record.lba);
            records.dedup_by_key(|record| record.lba);
        }
    }

    /// What this checkpoint writes of a member is that of one that is made of it as well.
    pub(super) fn share_capture(
        slot: usize,
        parent: usize,
        pages: &mut [SweptPage],
        runs: &mut [NewRun],
    ) {
        for keys in pages {
            let of_parent = keys.iter().find(|key| Map::of_key(**key).0 == parent);
            let page = of_parent.map(|key| Map::of_key(*key).1);
            keys.extend(page.map(|page| Map::key(slot, page)));
        }
        for new in runs.iter_mut().filter(|new| new.slot == parent) {
            new.run.members |= 1 << slot;
        }
    }

    /// How much the checkpoint that begins sweeps over.
    pub(super) fn begin_sweep(&mut self) -> Sweep {
        self.move_meta();
        match self.checkpoint.closing() {
            Closing::No => self.compact_meta(),
            _ if self.is_moving_meta() => {}
            Closing::Begins if self.can_sweep_all() => {
                self.checkpoint.close_next();
                return Sweep::All;
            }
            Closing::Begins => {}
            Closing::Ends => return Sweep::Nothing,
        }
        Sweep::Some
    }

    /// The pages whose images are written now, with their content. The sweep goes over all members at once; what is the
    /// same in several becomes one image. It stops at a page that is not in memory, and asks for it.
    /// If it goes over all of the map at once, no run is left.
    pub(super) fn choose_sweep(&mut self, number: u64, sweep: Sweep) -> Vec<SweptPage> {
        let mut chosen = Vec::new();
        self.checkpoint.prefetch(&[]);
        // A page that is read now would lack what recovery found. And nobody waits for more than a root when a volume is
        // opened: nothing is in memory yet.
        let nothing = sweep == Sweep::Nothing || !self.is_counted();
        if nothing || (number == 1 && self.map.resident() == 0) {
            return chosen;
        }
        if sweep == Sweep::All {
            // Neighbours lie side by side then.
            self.checkpoint.sweep_all();
        }
        let (pages, from) = (self.map.pages(), self.checkpoint.cursor());
        // What small checkpoints write beside pages stays until the sweep has come round.
        let hurry = self.meta_is_sparse() || self.members.waits_for_room() || self.is_moving_meta();
        let share = if hurry { RUNS_IN_A_HURRY } else { RUNS_MAX };
        let least = SWEEP_MIN.max(u64_from(pages) / share);
        let some = least.max(self.map.dirty_entries() / RECORDS_PER_PAGE);
        let mut budget = if sweep == Sweep::All { u64::MAX } else { some };
        let mut room = if sweep == Sweep::All { u64::MAX } else { self.room_for_sweep() };
        for step in 0..pages {
            let page = (from + step) % pages;
            let (lost, changed) = self.members.changed(&self.map, page);
            let ready = |key: &usize| self.map.ready(*key) == Ready::Yes;
            let nothing = |key: &usize| ready(key) && self.map.maps_nothing(*key);
            let told: u64 = lost.iter().map(|key| self.told_blocks(*key)).sum();
            if budget == 0 && (told > 0 || !changed.iter().all(nothing)) {
                return chosen;
            }
            if !changed.iter().all(ready) {
                self.prefetch(page, budget);
                return chosen;
            }
            let images = self.map.images(&changed);
            // One page has room in any case.
            let first = chosen.is_empty() && !self.checkpoint.has_unread();
            let takes = blocks_of_sweep(images.len(), changed.len()) + told;
            let Some(left) = room.checked_sub(takes).or_else(|| first.then_some(0)) else {
                return chosen;
            };
            room = left;
            budget = budget.saturating_sub(told.min(1));
            for keys in &images {
                let mapped = self.map.page_mut(keys[0]).filter(|page| !page.maps_nothing());
                budget = budget.saturating_sub(mapped.is_some().into());
                if let Some(page) = mapped {
                    page.image = ImageOf::Page;
                }
            }
            for key in changed {
                self.map.keep(key, number);
            }
            chosen.extend(images);
            self.checkpoint.pass((page + 1) % pages);
            self.pass_unread(&lost);
        }
        chosen
    }

    /// Pages that cannot be read are passed. What runs have of them goes to the run of this checkpoint, so that they can be dropped. Where they
    /// cannot be read either, they wait for another round, and with them those that came later: whoever reads a page applies all that are
    /// left to its image (`crate::map::runs`, invariant 5).
    fn pass_unread(&mut self, keys: &[usize]) {
        self.checkpoint.note_unread(keys);
        for key in keys.iter().filter(|key| self.loads.told(**key).is_none()) {
            let (slot, behind) = (Map::of_key(*key).0, self.map.behind(*key));
            self.checkpoint.put_off(|run| run.members >> slot & 1 == 1 && run.number < behind);
        }
    }

    /// Checkpoints wait while runs take all the room: pages that could not be read are read again, and when they are there one begins.
    pub(crate) fn step_full_of_runs(&mut self) {
        if !self.checkpoint.is_full_of_runs() || self.frozen.is_some() {
            return;
        }
        if self.checkpoint.is_closing() {
            return self.freeze(Frozen::Checkpoint);
        }
        let unread: Vec<usize> = self.unread_pages().collect();
        self.checkpoint.fill_with_runs(!unread.is_empty());
        if unread.is_empty() {
            self.checkpoint.want();
        }
        for key in unread {
            if self.map.ready(key) == Ready::Missing {
                self.load_page(key);
            }
        }
    }

    /// When such a page is read again.
    pub(crate) fn full_of_runs_deadline(&self) -> Option<Nanos> {
        let waits = self.checkpoint.is_full_of_runs() && self.frozen.is_none();
        waits.then(|| self.damage_deadline(0..usize::MAX)).flatten()
    }

    /// Whether runs that stay because one of them cannot be read ([`Self::pass_unread`]) are more than the volume has room for: each
    /// checkpoint adds to them.
    pub(super) fn is_full_of_runs(&self) -> bool {
        let (runs, members) = (&self.checkpoint.runs().list, self.member_count());
        let blocks: usize = runs.iter().map(|run| run.blocks.len()).sum();
        let is_low = self.segments.free_count() <= self.kept_from(Stream::User);
        let kept = is_low && u64_from(blocks) > Self::runs_when_swept_often(members);
        let untold =
            |key: usize| self.map.ready(key) == Ready::Damaged && self.loads.told(key).is_none();
        (kept || u64_from(runs.len()) > RUNS_HELD_MAX * members)
            && self.members.slots().flat_map(|slot| self.map.keys_of(slot)).any(untold)
    }

    /// Blocks that what runs have of a page takes in another run.
    fn told_blocks(&self, key: usize) -> u64 {
        u64_from(self.loads.told(key).map_or(0, <[RunRecord]>::len).div_ceil(RUN_BLOCK_RECORDS))
    }

    /// Whether the next opening would have many runs to read beside images, all pages that have records there are in memory, and
    /// there is room for their images.
    fn can_sweep_all(&self) -> bool {
        if !self.is_counted() || self.checkpoint.runs().list.len() < RUNS_AT_CLOSE {
            return false;
        }
        let keys = self.members.slots().flat_map(|slot| self.map.keys_of(slot));
        let mut images = 0;
        for key in keys.filter(|key| self.map.differs(*key)) {
            if self.map.ready(key) != Ready::Yes {
                return false;
            }
            images += 1;
        }
        let directories = self.members.slots().map(|slot| self.members.of(slot).directory.len());
        let blocks = IMAGE * images + u64_from(directories.sum());
        let segments = blocks.div_ceil(u64::from(self.layout.packed())) + 1;
        let available = u64::from(self.segments.available());
        images > 0 && segments + u64::from(Layout::reserve()) <= available
    }

    /// Asks for the stale pages that the next sweep begins with.
    pub(super) fn prefetch(&mut self, first: usize, budget: u64) {
        let pages = self.map.pages();
        let missing: Vec<_> = (0..pages)
            .flat_map(|step| self.members.changed(&self.map, (first + step) % pages).1)
            .filter(|key| self.map.ready(*key) == Ready::Missing)
            .take(index64(budget.min(64)))
            .collect();
        // Those of one page are needed at once.
        let number = self.checkpoint.next_number();
        self.members
            .changed(&self.map, first)
            .1
            .into_iter()
            .for_each(|key| self.map.keep(key, number));
        let fit = (0..missing.len()).take_while(|before| self.make_room(before + 1)).count();
        self.checkpoint.prefetch(&missing[..fit]);
        self.load_pages(&missing[..fit], false);
    }
}
