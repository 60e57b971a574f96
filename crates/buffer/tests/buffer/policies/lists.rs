//! The lists of a naive model: pages in vectors, the oldest first.

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
            take(list, lpn);
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

/// Takes a page out of a list. Whether it was there.
pub(crate) fn take(list: &mut Vec<u32>, lpn: u32) -> bool {
    let at = list.iter().position(|page| *page == lpn);
    if let Some(at) = at {
        list.remove(at);
    }
    at.is_some()
}

/// Puts a page at the newest end of a list it may be in.
pub(crate) fn renew(list: &mut Vec<u32>, lpn: u32) {
    take(list, lpn);
    list.push(lpn);
}

/// Evicts the oldest page of a list, by the batch rule. The pages that left.
pub(crate) fn evict(list: &mut Vec<u32>, pages: &mut Pages) -> Vec<u32> {
    let gone = pages.evict(list, Stream::Other);
    list.retain(|page| !gone.contains(page));
    gone
}

/// Cuts a list to its newest pages.
pub(crate) fn keep_newest(list: &mut Vec<u32>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}

/// The lists in the order of a FLUSH, of a policy that has one stream.
pub(crate) fn one_stream(lists: &[&Vec<u32>]) -> Vec<(Stream, Vec<u32>)> {
    lists.iter().map(|list| (Stream::Other, (*list).clone())).collect()
}
