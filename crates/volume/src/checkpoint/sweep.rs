//! How far the sweep over the map is.

use std::ops::Range;

use super::Checkpoint;
use crate::map::runs::Run;

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

    /// Pages that the sweep has passed.
    pub(crate) const fn swept(&self) -> u64 {
        self.swept
    }

    /// The page that it goes on with.
    pub(crate) const fn cursor(&self) -> usize {
        self.cursor
    }

    /// It begins with the first page.
    pub(crate) const fn sweep_all(&mut self) {
        self.cursor = 0;
    }

    /// It passed a page, and goes on with this one.
    pub(crate) const fn pass(&mut self, next: usize) {
        self.cursor = next;
        self.swept += 1;
    }

    /// It waits for these pages, and for no other ones.
    pub(crate) fn prefetch(&mut self, keys: &[usize]) {
        self.prefetch = keys.iter().copied().collect();
    }

    /// It passed pages that cannot be read.
    pub(crate) fn note_unread(&mut self, keys: &[usize]) {
        self.unread.extend(keys);
    }

    /// Whether it passed such pages since the last checkpoint began.
    pub(crate) const fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Those pages, for the run of the checkpoint that begins.
    pub(crate) fn take_unread(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.unread)
    }

    /// The first run of these has to wait for another round, and with it those that came later.
    pub(crate) fn put_off(&mut self, of: impl Fn(&Run) -> bool) {
        let swept = self.swept;
        let runs = &mut self.runs.list;
        let oldest = runs.iter().position(of).unwrap_or(runs.len());
        runs[oldest..].iter_mut().for_each(|run| run.swept = swept);
    }

    /// Checkpoints follow one another until it has passed so many pages more.
    pub(crate) const fn move_for(&mut self, pages: u64) {
        self.moves_until = self.swept + pages;
    }

    /// Whether they still do.
    pub(crate) const fn moves(&self) -> bool {
        self.swept < self.moves_until
    }
}
