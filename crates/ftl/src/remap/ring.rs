//! The command ring: which numbered commands are done, and which atomic ones were cut off
//! (remap.md sections 7 and 8).
//!
//! 1. An atomic command is noted as running before its first record, and as done after its last; in
//!    between nothing is collected, compacted or checkpointed, so everything it replaces is still
//!    there.
//! 2. Records with the number of a command that was running when power failed do not count, until a
//!    checkpoint covers that number. Then its slot is free.

use onefold_format::{CommandSlot, CommandState};
use onefold_units::Seq;
use onefold_units::convert::{index, narrow};

use crate::layout::COMMAND_RING_BYTES;

/// Commands that are remembered.
pub(super) const SLOTS: usize = index(narrow(COMMAND_RING_BYTES)) / CommandSlot::BYTES;

/// What a slot of the ring says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Entry {
    #[default]
    Free,
    Done {
        id: u128,
    },
    /// It was running when power failed.
    Aborted {
        seq: u64,
    },
}

onefold_units::keep_enum!(Entry { Free, Done { id }, Aborted { seq } });

/// Slots are reused first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    slots: Vec<Entry>,
    next: usize,
}

onefold_units::keep!(Ring { slots, next });

impl Default for Ring {
    fn default() -> Self {
        Self { slots: vec![Entry::Free; SLOTS], next: 0 }
    }
}

impl Ring {
    /// Whether a command is known to be done.
    pub(crate) fn has(&self, id: u128) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Entry::Done { id: done } if *done == id))
    }

    /// The slot for the next command, if any is free.
    pub(super) fn take(&mut self) -> Option<usize> {
        for _ in 0..SLOTS {
            let at = self.next;
            self.next = (at + 1) % SLOTS;
            if !matches!(self.slots[at], Entry::Aborted { .. }) {
                return Some(at);
            }
        }
        None
    }

    /// The command in a slot is done; without a number nobody asks for it.
    pub(super) fn note_done(&mut self, at: usize, id: Option<u128>) {
        self.slots[at] = id.map_or(Entry::Free, |id| Entry::Done { id });
    }

    /// A checkpoint covers everything up to `seq`.
    pub(crate) fn covered(&mut self, seq: u64) {
        for slot in &mut self.slots {
            if matches!(slot, Entry::Aborted { seq: aborted } if *aborted <= seq) {
                *slot = Entry::Free;
            }
        }
    }

    /// Takes over what the medium says; returns the numbers of commands that were cut off.
    pub(crate) fn resume(&mut self, found: &[Option<CommandSlot>], covered: Seq) -> Vec<u64> {
        let mut newest = Seq::default();
        let mut aborted = Vec::new();
        for (at, slot) in found.iter().enumerate() {
            let Some(slot) = slot else { continue };
            if slot.seq >= newest {
                newest = slot.seq;
                self.next = (at + 1) % SLOTS;
            }
            self.slots[at] = match slot.state {
                CommandState::Done => Entry::Done { id: slot.id },
                CommandState::Running if slot.seq > covered => {
                    aborted.push(slot.seq.raw());
                    Entry::Aborted { seq: slot.seq.raw() }
                }
                CommandState::Running => Entry::Free,
            };
        }
        aborted
    }
}
