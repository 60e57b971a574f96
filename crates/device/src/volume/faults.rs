//! What the log says of errors of the backing: once when they begin, and once when they are over.

use onefold_volume::{Engine, IoFailed, Volume};

/// What was said last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    stalled: Option<IoFailed>,
    segments: bool,
}

impl Told {
    /// Says what changed.
    pub(super) fn tell(&mut self, volume: &dyn Engine) {
        let stalled = volume.stalled();
        if stalled != self.stalled {
            match stalled {
                Some(IoFailed::NoSpace) => tracing::error!(
                    "the backing has no room: changes are refused until it has, reads go on"
                ),
                Some(IoFailed::Error) => tracing::error!(
                    "the backing takes no writes: changes are refused until it does, reads go on"
                ),
                None => tracing::warn!("the backing takes writes again"),
            }
            self.stalled = stalled;
        }
        let failed = volume.as_log().is_some_and(Volume::has_faulty);
        if failed && !self.segments {
            tracing::warn!(
                "writes failed in log segments: they are emptied and used again, `volume info` counts them"
            );
        }
        self.segments = failed;
    }
}
