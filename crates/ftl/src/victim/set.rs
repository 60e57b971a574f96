//! A set of superblocks that can be drawn from by index.

use onefold_units::convert::{index, u32_from};

const ABSENT: u32 = u32::MAX;

/// A dense list of members and the place of each in it: insert, remove and draw in O(1).
#[derive(Clone, Debug)]
pub(crate) struct Set {
    members: Vec<u32>,
    place: Vec<u32>,
}

onefold_units::keep!(Set { members, place });

impl Set {
    pub(crate) fn new(superblocks: u32) -> Self {
        Self { members: Vec::new(), place: vec![ABSENT; index(superblocks)] }
    }

    pub(crate) fn insert(&mut self, at: u32) {
        if self.place[index(at)] == ABSENT {
            self.place[index(at)] = u32_from(self.members.len());
            self.members.push(at);
        }
    }

    pub(crate) fn remove(&mut self, at: u32) {
        let place = std::mem::replace(&mut self.place[index(at)], ABSENT);
        if place == ABSENT {
            return;
        }
        self.members.swap_remove(index(place));
        if let Some(moved) = self.members.get(index(place)) {
            self.place[index(*moved)] = place;
        }
    }

    pub(crate) fn contains(&self, at: u32) -> bool {
        self.place.get(index(at)).is_some_and(|place| *place != ABSENT)
    }

    pub(crate) fn members(&self) -> &[u32] {
        &self.members
    }
}
