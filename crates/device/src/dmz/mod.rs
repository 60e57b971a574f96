//! A zoned volume of policy `dmz` in real time: on a zoned device with conventional zones, or on a regular one, whose space is the
//! cache, and a zoned one. [`crate::driver`] lets it go on.
//!
//! A write is answered when its device has it; it is durable after the next flush, map and validity included.

mod block_device;
mod cache;
mod check;
mod details;
mod devices;
mod error;
mod open;
mod state;

use std::sync::Arc;

use crate::driver::{Driver, Threads};
use crate::volume::{Layer, VolumeError};
use state::Served;

pub use cache::DmzCache;
pub use check::DmzChecked;
pub use details::DmzDetails;
pub use devices::DmzDevices;
pub use error::DmzError;
pub use open::{DmzMade, DmzOpened, DmzOptions};

/// A handle of a zoned volume; copies are the same volume.
///
/// Dropping all handles without [`DmzVolume::close`] is a power cut.
#[derive(Clone)]
pub struct DmzVolume {
    driver: Arc<Driver<Served>>,
    /// Ends them when it goes.
    _threads: Arc<Threads<Served>>,
}

impl Layer for DmzVolume {
    fn close(&self) -> Result<(), VolumeError> {
        Self::close(self).map_err(|error| VolumeError::Below(Box::new(error)))
    }
}

impl DmzVolume {
    /// Ends the volume in good order: reclaim is given up, everything is durable, and the next opening has nothing to put
    /// right. Requests have to be over; calls after that are answered with [`Status::Poisoned`](onefold_units::Status::Poisoned).
    ///
    /// # Errors
    /// A device failed; what was flushed before is safe.
    pub fn close(&self) -> Result<(), DmzError> {
        let driver = &*self.driver;
        driver.stop_waiting();
        let mut state = driver.state();
        let now = state.now;
        if !state.over {
            state.engine.volume.close(now);
        }
        drop(state);
        let _ = driver.until(|state| {
            let volume = &state.engine.volume;
            // A device that takes no metadata is not waited for.
            let is_vain = volume.is_frozen() || volume.stalled().is_some();
            (is_vain || volume.is_closed()).then_some(())
        });
        let closed = driver.state().engine.volume.is_closed();
        driver.stop();
        if !closed {
            return Err(DmzError::Failed);
        }
        driver.shared.devices.close()
    }
}
