//! Mode `sung`: the layer of Sung 2022 (volume.md, section 4).
//!
//! One log for all; 4 GiB partitions, so that tables stay small; cleaning over all partitions: the
//! last valid blocks go to the first holes.

use onefold_format::volume::VolumeMode;

use crate::partitioned::{Rules, Scope, Situation};

pub(crate) const RULES: Rules =
    Rules { mode: VolumeMode::Sung, files: 1, partitions: None, temporary_table: false, choose };

/// Where cleaning cannot bring free space above the threshold, it begins when half of what the last
/// one brought is used: else each overwritten block would be cleaned by itself.
fn choose(situation: &Situation<'_>) -> Option<Scope> {
    let threshold = situation.free_wanted.min(situation.free_after_cleaning / 2);
    let due = situation.wanted || situation.free_blocks < threshold;
    let holes = situation.counts.iter().any(|(_, invalid)| *invalid > 0);
    (due && holes).then_some(Scope::All)
}
