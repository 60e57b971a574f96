//! Volumes on zones: random cuts, and zones that fail.

use onefold_testkit::{chosen_seed, for_each_seed};
use onefold_units::Rng;

use crate::random::{random_run, work};
use crate::rig::Rig;
use crate::setup::Setup;

#[test]
fn random_cuts_on_zones() {
    for_each_seed(("onefold-volume", "crash", "random_cuts_on_zones"), 100, |seed| {
        let mut rng = Rng::new(seed);
        random_run(seed, Setup::random_zoned(&mut rng), rng);
    });
}

/// No zone is lost, whatever happened: the volume can be overwritten for ever.
#[test]
fn random_long_lives_on_zones() {
    for_each_seed(("onefold-volume", "crash", "random_long_lives_on_zones"), 100, |seed| {
        // They take long.
        if chosen_seed().is_none() && !seed.is_multiple_of(16) {
            return;
        }
        let mut rng = Rng::new(seed);
        let setup = Setup::random_zoned(&mut rng);
        let mut rig = Rig::new(setup, seed);
        for life in 0..5 {
            work(&mut rig, &mut rng, 1500);
            rig.assert_counts();
            rig = if life % 2 == 0 { rig.cut_and_reopen(0) } else { rig.close_and_reopen() }
                .unwrap_or_else(|what| panic!("{what}, {setup:?}"));
        }
    });
}
