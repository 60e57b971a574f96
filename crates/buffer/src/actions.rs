//! What comes out of a policy.

use onefold_units::Lpn;
use onefold_units::convert::{index, u32_from};

use crate::PartMask;

/// Place of one entry's bytes in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    pub(crate) const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// The bare index, below [`crate::Policy::slots`].
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// The index into a table of slots.
    #[must_use]
    pub fn index(self) -> usize {
        index(self.0)
    }
}

/// Kind of data in a flash page. Streams never share one; the FTL may also place them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Written once, in sequence (Jeong 2021, sec. III).
    AppendOnly,
    /// Everything else.
    Other,
}

impl Stream {
    /// Every stream.
    pub const ALL: [Self; 2] = [Self::AppendOnly, Self::Other];
}

/// One entry of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programmed {
    /// The entry.
    pub lpn: Lpn,
    /// Where its bytes are.
    pub slot: Slot,
    /// What the host wrote of it since it was last programmed. The rest completes the unit.
    pub dirty: PartMask,
}

/// The entries of one program; [`Actions::batch`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    start: u32,
    len: u32,
}

/// One step. All steps of a request are executed in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read: the requested part is in the slot.
    Hit {
        /// The entry.
        lpn: Lpn,
        /// Where its bytes are.
        slot: Slot,
    },
    /// Read: load the `missing` parts (and no others: those may be newer) from flash, or zeroes
    /// where nothing is mapped; then the slot serves the read.
    Fill {
        /// The entry.
        lpn: Lpn,
        /// Where its bytes go.
        slot: Slot,
        /// What to load.
        missing: PartMask,
    },
    /// Write: put the requested part of this page into the slot.
    Store {
        /// The entry.
        lpn: Lpn,
        /// Where its bytes go.
        slot: Slot,
    },
    /// The slot is free: a clean entry was evicted, or a TRIM discarded the entry.
    Drop {
        /// The entry.
        lpn: Lpn,
        /// Where its bytes were.
        slot: Slot,
    },
    /// Program one flash page with the entries of `batch`, one to k of them.
    Program {
        /// Kind of data.
        stream: Stream,
        /// The entries, complete in their slots.
        batch: Batch,
    },
    /// Read: serve the page from flash without keeping it.
    Bypass {
        /// The entry.
        lpn: Lpn,
    },
    /// Load the `missing` parts (and no others) of a page from flash, or zeroes where nothing is
    /// mapped: a partly written entry is about to be programmed, or a write covers part of a
    /// 1/16 of it; or the page is not buffered and about to be programmed with its block, from
    /// a slot that no entry has.
    PadRead {
        /// The entry.
        lpn: Lpn,
        /// Where its bytes are.
        slot: Slot,
        /// What to load.
        missing: PartMask,
    },
}

/// The steps of one request. Reuse it: it keeps its memory.
#[derive(Clone, Debug)]
pub struct Actions {
    keeps_steps: bool,
    counts: Counts,
    steps: Vec<Action>,
    programmed: Vec<Programmed>,
}

/// How much work a request is, for models of time that do not execute its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages read from flash to serve or to complete something: fills, bypasses, pad reads.
    pub reads: u32,
    /// Flash pages programmed.
    pub programs: u32,
    /// Look-ups in a table that is not the index of the entries: each costs a DRAM access.
    pub lookups: u32,
}

impl Default for Actions {
    fn default() -> Self {
        Self::new()
    }
}

impl Actions {
    /// No steps.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            keeps_steps: true,
            counts: Counts { reads: 0, programs: 0, lookups: 0 },
            steps: Vec::new(),
            programmed: Vec::new(),
        }
    }

    /// Counts what would be done and keeps no steps: for studies of hit ratios.
    #[must_use]
    pub const fn counting() -> Self {
        let mut actions = Self::new();
        actions.keeps_steps = false;
        actions
    }

    /// The steps in order; none if only counting.
    #[must_use]
    pub fn as_slice(&self) -> &[Action] {
        &self.steps
    }

    /// How much work the steps are.
    #[must_use]
    #[inline]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The entries of a program of this request; empty for a batch of another one.
    #[must_use]
    pub fn batch(&self, batch: Batch) -> &[Programmed] {
        let start = index(batch.start);
        self.programmed.get(start..start + index(batch.len)).unwrap_or_default()
    }

    /// Forgets all steps.
    #[inline]
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        self.steps.clear();
        self.programmed.clear();
    }

    /// Adds a step.
    #[inline]
    pub fn push(&mut self, step: Action) {
        match step {
            Action::Fill { .. } | Action::Bypass { .. } | Action::PadRead { .. } => {
                self.counts.reads += 1;
            }
            Action::Program { .. } => self.counts.programs += 1,
            Action::Hit { .. } | Action::Store { .. } | Action::Drop { .. } => {}
        }
        if self.keeps_steps {
            self.steps.push(step);
        }
    }

    /// Counts one look-up in a table of the policy.
    #[inline]
    pub const fn look_up(&mut self) {
        self.counts.lookups += 1;
    }

    /// Adds the program of one entry, which is asked for only if steps are kept.
    #[inline]
    pub(crate) fn program_one(&mut self, step: impl FnOnce() -> (Stream, Programmed)) {
        if self.keeps_steps {
            let (stream, entry) = step();
            self.program(stream, std::iter::once(entry));
        } else {
            self.counts.programs += 1;
        }
    }

    /// Adds the program of one flash page.
    #[inline]
    pub fn program(&mut self, stream: Stream, entries: impl Iterator<Item = Programmed>) {
        if !self.keeps_steps {
            self.counts.programs += 1;
            return;
        }
        let start = u32_from(self.programmed.len());
        self.programmed.extend(entries);
        let len = u32_from(self.programmed.len()) - start;
        self.push(Action::Program { stream, batch: Batch { start, len } });
    }
}
