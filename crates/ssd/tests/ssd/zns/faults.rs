//! Programs, erases and reads fail, and blocks are bad from the factory.

use onefold_nand::FaultSpec;
use onefold_ssd::zns::{Zns, ZnsConfig, ZnsError, ZnsRecoverError, ZoneAction, ZoneState};
use onefold_testkit::for_each_seed;
use onefold_units::{Rng, ZoneId};

use super::common::{NO_LIMITS, NOW, act, config, fresh, memory, read, write};

fn faulty(faults: FaultSpec) -> ZnsConfig {
    let mut config = config(2, 4, NO_LIMITS);
    config.geometry = super::common::geometry(2, 8);
    ZnsConfig { faults, ..config }
}

/// Zones move away from blocks whose programs fail, with all they hold, until there are none to move to; then they can
/// only be read. Nothing that was acknowledged is lost.
#[test]
fn zones_outlive_blocks_whose_programs_fail() {
    let mut read_only = 0;
    let mut moves = 0;
    for_each_seed(("onefold-ssd", "ssd", "zones_outlive_blocks_whose_programs_fail"), 60, |seed| {
        let config = faulty(FaultSpec { program: 0.05, seed, ..FaultSpec::default() });
        let mut zns = fresh(&config);
        let mut held: Vec<Vec<u64>> = vec![Vec::new(); 4];
        let mut rng = Rng::fork(seed, 43);
        let mut version = 0;
        for _ in 0..60 {
            let zone = usize::try_from(rng.below(4)).unwrap();
            let start = u64::try_from(zone).unwrap() * 16;
            let count = 1 + rng.below(3);
            let versions: Vec<u64> = (version + 1..=version + count).collect();
            version += count;
            let at = start + u64::try_from(held[zone].len()).unwrap();
            match write(&mut zns, at, &versions, false) {
                Ok(()) => held[zone].extend(versions),
                Err(ZnsError::WriteFault { .. }) => {
                    let info = zns.zone(ZoneId::new(u32::try_from(zone).unwrap())).unwrap();
                    assert_eq!(info.state, ZoneState::ReadOnly);
                    // A part of the write may have been done; reads tell.
                    let now = read(&mut zns, start, 12).unwrap();
                    held[zone] = now.into_iter().take_while(|version| *version != 0).collect();
                }
                Err(ZnsError::ZoneIsFull { .. } | ZnsError::ZoneBoundary { .. }) => {
                    if act(&mut zns, u32::try_from(zone).unwrap(), ZoneAction::Reset).is_ok() {
                        held[zone].clear();
                    }
                }
                Err(error) => assert!(matches!(error, ZnsError::ZoneIsReadOnly { .. }), "{error}"),
            }
            for (zone, held) in held.iter().enumerate() {
                let start = u64::try_from(zone).unwrap() * 16;
                let mut expected = held.clone();
                expected.resize(12, 0);
                assert_eq!(read(&mut zns, start, 12).unwrap(), expected);
            }
            zns.check().unwrap();
        }
        moves += zns.stats().moves;
        // What moved is found again.
        let states = |zns: &Zns<_>| -> Vec<_> {
            (0..4).map(|zone| zns.zone(ZoneId::new(zone)).unwrap().state).collect()
        };
        let before = states(&zns);
        read_only += before.iter().filter(|state| **state == ZoneState::ReadOnly).count();
        let (mut zns, _) = Zns::recover(config, zns.into_media()).unwrap();
        for (zone, held) in held.iter().enumerate() {
            let start = u64::try_from(zone).unwrap() * 16;
            let mut expected = held.clone();
            expected.resize(12, 0);
            assert_eq!(read(&mut zns, start, 12).unwrap(), expected);
            assert_eq!(
                states(&zns)[zone] == ZoneState::ReadOnly,
                before[zone] == ZoneState::ReadOnly
            );
        }
    });
    if onefold_testkit::chosen_seed().is_none() {
        assert!(read_only > 0 && moves > 0, "{read_only} zones read only, {moves} moved");
    }
}

/// Every erase fails: each reset costs a set, and when no spare ones are left, the zone. The others go on.
#[test]
fn zones_go_offline_when_blocks_run_out() {
    let mut zns = fresh(&faulty(FaultSpec { erase: 1.0, ..FaultSpec::default() }));
    let spare = zns.layout().sets() - 4;
    for round in 0..spare {
        write(&mut zns, 0, &[1], false).unwrap();
        act(&mut zns, 0, ZoneAction::Reset).unwrap();
        assert_eq!(zns.bad_sets(), round + 1);
    }
    write(&mut zns, 0, &[1], false).unwrap();
    write(&mut zns, 16, &[2], false).unwrap();
    assert_eq!(act(&mut zns, 0, ZoneAction::Reset).unwrap_err().status(), (1, 0xBB));
    assert_eq!(zns.zone(ZoneId::new(0)).unwrap().state, ZoneState::Offline);
    for zone in [2, 3] {
        write(&mut zns, zone * 16, &[3; 12], false).unwrap();
    }
    assert_eq!(read(&mut zns, 16, 2).unwrap(), [2, 0]);
    let config = *zns.config();
    let (mut zns, _) = Zns::recover(config, zns.into_media()).unwrap();
    assert_eq!(zns.zone(ZoneId::new(0)).unwrap().state, ZoneState::Offline);
    assert_eq!(read(&mut zns, 48, 1).unwrap(), [3]);
    zns.check().unwrap();
}

#[test]
fn factory_bad_blocks_cost_spare_sets_and_then_zones() {
    let offline = |bad| {
        let zns = fresh(&faulty(FaultSpec { bad_superblocks: bad, ..FaultSpec::default() }));
        let report = zns.report(ZoneId::new(0), Some(ZoneState::Offline), 9, false).unwrap();
        (zns.bad_sets(), report.matching)
    };
    assert_eq!(offline(0), (0, 0));
    assert_eq!(offline(2), (2, 0));
    assert_eq!(offline(8), (8, 4), "8 sets of two superblocks, one of them bad each");
}

#[test]
fn what_cannot_be_read_is_an_error_and_stays_one() {
    let mut zns = fresh(&config(2, 4, NO_LIMITS));
    write(&mut zns, 0, &[1, 2, 3, 4, 5], false).unwrap();
    zns.flush(NOW).unwrap();
    let slot = onefold_units::Ppn::new(0);
    assert!(zns.nand_mut().media_mut().inner_mut().corrupt(slot, 77));
    assert_eq!(read(&mut zns, 0, 1).unwrap_err().status(), (2, 0x81));
    assert_eq!(read(&mut zns, 2, 3).unwrap(), [3, 4, 5]);
    assert_eq!(zns.stats().media_failures, 1);
    // What was flushed is not taken for a write that was cut.
    let config = *zns.config();
    let (mut zns, report) = Zns::recover(config, zns.into_media()).unwrap();
    assert_eq!((report.closed, report.moved), (1, 0));
    assert_eq!(zns.zone(ZoneId::new(0)).unwrap().write_pointer, Some(5));
    assert_eq!(read(&mut zns, 0, 1).unwrap_err().status(), (2, 0x81));
}

#[test]
fn a_medium_of_another_device_is_refused() {
    let mut zns = fresh(&config(2, 4, NO_LIMITS));
    write(&mut zns, 0, &[1], false).unwrap();
    let other = ZnsConfig { zone_dies: 1, ..*zns.config() };
    let refused = Zns::recover(other, zns.into_media()).err().unwrap();
    assert!(matches!(refused, ZnsRecoverError::Record { .. }), "{refused}");
    let config = config(2, 4, NO_LIMITS);
    assert!(Zns::recover(config, memory(&config)).is_ok());
    let nothing = Zns::recover(config, onefold_nand::NullMedia.into()).err().unwrap();
    assert_eq!(nothing, ZnsRecoverError::NoBytes);
}
