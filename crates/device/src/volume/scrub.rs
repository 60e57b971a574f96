//! Scrubbing a volume while it is used.

use std::time::Duration;

use onefold_units::Nanos;
use onefold_volume::{Engine, SCRUB_PAUSE, Scrubbed, Volume};

use super::VolumeDevice;
use super::error::VolumeError;
use super::state::Served;
use crate::driver::Fuse;

impl VolumeDevice {
    /// Begins a scrub beside the host, at 10 MiB/s at most.
    ///
    /// # Errors
    /// One is under way, the volume takes no changes any more, or its mode has no checksums of data.
    pub fn start_scrub(&self) -> Result<(), VolumeError> {
        self.of_scrub(|volume| Ok(volume.start_scrub(SCRUB_PAUSE)?))
    }

    /// Ends the scrub under way, if there is one, as soon as its request is through.
    ///
    /// # Errors
    /// The mode has no checksums of data.
    pub fn stop_scrub(&self) -> Result<(), VolumeError> {
        self.of_scrub(|volume| {
            volume.stop_scrub();
            Ok(())
        })
    }

    /// How far the scrub under way is, or what the last one came to.
    ///
    /// # Errors
    /// The mode has no checksums of data.
    pub fn scrubbed(&self) -> Result<Scrubbed, VolumeError> {
        self.of_scrub(|volume| Ok(volume.scrubbed().clone()))
    }

    fn of_scrub<T>(
        &self,
        what: impl FnOnce(&mut Volume) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let driver = &*self.driver;
        let _fuse = Fuse(driver);
        let mut state = driver.state();
        if state.over {
            return Err(VolumeError::Failed);
        }
        driver.tick(&mut state);
        let done = what(sums_of(&mut *state.engine.volume)?)?;
        driver.turn(&mut state);
        Ok(done)
    }
}

/// Has a volume that is opened scrub itself from time to time.
pub(super) fn repeat(engine: &mut dyn Engine, every: Option<Duration>) -> Result<(), VolumeError> {
    let Some(every) = every else { return Ok(()) };
    let every = Nanos::new(u64::try_from(every.as_nanos()).unwrap_or(u64::MAX / 2));
    Ok(sums_of(engine)?.scrub_every(every, SCRUB_PAUSE)?)
}

fn sums_of(engine: &mut dyn Engine) -> Result<&mut Volume, VolumeError> {
    let mode = engine.mode().name();
    engine.as_log_mut().ok_or(VolumeError::NoSums(mode))
}

impl Served {
    /// Says what a scrub found since this was asked last.
    pub(super) fn tell_damage(&mut self) {
        let found = self.volume.stats().scrub_damaged;
        let new = found - std::mem::replace(&mut self.damage_told, found);
        let Some(volume) = self.volume.as_log().filter(|_| new > 0) else { return };
        let list = &volume.scrubbed().damage;
        let new = usize::try_from(new).unwrap_or(usize::MAX);
        for one in &list[list.len().saturating_sub(new)..] {
            tracing::error!(finding = ?one.finding, "the scrub found damage");
        }
    }
}
