//! The control export of a device: 256 slots of 4 KiB. A slot that a command is written to tells its
//! reply from then on; before, and after zeroes were written to it, it tells what the device can do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use onefold_format::REMAP_BLOCK_BYTES;
use onefold_units::Status;
use onefold_units::convert::{index64, u64_from};

use super::remap::MailboxBlock;
use super::{Shared, SsdDevice};
use crate::block::{BlockDevice, Due, Extent};

/// Size of the control export in bytes.
pub const CONTROL_BYTES: u64 = 1 << 20;

const SLOT: u64 = 4096;

/// The replies by slot.
#[derive(Default)]
pub(super) struct Slots(Mutex<Vec<Option<Box<MailboxBlock>>>>);

impl Slots {
    /// No commands were written any more.
    pub(super) fn clear(&self) {
        self.lock().fill(None);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Box<MailboxBlock>>>> {
        // A reply is put there whole or not at all.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.resize(index64(CONTROL_BYTES / SLOT), None);
        slots
    }
}

/// The control export, as a block device.
pub(super) struct Control(pub(super) SsdDevice);

impl Control {
    fn shared(&self) -> &Shared {
        &self.0.shared
    }

    fn slot(&self, at: u64) -> MailboxBlock {
        let kept = self.shared().slots.lock().get(index64(at)).cloned().flatten();
        kept.map_or_else(|| self.shared().caps_reply(), |reply| *reply)
    }
}

fn check(offset: u64, len: u64) -> Result<(), Status> {
    let end = offset.checked_add(len).filter(|end| *end <= CONTROL_BYTES);
    if len > 0 && end.is_some() { Ok(()) } else { Err(Status::InvalidField) }
}

impl BlockDevice for Control {
    fn size(&self) -> u64 {
        CONTROL_BYTES
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        check(offset, u64_from(buf.len()))?;
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let reply = self.slot(at / SLOT);
            let from = &reply[index64(at % SLOT)..];
            let (part, after) = rest.split_at_mut(from.len().min(rest.len()));
            part.copy_from_slice(&from[..part.len()]);
            at += u64_from(part.len());
            rest = after;
        }
        Ok(None)
    }

    /// Executes one command. What it did is durable on return.
    fn write(&self, offset: u64, data: &[u8], _fua: bool) -> Result<Due, Status> {
        check(offset, u64_from(data.len()))?;
        let block: &MailboxBlock = data.try_into().map_err(|_| {
            let expected = REMAP_BLOCK_BYTES;
            tracing::warn!("mailbox: a write of {} B, expected {expected} B", data.len());
            Status::InvalidField
        })?;
        if !offset.is_multiple_of(SLOT) {
            tracing::warn!("mailbox: a write at byte {offset}, expected a multiple of {SLOT}");
            return Err(Status::InvalidField);
        }
        let executed = self.shared().execute(block);
        let mut slots = self.shared().slots.lock();
        if let Some(slot) = slots.get_mut(index64(offset / SLOT)) {
            let is_command = block.iter().any(|byte| *byte != 0);
            *slot = is_command.then(|| Box::new(executed.reply));
        }
        executed.result
    }

    /// Commands are durable when they are answered.
    fn flush(&self) -> Result<Due, Status> {
        Ok(None)
    }

    fn trim(&self, _offset: u64, _len: u64) -> Result<Due, Status> {
        Err(Status::InvalidField)
    }

    fn write_zeroes(&self, _: u64, _: u64, _may_unmap: bool, _fua: bool) -> Result<Due, Status> {
        Err(Status::InvalidField)
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        check(offset, len)?;
        Ok(Extent { len, mapped: true })
    }
}
