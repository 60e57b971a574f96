//! Changing the size of a volume while it is used.

use onefold_units::PAGE_BYTES;
use onefold_volume::{Resize, ResizeError, Volume};

use super::error::VolumeError;
use super::size::bytes_of;
use super::{State, VolumeDevice};
use crate::driver::Refused;
use crate::write_log::WriteLogError;

/// New sizes of a volume; what is absent stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeResize {
    /// Bytes that the device exports, or the clone whose handle is told.
    pub bytes: Option<u64>,
    /// Bytes of the backing. A file gets that size, too; a block device or an emulated SSD has to have it.
    pub backing_bytes: Option<u64>,
    /// What lies behind a smaller end is lost.
    pub discard_tail: bool,
}

impl VolumeDevice {
    /// Changes the size of this member, of the backing, or both, in the order in which one has room for the other.
    /// Durable when it returns; each of the two counts by itself, so a power cut leaves one, both or none of them.
    ///
    /// # Errors
    /// What does not fit, or is in the way. What was done before that stays.
    pub fn resize(&self, to: &VolumeResize) -> Result<(), VolumeError> {
        let logical = to.bytes.map(|bytes| blocks_of("a volume", bytes)).transpose()?;
        let backing = to.backing_bytes.map(|bytes| blocks_of("a backing", bytes)).transpose()?;
        let now = *log_of(&mut self.driver.state())?.layout().geometry();
        let logical =
            logical.filter(|blocks| *blocks * PAGE_BYTES != self.size.get()).map(|blocks| {
                Resize::Logical { member: self.member, blocks, discard: to.discard_tail }
            });
        if backing.is_some_and(|blocks| blocks > now.backing_blocks) {
            self.resize_backing(backing)?;
            logical.map_or(Ok(()), |to| self.resize_one(to))
        } else {
            logical.map_or(Ok(()), |to| self.resize_one(to))?;
            self.resize_backing(backing.filter(|blocks| *blocks < now.backing_blocks))
        }
    }

    fn resize_backing(&self, blocks: Option<u64>) -> Result<(), VolumeError> {
        let Some(blocks) = blocks else { return Ok(()) };
        let backing = &self.driver.shared.backing;
        if backing.write_log().is_some() {
            return Err(WriteLogError::Untold("another size of the backing").into());
        }
        log_of(&mut self.driver.state())?.check_resize(Resize::Backing { blocks })?;
        let grows = blocks > backing.blocks();
        if grows {
            backing.set_blocks(blocks)?;
        }
        self.resize_one(Resize::Backing { blocks })?;
        if grows { Ok(()) } else { backing.set_blocks(blocks) }
    }

    /// Has the volume take a new size, and waits until it counts.
    fn resize_one(&self, to: Resize) -> Result<(), VolumeError> {
        let driver = &*self.driver;
        driver.ask(|state, _| {
            log_of(state).map_err(Refused::Never)?.resize(to).map_err(|error| match error {
                ResizeError::Members => Refused::Busy,
                error => Refused::Never(VolumeError::from(error)),
            })
        })?;
        let (result, bytes) = driver.until(|state| {
            let volume = state.engine.volume.as_log_mut()?;
            let result = volume.poll_resized()?;
            let bytes = bytes_of(volume, self.member).filter(|bytes| self.size.set(*bytes));
            Some((result, bytes))
        })?;
        if let Some(bytes) = bytes {
            self.size.tell(bytes);
        }
        Ok(result?)
    }
}

fn log_of(state: &mut State) -> Result<&mut Volume, VolumeError> {
    let mode = state.engine.volume.mode().name();
    state.engine.volume.as_log_mut().ok_or(VolumeError::KeepsSize(mode))
}

fn blocks_of(what: &'static str, bytes: u64) -> Result<u64, VolumeError> {
    if bytes.is_multiple_of(PAGE_BYTES) {
        Ok(bytes / PAGE_BYTES)
    } else {
        Err(VolumeError::Size { what, bytes, multiple: PAGE_BYTES, limit: "" })
    }
}
