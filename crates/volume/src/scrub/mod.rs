//! Scrub: all that is live is read in the background and compared with its checksums, so that rot is found while other copies
//! of the data still exist (volume.md, section 5.9).
//!
//! A pass looks at the copies of the label and at roots (`crate::volume::scrub::copies`), then at the log segments one after the other, along their chains of
//! headers (`walk`), and mends what it can in the end (`mend`). One request is under way at a time, and there is a pause behind each.
//!
//! 1. What does not fit its checksum is read once more. Only if that does not fit either, and the block is still live, it is damaged.
//! 2. A damaged block of data stays as it is, and an error to read: there is no other copy of it. Mended is what can be written anew from memory: a copy of
//!    the label, the root, and what a checkpoint writes of the map.
//! 3. Nothing is held between two requests: a log segment that is cleaned or given back meanwhile is left out, and what moved is for the next pass.
//! 4. A pass that is through has log segments that are retired tried once more (`crate::volume::log::suspects`,
//!    invariant 3).
//! 5. Labels and roots are not written while a scrub reads or writes one of them, and the other way
//!    round.

pub(crate) mod mend;
pub(crate) mod walk;

use onefold_units::{Location, LogSegmentId, Nanos};
use thiserror::Error;

use crate::findings::{FINDINGS_MAX, Finding};
use mend::Mend;
use walk::Walk;

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
pub(crate) enum Phase {
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
pub(crate) struct Reading {
    pub(crate) at: Location,
    pub(crate) blocks: u32,
    /// The log segment that is pinned for it.
    pub(crate) pinned: Option<LogSegmentId>,
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

    pub(crate) const fn is_running(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// A pass over so many log segments begins.
    pub(crate) fn begin(&mut self, pause: Nanos, segments: u32, now: Nanos) {
        *self = Self {
            phase: Phase::Copies { next: 0, again: false },
            pause,
            due: now,
            every: self.every,
            report: Scrubbed { state: ScrubState::Running, segments, ..Scrubbed::default() },
            ..Self::default()
        };
    }

    /// A pass begins so long after the last one, the next one then; or none by itself.
    pub(crate) const fn repeat(&mut self, every: Option<(Nanos, Nanos)>) {
        self.every = every;
    }

    /// Time between the beginnings of two passes, if the next one is due and none is under way.
    pub(crate) fn due_again(&self, now: Nanos) -> Option<Nanos> {
        let (every, next) = self.every?;
        (!self.is_running() && now >= next).then_some(every)
    }

    /// The pause behind each request.
    pub(crate) const fn pause(&self) -> Nanos {
        self.pause
    }

    /// The pass under way is to end.
    pub(crate) const fn stop(&mut self) {
        self.stops = self.is_running();
    }

    /// Whether the pass under way is to end.
    pub(crate) const fn stops(&self) -> bool {
        self.stops
    }

    /// The pass is over.
    pub(crate) fn end(&mut self, state: ScrubState) {
        self.phase = Phase::Idle;
        self.stops = false;
        self.report.state = state;
    }

    /// What the pass under way, or the last one, came to.
    pub(crate) const fn report(&self) -> &Scrubbed {
        &self.report
    }

    /// Takes out what comes next, to do it.
    pub(crate) fn take_phase(&mut self) -> Phase {
        std::mem::take(&mut self.phase)
    }

    /// This comes next.
    pub(crate) fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Whether a request of it is under way.
    pub(crate) const fn is_busy(&self) -> bool {
        self.reading.is_some() || self.writes > 0
    }

    /// Whether it reads something.
    pub(crate) const fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether it may go on: nothing is under way, and the pause is over.
    pub(crate) fn may_go_on(&self, now: Nanos) -> bool {
        now >= self.due && !self.is_busy()
    }

    /// Whether only an event lets it go on.
    pub(crate) const fn wait(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// Blocks are read.
    pub(crate) fn begin_read(&mut self, reading: Reading) {
        self.report.read += u64::from(reading.blocks);
        self.reading = Some(reading);
    }

    /// The read under way is over.
    pub(crate) const fn end_read(&mut self) -> Option<Reading> {
        self.reading.take()
    }

    /// A pause begins; `activity` is what the host has done so far.
    pub(crate) fn rest(&mut self, activity: u64, now: Nanos) {
        let busy = std::mem::replace(&mut self.activity, activity) != activity;
        let factor = if busy { BUSY_FACTOR } else { 1 };
        self.due = now + Nanos::new(self.pause.get().saturating_mul(factor));
    }

    /// A copy of the label is being written.
    pub(crate) const fn begin_write(&mut self) {
        self.writes += 1;
    }

    pub(crate) const fn end_write(&mut self) {
        self.writes -= 1;
    }

    /// It is through with so many log segments.
    pub(crate) const fn pass(&mut self, segments: u32) {
        self.report.passed = segments;
    }

    /// A live block was compared with its checksum.
    pub(crate) const fn note_checked(&mut self) {
        self.report.checked += 1;
    }

    /// Something is damaged. Gives its place in the list, if that has it.
    pub(crate) fn note_damage(&mut self, finding: Finding) -> Option<usize> {
        self.report.found += 1;
        let place = self.report.damage.len();
        if place >= FINDINGS_MAX {
            return None;
        }
        self.report.damage.push(Damage { finding, mended: false });
        Some(place)
    }

    /// Something damaged was written anew.
    pub(crate) fn note_mended(&mut self, place: Option<usize>) {
        self.report.mended += 1;
        if let Some(damage) = place.and_then(|place| self.report.damage.get_mut(place)) {
            damage.mended = true;
        }
    }

    /// Something damaged is to be written anew.
    pub(crate) fn push_mend(&mut self, mend: Mend) {
        self.mends.push(mend);
    }

    /// The next one of these.
    pub(crate) fn pop_mend(&mut self) -> Option<Mend> {
        self.mends.pop()
    }
}
