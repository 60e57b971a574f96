//! A host that does not take what is written: who is refused, who waits, and who is told (invariants 3 and 4).

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use onefold_units::Status;

use super::{Shared, State};
use crate::media::Held;

/// How often a request that waits for room looks whether there is some: nobody tells when others make it.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Shared {
    /// The device, for a request that changes something, if the file takes changes.
    pub(super) fn admit(&self) -> Result<MutexGuard<'_, State>, Status> {
        let mut state = self.usable()?;
        let drained = state.media()?.drain();
        if drained.is_err() {
            state.watch.refused();
        }
        state.look();
        drained.map_err(Held::status)?;
        Ok(state)
    }

    /// Carries out a request again and again while the host has no room for it, if requests wait for that. Nothing is held
    /// meanwhile.
    pub(super) fn when_there_is_room<T>(
        &self,
        request: impl Fn() -> Result<T, Status>,
    ) -> Result<T, Status> {
        loop {
            match request() {
                Err(Status::NoSpace) if self.is_full() && self.wait_for_room() => {}
                done => return done,
            }
        }
    }

    /// Whether it is the host that has no room, and not the device.
    fn is_full(&self) -> bool {
        let state = self.state();
        let held = state.ssd.as_ref().and_then(|ssd| ssd.ftl().nand().media().held());
        held == Some(Held::Full)
    }

    /// Whether to try again.
    fn wait_for_room(&self) -> bool {
        let waits = self.waits_for_room.lock().unwrap_or_else(PoisonError::into_inner);
        if !*waits {
            return false;
        }
        let woken = self.wake.wait_timeout(waits, LOOK_AGAIN);
        let (waits, _) = woken.unwrap_or_else(PoisonError::into_inner);
        *waits
    }

    pub(super) fn waits_for_room(&self) -> bool {
        *self.waits_for_room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that wait for room fail from now on.
    pub(super) fn stop_waiting(&self) {
        *self.waits_for_room.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.wake.notify_all();
    }
}

impl State {
    /// Tells people when the host began or ceased to fail, and when a die failed.
    pub(super) fn look(&mut self) {
        if let Some(ssd) = &self.ssd {
            let media = ssd.ftl().nand().media();
            self.watch.look(media.held(), media.store().failures());
            if ssd.ftl().nand().failed_die().is_some() {
                self.watch.tell_die(|| ssd.ftl().failed_die());
            }
        }
    }
}
