//! The marker: a header without records that an idle volume writes, so that what was flushed last is known to be durable (volume.md,
//! section 7, step 5).
//!
//! A header says what was durable when it was written, so nothing says it of the last batches of the host: rot there could not be told
//! from a power cut, and would take them all away silently. The marker says it some time after the flush.
//!
//! 1. It is written once: when what the host wrote last is durable, no header says so, and no checkpoint is about to. It is nothing
//!    that the host wrote, so none follows for its own sake.
//! 2. One that is torn, or that a power cut takes away, leaves the volume as it would be without.

use onefold_units::Nanos;

use crate::log::Stream;
use crate::volume::Volume;

impl Volume {
    /// When the marker is to be written, if nothing happens before.
    pub(crate) fn marker_due(&self) -> Option<Nanos> {
        let due = self.flushes.unsaid_since()? + self.options.marker_age;
        let ends = self.frozen.is_some() || self.checkpoint.is_closing();
        // A batch that is about to be sent says it as well, and so does the root of a checkpoint.
        let is_begun = |stream: &Stream| {
            let open = self.log.stream(*stream).open;
            open.is_some_and(|open| !self.log.batch(open).is_empty())
        };
        let waits = self.checkpoint.is_running() || Stream::HOST.iter().any(is_begun);
        (!ends && !waits && self.can_append(Stream::User, 1)).then_some(due)
    }

    pub(crate) fn step_marker(&mut self) {
        if self.marker_due().is_none_or(|due| due > self.now) {
            return;
        }
        let marker = self.batch_with_room(Stream::User);
        self.send(marker);
        self.flushes.note_said(self.flushes.durable());
        self.stats.markers += 1;
    }
}
