//! Which requests of a pattern are remaps, and where they take their data from.

use onefold_units::Rng;
use onefold_units::convert::u64_from;

use super::address::{Fit, Size, threshold};
use super::choices::stream;
use super::in_use::InUse;
use super::request::RemapFrom;
use super::spec::RemapSpec;

/// Chooses remaps.
#[derive(Clone, Debug)]
pub(super) struct Remaps {
    rng: Rng,
    /// Of 2^64 draws, those that make a request a remap, and those that make a remap a move.
    below: u64,
    move_below: u64,
    /// The run: as long at its target as at its source.
    size: Size,
    align: u64,
}

impl Remaps {
    /// `None` for a workload without remaps.
    pub(super) fn new(spec: Option<RemapSpec>, fit: &Fit, seed: u64) -> Option<Self> {
        let spec = spec?;
        Some(Self {
            rng: Rng::fork(seed, stream::REMAPS),
            below: threshold(spec.share),
            move_below: threshold(spec.move_share),
            size: Size::new(spec.run, fit),
            align: fit.align,
        })
    }

    /// Whether the next request is a remap, and of which size.
    pub(super) fn next(&mut self) -> Option<Size> {
        (self.rng.next_u64() < self.below).then_some(self.size)
    }

    /// The source of a remap, relative to the range; `None` if nothing is in use.
    pub(super) fn source(&mut self, in_use: Option<&InUse>) -> Option<RemapFrom> {
        let moves = self.move_below > 0 && self.rng.next_u64() < self.move_below;
        let unit = match in_use {
            Some(set) => set.choose(&mut self.rng)?.min(self.size.starts - 1),
            None => self.rng.below(self.size.starts),
        };
        Some(RemapFrom { offset: unit * self.align, moves })
    }

    /// Notes in `set` what a remap to `target` leaves in use: what its source had in use, and of a
    /// moved source nothing but what is target as well.
    pub(super) fn mark(&self, set: &mut InUse, target: u64, from: RemapFrom) {
        let units = u64::from(self.size.bytes) / self.align;
        let (to, first) = (target / self.align, from.offset / self.align);
        let had: Vec<bool> = (first..first + units).map(|unit| set.contains(unit)).collect();
        if from.moves {
            set.set(first, first + units, false);
        }
        for (at, used) in had.into_iter().enumerate() {
            let unit = to + u64_from(at);
            set.set(unit, unit + 1, used);
        }
    }
}
