//! The end of a checkpoint: its root, what becomes free with it, and the way back from one that came to nothing.

use std::collections::BTreeSet;

use onefold_format::volume::{BodyPlace, Root};
use onefold_units::convert::u64_from;
use onefold_units::{LogSegmentId, Seq};

use crate::checkpoint::write::extents;
use crate::checkpoint::{Phase, Work};
use crate::frozen::Frozen;
use crate::io::IoFailed;
use crate::log::Stream;
use crate::map::page::Page;
use crate::map::runs::Run;
use crate::volume::Volume;

impl Volume {
    /// Waits until the batches of the checkpoint are durable, then writes the root.
    pub(super) fn sync(&mut self, work: &mut Work) -> bool {
        // `crate::scrub`, invariant 5.
        let waits = self.scrub.holds_copies() || self.flushes.durable() < work.last_seq;
        if work.spoiled || waits || self.checkpoint.waits(self.now) {
            return false;
        }
        let generation = self.checkpoint.next_generation();
        work.generation = work.generation.max(generation);
        let root = Root {
            generation,
            incarnation: self.incarnation,
            seq: Seq::new(work.seq),
            clean: work.clean,
            body: BodyPlace::of(&work.body, extents(&work.body_blocks)),
        };
        work.phase = if self.write_root(&root) { Phase::Root } else { Phase::RootZone };
        false
    }

    /// The zone for the root can be written.
    pub(crate) fn root_zone_ready(&mut self) {
        self.checkpoint.go_to(Phase::Sync);
    }

    /// The zone that a root waits for is not being finished any more.
    pub(crate) fn root_zone_waited(&mut self) {
        if self.checkpoint.phase() == Some(Phase::RootZone) {
            self.root_zone_ready();
        }
    }

    /// The root was written.
    pub(crate) fn root_over(&mut self, result: Result<(), IoFailed>) {
        if let Err(why) = result {
            self.root_failed(why);
            return;
        }
        self.checkpoint.root_written();
        if self.checkpoint.go_to(Phase::RootFlush) {
            self.flushes.want_root();
        }
    }

    /// The root could not be written: that is tried again, elsewhere. It names the same body, so it does not matter if the first one is there.
    pub(crate) fn root_failed(&mut self, why: IoFailed) {
        self.checkpoint.root_failed(why, self.now);
        if !self.leave_root_zone() {
            self.root_zone_ready();
        }
    }

    /// The root is durable: the checkpoint counts.
    pub(crate) fn commit(&mut self) {
        let Some(work) = self.checkpoint.take() else { return };
        let work = *work;
        let mut replaced = work.replaced;
        // One that is going is in no body any more.
        let there = self.members.slots().fold(0_u64, |mask, slot| mask | 1 << slot);
        let pages = u64_from(self.map.pages());
        let is_needed = |run: &Run| !run.is_swept(work.swept, pages) && run.members & there > 0;
        replaced.extend(self.checkpoint.commit_runs(work.runs, is_needed));
        replaced.extend(self.checkpoint.commit(work.generation, work.body_blocks));
        for at in replaced {
            self.lose(at);
        }
        self.root_counts();
        self.flushes.note_said(work.seq);
        self.stats.checkpoints += 1;
        self.segments.list(&work.reserve);
        self.give_back(&work.emptied);
        self.members_settled();
        // Before all runs are counted nothing is swept; a checkpoint follows when they are.
        if self.is_moving_meta() && self.is_counted() {
            self.checkpoint.want();
        }
        if work.clean {
            self.freeze(Frozen::Closed);
        } else {
            self.checkpoint.fill_with_runs(self.is_full_of_runs());
        }
    }

    /// Gives back the log segments that were empty at X, and those that held only what the root before needed.
    pub(super) fn give_back(&mut self, emptied: &[LogSegmentId]) {
        let meta: Vec<_> = self
            .segments
            .empties()
            .into_iter()
            .filter(|id| self.segments.of(*id).stream == Stream::Meta)
            .collect();
        let still = |id: &&LogSegmentId| self.segments.of(**id).pins == 0;
        let all: BTreeSet<_> = emptied.iter().filter(still).copied().chain(meta).collect();
        for id in all {
            self.stats.freed_segments += 1;
            self.segments.give_back(id);
            self.trims.push(id, self.now);
        }
    }

    /// Takes a checkpoint back that came to nothing (invariant 4).
    pub(super) fn undo(&mut self, work: Work) {
        // What was not written yet.
        for page in work.pages.iter().flatten().copied() {
            self.map.page_mut(page).map(Page::take_image);
        }
        for (page, image) in work.old_images.into_iter().rev() {
            self.map.set_image(page, image, self.checkpoint.runs_end());
        }
        for (slot, at, place) in work.old_directory.into_iter().rev() {
            self.members.of_mut(slot).directory[at] = place;
        }
        for new in work.runs {
            if new.run.counted {
                new.records.iter().for_each(|record| self.map.touch(new.slot, record));
            } else {
                self.checkpoint.recover_again(new.slot, new.records);
            }
        }
        self.undo_members();
        for at in work.made {
            self.lose(at);
        }
        self.checkpoint.undo(work.before, self.now);
    }
}
