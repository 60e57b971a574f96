//! Append-only isolation.

mod cases;
mod metamorphic;
mod model;

use crate::common::model::agrees;
use crate::common::replay::{cells, g2};
use crate::common::streams::{Case, case};
use crate::policies::cflru::Cflru;
use crate::policies::lru::Lru;
use crate::policies::pt_lru::PtLru;
use crate::policies::s3_fifo::S3Fifo;
use crate::policies::sieve::Sieve;
use crate::policies::two_level::TwoLevel;
use model::Aoi;
use proptest::prelude::*;

#[test]
fn g2_counts() {
    for (spec, k, small, large) in [
        ("aoi", 1, [8_288, 18_157, 239_243], [17_793, 36_542, 221_026]),
        ("aoi:trim_reset=off", 1, [7_228, 13_535, 241_213], [18_464, 25_568, 219_544]),
        ("aoi:reaccess=cursor", 1, [8_280, 18_173, 239_239], [17_798, 36_581, 221_007]),
        ("aoi:reaccess=literal", 1, [7_034, 12_221, 241_160], [19_066, 23_202, 215_961]),
        (
            "aoi:reaccess=literal,trim_reset=off",
            1,
            [7_025, 11_972, 241_171],
            [18_843, 22_645, 215_890],
        ),
        ("aoi:channels=4,ways=4", 4, [8_274, 18_511, 238_903], [17_793, 36_849, 220_731]),
    ] {
        for (slots, golden) in [(512, small), (2048, large)] {
            assert_eq!(cells(&g2(spec, slots, k)), golden, "{spec}, {slots} entries, k = {k}");
        }
    }
}

#[test]
fn g2_programs_of_several_entries() {
    for (slots, golden) in [(512, 59_726), (2048, 55_183)] {
        assert_eq!(g2("aoi:channels=4,ways=4", slots, 4).programs, golden);
    }
}

/// Small chunks, so that 40 pages are in several, and areas that are smaller than most requests.
fn spec() -> impl Strategy<Value = String> {
    (
        prop::sample::select(vec!["mapped", "cursor", "literal"]),
        prop::sample::select(vec!["16KiB", "32KiB", "128KiB"]),
        prop::sample::select(vec!["8KiB", "32KiB"]),
        1..3_u32,
        1..3_u32,
        prop::sample::select(vec!["touch", "full", "off"]),
        prop::sample::select(vec!["off", "on"]),
    )
        .prop_map(|(reaccess, chunk, threshold, channels, ways, reset, restart)| {
            format!(
                "aoi:reaccess={reaccess},chunk={chunk},threshold={threshold},channels={channels},\
                 ways={ways},trim_reset={reset},restart={restart}"
            )
        })
}

/// Areas of 1 to 4 flash pages have to fit.
fn with_more_slots(case: Case) -> Case {
    Case { slots: case.slots + 3 * case.k, ..case }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn aoi_equals_the_naive_model(spec in spec(), case in case().prop_map(with_more_slots)) {
        agrees::<Aoi<Lru>>(&spec, &case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn areas_of_other_policies_equal_their_models(
        spec in spec(),
        case in case().prop_map(with_more_slots),
    ) {
        agrees::<Aoi<S3Fifo>>(&format!("{spec},area=s3-fifo"), &case);
        agrees::<Aoi<Sieve>>(&format!("{spec},area=sieve"), &case);
        agrees::<Aoi<TwoLevel>>(&format!("{spec},area=2l"), &case);
        agrees::<Aoi<PtLru>>(&format!("{spec},area=pt-lru"), &case);
        agrees::<Aoi<Cflru>>(&format!("{spec},area=cflru"), &case);
    }
}
