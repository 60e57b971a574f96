//! The lists of a naive model.

use crate::common::model::Pages;
use onefold_buffer::Stream;

/// `N` lists of pages, the oldest page of each first.
pub(crate) struct Lists<const N: usize>(pub(crate) [Vec<u32>; N]);

impl<const N: usize> Lists<N> {
    pub(crate) fn new() -> Self {
        Self([const { Vec::new() }; N])
    }

    /// Makes a page the newest one of a list.
    pub(crate) fn move_to(&mut self, list: usize, lpn: u32) {
        self.forget(lpn);
        self.0[list].push(lpn);
    }

    pub(crate) fn forget(&mut self, lpn: u32) {
        for list in &mut self.0 {
            list.retain(|page| *page != lpn);
        }
    }

    /// Evicts the page at place `at` of a list, and what a batch takes along.
    pub(crate) fn evict(&mut self, list: usize, at: usize, pages: &mut Pages) {
        for gone in pages.evict(&self.0[list][at..], Stream::Other) {
            self.forget(gone);
        }
    }

    pub(crate) fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        self.0.iter().map(|list| (Stream::Other, list.clone())).collect()
    }
}
