//! Golden images of mode `log`, `golden/NAME.zst` beside this file (`crate::harness::golden`).
//!
//! A volume with a new feature bit or structure needs an image:
//! `ONEFOLD_BLESS=1 cargo test -p onefold-volume --test volume golden` makes those that are missing.

use onefold_format::volume::{
    COMPAT_KNOWN, Codec, INCOMPAT_KNOWN, RO_COMPAT_KNOWN, VolumeLabel, VolumeMode,
};
use onefold_testkit::Golden;
use onefold_volume::Volume;

use crate::harness::golden::{Images, Life, closed, cut};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::zones::ZoneSetup;

const ZONES: ZoneSetup = ZoneSetup { size: 80, capacity: 64, limit: None, conventional: 0 };

const IMAGES: Images = Images {
    folder: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/volume/crash/golden"),
    names: &[
        "log",
        "log-cut",
        "log-thin",
        "log-units",
        "log-packed",
        "log-packed-cut",
        "log-family",
        "zoned",
        "zoned-cut",
        "zoned-conventional",
    ],
    recipe,
};

fn log(logical_blocks: u64) -> Setup {
    Setup::of(64 * 136, logical_blocks, OPTIONS)
}

fn packed(codec: Codec) -> Setup {
    Setup { compress: Some(codec), unit_blocks: 4, ..log(900) }
}

fn zoned(conventional: u32) -> Setup {
    log(900).on_zones(64, ZoneSetup { conventional, ..ZONES })
}

/// With a snapshot and a clone that is written, and power failed.
fn family() -> Golden {
    let setup = log(900);
    let mut life = Life::new(&setup);
    life.use_it();
    life.make("monday", Volume::make_snapshot);
    life.use_it();
    life.make("trial", Volume::make_clone);
    life.write(2, 10, 7);
    life.write(0, 30, 3);
    life.flush();
    life.golden(&setup)
}

/// How each image is made.
fn recipe(name: &str) -> Golden {
    match name {
        "log" => closed(&log(900)),
        "log-cut" => cut(&log(900)),
        "log-thin" => closed(&log(30_000)),
        "log-units" => closed(&Setup { unit_blocks: 4, ..log(900) }),
        "log-packed" => closed(&packed(Codec::Lz4)),
        "log-packed-cut" => cut(&packed(Codec::Zstd)),
        "log-family" => family(),
        "zoned" => closed(&zoned(0)),
        "zoned-cut" => cut(&zoned(0)),
        "zoned-conventional" => closed(&zoned(5)),
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

/// Whoever adds a feature bit adds an image.
#[test]
fn every_feature_has_a_golden_image() {
    IMAGES.assert_all_known();
    let labels = IMAGES.labels();
    let bits =
        |word: fn(&VolumeLabel) -> u64| labels.iter().fold(0, |all, label| all | word(label));
    assert_eq!(bits(|label| label.compat), COMPAT_KNOWN);
    assert_eq!(bits(|label| label.ro_compat), RO_COMPAT_KNOWN);
    assert_eq!(bits(|label| label.incompat), INCOMPAT_KNOWN);
    assert!(labels.iter().all(|label| label.mode == VolumeMode::Log));
    assert!(labels.iter().any(|label| label.devices[0].zone_blocks > 0));
}
