//! Reading all that a volume has, where some of it may be damaged.

use onefold_units::{Lba, Nanos};
use onefold_volume::{Engine, Range, ReadPlan, Refusal, drive};

use super::disk::Disk;
use super::rig::fetch;
use super::stamp::{BLOCK, read_stamp};

/// Blocks that could not be read, where all others are as they should be.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    pub(crate) blocks: u64,
    pub(crate) pages: u64,
}

/// Reads every block by itself.
pub(crate) fn assert_right_or_error(
    volume: &mut dyn Engine,
    disk: &mut Disk,
    expected: &[u64],
) -> Errors {
    let mut errors = Errors::default();
    for (lba, expected) in (0..).zip(expected) {
        let (mut plan, mut bytes) = (ReadPlan::default(), vec![0; BLOCK]);
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        let mut read = Err(Refusal::Busy);
        while read == Err(Refusal::Busy) {
            read = volume.read(range, Some(&mut bytes), &mut plan);
            drive(volume, disk, Nanos::new(1));
        }
        if read == Err(Refusal::MediaError) {
            errors.pages += 1;
            continue;
        }
        read.expect("a read of a block that is there");
        fetch(disk, &plan, &mut bytes);
        let damaged = !plan.complete(&mut bytes).is_empty();
        volume.end_read(&plan);
        errors.blocks += u64::from(damaged);
        let found = read_stamp(&bytes, lba);
        assert!(damaged || found == Some(*expected), "block {lba} reads as operation {found:?}");
    }
    errors
}
