//! Checkpoints, from what they begin with to what they come to (`crate::checkpoint`).

mod capture;
mod commit;
mod compact;
mod due;
mod room;
mod roots;
mod sweep;
mod write;

use crate::checkpoint::Phase;
use crate::frozen::Frozen;
use crate::log::Stream;
use crate::volume::Volume;

impl Volume {
    /// Begins the last checkpoint. The volume takes no changes from now on; it is closed when it is idle.
    pub fn close(&mut self) {
        if self.frozen.is_none() {
            self.checkpoint.close();
        }
    }

    /// Whether a checkpoint is under way or wanted.
    #[must_use]
    pub const fn is_settling(&self) -> bool {
        self.checkpoint.is_settling()
    }

    /// Asks for a checkpoint soon.
    pub fn want_checkpoint(&mut self) {
        self.checkpoint.want();
    }

    pub(crate) fn step_checkpoint(&mut self) {
        if self.frozen.is_some() {
            return;
        }
        // One that comes to nothing is followed by the next: nobody may call again for long.
        while self.checkpoint.is_running() || self.begins_checkpoint() {
            while self.checkpoint.is_running() && self.advance() {}
            if self.checkpoint.is_running() {
                break;
            }
        }
        if self.takeable(Stream::Meta) == 0 && self.lacks_segments() {
            self.freeze(Frozen::Checkpoint);
        }
    }

    /// Whether a checkpoint waits for a log segment that nothing can give it. Only a root lists log segments anew, so where writes failed in all
    /// that the last one listed there are none, however many are free. An opening may take any.
    fn lacks_segments(&self) -> bool {
        let wanted = self.checkpoint.is_running() || self.checkpoint_due();
        let coming = self.trims.len() > 0 || self.trims.has_stuck() || !self.retries.is_empty();
        wanted && !coming && self.is_idle() && !self.can_append(Stream::Meta, 2)
    }

    fn begins_checkpoint(&mut self) -> bool {
        let begins = self.checkpoint_due() && self.can_append(Stream::Meta, 1);
        if begins {
            self.capture();
        }
        begins
    }

    /// Whether a checkpoint waits until the batches up to X are where they stay.
    const fn is_careful(&self) -> bool {
        self.checkpoint.was_spoiled() || !self.retries.is_empty()
    }

    /// Does the next thing. `false` if that has to wait.
    fn advance(&mut self) -> bool {
        let Some(mut work) = self.checkpoint.take() else { return false };
        let go_on = match work.phase {
            Phase::Sync => self.sync(&mut work),
            Phase::RootZone | Phase::Root | Phase::RootFlush => false,
            _ if work.spoiled => {
                work.phase = Phase::Sync;
                work.last_seq = self.log.seq();
                true
            }
            // What is written in vain takes room until the next checkpoint counts, so the room could be used up by trying.
            Phase::Pages if self.is_careful() && self.log.complete() < work.seq => false,
            _ if !self.can_append(Stream::Meta, 2) => false,
            Phase::Pages => self.write_page(&mut work),
            Phase::Directory => self.write_directory(&mut work),
            Phase::Run => self.write_run(&mut work),
            Phase::Index => self.write_index(&mut work),
            Phase::Body => self.write_body(&mut work),
        };
        let over =
            work.spoiled && work.phase == Phase::Sync && self.log.complete() >= work.last_seq;
        if over {
            self.undo(*work);
            return false;
        }
        self.checkpoint.put(work);
        go_on
    }
}
