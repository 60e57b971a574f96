//! Naive models that can also be one area of a buffer that another model divides.

use crate::common::model::{Order, Pages};

/// An order whose parts can be called one by one.
pub(crate) trait Nested: Order {
    /// Evicts at least one page, if there is one.
    fn evict(&mut self, pages: &mut Pages);
    /// Forgets that the page was here. Whether that was known.
    fn take_ghost(&mut self, _: u32) -> bool {
        false
    }
    /// Takes a page in that is written or read; `known` if it was a ghost.
    fn insert(&mut self, lpn: u32, known: bool, write: bool, pages: &mut Pages);
    /// Takes over a page of another area, because it was accessed again.
    fn join(&mut self, lpn: u32);

    /// What [`Order::admit`] does if the buffer is not divided.
    fn make_room_and_insert(&mut self, lpn: u32, write: bool, pages: &mut Pages) -> bool {
        let known = self.take_ghost(lpn);
        if pages.is_full() {
            self.evict(pages);
        }
        self.insert(lpn, known, write, pages);
        true
    }

    /// Its pages, list by list.
    fn all(&self) -> Vec<u32> {
        self.flush_order().into_iter().flat_map(|(_, pages)| pages).collect()
    }
}
