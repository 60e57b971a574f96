//! Which faults the flash array may show.

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
    /// Superblocks that are bad from the factory, spread evenly.
    pub bad_superblocks: u32,
    /// Seed of the draws.
    pub seed: u64,
}
