//! Least recently used.

use crate::{Access, Actions, Entries, ListId, NodeId, Replacement, Shape, Stream};

const ALL: ListId = ListId(0);

/// One list by recency of any access; the least recently used entry leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lru;

impl Replacement for Lru {
    const LISTS: &'static [Stream] = &[Stream::Other];

    fn new(_: &Shape) -> Self {
        Self
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        e.move_to_newest(ALL, id);
    }

    #[inline]
    fn admit(&mut self, e: &mut Entries, key: u32, _: Access, out: &mut Actions) -> NodeId {
        if e.is_full() {
            e.evict(ALL, out);
        }
        e.insert(ALL, key)
    }
}
