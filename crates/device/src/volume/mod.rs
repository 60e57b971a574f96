//! A volume in real time, on a file, a block device, an emulated SSD, or another volume.
//!
//! [`crate::driver`] lets it go on. What the volume asks for goes to the thread that owns an `io_uring` ([`owner`]), or where there is
//! none to a queue that a few threads serve ([`jobs`]). Reads of the host that lie in one place are done by the thread that asked.
//!
//! With [`onefold_volume::Acknowledge::Buffered`] a write is answered when the volume has copied it. What the backing does not take later
//! stays in memory until it does; a flush before that fails.

mod access;
mod backing;
mod bell;
mod block_device;
mod contents;
mod details;
mod disk_zones;
mod error;
mod faults;
mod fill;
mod inbox;
mod io_mode;
mod jobs;
mod journals;
mod kernel;
mod label;
mod members;
mod modes;
mod open;
mod options;
mod owner;
mod patience;
mod refusals;
mod replay;
mod resize;
mod scatter;
mod scrub;
mod size;
mod spec;
mod state;
mod summed;
mod unit;
mod zones;

use std::sync::Arc;
use std::time::{Duration, Instant};

use onefold_units::Status;
use onefold_volume::{Frozen, MemberId, Refusal};

use crate::driver::{Over, Refused, Threads};
pub use backing::{Layer, VolumeBacking};
pub use details::{LogDetails, MAP_PAGE_BYTES, VolumeDetails};
pub use error::VolumeError;
pub use io_mode::IoMode;
pub use journals::{JournalDetails, Journals};
pub use open::VolumeOpened;
pub use options::{OnFull, VolumeIo, VolumeOptions};
pub use replay::Replayed;
pub use resize::VolumeResize;
use size::Size;
pub use spec::VolumeSpec;
pub(crate) use spec::random_uuid;
use state::Served;

/// How long closing waits for a backing that takes no writes, after changes are refused.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

type Driver = crate::driver::Driver<Served>;
type State = crate::driver::State<Served>;

/// A handle of a member of a volume: its device, a snapshot, or a clone. Copies are the same member.
///
/// Dropping all handles without [`VolumeDevice::close`] is a power cut.
#[derive(Clone)]
pub struct VolumeDevice {
    driver: Arc<Driver>,
    member: MemberId,
    size: Arc<Size>,
    /// Ends them when it goes.
    _threads: Arc<Threads<Served>>,
}

/// What a refusal is to a client.
fn refused(refusal: Refusal) -> Refused<Status> {
    Refused::Never(match refusal {
        Refusal::Busy => return Refused::Busy,
        // Front ends serve snapshots read-only, so nobody learns it from this.
        Refusal::InvalidField | Refusal::NoMember | Refusal::WriteProtected => Status::InvalidField,
        Refusal::NoSpace => Status::NoSpace,
        Refusal::MediaError => Status::MediaError,
        Refusal::Backing(why) => why.into(),
        Refusal::ReadOnly => Status::Poisoned,
    })
}

impl From<Over> for VolumeError {
    fn from(Over: Over) -> Self {
        Self::Failed
    }
}

impl Layer for VolumeDevice {
    fn close(&self) -> Result<(), VolumeError> {
        Self::close(self)
    }
}

impl VolumeDevice {
    /// Ends the volume in good order: the next opening has nothing to recover. Later calls are answered with [`Status::Poisoned`].
    ///
    /// # Errors
    /// The backing failed, or took no writes for ten seconds after changes were refused; what was flushed before is safe.
    pub fn close(&self) -> Result<(), VolumeError> {
        let driver = &*self.driver;
        driver.stop_waiting();
        let mut state = driver.state();
        if !state.over {
            state.engine.volume.close();
        }
        drop(state);
        let mut stalled: Option<Instant> = None;
        let _ = driver.until(|state| {
            let volume = &state.engine.volume;
            stalled = volume.stalled().and_then(|_| stalled.or_else(|| Some(Instant::now())));
            let is_vain = stalled.is_some_and(|since| since.elapsed() > CLOSE_PATIENCE);
            (volume.frozen().is_some() || is_vain).then_some(())
        });
        let closed = driver.state().engine.volume.frozen() == Some(Frozen::Closed);
        driver.stop();
        if !closed {
            return Err(VolumeError::Failed);
        }
        driver.shared.backing.close()
    }
}

#[cfg(test)]
mod tests;
