//! What a remap does with runs of units.

use onefold_format::RemapEntry;
use onefold_nand::Geometry;
use onefold_units::convert::low16;
use onefold_units::{Lpn, Ppn, Seq, SuperblockId};

use super::RemapConfig;

/// What is to be done with a run of units of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The target maps there already.
    Keep,
    /// Map the targets to this slot and the ones after it, all of one superblock.
    Share(Ppn),
    /// The source is unmapped: so is the target.
    Unmap,
    /// Copy: the slot has as many referrers as it may have.
    Copy,
    /// Leave as it is.
    Skip,
}

/// A run of units of one range with the same fate, a stride apart. Runs of one range may
/// interleave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) range: usize,
    pub(crate) dst: u32,
    pub(crate) src: u32,
    pub(crate) len: u32,
    pub(crate) stride: u16,
    pub(crate) action: Action,
}

impl Piece {
    /// Its targets.
    pub(crate) fn targets(&self) -> impl Iterator<Item = u32> + use<> {
        strided(self.dst, self.len, self.stride)
    }

    /// Its sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = u32> + use<> {
        strided(self.src, self.len, self.stride)
    }

    /// The superblock that its units are mapped to, and the entry that says so.
    pub(crate) fn entry(
        &self,
        geometry: &Geometry,
        seq: u64,
    ) -> Option<(SuperblockId, RemapEntry)> {
        let Action::Share(first) = self.action else { return None };
        let (superblock, slot) = geometry.split(first);
        let len = low16(u64::from(self.len));
        let (seq, target) = (Seq::new(seq), Lpn::new(self.dst));
        Some((superblock, RemapEntry { seq, target, slot, len, stride: self.stride }))
    }

    /// Takes the unit `dst` to be mapped to `slot` if the run goes on with it, as an entry of the
    /// log would.
    #[inline]
    pub(super) fn takes_shared(&mut self, dst: u32, slot: Ppn, run_max: u16) -> bool {
        let Action::Share(first) = self.action else { return false };
        if first.raw() + self.len != slot.raw() || self.len >= u32::from(run_max) {
            return false;
        }
        let step = dst - self.dst;
        if self.len > 1 {
            if step != self.len * u32::from(self.stride) {
                return false;
            }
        } else if step <= u32::from(RemapConfig::STRIDE_MAX) {
            self.stride = low16(u64::from(step));
        } else {
            return false;
        }
        self.len += 1;
        true
    }

    /// Takes the unit after the last one if it has the same fate.
    pub(super) fn takes_next(&mut self, dst: u32, action: Action) -> bool {
        let goes_on = self.action == action && self.dst + self.len == dst;
        self.len += u32::from(goes_on);
        goes_on
    }
}

fn strided(first: u32, len: u32, stride: u16) -> impl Iterator<Item = u32> {
    (0..len).map(move |n| first + n * u32::from(stride))
}
