//! How fast the cleaner goes, and when the host waits for it (volume.md, section 5.7).

use crate::cleaner::pace::{Levels, most_debt};
use crate::layout::Layout;
use crate::volume::Volume;

impl Volume {
    /// Log segments that are free or will be after the next checkpoint.
    pub(crate) fn free_soon(&self) -> u32 {
        self.segments.free_count() + self.segments.empty_count() + self.trims.len()
    }

    pub(crate) fn low(&self) -> u32 {
        self.low_with(self.members.kept_more())
    }

    /// The same if so many more are kept for checkpoints.
    pub(crate) fn low_with(&self, kept_more: u32) -> u32 {
        kept_more + self.least_free(Layout::low)
    }

    pub(crate) fn high(&self) -> u32 {
        self.members.kept_more() + self.least_free(Layout::high)
    }

    fn least_free(&self, of: impl Fn(&Layout) -> u32) -> u32 {
        // The more a checkpoint takes, the more has to be cleaned between two of them.
        let least = Layout::reserve() + 2 + self.layout.kept_for_bodies() / 2;
        self.options.clean_below.map_or_else(|| of(&self.layout), |low| low.max(least))
    }

    /// Whether cleaning or a checkpoint could free a log segment.
    pub(crate) fn can_free(&self) -> bool {
        self.cleaner.is_walking()
            || self.checkpoint.is_running()
            || self.segments.empty_count() > 0
            || self.trims.len() > 0
            || self.choose_victim().is_some()
    }

    /// Notes that the host wrote, for the pace of the cleaner (volume.md, section 5.7).
    pub(crate) fn cleaner_owes(&mut self, blocks: u32) {
        let levels = Levels { free: self.free_soon(), low: self.low(), reserve: self.reserve() };
        self.cleaner.pace_mut().owe(blocks, levels);
    }

    /// Whether the cleaner owes half of what makes writes of the host wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.cleaner.pace().is_behind(self.debt_max())
    }

    /// Whether the host may write now.
    pub(crate) fn cleaner_keeps_pace(&self) -> bool {
        self.cleaner.pace().keeps_up(self.debt_max())
            || !self.cleaner.is_walking()
            || self.free_soon() >= self.low()
    }

    fn debt_max(&self) -> f64 {
        most_debt(self.low() - self.reserve(), self.segment_blocks())
    }
}
