//! Golden images of the modes, `golden/NAME.zst` beside this file (`crate::harness::golden`).
//!
//! A new mode needs an image: `ONEFOLD_BLESS=1 cargo test -p onefold-modes --test modes golden`
//! makes those that are missing.

use onefold_format::volume::VolumeMode;
use onefold_testkit::Golden;

use super::setups::partitioned;
use crate::harness::golden::{Images, closed, cut};
use crate::harness::setup::{OPTIONS, Setup};

const IMAGES: Images = Images {
    folder: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/modes/crash/golden"),
    names: &["sung", "sung-cut", "han", "han-cut"],
    recipe,
};

fn setup(mode: VolumeMode) -> Setup {
    partitioned(mode, 8600, 900, OPTIONS)
}

fn recipe(name: &str) -> Golden {
    match name {
        "sung" => closed(&setup(VolumeMode::Sung)),
        "sung-cut" => cut(&setup(VolumeMode::Sung)),
        "han" => closed(&setup(VolumeMode::Han)),
        "han-cut" => cut(&setup(VolumeMode::Han)),
        _ => panic!("{name}: nobody knows how it was made"),
    }
}

#[test]
fn golden_images_are_clean_and_hold_what_they_did() {
    IMAGES.assert_clean();
}

/// They can be used on, and what comes of that is clean.
#[test]
fn golden_images_can_be_written() {
    IMAGES.assert_writable();
}

/// Whoever adds a mode adds an image. Those of mode `log` are in its crate.
#[test]
fn every_mode_has_a_golden_image() {
    IMAGES.assert_all_known();
    let labels = IMAGES.labels();
    for mode in (0..=u8::MAX).filter_map(VolumeMode::from_code) {
        let found = labels.iter().any(|label| label.mode == mode);
        assert_eq!(found, mode != VolumeMode::Log, "mode {}", mode.name());
    }
}
