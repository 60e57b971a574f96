//! What the log says of errors of the backing: once when they begin, and once when they are over.

use onefold_volume::{IoFailed, Volume};

use super::state::State;

/// What was said last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    stalled: Option<IoFailed>,
    segments: bool,
}

impl State {
    /// Says what changed.
    pub(super) fn tell_faults(&mut self) {
        let stalled = self.volume.stalled();
        if stalled != self.faults_told.stalled {
            match stalled {
                Some(IoFailed::NoSpace) => tracing::error!(
                    "the backing has no room: changes are refused until it has, reads go on"
                ),
                Some(IoFailed::Error) => tracing::error!(
                    "the backing takes no writes: changes are refused until it does, reads go on"
                ),
                None => tracing::warn!("the backing takes writes again"),
            }
            self.faults_told.stalled = stalled;
        }
        let failed = self.volume.as_log().is_some_and(Volume::has_faulty);
        if failed && !self.faults_told.segments {
            tracing::warn!(
                "writes failed in log segments: they are emptied and used again, `volume info` counts them"
            );
        }
        self.faults_told.segments = failed;
    }
}
