//! The command ring: which numbered commands are done, and which atomic ones were cut off
//! (remap.md sections 7 and 8).
//!
//! 1. An atomic command is noted as running before its first record, and as done after its last; in
//!    between nothing is collected, compacted or checkpointed, so everything it replaces is still
//!    there.
//! 2. Records with the number of a command that was running when power failed do not count, until a
//!    checkpoint covers that number. Then its slot is free.

use onefold_format::{CommandSlot, CommandState};
use onefold_nand::Media;
use onefold_units::convert::{index, u64_from};
use onefold_units::{Nanos, Seq};

use crate::FtlError;
use crate::ftl::Ftl;
use crate::layout::COMMAND_RING_BYTES;

/// Commands that are remembered.
const SLOTS: usize = index(onefold_units::convert::narrow(COMMAND_RING_BYTES)) / CommandSlot::BYTES;

/// What a slot of the ring says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Free,
    Done {
        id: u128,
    },
    /// It was running when power failed.
    Aborted {
        seq: u64,
    },
}

/// Slots are reused first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    slots: Vec<Entry>,
    next: usize,
}

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
    fn take(&mut self) -> Option<usize> {
        for _ in 0..SLOTS {
            let at = self.next;
            self.next = (at + 1) % SLOTS;
            if !matches!(self.slots[at], Entry::Aborted { .. }) {
                return Some(at);
            }
        }
        None
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

impl<M: Media> Ftl<M> {
    /// Takes a slot of the ring. If power failed in that many atomic commands that none is left, a
    /// checkpoint frees them.
    pub(crate) fn take_command_slot(&mut self, now: Nanos) -> Result<usize, FtlError> {
        if let Some(at) = self.ring.take() {
            return Ok(at);
        }
        self.checkpoint_now(now)?;
        self.ring.take().ok_or(FtlError::NoSpace)
    }

    /// Notes an atomic command as running: durable before any of its records.
    pub(crate) fn begin_command(&mut self, at: usize, id: u128) -> Result<(), FtlError> {
        self.write_command(at, id, CommandState::Running, (0, 0))?;
        if M::STORES {
            self.sync()?;
        }
        Ok(())
    }

    /// Notes a command as done, after everything it did.
    pub(crate) fn end_command(
        &mut self,
        at: usize,
        id: Option<u128>,
        counts: (u32, u32),
        atomic: bool,
    ) -> Result<(), FtlError> {
        if M::STORES && atomic {
            self.sync()?;
        }
        self.write_command(at, id.unwrap_or(0), CommandState::Done, counts)?;
        self.ring.slots[at] = id.map_or(Entry::Free, |id| Entry::Done { id });
        Ok(())
    }

    fn write_command(
        &mut self,
        at: usize,
        id: u128,
        state: CommandState,
        (copied, skipped): (u32, u32),
    ) -> Result<(), FtlError> {
        if M::STORES {
            let low = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
            let (seq, copied, skipped) = (Seq::new(self.seq), low(copied), low(skipped));
            let slot = CommandSlot { id, seq, state, copied, skipped };
            let offset = self.layout.nvram.commands + u64_from(at * CommandSlot::BYTES);
            self.nand.media_mut().nvram_write(offset, &slot.encode())?;
        }
        Ok(())
    }

    /// The ring as the medium has it.
    pub(crate) fn read_ring(&mut self) -> Result<Vec<Option<CommandSlot>>, FtlError> {
        let mut bytes = vec![0; SLOTS * CommandSlot::BYTES];
        self.nand.media_mut().nvram_read(self.layout.nvram.commands, &mut bytes)?;
        let (slots, _) = bytes.as_chunks::<{ CommandSlot::BYTES }>();
        Ok(slots.iter().map(CommandSlot::decode).collect())
    }
}
