//! The scrub at work (`crate::scrub`).

mod copies;
mod mend;
mod offline;
mod walk;

use onefold_units::{Location, LogSegmentId, Nanos};

use crate::findings::Finding;
use crate::frozen::Frozen;
use crate::io::{Buffer, IoFailed, IoKind};
use crate::pending::Purpose;
use crate::scrub::{Phase, Reading, ScrubError, ScrubState, Scrubbed};
use crate::volume::Volume;

pub use offline::scrub;

impl Volume {
    /// Begins a pass with a pause behind each request, four times as long while the host uses the volume.
    ///
    /// # Errors
    /// None can begin now.
    pub fn start_scrub(&mut self, pause: Nanos) -> Result<(), ScrubError> {
        if !self.options.bytes {
            return Err(ScrubError::NoBytes);
        }
        if self.scrub.is_running() {
            return Err(ScrubError::Running);
        }
        if self.frozen.is_some_and(|why| why != Frozen::ReadOnly) || self.checkpoint.is_closing() {
            return Err(ScrubError::Frozen);
        }
        self.scrub.begin(pause, self.layout.segments(), self.now);
        Ok(())
    }

    /// Begins a pass now and each time that `every` went by since the last one began; one that takes longer is followed by the next at once.
    ///
    /// # Errors
    /// As for [`Volume::start_scrub`].
    pub fn scrub_every(&mut self, every: Nanos, pause: Nanos) -> Result<(), ScrubError> {
        self.start_scrub(pause)?;
        self.scrub.repeat(Some((every, self.now + every)));
        Ok(())
    }

    /// Ends the pass under way. One that comes later does so all the same ([`Volume::scrub_every`]).
    pub fn stop_scrub(&mut self) {
        self.scrub.stop();
    }

    /// What the scrub under way, or the last one, came to.
    #[must_use]
    pub const fn scrubbed(&self) -> &Scrubbed {
        self.scrub.report()
    }

    /// Lets the scrub go on.
    pub(crate) fn step_scrub(&mut self) {
        self.begin_due_scrub();
        let ends = self.scrub.stops()
            || self.frozen.is_some_and(|why| why != Frozen::ReadOnly)
            || self.checkpoint.is_closing();
        if !self.scrub.is_running() || self.scrub.is_busy() {
            return;
        }
        if ends {
            self.end_scrub(ScrubState::Stopped);
            return;
        }
        self.scrub.wait(false);
        while self.scrub.may_go_on(self.now) {
            let go_on = match self.scrub.take_phase() {
                Phase::Idle => return,
                Phase::Copies { next, again } => self.step_copies(next, again),
                Phase::Segments { next } => self.next_walk(next),
                Phase::Walk(walk) => self.step_walk(walk),
                Phase::Mend => self.step_mend(),
            };
            if !go_on {
                self.scrub.wait(!self.scrub.is_reading());
                return;
            }
        }
    }

    fn begin_due_scrub(&mut self) {
        let Some(every) = self.scrub.due_again(self.now) else { return };
        // A volume that takes no changes any more is not scrubbed again.
        let begun = self.start_scrub(self.scrub.pause());
        self.scrub.repeat(begun.is_ok().then_some((every, self.now + every)));
    }

    fn end_scrub(&mut self, state: ScrubState) {
        self.scrub.end(state);
        if state == ScrubState::Done {
            self.stats.scrubs += 1;
            self.segments.try_retired();
        }
    }

    /// Asks for blocks; their log segment stays as it is meanwhile.
    fn scrub_read(&mut self, at: Location, blocks: u32, pinned: Option<LogSegmentId>) {
        if let Some(segment) = pinned {
            self.segments.pin(segment);
        }
        self.scrub.begin_read(Reading { at, blocks, pinned });
        self.stats.scrub_read += u64::from(blocks);
        self.ask(IoKind::Read, Purpose::Scrub, at, blocks);
    }

    /// Blocks were read, or cannot be.
    pub(crate) fn scrub_over(&mut self, buffer: &Buffer, result: Result<(), IoFailed>) {
        let Some(reading) = self.scrub.end_read() else { return };
        if let Some(segment) = reading.pinned {
            self.segments.unpin(segment);
        }
        let bytes = result.is_ok().then(|| buffer.bytes());
        match self.scrub.take_phase() {
            Phase::Copies { next, again } => self.copy_over(next, again, bytes),
            Phase::Walk(walk) => self.walk_over(walk, reading, bytes),
            other => self.scrub.set_phase(other),
        }
        let activity = self.stats.written + self.stats.read + self.stats.trimmed;
        self.scrub.rest(activity, self.now);
    }

    /// Something is damaged. Gives its place in the list, if that has it.
    fn note_damage(&mut self, finding: Finding) -> Option<usize> {
        self.stats.scrub_damaged += 1;
        self.scrub.note_damage(finding)
    }

    fn note_mended(&mut self, place: Option<usize>) {
        self.stats.scrub_mended += 1;
        self.scrub.note_mended(place);
    }
}
