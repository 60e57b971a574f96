//! What a scrub can put right: a checkpoint writes the root anew, and what is in memory of the map.

use onefold_format::volume::MetaKind;
use onefold_units::Location;

/// Checkpoints that may be taken for one block: the first one may have to read the page that it is to write.
pub(crate) const TRIES_MAX: u8 = 3;

/// Something damaged that a checkpoint may write anew.
#[derive(Debug)]
pub(crate) struct Mend {
    /// Its place in the list of what was found.
    pub(crate) place: Option<usize>,
    pub(crate) what: What,
    /// The checkpoint that should have written it.
    pub(crate) asked: Option<u64>,
    pub(crate) tries: u8,
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
}
