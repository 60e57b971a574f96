//! Mode `han`: the layer of Han 2021 (volume.md, section 4).
//!
//! Four equal partitions, each with a table and a map file; a partition is cleaned when the next
//! write goes to another one, and a temporary table serves reads meanwhile.

use onefold_format::volume::VolumeMode;

use crate::partitioned::{Rules, Scope, Situation};

pub(crate) const RULES: Rules =
    Rules { mode: VolumeMode::Han, files: 4, partitions: Some(4), temporary_table: true, choose };

/// The partition just left, unless nothing in it is invalid (volume.md, section 3, V6). Then one that
/// has too many holes (Han 2021, sec. III-A, which gives no threshold). Differs from Han 2021, sec.
/// III-D, where nothing is said about all partitions being full: then the one with the most holes is
/// cleaned while writes wait (V8).
fn choose(situation: &Situation<'_>) -> Option<Scope> {
    let invalid = |number: usize| situation.counts[number].1;
    if let Some(left) = situation.left {
        return (invalid(left) > 0).then_some(Scope::Partition(left));
    }
    let most = (0..situation.counts.len()).max_by_key(|number| invalid(*number));
    let worth = most.filter(|number| situation.wanted && invalid(*number) > 0);
    worth.or_else(|| above_threshold(situation)).map(Scope::Partition)
}

/// The partition with the most holes of those where new holes / written blocks exceed the threshold.
/// The one that is written is left alone: it is cleaned when writes leave it.
fn above_threshold(situation: &Situation<'_>) -> Option<usize> {
    let fresh = |number: usize| {
        // Holes that a cleaning could not fill are no reason for the next one.
        situation.counts[number].1.saturating_sub(situation.holes_left[number])
    };
    let exceeds = |number: &usize| {
        let (valid, invalid) = situation.counts[*number];
        f64::from(fresh(*number)) > situation.clean_share * f64::from(valid + invalid)
    };
    let others = (0..situation.counts.len()).filter(|number| *number != situation.current);
    others.filter(exceeds).max_by_key(|number| fresh(*number))
}
