//! Snapshots and clones of an open volume: each is a block device of its own beside that of the volume.

use onefold_format::volume::VolumeName;
use onefold_units::PAGE_BYTES;
use onefold_volume::{MemberId, MemberInfo, SnapshotError, Volume};

use super::VolumeDevice;
use super::error::VolumeError;
use crate::driver::Refused;

impl VolumeDevice {
    /// The device of the volume, its snapshots and its clones.
    #[must_use]
    pub fn members(&self) -> Vec<MemberInfo> {
        self.driver.state().engine.volume.as_log().into_iter().flat_map(Volume::members).collect()
    }

    /// A handle of a snapshot or clone. Reads and writes of it go on beside those of the device; a snapshot refuses
    /// writes. When it is deleted, its calls fail.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn member(&self, name: &str) -> Result<Self, VolumeError> {
        let state = self.driver.state();
        let info = state.engine.volume.as_log().and_then(|volume| volume.member(name));
        let info = info.ok_or(SnapshotError::Missing)?;
        // It changes while the lock is held.
        let size = self.driver.size_of(info.id, info.blocks * PAGE_BYTES);
        drop(state);
        Ok(Self { member: info.id, size, ..self.clone() })
    }

    /// Whether this member can be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        let is_this = |info: &MemberInfo| info.id == self.member && info.writable;
        self.member == MemberId::DEVICE || self.members().iter().any(is_this)
    }

    /// Makes a snapshot of this member: what was answered before is in it. It is durable on return.
    ///
    /// # Errors
    /// It cannot be made; nothing was changed, unless the backing failed.
    pub fn make_snapshot(&self, name: &VolumeName) -> Result<(), VolumeError> {
        self.change(|volume, member, tag| volume.make_snapshot(tag, member, name))
    }

    /// Makes a clone of this member, which can be written. It is durable on return.
    ///
    /// # Errors
    /// As for snapshots.
    pub fn make_clone(&self, name: &VolumeName) -> Result<(), VolumeError> {
        self.change(|volume, member, tag| volume.make_clone(tag, member, name))
    }

    /// Deletes a snapshot or clone. That is durable on return; its space is freed in the background.
    ///
    /// # Errors
    /// There is none of that name; nothing was changed, unless the backing failed.
    pub fn delete_member(&self, name: &str) -> Result<(), VolumeError> {
        self.change(|volume, _, tag| {
            let info = volume.member(name).ok_or(SnapshotError::Missing)?;
            volume.delete_member(tag, info.id)
        })
    }

    /// Waits until what deleted snapshots and clones had is free.
    pub fn wait_until_freed(&self) {
        let _ = self.driver.until(|state| {
            let volume = &state.engine.volume;
            let frees = volume.as_log().is_some_and(Volume::is_freeing);
            (!frees || volume.frozen().is_some()).then_some(())
        });
    }

    /// Changes the members, and waits until that is durable.
    fn change(
        &self,
        mut what: impl FnMut(&mut Volume, MemberId, u64) -> Result<(), SnapshotError>,
    ) -> Result<(), VolumeError> {
        let ((), durable) = self.driver.ask_and_wait(|state, tag| {
            let volume =
                state.engine.volume.as_log_mut().ok_or(Refused::Never(VolumeError::NoMembers))?;
            what(volume, self.member, tag).map_err(|error| match error {
                SnapshotError::Busy => Refused::Busy,
                error => Refused::Never(VolumeError::from(error)),
            })
        })?;
        durable.map_err(|_| VolumeError::Failed)
    }
}
