//! Log pages that rot: nothing is lost where anything else says the same, and an error where not.

use onefold_ftl::{
    Ftl, FtlConfig, FtlError, Maintenance, OnLogDamage, RecoverError, RemapConfig, RemapOptions,
    RemapRange, RemapScheme,
};
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
        write(&mut ftl, setup, lpn, u64::from(lpn) + 1);
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

fn write(ftl: &mut Ftl<CutMedia>, setup: &Setup, lpn: u32, version: u64) {
    let mut data = setup.unit();
    fill(lpn, version, &mut data);
    ftl.write(AT, Lpn::new(lpn), 1, 0, &data).unwrap();
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
    let Err(RecoverError::DamagedLog(damage)) = recovered else { panic!("{recovered:?}") };
    assert_eq!(damage.pages, 1);
}

/// What a lost page may be about is an error from then on, also after further power cuts; what was written
/// since stays, and writing heals.
#[test]
fn what_a_rotten_log_page_may_be_about_is_given_up_if_asked() {
    let setup = setup();
    let mut ftl = shared(&setup);
    let since: Vec<u32> = (3..6).chain(UNITS + 3..UNITS + 6).collect();
    for lpn in &since {
        write(&mut ftl, &setup, *lpn, 77);
    }
    ftl.trim(AT, Lpn::new(8), 1).unwrap();
    ftl.flush(AT).unwrap();
    let mut media = ftl.into_media();
    rot(&setup, &mut media);
    let but = Some(Lpn::new(1));
    let accepting = OnLogDamage::GiveUp { but };
    let (ftl, report) = Ftl::recover_with(setup.nand(media), setup.config, 0, accepting).unwrap();
    let kept = |lpn: u32| since.contains(&lpn) || [1, 8].contains(&lpn);
    let given_up = u64_from((0..setup.units()).filter(|lpn| !kept(*lpn)).count());
    assert_eq!((report.given_up_units, report.lost_units), (given_up, given_up));
    // The loss is durable: nobody has to accept it again.
    let (mut ftl, report) = setup.recover(ftl.into_media()).unwrap();
    assert_eq!((report.lost_units, report.given_up_units, report.log_damage), (given_up, 0, None));
    ftl.check().unwrap();
    for lpn in 0..setup.units() {
        let found = read(&mut ftl, &setup, lpn);
        let version = found.as_ref().map(|data| version_of(data));
        match lpn {
            1 => assert_eq!(version, Ok(Some(2))),
            8 => assert_eq!(version, Ok(Some(0)), "trimmed since"),
            _ if kept(lpn) => assert_eq!(version, Ok(Some(77)), "unit {lpn}"),
            _ => assert_eq!(found, Err(FtlError::Unreadable { lpn })),
        }
    }
    for lpn in 0..setup.units() {
        write(&mut ftl, &setup, lpn, 78);
    }
    ftl.flush(AT).unwrap();
    let (mut ftl, report) = setup.recover(ftl.into_media()).unwrap();
    assert_eq!(report.lost_units, 0);
    for lpn in 0..setup.units() {
        assert_eq!(version_of(&read(&mut ftl, &setup, lpn).unwrap()), Some(78), "unit {lpn}");
    }
    ftl.check().unwrap();
}

/// A page about an earlier life of its superblock says nothing any more, whatever is in it.
#[test]
fn a_rotten_log_page_about_a_superblock_that_was_erased_since_loses_nothing() {
    let setup = setup();
    let mut ftl = shared(&setup);
    for version in 0..600 {
        write(&mut ftl, &setup, u32::try_from(version % 40).unwrap(), version);
    }
    ftl.flush(AT).unwrap();
    assert_eq!((ftl.stats().checkpoints, ftl.remap_stats().log_collections), (0, 0));
    let mut media = ftl.into_media();
    rot(&setup, &mut media);
    let (mut ftl, report) = setup.recover(media).unwrap();
    assert_eq!((report.damaged_log_pages, report.lost_units), (1, 0));
    for lpn in 0..40 {
        assert_eq!(version_of(&read(&mut ftl, &setup, lpn).unwrap()), Some(u64::from(lpn) + 560));
    }
    ftl.check().unwrap();
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
            write(&mut ftl, &setup, lpn, version);
        }
        ftl.check().unwrap();
    }
}
