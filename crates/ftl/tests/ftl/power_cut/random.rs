//! Random operations on random devices, cut off at random.

use onefold_ftl::FtlError;
use onefold_nand::{FaultSpec, MediaError};
use onefold_testkit::{CutMedia, Power, chosen_seed, for_each_seed};
use onefold_units::Rng;
use onefold_units::convert::low32;

use super::rig::{CUTS, Rig};
use crate::common::{Op, Setup, pick, plain_config, spec};

/// Returns how many strided entries the log took.
fn random_run(seed: u64, power: Power) -> u64 {
    let mut rng = Rng::new(seed);
    let setup = Setup::random(&mut rng);
    let mut rig = Rig::new(&setup, power, seed);
    let trims = *pick(&mut rng, &[10, 10, 10, 50]);
    let mut strided = 0;
    // Some devices are full when it begins.
    if rng.below(3) > 0 {
        rig.fill();
        assert!(rig.run(Op::Flush));
    }
    for _ in 0..4 {
        let within = *pick(&mut rng, &[4, 40, 400]);
        rig.arm(rng.below(within), *pick(&mut rng, &CUTS));
        for _ in 0..600 {
            if !rig.run(Op::random(&mut rng, &setup, trims)) {
                break;
            }
        }
        strided += rig.ftl.remap_stats().strided_entries;
        let again = low32(rng.below(3));
        rig = rig.recover(&mut rng, again);
    }
    if rng.below(4) == 0 {
        rig.fill_and_overwrite(&mut rng);
    }
    strided
}

/// Random runs of that test, with strided entries among them.
fn random_runs(test: &'static str, seeds: u64, power: Power) {
    let mut strided = 0;
    for_each_seed(("onefold-ftl", "ftl", test), seeds, |seed| {
        strided += random_run(seed, power);
    });
    println!("{strided} strided entries");
    assert!(strided > 0 || chosen_seed().is_some(), "no run was strided");
}

#[test]
fn random_device_cuts() {
    random_runs("random_device_cuts", 10_000, Power::Device);
}

#[test]
fn random_host_cuts() {
    random_runs("random_host_cuts", 4_000, Power::Host);
}

/// Flash that fails: an error or the right content, never another one.
#[test]
fn random_faults_and_cuts() {
    for_each_seed(("onefold-ftl", "ftl", "random_faults_and_cuts"), 2_000, |seed| {
        let mut rng = Rng::new(seed);
        let mut setup = Setup::random(&mut rng);
        setup.faults = FaultSpec {
            program: *pick(&mut rng, &[0.0, 0.002, 0.01]),
            erase: *pick(&mut rng, &[0.0, 0.01]),
            read: *pick(&mut rng, &[0.0, 0.02]),
            bit_rot: *pick(&mut rng, &[0.0, 0.02]),
            slow: *pick(&mut rng, &[0.0, 0.05]),
            slow_by: 10,
            die: 0,
            bad_superblocks: 0,
            seed,
        };
        setup.config.relocate = rng.below(2) == 0;
        setup.config.endurance = *pick(&mut rng, &[0, 30]);
        let mut rig = Rig::new(&setup, Power::Device, seed);
        for _ in 0..4 {
            rig.arm(rng.below(200), *pick(&mut rng, &CUTS));
            for _ in 0..400 {
                match rig.try_run(Op::random(&mut rng, &setup, 10)) {
                    Ok(()) => {}
                    Err(FtlError::Media(MediaError::PowerLost)) => break,
                    // The end of its life, which has to come from worn superblocks.
                    Err(FtlError::NoSpace) => {
                        let FaultSpec { program, erase, read, bit_rot, .. } = setup.faults;
                        // A failed read may retire its superblock.
                        let retires = setup.config.relocate && read + bit_rot > 0.0;
                        let worn = setup.config.endurance > 0 || retires;
                        let wears = program > 0.0 || erase > 0.0 || worn;
                        assert!(wears, "no space on a healthy device: {setup:?}");
                        return;
                    }
                    Err(error) => panic!("{error} with {setup:?}"),
                }
            }
            match rig.try_recover(&mut rng, 0) {
                Some(recovered) => rig = recovered,
                None => return,
            }
        }
    });
}

/// Superblocks that are bad from the factory were not in the wear table: after a recovery they were
/// used like any other.
#[test]
fn bad_superblocks_stay_bad() {
    let mut setup = Setup::new(spec(20, 8, 4096, 4096), plain_config(), 0.5).unwrap();
    setup.faults.bad_superblocks = 3;
    let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), Power::Device, 1);
    let ftl = setup.build(media);
    assert_eq!(ftl.space().bad_superblocks, 3);
    let (ftl, _) = setup.recover(ftl.into_media()).unwrap();
    assert_eq!(ftl.space().bad_superblocks, 3);
}
