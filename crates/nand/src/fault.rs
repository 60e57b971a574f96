//! Which faults the flash array may show.

use onefold_units::Rng;
use onefold_units::convert::narrow;

/// Probabilities of faults per operation, all 0 in a healthy device. Faults are drawn from a
/// generator of their own, so that switching one on does not change the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultSpec {
    /// A program fails: its data is not stored and the superblock is retired.
    pub program: f64,
    /// An erase fails: the superblock is retired.
    pub erase: f64,
    /// A read is uncorrectable.
    pub read: f64,
    /// A read returns flipped bits, which the checksum detects.
    pub bit_rot: f64,
    /// A read needs retries, or a program more pulses than usual: it takes `slow_by` times as long.
    pub slow: f64,
    /// Times that a slow operation keeps its die; 0 is as 1.
    pub slow_by: u32,
    /// Superblocks taken into use in the life of the drive before one of its dies fails; 0: none does.
    pub die: u64,
    /// Superblocks that are bad from the factory, spread evenly.
    pub bad_superblocks: u32,
    /// Seed of the draws.
    pub seed: u64,
}

impl FaultSpec {
    /// The die of `dies` that fails once `opened` superblocks were taken into use in the life of the drive, if one has by then. It
    /// depends on nothing else, so that it is the same whenever the drive is opened again.
    #[must_use]
    pub fn failed_die(&self, dies: u32, opened: u64) -> Option<u32> {
        let failed = self.die > 0 && opened >= self.die;
        failed.then(|| narrow(Rng::fork(self.die, 17).below(u64::from(dies))))
    }
}
