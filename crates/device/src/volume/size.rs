//! How large a member is, for all that have a handle of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onefold_units::{PAGE_BYTES, Status};
use onefold_volume::{MemberId, Volume};

use super::{Driver, VolumeDevice};
use crate::block::SizeWatcher;

/// The size of a member, and who wants to know when it changes.
pub(super) struct Size {
    bytes: AtomicU64,
    watchers: Mutex<Vec<SizeWatcher>>,
}

impl Size {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes: AtomicU64::new(bytes), watchers: Mutex::default() }
    }

    pub(super) fn get(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub(super) fn watch(&self, watcher: SizeWatcher) {
        self.watchers().push(watcher);
    }

    /// Says whether it was another one before; then watchers have to be told.
    pub(super) fn set(&self, bytes: u64) -> bool {
        self.bytes.swap(bytes, Ordering::AcqRel) != bytes
    }

    pub(super) fn tell(&self, bytes: u64) {
        self.watchers().iter().for_each(|watcher| watcher(bytes));
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<SizeWatcher>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a member, if it is there.
pub(super) fn bytes_of(volume: &Volume, member: MemberId) -> Option<u64> {
    let info = volume.members().find(|info| info.id == member)?;
    Some(info.blocks * PAGE_BYTES)
}

impl Driver {
    /// The size that all handles of a member share; `bytes` if this is the first one.
    pub(super) fn size_of(&self, member: MemberId, bytes: u64) -> Arc<Size> {
        let mut sizes = self.shared.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.retain(|_, size| Arc::strong_count(size) > 1);
        Arc::clone(sizes.entry(member).or_insert_with(|| Arc::new(Size::new(bytes))))
    }
}

impl VolumeDevice {
    pub(super) fn check_range(&self, offset: u64, len: u64) -> Result<(), Status> {
        let inside = len > 0 && offset.checked_add(len).is_some_and(|end| end <= self.size.get());
        if inside { Ok(()) } else { Err(Status::InvalidField) }
    }
}
