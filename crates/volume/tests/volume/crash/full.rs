//! Volumes that are as full as they get: whatever is refused for want of space works again once there is some.

use onefold_testkit::{chosen_seed, for_each_seed};
use onefold_units::Rng;
use onefold_units::convert::index64;
use onefold_volume::Refusal;

use crate::harness::ops::random_op;
use crate::harness::rig::{Op, Rig};
use crate::harness::setup::Setup;

fn members(rig: &Rig) -> usize {
    rig.volume.as_log().expect("a volume of mode log").members().count()
}

/// Small writes where each takes whole indirection units.
fn small_op(rng: &mut Rng, blocks: u64) -> Op {
    let lba = rng.below(blocks);
    let most = |most: u64| most.min(blocks - lba);
    match rng.below(40) {
        0 => Op::Snapshot,
        1 => Op::Delete,
        2 => Op::Trim { lba, blocks: most(2000) },
        3..6 => Op::Trim { lba, blocks: most(1 + rng.below(8)) },
        6 => Op::Flush,
        7..12 => random_op(rng, blocks),
        _ => Op::Write { lba, blocks: most(1 + rng.below(4)), fua: rng.below(4) == 0 },
    }
}

/// Overwrites what a snapshot holds until the log is full. `false` if it never was.
fn fill(rig: &mut Rig, rng: &mut Rng) -> bool {
    assert!(rig.run(Op::Snapshot));
    let blocks = rig.oracle.blocks();
    (0..4 * blocks / 8).any(|_| {
        let lba = rng.below(blocks - 8);
        rig.try_run(Op::Write { lba, blocks: 8, fua: false }) == Err(Refusal::NoSpace)
    })
}

/// A full volume refuses writes with "no space" and takes all else; it never keeps anybody waiting for ever. When its snapshots
/// are deleted, or blocks are trimmed, it takes writes again.
#[test]
fn full_volumes_go_on() {
    let mut full = 0;
    for_each_seed(("onefold-volume", "volume", "full_volumes_go_on"), 24, |seed| {
        let mut rng = Rng::new(seed);
        let unit = [2, 4, 4, 8][index64(rng.below(4))];
        let mut setup = Setup { unit_blocks: unit, ..Setup::random(&mut rng) };
        setup.options.batch_blocks = setup.options.batch_blocks.max(2 * unit);
        setup.options.clean_move = onefold_volume::CleanMove::Copy;
        // Units of eight blocks leave room for little more.
        setup.logical_blocks = setup.logical_blocks.min(5000);
        let mut rig = Rig::new(setup, seed);
        for _ in 0..3 {
            for _ in 0..200 {
                assert!(rig.run(small_op(&mut rng, rig.oracle.blocks())));
                (0..rng.below(3)).for_each(|_| rig.step());
            }
            full += u64::from(fill(&mut rig, &mut rng));
            // Nothing else needs space that is not there.
            for _ in 0..60 {
                let op = small_op(&mut rng, rig.oracle.blocks());
                let taken = rig.try_run(op);
                let writes = matches!(op, Op::Write { .. });
                assert!(
                    taken == Ok(true) || writes && taken == Err(Refusal::NoSpace),
                    "{op:?}: {taken:?}"
                );
            }
            while members(&rig) > 1 {
                assert!(rig.run(Op::Delete) && rig.settle());
            }
            // Without snapshots nothing is refused.
            for _ in 0..200 {
                let lba = rng.below(rig.oracle.blocks() - 8);
                assert!(rig.run(Op::Write { lba, blocks: 8, fua: false }));
            }
            rig.assert_counts();
            rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
    });
    assert!(chosen_seed().is_some() || full > 0, "no volume was ever full");
}
