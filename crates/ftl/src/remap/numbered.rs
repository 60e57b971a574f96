//! Commands with a number: what the medium is told of them, so that the ring is known after a power
//! cut (`super::ring`).

use onefold_format::{CommandSlot, CommandState};
use onefold_nand::Media;
use onefold_units::convert::u64_from;
use onefold_units::{Nanos, Seq};

use super::ring::SLOTS;
use crate::FtlError;
use crate::ftl::Ftl;

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
        self.ring.note_done(at, id);
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
