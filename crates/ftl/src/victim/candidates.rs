//! What a policy may know about closed superblocks.

use onefold_units::convert::u32_from;

/// A closed superblock of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub(crate) place: u32,
    /// Valid slots.
    pub valid: u32,
    /// Data slots.
    pub capacity: u32,
    /// Mapping changes of the device since it was closed.
    pub age: u64,
    /// Times it was erased.
    pub erases: u32,
}

impl Candidate {
    /// Its place in the pool: breaks ties.
    #[must_use]
    pub const fn place(&self) -> u32 {
        self.place
    }
}

/// The closed superblocks of one pool, in an order that depends on their history only.
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    pub(super) members: &'a [u32],
    pub(super) about: &'a dyn Fn(u32) -> Candidate,
}

impl Candidates<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32_from(self.members.len())
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The `at`-th of them.
    #[must_use]
    pub fn get(&self, at: u32) -> Option<Candidate> {
        self.members.get(onefold_units::convert::index(at)).map(|place| (self.about)(*place))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Candidate> {
        self.members.iter().map(|place| (self.about)(*place))
    }
}
