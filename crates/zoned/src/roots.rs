//! The root records of both sets.

use onefold_format::{DMZ_BLOCK_BYTES, DmzRoot};
use onefold_units::convert::{index, u32_from};

use crate::backing::Backing;
use crate::error::MountError;
use crate::geometry::Geometry;
use crate::layout::Layout;
use crate::opening_io::read;

/// The root records that are valid, by set, and what is wrong with the other ones.
pub(crate) struct Roots([Result<(Layout, DmzRoot), MountError>; 2]);

impl Roots {
    /// The one that counts; the first set if both have the same generation, as the second is written first.
    pub(crate) fn newest(&self) -> (u32, Layout, DmzRoot) {
        let generation = |set: usize| self.0[set].as_ref().ok().map(|(_, root)| root.generation);
        let set = usize::from(generation(1) > generation(0));
        let (layout, root) = self.0[set].clone().expect("one of them is valid");
        (u32_from(set), layout, root)
    }

    /// The root record of a set, if it is valid.
    pub(crate) fn of(&self, set: u32) -> Option<(Layout, DmzRoot)> {
        self.0[index(set)].as_ref().ok().cloned()
    }

    pub(crate) fn is_current(&self, set: u32, generation: u64) -> bool {
        self.0[index(set)].as_ref().is_ok_and(|(_, root)| root.generation == generation)
    }

    pub(crate) fn fault(&self, set: u32) -> Option<MountError> {
        self.0[index(set)].as_ref().err().copied()
    }
}

pub(crate) fn find_roots(
    backing: &mut dyn Backing,
    geometry: &Geometry,
) -> Result<Roots, MountError> {
    let first = read_root(backing, geometry, 0)?;
    match first {
        Ok((layout, root)) => {
            let at = layout.set_block(geometry, 1);
            let second = read_root(backing, geometry, at)?.and_then(|(other, found)| {
                let same = other == layout && found.uuid == root.uuid;
                if same { Ok((other, found)) } else { Err(MountError::OtherVolume { device: 0 }) }
            });
            Ok(Roots([Ok((layout, root)), second]))
        }
        Err(error) => {
            // The second set begins with one of the next conventional zones; how long a set is only a root record tells.
            for zone in 1..geometry.front() {
                let at = u64::from(zone) * u64::from(geometry.zone_blocks());
                let found = read_root(backing, geometry, at)?;
                if let Ok(found) = found
                    && found.0.set_block(geometry, 1) == at
                {
                    return Ok(Roots([Err(error), Ok(found)]));
                }
            }
            Err(error)
        }
    }
}

/// The root record at a block of the first device, if it belongs there.
fn read_root(
    backing: &mut dyn Backing,
    geometry: &Geometry,
    at: u64,
) -> Result<Result<(Layout, DmzRoot), MountError>, MountError> {
    let mut block = [0; DMZ_BLOCK_BYTES];
    read(backing, 0, at, &mut block)?;
    let judge = || {
        let root = DmzRoot::decode(&block).map_err(MountError::NoRoot)?;
        if root.block != at {
            return Err(MountError::Misplaced { at, found: root.block });
        }
        Ok((Layout::of_root(geometry, &root)?, root))
    };
    Ok(judge())
}
