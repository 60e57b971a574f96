//! A backing that fails for a while, and heals (`crate::harness::endurance`).

use onefold_format::volume::VolumeMode;
use onefold_testkit::for_each_seed;
use onefold_units::Rng;
use onefold_units::convert::index64;

use super::setups::random;
use crate::harness::endurance::history;

#[test]
fn errors_that_come_and_go_in_the_modes_of_the_papers() {
    let test = "errors_that_come_and_go_in_the_modes_of_the_papers";
    for_each_seed(("onefold-modes", "modes", test), 30, |seed| {
        let mut rng = Rng::new(seed);
        let mode = [VolumeMode::Sung, VolumeMode::Han][index64(seed % 2)];
        let setup = random(mode, &mut rng);
        history(seed, setup, rng);
    });
}
