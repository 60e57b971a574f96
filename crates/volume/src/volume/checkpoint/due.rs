//! When a checkpoint is taken.

use crate::log::Stream;
use crate::volume::Volume;

impl Volume {
    /// Whether the next checkpoint should begin.
    pub(super) fn checkpoint_due(&self) -> bool {
        let (state, options) = (&self.checkpoint, &self.options);
        if state.holds_back(self.now) {
            return false;
        }
        state.is_wanted(options, self.segments.next_epoch())
            || self.map.wants_checkpoint()
            || self.segments_wait()
            || state.deadline(options, self.now).is_some_and(|due| due <= self.now)
    }

    /// Whether log segments that a checkpoint would make available are worth one: several are, or the first one just before
    /// the host or the cleaner would have to wait. Those free but not listed do not count (`TAKEN_MAX`).
    fn segments_wait(&self) -> bool {
        let segments = &self.segments;
        // Before all runs are counted a checkpoint gives nothing back (`Volume::capture`).
        let empty = if self.is_counted() { segments.empty_count() } else { 0 };
        let half = self.segment_blocks() / 2;
        let ends_soon = Stream::HOST.iter().any(|stream| self.log.stream(*stream).used >= half);
        let host_soon = self.takeable(Stream::User) == 0 && ends_soon;
        if host_soon || self.takeable(Stream::Clean) == 0 {
            return empty > 0 || segments.can_list_more() || self.gains_by_moving_meta();
        }
        segments.free_count() < self.layout.low() && empty >= self.layout.empties_per_checkpoint()
    }

    /// Whether checkpoints empty log segments of the map. While reads fail the sweep moves little, and they only take room.
    pub(crate) fn gains_by_moving_meta(&self) -> bool {
        let fails = !self.retries.is_empty() || self.segments.holds_some();
        !fails && self.meta_is_sparse()
    }
}
