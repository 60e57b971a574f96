//! What crash tests of volumes of any mode are made of: a disk that loses what it was not told to
//! keep, a rig that drives a volume on it, and an oracle that knows what a volume may hold.
//!
//! The crash tests of this crate have it as a module, and those of crates with other modes by its
//! path. Each of them has a module `engine` beside it, which says how volumes are made, opened and
//! inspected there.

pub(crate) mod disk;
pub(crate) mod endurance;
pub(crate) mod errors;
pub(crate) mod family;
pub(crate) mod golden;
pub(crate) mod histories;
pub(crate) mod image;
pub(crate) mod ops;
pub(crate) mod oracle;
pub(crate) mod rig;
pub(crate) mod roots;
pub(crate) mod setup;
pub(crate) mod spoil;
pub(crate) mod stamp;
pub(crate) mod states;
pub(crate) mod weather;
pub(crate) mod zones;
