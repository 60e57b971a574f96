//! Mode `han`: the layer of Han 2021 (volume.md, section 4).
//!
//! Four equal partitions, each with a table and a map file; a partition is cleaned when the next
//! write goes to another one, and a temporary table serves reads meanwhile.

use onefold_format::volume::VolumeMode;

use crate::partitioned::{Rules, Scope, Situation};

pub(crate) const RULES: Rules =
    Rules { mode: VolumeMode::Han, files: 4, partitions: Some(4), temporary_table: true, choose };

/// The partition just left, unless nothing in it is invalid (volume.md, section 3, V6). Differs
/// from Han 2021, sec. III-D, where nothing is said about all partitions being full: then the one
/// with the most holes is cleaned while writes wait (V8).
fn choose(situation: &Situation<'_>) -> Option<Scope> {
    let invalid = situation.invalid;
    if let Some(left) = situation.left {
        return (invalid[left] > 0).then_some(Scope::Partition(left));
    }
    let most = (0..invalid.len()).max_by_key(|number| invalid[*number]);
    let worth = most.filter(|number| situation.wanted && invalid[*number] > 0);
    worth.map(Scope::Partition)
}
