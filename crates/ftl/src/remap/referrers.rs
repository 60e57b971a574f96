//! Who maps to the slots of a superblock that is being collected, besides the unit it was written
//! for.

use onefold_units::convert::{index, u32_from};

const NIL: u32 = u32::MAX;

/// A unit that a log entry maps to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Referrer {
    pub(crate) lpn: u32,
    /// Sequence number of the mapping.
    pub(crate) seq: u64,
}

onefold_units::keep!(Referrer { lpn, seq });

/// Referrers by slot, newest first: chains in one array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Referrers {
    heads: Vec<u32>,
    links: Vec<(Referrer, u32)>,
}

onefold_units::keep!(Referrers { heads, links });

impl Referrers {
    /// Forgets everything and takes `slots` slots.
    pub(crate) fn reset(&mut self, slots: u32) {
        self.heads.clear();
        self.heads.resize(index(slots), NIL);
        self.links.clear();
    }

    /// Nothing is collected.
    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.links.clear();
    }

    /// Whether there is no table: nothing was shared when collection began.
    pub(crate) const fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Adds the newest referrer of a slot.
    pub(crate) fn add(&mut self, slot: u32, referrer: Referrer) {
        let head = &mut self.heads[index(slot)];
        self.links.push((referrer, *head));
        *head = u32_from(self.links.len() - 1);
    }

    /// The referrers of a slot, newest first. Stale ones are among them.
    pub(crate) fn of(&self, slot: u32) -> impl Iterator<Item = Referrer> + '_ {
        let mut at = self.heads.get(index(slot)).copied().unwrap_or(NIL);
        std::iter::from_fn(move || {
            let (referrer, next) = self.links.get(index(at))?;
            at = *next;
            Some(*referrer)
        })
    }
}
