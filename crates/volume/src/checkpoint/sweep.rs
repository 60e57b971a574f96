//! How far the sweep over the map is.

use std::ops::Range;

use super::Checkpoint;

/// How much of the map a checkpoint sweeps over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    Nothing,
    Some,
    All,
}

impl Checkpoint {
    /// The sweep goes on with this page. Every run has to wait for a whole round from there.
    pub(crate) fn sweep_from(&mut self, page: usize) {
        self.cursor = page;
        self.runs.list.iter_mut().for_each(|run| run.swept = self.swept);
    }

    /// There are so many pages from now on; no checkpoint is under way.
    pub(crate) fn resize(&mut self) {
        self.sweep_from(0);
        self.prefetch.clear();
    }

    /// These pages are no member's any more.
    pub(crate) fn forget_unread(&mut self, keys: Range<usize>) {
        self.unread.retain(|key| !keys.contains(key));
    }

    /// Page whose load the sweep waits for: it stays until the next checkpoint.
    pub(crate) fn keeps(&self, page: usize) -> Option<u64> {
        self.prefetch.contains(&page).then_some(self.number + 1)
    }
}
