//! How fast the cleaner goes, and when the host waits for it (volume.md, section 5.7).

use crate::layout::Layout;
use crate::volume::Volume;

/// Blocks that the cleaner may owe before writes of the host wait, at least.
const DEBT_MIN: f64 = 512.0;

/// Share of what the host writes that the cleaner may move while there is no need to hurry.
const BACKGROUND: f64 = 0.1;

impl Volume {
    /// Log segments that are free or will be after the next checkpoint.
    pub(crate) fn free_soon(&self) -> u32 {
        self.segments.free_count() + self.segments.empty_count() + self.trims.len()
    }

    pub(crate) fn low(&self) -> u32 {
        self.low_with(self.family.kept_more)
    }

    /// The same if so many more are kept for checkpoints.
    pub(crate) fn low_with(&self, kept_more: u32) -> u32 {
        kept_more + self.least_free(Layout::low)
    }

    pub(crate) fn high(&self) -> u32 {
        self.family.kept_more + self.least_free(Layout::high)
    }

    fn least_free(&self, of: impl Fn(&Layout) -> u32) -> u32 {
        // The more a checkpoint takes, the more has to be cleaned between two of them.
        let least = Layout::reserve() + 2 + self.kept_for_bodies() / 2;
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
        let written = f64::from(blocks);
        let (free, low, reserve) = (self.free_soon(), self.low(), self.reserve());
        let cleaner = &mut self.cleaner;
        cleaner.credit = (cleaner.credit + BACKGROUND * written).min(DEBT_MIN);
        if free >= low {
            cleaner.debt = 0.0;
            return;
        }
        let v = cleaner.utilisation.min(0.95);
        let short = f64::from(low - free) / f64::from(low - reserve);
        cleaner.debt += written * v / (1.0 - v) * (1.0 + short.min(1.0));
    }

    /// The cleaner moved a block, or had read it for nothing: the host may write more.
    pub(crate) fn pay(&mut self) {
        self.pay_debt();
        self.cleaner.credit -= 1.0;
    }

    /// The same where that cost nothing.
    pub(crate) fn pay_debt(&mut self) {
        self.cleaner.debt = (self.cleaner.debt - 1.0).max(0.0);
    }

    /// Whether the cleaner owes half of what makes writes of the host wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.cleaner.debt >= self.debt_max() / 2.0
    }

    /// Whether the host may write now.
    pub(crate) fn cleaner_keeps_pace(&self) -> bool {
        self.cleaner.debt < self.debt_max()
            || !self.cleaner.is_walking()
            || self.free_soon() >= self.low()
    }

    /// Blocks that the cleaner may owe before writes of the host wait: a quarter of what may still be taken, because what it
    /// begins with lies behind all that the host has under way.
    fn debt_max(&self) -> f64 {
        let segments = self.low() - self.reserve();
        (f64::from(segments) * f64::from(self.segment_blocks()) / 4.0).max(DEBT_MIN)
    }
}
