//! Scrub: all that is live is read in the background and compared with its checksums, so that rot is found while other copies
//! of the data still exist (volume.md, section 5.9).
//!
//! A pass looks at the copies of the label and at roots ([`copies`]), then at the log segments one after the other, along their chains of
//! headers ([`walk`]), and mends what it can in the end ([`mend`]). One request is under way at a time, and there is a pause behind each.
//!
//! 1. What does not fit its checksum is read once more. Only if that does not fit either, and the block is still live, it is damaged.
//! 2. A damaged block of data stays as it is, and an error to read: there is no other copy of it. Mended is what can be written anew from memory: a copy of
//!    the label, the root, and what a checkpoint writes of the map.
//! 3. Nothing is held between two requests: a log segment that is cleaned or given back meanwhile is left out, and what moved is for the next pass.
//! 4. A pass that is through has log segments that are retired tried once more (`crate::suspects`,
//!    invariant 3).
//! 5. Labels and roots are not written while a scrub reads or writes one of them, and the other way
//!    round.

mod copies;
mod mend;
mod offline;
mod walk;

use onefold_units::{Location, LogSegmentId, Nanos};
use thiserror::Error;

use crate::inspect::{FINDINGS_MAX, Finding};
use crate::io::{Buffer, IoFailed, IoKind};
use crate::pending::Purpose;
use crate::volume::{Frozen, Volume};
use mend::Mend;
use walk::Walk;

pub use offline::scrub;

/// Pause behind a request of 256 KiB where a scrub runs beside the host: 10 MiB/s at most.
pub const SCRUB_PAUSE: Nanos = Nanos::new(25_000_000);

/// So much longer is the pause while the host uses the volume.
const BUSY_FACTOR: u64 = 4;

/// How far a scrub is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScrubState {
    /// None was begun since the volume was opened.
    #[default]
    Never,
    /// It is under way.
    Running,
    /// It looked at everything.
    Done,
    /// It was told to stop, or the volume stopped taking changes.
    Stopped,
}

impl ScrubState {
    /// Stable name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }
}

/// Something that a scrub found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What it is.
    pub finding: Finding,
    /// Whether it was written anew.
    pub mended: bool,
}

/// What the scrub under way, or the last one, came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// How far it is.
    pub state: ScrubState,
    /// Log segments that it is through with ..
    pub passed: u32,
    /// .. of so many.
    pub segments: u32,
    /// Blocks that were read.
    pub read: u64,
    /// Live blocks, of data and of checkpoints, that were compared with their checksums.
    pub checked: u64,
    /// What is damaged, the first [`FINDINGS_MAX`] of it.
    pub damage: Vec<Damage>,
    /// How much there is of it ..
    pub found: u64,
    /// .. and how much of that was written anew.
    pub mended: u64,
}

impl Scrubbed {
    /// Whether damage is left that does harm.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        let listed = self.damage.iter().filter(|one| one.mended || one.finding.is_repairable());
        onefold_units::convert::u64_from(listed.count()) < self.found
    }
}

/// Why no scrub begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScrubError {
    /// One is under way.
    #[error("a scrub is under way; `--status` says how far it is")]
    Running,
    /// The volume stopped taking changes.
    #[error("the volume takes no changes any more")]
    Frozen,
    /// Blocks carry no bytes.
    #[error("blocks carry no bytes here, so there is nothing to compare with checksums")]
    NoBytes,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    /// The copy of label or root in this place comes next; `again`: once more.
    Copies {
        next: usize,
        again: bool,
    },
    /// The first log segment from this one on that has live blocks comes next.
    Segments {
        next: u32,
    },
    Walk(Walk),
    Mend,
}

/// A request of the scrub that is under way.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Location,
    blocks: u32,
    /// The log segment that is pinned for it.
    pinned: Option<LogSegmentId>,
}

/// The scrub under way, and what is left of the last one.
#[derive(Debug, Default)]
pub(crate) struct Scrub {
    phase: Phase,
    reading: Option<Reading>,
    /// It ends when its request is through.
    stops: bool,
    /// Only an event lets it go on.
    waits: bool,
    pause: Nanos,
    /// When the next request may be sent.
    due: Nanos,
    /// Time between the beginnings of two passes, and when the next one begins.
    every: Option<(Nanos, Nanos)>,
    /// What the host had done when the last request ended.
    activity: u64,
    /// Copies of the label that are being written.
    writes: u32,
    mends: Vec<Mend>,
    report: Scrubbed,
}

impl Scrub {
    /// When the volume has to be pumped for it.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Idle => self.every.map(|(_, next)| next),
            _ if self.reading.is_some() || self.writes > 0 || self.waits => None,
            _ => Some(self.due),
        }
    }

    /// Whether labels and roots have to wait (invariant 5).
    pub(crate) const fn holds_copies(&self) -> bool {
        let reads = matches!(self.phase, Phase::Copies { .. }) && self.reading.is_some();
        reads || self.writes > 0
    }

    const fn is_running(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }
}

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
        let (state, segments) = (ScrubState::Running, self.layout.segments());
        self.scrub = Scrub {
            phase: Phase::Copies { next: 0, again: false },
            pause,
            due: self.now,
            every: self.scrub.every,
            report: Scrubbed { state, segments, ..Scrubbed::default() },
            ..Scrub::default()
        };
        Ok(())
    }

    /// Begins a pass now and each time that `every` went by since the last one began; one that takes longer is followed by the next at once.
    ///
    /// # Errors
    /// As for [`Volume::start_scrub`].
    pub fn scrub_every(&mut self, every: Nanos, pause: Nanos) -> Result<(), ScrubError> {
        self.start_scrub(pause)?;
        self.scrub.every = Some((every, self.now + every));
        Ok(())
    }

    /// Ends the pass under way. One that comes later does so all the same ([`Volume::scrub_every`]).
    pub fn stop_scrub(&mut self) {
        self.scrub.stops = self.scrub.is_running();
    }

    /// What the scrub under way, or the last one, came to.
    #[must_use]
    pub const fn scrubbed(&self) -> &Scrubbed {
        &self.scrub.report
    }

    /// Lets the scrub go on.
    pub(crate) fn step_scrub(&mut self) {
        self.begin_due_scrub();
        let ends = self.scrub.stops
            || self.frozen.is_some_and(|why| why != Frozen::ReadOnly)
            || self.checkpoint.is_closing();
        if !self.scrub.is_running() || self.scrub.reading.is_some() || self.scrub.writes > 0 {
            return;
        }
        if ends {
            self.end_scrub(ScrubState::Stopped);
            return;
        }
        self.scrub.waits = false;
        while self.now >= self.scrub.due && self.scrub.reading.is_none() && self.scrub.writes == 0 {
            let go_on = match std::mem::take(&mut self.scrub.phase) {
                Phase::Idle => return,
                Phase::Copies { next, again } => self.step_copies(next, again),
                Phase::Segments { next } => self.next_walk(next),
                Phase::Walk(walk) => self.step_walk(walk),
                Phase::Mend => self.step_mend(),
            };
            if !go_on {
                self.scrub.waits = self.scrub.reading.is_none();
                return;
            }
        }
    }

    fn begin_due_scrub(&mut self) {
        let Some((every, next)) = self.scrub.every else { return };
        if self.scrub.is_running() || self.now < next {
            return;
        }
        // A volume that takes no changes any more is not scrubbed again.
        let begun = self.start_scrub(self.scrub.pause);
        self.scrub.every = begun.is_ok().then_some((every, self.now + every));
    }

    fn end_scrub(&mut self, state: ScrubState) {
        self.scrub.phase = Phase::Idle;
        self.scrub.stops = false;
        self.scrub.report.state = state;
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
        self.scrub.reading = Some(Reading { at, blocks, pinned });
        self.scrub.report.read += u64::from(blocks);
        self.stats.scrub_read += u64::from(blocks);
        self.ask(IoKind::Read, Purpose::Scrub, at, blocks);
    }

    /// Blocks were read, or cannot be.
    pub(crate) fn scrub_over(&mut self, buffer: &Buffer, result: Result<(), IoFailed>) {
        let Some(reading) = self.scrub.reading.take() else { return };
        if let Some(segment) = reading.pinned {
            self.segments.unpin(segment);
        }
        let bytes = result.is_ok().then(|| buffer.bytes());
        match std::mem::take(&mut self.scrub.phase) {
            Phase::Copies { next, again } => self.copy_over(next, again, bytes),
            Phase::Walk(walk) => self.walk_over(walk, reading, bytes),
            other => self.scrub.phase = other,
        }
        let activity = self.stats.written + self.stats.read + self.stats.trimmed;
        let busy = std::mem::replace(&mut self.scrub.activity, activity) != activity;
        let factor = if busy { BUSY_FACTOR } else { 1 };
        self.scrub.due = self.now + Nanos::new(self.scrub.pause.get().saturating_mul(factor));
    }

    /// Something is damaged. Gives its place in the list, if that has it.
    fn note_damage(&mut self, finding: Finding) -> Option<usize> {
        let report = &mut self.scrub.report;
        report.found += 1;
        self.stats.scrub_damaged += 1;
        let place = report.damage.len();
        if place >= FINDINGS_MAX {
            return None;
        }
        report.damage.push(Damage { finding, mended: false });
        Some(place)
    }

    fn note_mended(&mut self, place: Option<usize>) {
        self.scrub.report.mended += 1;
        self.stats.scrub_mended += 1;
        if let Some(damage) = place.and_then(|place| self.scrub.report.damage.get_mut(place)) {
            damage.mended = true;
        }
    }
}
