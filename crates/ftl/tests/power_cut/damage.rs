//! Log pages that rot: nothing is lost where anything else says the same, and an error where not.

use onefold_ftl::{Ftl, FtlConfig, Maintenance, RecoverError, RemapConfig, RemapOptions};
use onefold_ftl::{RemapRange, RemapScheme};
use onefold_nand::Media;
use onefold_testkit::{CutMedia, Power, fill, version_of};
use onefold_units::convert::u64_from;
use onefold_units::{Lpn, Nanos, Ppn, SuperblockId};

use crate::common::{AT, Setup, plain_config, read, spec};

const UNITS: u32 = 12;

fn setup() -> Setup {
    let remap = RemapConfig {
        scheme: RemapScheme::Lh,
        log_bytes: 8 * 128,
        segment_bytes: 128,
        ..RemapConfig::OFF
    };
    Setup::new(spec(18, 8, 4096, 4096), FtlConfig { remap, ..plain_config() }, 0.9)
        .expect("a device that fits")
}

/// Units from 12 on share the slots of the first twelve, each by an entry of its own, which is on flash.
fn shared(setup: &Setup) -> Ftl<CutMedia> {
    let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), Power::Device, 1);
    let mut ftl = setup.build(media);
    for lpn in 0..UNITS {
        let mut data = setup.unit();
        fill(lpn, u64::from(lpn) + 1, &mut data);
        ftl.write(AT, Lpn::new(lpn), 1, 0, &data).unwrap();
    }
    for n in 0..UNITS {
        let (dst, src) = (Lpn::new(UNITS + n), Lpn::new(UNITS - 1 - n));
        ftl.remap(AT, &[RemapRange { dst, src, len: 1 }], RemapOptions::default()).unwrap();
    }
    while ftl.remap_stats().destages < 2 {
        ftl.maintain(Nanos::ZERO, Maintenance::DestageLog).unwrap();
    }
    ftl.flush(AT).unwrap();
    ftl
}

/// Damages the first log page.
fn rot(setup: &Setup, media: &mut CutMedia) {
    let slots = setup.geometry.slots();
    for superblock in (0..setup.geometry.superblocks()).map(SuperblockId::new) {
        // The kind of a header is its seventh byte: 3 is a superblock of the log.
        if media.read_head(superblock).unwrap()[6] != 3 {
            continue;
        }
        for slot in 0..slots {
            let ppn = setup.geometry.ppn(superblock, slot);
            if media.inner_mut().corrupt(Ppn::new(ppn.raw()), 50) {
                return;
            }
        }
    }
    panic!("there is no log page");
}

#[test]
fn a_rotten_log_page_that_nothing_replaces_is_an_error() {
    let setup = setup();
    let mut media = shared(&setup).into_media();
    rot(&setup, &mut media);
    let recovered = setup.recover(media).map(|_| ());
    assert!(matches!(recovered, Err(RecoverError::DamagedLog { .. })), "{recovered:?}");
}

#[test]
fn a_rotten_log_page_before_the_checkpoint_loses_nothing() {
    let setup = setup();
    let mut ftl = shared(&setup);
    ftl.checkpoint_now(Nanos::ZERO).unwrap();
    ftl.flush(AT).unwrap();
    let mut media = ftl.into_media();
    rot(&setup, &mut media);
    let (mut ftl, report) = setup.recover(media).unwrap();
    assert_eq!((report.damaged_log_pages, report.lost_units), (1, 0));
    ftl.check().unwrap();
    // Also after collection has moved everything, which needs to know who shares what.
    for round in 0..2 {
        for n in 0..UNITS {
            for (lpn, origin) in [(n, n), (UNITS + n, UNITS - 1 - n)] {
                let data = read(&mut ftl, &setup, lpn).unwrap();
                assert_eq!(version_of(&data), Some(u64::from(origin) + 1), "unit {lpn}, {round}");
            }
        }
        for version in 0..u64_from(400) {
            let lpn = 2 * UNITS + u32::try_from(version % 8).unwrap();
            let mut data = setup.unit();
            fill(lpn, version, &mut data);
            ftl.write(AT, Lpn::new(lpn), 1, 0, &data).unwrap();
        }
        ftl.check().unwrap();
    }
}
