//! Mode `han`: the layer of Han 2021 (volume.md, section 4).
//!
//! Four equal partitions, each with a table and a map file; a partition is cleaned when the next write goes to another
//! one, and a temporary table serves reads meanwhile.

use onefold_format::volume::VolumeMode;

use crate::faithful::{Rules, Scope, Situation};

pub(crate) const RULES: Rules =
    Rules { mode: VolumeMode::Han, files: 4, partitions: Some(4), temporary_table: true, choose };

/// The partition just left, unless nothing in it is invalid (volume.md, section 3, V6). Differs from Han 2021, sec. III-D,
/// where nothing is said about all partitions being full: then the next one with holes is cleaned while writes wait (V8).
fn choose(situation: &Situation<'_>) -> Option<Scope> {
    let invalid = situation.invalid;
    if let Some(left) = situation.left {
        return (invalid[left] > 0).then_some(Scope::Partition(left));
    }
    if !situation.wanted {
        return None;
    }
    let count = invalid.len();
    let next = (1..=count).map(|step| (situation.current + step) % count);
    next.into_iter().find(|number| invalid[*number] > 0).map(Scope::Partition)
}
