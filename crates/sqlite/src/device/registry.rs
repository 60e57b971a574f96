//! Devices that this process has open, by the path of the pointer. Connections of a process share one: the block that is held
//! back, and what is known of the size. SQLite deletes a WAL by name, which is found here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Device, Pointer, open_disk};
use crate::error::DeviceError;

static OPEN: Mutex<BTreeMap<PathBuf, Weak<Device>>> = Mutex::new(BTreeMap::new());

fn devices() -> MutexGuard<'static, BTreeMap<PathBuf, Weak<Device>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device of a database whose file is that pointer.
pub(crate) fn open(database: &Path, pointer: &Pointer) -> Result<Arc<Device>, DeviceError> {
    let mut devices = devices();
    devices.retain(|_, device| device.strong_count() > 0);
    let known = devices.get(database).and_then(Weak::upgrade);
    if let Some(device) = known.filter(|device| device.id() == pointer.id) {
        return Ok(device);
    }
    let device = Arc::new(open_disk(pointer)?);
    devices.insert(database.to_owned(), Arc::downgrade(&device));
    Ok(device)
}

/// The device of a database that a connection of this process has open.
pub(crate) fn opened(database: &Path) -> Option<Arc<Device>> {
    devices().get(database).and_then(Weak::upgrade)
}
