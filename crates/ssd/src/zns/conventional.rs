//! Conventional zones: the first ones of a namespace, written anywhere and overwritten in place (zoned.md section 2).
//!
//! A device with a block namespace ([`Ssd`]) lies behind them: its mapping, collection, buffer and recovery, on blocks of its own.
//!
//! 1. Blocks: in every plane the sequential zones have the first ones and the conventional zones the rest. NVRAM is divided the
//!    same way; each part has a medium of its own.
//! 2. Dies, channels, link and controller are one: whoever works has the timelines, so both wait for each other.
//! 3. A conventional zone has no record of its own but that it is read only or offline.

use onefold_format::ZoneCondition;
use onefold_ftl::FtlError;
use onefold_nand::{Media, MediaError};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Nanos, Op, ZoneId};

use super::device::Zns;
use super::{ZnsError, ZoneState};
use crate::{Command, Completion, Payload, Ssd, SsdError};

const BLOCK: u64 = 4096;

impl<M: Media> Zns<M> {
    /// The device behind the conventional zones.
    #[must_use]
    pub fn conventional(&self) -> Option<&Ssd<M>> {
        self.conventional.as_deref()
    }

    /// The same, for tests. Its commands have to come through the namespace.
    pub fn conventional_mut(&mut self) -> Option<&mut Ssd<M>> {
        self.conventional.as_deref_mut()
    }

    /// The media of both kinds of zones.
    pub fn media_mut(&mut self) -> (&mut M, Option<&mut M>) {
        let mapped = self.conventional.as_mut();
        let mapped = mapped.map(|device| device.ftl_mut().nand_mut().media_mut());
        (self.nand.media_mut(), mapped)
    }

    /// Whether a block of a conventional zone holds something.
    #[must_use]
    pub fn stores(&self, lba: u64) -> bool {
        let device = self.conventional.as_ref();
        device.is_some_and(|device| {
            lba * BLOCK < device.capacity() && device.extent(lba * BLOCK, 1).0
        })
    }

    /// Lets blocks of conventional zones read as zeroes and gives their flash free.
    ///
    /// # Errors
    /// [`ZnsError::InvalidField`] for other zones, which are reset as a whole.
    pub fn deallocate(
        &mut self,
        now: Nanos,
        lba: u64,
        blocks: u32,
    ) -> Result<Completion, ZnsError> {
        let (zone, at) = self.locate(lba, blocks)?;
        if !self.table.is_conventional(zone) {
            let what = "blocks to deallocate, expected some of conventional zones";
            return Err(ZnsError::InvalidField { what });
        }
        self.table.check_write(zone, Some(at), blocks)?;
        self.host.count(Op::Trim, blocks.into());
        self.map_command(now, zone, &blocks_of(Op::Trim, lba, blocks), Payload::None)
    }

    /// Writes to a conventional zone, which was found to take it.
    pub(crate) fn overwrite(
        &mut self,
        now: Nanos,
        lba: u64,
        blocks: u32,
        fua: bool,
        payload: &Payload<'_>,
    ) -> Result<Completion, ZnsError> {
        let (zone, _) = self.locate(lba, blocks)?;
        self.host.count(Op::Write, blocks.into());
        let command = Command { fua, ..blocks_of(Op::Write, lba, blocks) };
        let payload = match payload {
            Payload::Write(bytes) => Payload::Write(bytes),
            Payload::Contents(contents) => Payload::Contents(contents),
            Payload::Zeroes => Payload::Zeroes,
            Payload::None | Payload::Read(_) => Payload::None,
        };
        self.map_command(now, zone, &command, payload)
    }

    /// Reads blocks of conventional zones.
    pub(crate) fn read_mapped(
        &mut self,
        now: Nanos,
        lba: u64,
        blocks: u32,
        data: &mut [u8],
    ) -> Result<Completion, ZnsError> {
        let (zone, _) = self.locate(lba, blocks)?;
        let payload = if data.is_empty() { Payload::None } else { Payload::Read(data) };
        self.map_command(now, zone, &blocks_of(Op::Read, lba, blocks), payload)
    }

    /// Makes what the conventional zones hold durable.
    pub(crate) fn flush_mapped(&mut self, now: Nanos) -> Result<Nanos, ZnsError> {
        if self.conventional.is_none() {
            return Ok(now);
        }
        let flush = Command::new(Op::Flush, 0, 0);
        self.map_command(now, ZoneId::new(0), &flush, Payload::None).map(|done| done.at)
    }

    /// Leaves the conventional zones as a shutdown leaves a device.
    pub(crate) fn checkpoint_mapped(&mut self, now: Nanos) -> Result<(), ZnsError> {
        if self.conventional.is_none() {
            return Ok(());
        }
        let down = self.with_conventional(|device| device.shut_down(now));
        down.map_err(|error| of_device(error, ZoneId::new(0), &Command::new(Op::Flush, 0, 0)))
    }

    /// Has the device behind the conventional zones carry out a command; `zone` is where it begins.
    fn map_command(
        &mut self,
        now: Nanos,
        zone: ZoneId,
        command: &Command,
        payload: Payload<'_>,
    ) -> Result<Completion, ZnsError> {
        let done = self.with_conventional(|device| device.submit(now, command, payload));
        match done {
            Err(SsdError::Ftl(FtlError::NoSpace)) => {
                self.end_overwriting()?;
                Err(ZnsError::WriteFault { zone })
            }
            done => done.map_err(|error| of_device(error, zone, command)),
        }
    }

    /// Too many flash blocks failed: conventional zones share what is left, so none of them takes anything any more.
    fn end_overwriting(&mut self) -> Result<(), ZnsError> {
        for zone in (0..self.config.conventional_zones()).map(ZoneId::new) {
            if self.table.state(zone) == ZoneState::NotWritePointer {
                self.give_up(zone, ZoneCondition::ReadOnly)?;
            }
        }
        Ok(())
    }

    /// Lets the device behind the conventional zones work (invariant 2).
    pub(crate) fn with_conventional<T>(&mut self, work: impl FnOnce(&mut Ssd<M>) -> T) -> T {
        let Some(device) = &mut self.conventional else {
            panic!("a conventional zone, expected a device behind it")
        };
        let own = self.nand.timelines_mut();
        std::mem::swap(own, device.ftl_mut().nand_mut().timelines_mut());
        let done = work(device);
        std::mem::swap(own, device.ftl_mut().nand_mut().timelines_mut());
        done
    }
}

const fn blocks_of(op: Op, lba: u64, blocks: u32) -> Command {
    Command::new(op, lba * BLOCK, u64_from(index(blocks)) * BLOCK)
}

/// An error of the device in the words of zones.
fn of_device(error: SsdError, zone: ZoneId, command: &Command) -> ZnsError {
    let first = command.offset / BLOCK;
    match error {
        SsdError::Ftl(FtlError::Unreadable { lpn }) => {
            ZnsError::UnrecoveredRead { lba: lpn.into() }
        }
        SsdError::Ftl(FtlError::Media(MediaError::Unreadable)) => {
            ZnsError::UnrecoveredRead { lba: first }
        }
        SsdError::Ftl(FtlError::Media(error)) => ZnsError::Media(error),
        SsdError::OutOfRange { capacity, .. } => ZnsError::LbaOutOfRange {
            lba: first,
            blocks: command.len / BLOCK,
            capacity: capacity / BLOCK,
        },
        SsdError::Ftl(_) => ZnsError::WriteFault { zone },
    }
}
