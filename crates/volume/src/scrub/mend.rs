//! What a scrub can put right: a checkpoint writes the root anew, and what is in memory of the map.

use onefold_format::volume::MetaKind;
use onefold_units::Location;

/// Checkpoints that may be taken for one block: the first one may have to read the page that it is to write.
const TRIES_MAX: u8 = 3;

/// Something damaged that a checkpoint may write anew.
#[derive(Debug)]
pub(crate) struct Mend {
    /// Its place in the list of what was found.
    place: Option<usize>,
    what: What,
    /// The checkpoint that should have written it.
    asked: Option<u64>,
    tries: u8,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// The root of this generation, the newest one.
    Root { generation: u64 },
    /// A block of a checkpoint.
    Meta { at: Location, object: u64, kind: MetaKind },
}

impl Mend {
    pub(crate) const fn new(place: Option<usize>, what: What) -> Self {
        Self { place, what, asked: None, tries: 0 }
    }

    /// Its place in the list of what was found.
    pub(crate) const fn place(&self) -> Option<usize> {
        self.place
    }

    pub(crate) const fn what(&self) -> What {
        self.what
    }

    /// Whether a checkpoint behind this one should have written it.
    pub(crate) fn waits_for(&self, committed: u64) -> bool {
        self.asked.is_some_and(|number| committed < number)
    }

    /// Whether so many checkpoints were taken for it that no other one is.
    pub(crate) const fn is_hopeless(&self) -> bool {
        self.tries >= TRIES_MAX
    }

    /// This checkpoint is to write it.
    pub(crate) const fn ask(&mut self, number: u64) {
        self.tries += 1;
        self.asked = Some(number);
    }
}
