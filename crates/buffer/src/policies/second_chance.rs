//! What policies share that let the oldest entry of a list stay for another round.

use crate::{Entries, ListId, NodeId};

/// Bit of [`Entries::aux_mut`]: the entry was spared since its last access.
const COLD: u16 = 1;

/// The oldest entry of a list that is not `spared`; the spared ones before it go to the newest end.
///
/// To be spared has to use up the chance of an entry, so that each is asked twice at most. As only
/// an access gives a new chance, the walk takes constant time per access on average.
#[inline]
pub(super) fn oldest_unspared(
    e: &mut Entries,
    list: ListId,
    mut spared: impl FnMut(&mut Entries, NodeId) -> bool,
) -> Option<NodeId> {
    loop {
        let oldest = e.slab().oldest(list)?;
        if !spared(e, oldest) {
            return Some(oldest);
        }
        e.move_to_newest(list, oldest);
    }
}

/// Makes an entry cold. Returns whether it was not cold before.
#[inline]
pub(super) fn cool(e: &mut Entries, id: NodeId) -> bool {
    let aux = e.aux_mut(id);
    let warm = *aux & COLD == 0;
    *aux |= COLD;
    warm
}

/// Makes an entry warm, as it was when it was inserted: it was accessed.
#[inline]
pub(super) fn warm(e: &mut Entries, id: NodeId) {
    *e.aux_mut(id) &= !COLD;
}
