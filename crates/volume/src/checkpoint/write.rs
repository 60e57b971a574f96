//! How places on the backing are described in a body.

use onefold_format::volume::{Extent, RunEntry};
use onefold_units::Location;
use onefold_units::convert::u32_from;

use crate::map::runs::Run;

/// A run as the body describes it, whose members are those in these places.
pub(crate) fn describe_run(run: &Run, slots: &[usize]) -> RunEntry {
    let data = run.index.len();
    let bits = slots.iter().enumerate().map(|(bit, slot)| (run.members >> slot & 1) << bit);
    RunEntry {
        number: run.number,
        members: bits.sum(),
        records: run.records,
        counted: run.counted,
        data_blocks: u32_from(data),
        index_blocks: u32_from(run.blocks.len() - data),
        extents: extents(&run.blocks),
    }
}

/// Blocks in order as extents.
pub(crate) fn extents(locations: &[Location]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for at in locations {
        match extents.last_mut() {
            Some(last) if last.location.raw() + last.blocks == at.raw() => last.blocks += 1,
            _ => extents.push(Extent { location: *at, blocks: 1 }),
        }
    }
    extents
}
