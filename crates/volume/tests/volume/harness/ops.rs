//! What the host does, at random.

use onefold_units::Rng;
use onefold_volume::{JournalStreams, MemberId, Resize};

use super::rig::{Op, Rig};
use super::setup::pick;

/// Of what the host uses; what is behind a smaller end is unmapped.
pub(crate) const fn resize_to(blocks: u64) -> Resize {
    Resize::Logical { member: MemberId::DEVICE, blocks, discard: false }
}

/// Any ranges are a journal, whatever the host writes there.
pub(crate) fn random_journal(rng: &mut Rng, blocks: u64) -> Op {
    if rng.below(4) == 0 {
        return Op::Journal { first: 0, hot: 0, blocks: 0 };
    }
    let first = rng.below(blocks);
    let hot = rng.below((blocks - first).min(300) + 1);
    let most = (blocks - first - hot).min(pick(rng, &[100, 1000, 7000]));
    Op::Journal { first, hot, blocks: rng.below(most + 1) }
}

/// Where the host writes.
pub(crate) fn random_op(rng: &mut Rng, blocks: u64) -> Op {
    // Half of it goes to the first blocks.
    let within = if rng.below(2) == 0 { blocks } else { blocks.min(300) };
    let lba = rng.below(within);
    let most = |most: u64| most.min(blocks - lba);
    match rng.below(60) {
        0 => Op::Trim { lba, blocks: most(3000) },
        1..4 => Op::Trim { lba, blocks: most(1 + rng.below(30)) },
        4..10 => Op::Read { lba, blocks: most(1 + rng.below(60)) },
        10..13 => Op::Flush,
        13 => Op::Checkpoint,
        14 => Op::Clean,
        15..35 => Op::Write { lba, blocks: most(1), fua: rng.below(20) == 0 },
        _ => Op::Write { lba, blocks: most(1 + rng.below(40)), fua: rng.below(40) == 0 },
    }
}

/// Uses a volume at random, with all that its mode has.
pub(crate) fn work(rig: &mut Rig, rng: &mut Rng, ops: u64) {
    let journals = rig.setup.options.journal != JournalStreams::Off;
    for _ in 0..ops {
        let op = match rng.below(150) {
            0 | 1 => Op::Snapshot,
            2 => Op::Delete,
            3..8 if journals => random_journal(rng, rig.oracle.blocks()),
            _ => random_op(rng, rig.oracle.blocks()),
        };
        if !rig.run(op) {
            return;
        }
        for _ in 0..rng.below(4) {
            rig.step();
        }
    }
}
