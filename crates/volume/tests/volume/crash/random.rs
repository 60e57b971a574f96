//! Random operations on random volumes, cut off at random.

use onefold_testkit::{chosen_seed, for_each_seed};
use onefold_units::Rng;
use onefold_units::convert::{index64, low32};

use crate::harness::disk::Trimmed;
use crate::harness::ops::work;
use crate::harness::rig::{Op, Order, Rig};
use crate::harness::setup::Setup;

pub(crate) fn random_run(seed: u64, setup: Setup, mut rng: Rng) {
    let mut rig = Rig::new(setup, seed);
    rig.disk.trimmed = [Trimmed::Old, Trimmed::Zeroes, Trimmed::Garbage][index64(rng.below(3))];
    // Some are full when it begins.
    if rng.below(2) == 0 {
        let blocks = rig.oracle.blocks();
        for lba in (0..blocks).step_by(100) {
            assert!(rig.run(Op::Write { lba, blocks: 100.min(blocks - lba), fua: false }));
        }
    }
    for _ in 0..4 {
        if rng.below(8) == 0 {
            rig.order = Order::InTurn;
        }
        let within = [20, 300, 3000][index64(rng.below(3))];
        rig.fuse = Some(1 + rng.below(within));
        work(&mut rig, &mut rng, 400);
        rig = rig
            .cut_and_reopen(low32(rng.below(3)))
            .unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    }
    rig.assert_counts();
    rig = rig.close_and_reopen().unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    work(&mut rig, &mut rng, 200);
    rig.assert_counts();
}

#[test]
fn random_cuts() {
    for_each_seed(("onefold-volume", "volume", "random_cuts"), 100, |seed| {
        let mut rng = Rng::new(seed);
        random_run(seed, Setup::random(&mut rng), rng);
    });
}

#[test]
fn random_cuts_of_thin_volumes() {
    for_each_seed(("onefold-volume", "volume", "random_cuts_of_thin_volumes"), 20, |seed| {
        let mut rng = Rng::new(seed);
        random_run(seed, Setup::random_thin(&mut rng), rng);
    });
}

/// Its clones' maps grow after the data was let in.
#[test]
fn a_thin_volume_of_many_clones_has_room_for_their_maps() {
    let mut rng = Rng::new(194);
    random_run(194, Setup::random_thin(&mut rng), rng);
}

/// Its batches are padded to units of four blocks.
#[test]
fn a_thin_volume_full_of_snapshots_has_room_for_its_checkpoints() {
    let mut rng = Rng::new(69);
    random_run(69, Setup::random_thin(&mut rng), rng);
}

/// A server that is killed leaves what only the cache of the drive has: the next one makes it durable before it builds upon it.
#[test]
fn power_fails_while_a_killed_volume_opens() {
    for_each_seed(
        ("onefold-volume", "volume", "power_fails_while_a_killed_volume_opens"),
        40,
        |seed| {
            let mut rng = Rng::new(seed);
            let setup =
                if seed % 2 == 0 { Setup::random(&mut rng) } else { Setup::random_zoned(&mut rng) };
            let mut rig = Rig::new(setup, seed);
            for _ in 0..3 {
                rig.fuse = Some(1 + rng.below(1000));
                work(&mut rig, &mut rng, 400);
                rig = rig.kill_and_cut().unwrap_or_else(|what| panic!("{what}, {setup:?}"));
            }
            rig.assert_counts();
        },
    );
}

/// Where log segments are short, each one is taken as soon as it is free.
#[test]
fn random_cuts_of_full_volumes() {
    for_each_seed(("onefold-volume", "volume", "random_cuts_of_full_volumes"), 40, |seed| {
        let mut rng = Rng::new(seed);
        let mut setup = Setup::random(&mut rng);
        setup = Setup::of(64 * 134, 5400, setup.options);
        let options = &mut setup.options;
        (options.batch_blocks, options.batches) = (16, 26);
        options.checkpoint_blocks = 400;
        options.clean_below = None;
        options.trim_pause = onefold_units::Nanos::ZERO;
        let mut rig = Rig::new(setup, seed);
        for _ in 0..3 {
            for lba in (0..5400).step_by(60) {
                assert!(rig.run(Op::Write { lba, blocks: 60, fua: false }));
            }
            rig.fuse = Some(1 + rng.below(1500));
            let mut on = true;
            while on {
                let lba = rng.below(5300);
                let flush = rng.below(30) == 0;
                let write = Op::Write { lba, blocks: 1 + rng.below(90), fua: false };
                on = rig.run(if flush { Op::Flush } else { write });
                for _ in 0..rng.below(3) {
                    rig.step();
                }
            }
            rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
    });
}

/// The log goes on for long while a root is written, on a volume with about as many free log segments as a root lists: they
/// become free in any order, and only those that both roots list may be taken.
#[test]
fn roots_that_take_long() {
    for_each_seed(("onefold-volume", "volume", "roots_that_take_long"), 12, |seed| {
        let mut rng = Rng::new(seed);
        let mut setup = Setup::random(&mut rng);
        let logical_blocks = 3000 + rng.below(1200);
        setup = Setup::of(64 * 150, logical_blocks, setup.options);
        (setup.options.batch_blocks, setup.options.batches) = (32, 18);
        setup.options.checkpoint_blocks = 500;
        let mut rig = Rig::new(setup, seed);
        rig.late_roots = true;
        for _ in 0..500 {
            let lba = rng.below(logical_blocks - 90);
            let write = Op::Write { lba, blocks: 1 + rng.below(90), fua: false };
            assert!(rig.run(if rng.below(30) == 0 { Op::Checkpoint } else { write }));
            (0..rng.below(3)).for_each(|_| rig.step());
        }
        rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    });
}

/// No space is lost, whatever happened: the volume can be overwritten for ever.
#[test]
fn random_long_lives() {
    for_each_seed(("onefold-volume", "volume", "random_long_lives"), 100, |seed| {
        // They take long.
        if chosen_seed().is_none() && !seed.is_multiple_of(16) {
            return;
        }
        let mut rng = Rng::new(seed);
        let setup = Setup::random(&mut rng);
        let mut rig = Rig::new(setup, seed);
        for life in 0..5 {
            work(&mut rig, &mut rng, 1500);
            rig.assert_counts();
            rig = if life % 2 == 0 { rig.cut_and_reopen(0) } else { rig.close_and_reopen() }
                .unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
    });
}
