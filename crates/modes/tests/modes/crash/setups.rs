//! Volumes under test.

use onefold_format::volume::VolumeMode;
use onefold_modes::Areas;
use onefold_units::{Nanos, Rng};
use onefold_volume::{Options, TRANSACTION_PAIRS_MAX, Trim};

use crate::harness::setup::{OPTIONS, Setup, pick};

/// A volume of a mode, with several tables.
pub(crate) fn partitioned(
    mode: VolumeMode,
    backing_blocks: u64,
    logical_blocks: u64,
    options: Options,
) -> Setup {
    let partition_blocks = match mode {
        VolumeMode::Han => Areas::default_partition(mode, backing_blocks),
        VolumeMode::Sung | VolumeMode::Log => 1300,
    };
    Setup { mode, partition_blocks, ..Setup::of(backing_blocks, logical_blocks, options) }
}

/// One on which everything happens often.
pub(crate) fn random(mode: VolumeMode, rng: &mut Rng) -> Setup {
    let commit_age = pick(rng, &[Nanos::new(20_000_000), Nanos::new(1 << 50)]);
    let table_bytes = pick(rng, &[u64::MAX, 40_000]);
    let transaction_pairs = pick(rng, &[40, TRANSACTION_PAIRS_MAX]);
    let trim = pick(rng, &[Trim::Always, Trim::Always, Trim::Spare, Trim::Never]);
    let options = Options { transaction_pairs, commit_age, table_bytes, trim, ..OPTIONS };
    let logical_blocks = pick(rng, &[900, 4000, 5500]);
    let backing_blocks = 8576 + rng.below(700);
    partitioned(mode, backing_blocks, logical_blocks, options)
}
