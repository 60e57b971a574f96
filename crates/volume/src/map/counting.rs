//! Making live counts exact after a recovery.
//!
//! Recovery makes a run without reading the map, so it does not know what the records replaced; the counts are too high
//! until the pages of that run were read (`crate::map::runs`, invariant 2).
//!
//! 1. What was replaced at a page is judged once, when the page of every member is there: a block is dead if no member's
//!    entry points at it. Until all is judged, a volume with several members takes no changes (`Volume::check_change`), so
//!    the order of judging does not matter.

use std::collections::{BTreeMap, BTreeSet};

use crate::map::images::Replaced;

/// What has to be counted.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// Pages that recovery changed in some member.
    pub(crate) pages: Vec<usize>,
    /// Pages that were judged.
    pub(crate) judged: BTreeSet<usize>,
    /// By key.
    pub(crate) replaced: BTreeMap<usize, Vec<Replaced>>,
}
