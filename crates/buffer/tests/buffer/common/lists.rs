//! Lists of pages as vectors, oldest first: what the naive models are made of.

use onefold_buffer::Stream;

use crate::common::model::Pages;

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
