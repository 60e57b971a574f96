//! Every cut of every short history.

use onefold_format::volume::Codec;
use onefold_testkit::budget;
use onefold_units::{Nanos, Rng};
use onefold_volume::IoKind;

use crate::harness::disk::Fate;
use crate::harness::histories::{BLOCKS, OPS, begin, every_cut};
use crate::harness::rig::{Op, Order};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::states::{Effort, Fault, States};
use crate::harness::zones::ZoneSetup;

fn setup() -> Setup {
    Setup::of(64 * 134, BLOCKS, OPTIONS)
}

/// As few zones are active as can be.
fn on_zones() -> Setup {
    let zones = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };
    setup().on_zones(134, zones)
}

#[test]
fn every_cut_of_every_short_history() {
    every_cut(setup());
}

/// A batch that failed and was written again counts once or not at all, however often openings are
/// cut.
#[test]
fn every_cut_of_openings_after_a_failed_write() {
    let setup = setup();
    let effort = Effort { lives: 1, spoiled: u64::MAX };
    let mut states = States::new(begin(setup, false), &OPS[..10], effort);
    for _ in 0..budget(300).div_ceil(30) {
        states.failing_history(&[OPS[1], Op::Flush, OPS[0]], 1);
    }
    assert!(states.distinct(Fault::Opening) > 0);
}

/// A zone that could not be finished may still be active, so it is finished again before another
/// one is begun.
#[test]
fn no_zone_too_many_is_active_after_one_could_not_be_finished() {
    let begin = begin(on_zones(), false);
    let effort = Effort { lives: u64::MAX, spoiled: u64::MAX };
    let mut states = States::new(begin, &OPS[..10], effort);
    let mut finishes = 0;
    for (request, seed) in (4..14).flat_map(|request| (1..30).map(move |seed| (request, seed))) {
        states.rng = Rng::new(seed);
        let mut rig = states.rig();
        rig.order = Order::InTurn;
        rig.fail = Some((request, Fate::Torn));
        for op in [Op::Write { lba: 2, blocks: 2, fua: true }, OPS[10], Op::Clean] {
            assert!(rig.run(op));
        }
        while !rig.is_settled() {
            rig.step();
        }
        finishes += u32::from(rig.failed.is_some_and(|io| io.kind == IoKind::Finish));
    }
    assert!(finishes > 0);
}

/// The same with blocks that are compressed.
#[test]
fn every_cut_of_every_short_history_packed() {
    every_cut(Setup { compress: Some(Codec::Lz4), ..setup() });
}

/// Those in which a log segment is cleaned.
#[test]
fn every_cut_of_every_short_history_cleaned_by_remap() {
    every_cut(setup().remapped());
}

/// Those in which something is flushed, where a marker follows each flush.
#[test]
fn every_cut_of_every_short_history_with_markers() {
    let mut setup = setup();
    setup.options.marker_age = Nanos::ZERO;
    every_cut(setup);
}

/// The same on zones.
#[test]
fn every_cut_of_every_short_history_on_zones() {
    every_cut(on_zones());
}
