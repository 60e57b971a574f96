//! Conventional zones: every command to them, what they share with the others, and what becomes of blocks that fail.

use onefold_nand::{FaultSpec, NullMedia};
use onefold_ssd::Payload;
use onefold_ssd::zns::{
    Select, Zns, ZnsConfig, ZnsConfigError, ZnsError, ZnsMedia, ZoneAction, ZoneState,
};
use onefold_testkit::for_each_seed;
use onefold_units::{Nanos, Rng, ZoneId};

use super::common::{
    NO_LIMITS, NOW, act, bytes_of, config, fresh, geometry, limits, read, with_conventional, write,
};

/// Two conventional zones, then four sequential ones.
fn namespace() -> ZnsConfig {
    with_conventional(&config(2, 4, NO_LIMITS), 2)
}

const CONVENTIONAL: ZoneId = ZoneId::new(1);

fn code(error: ZnsError) -> (u8, u8) {
    error.status()
}

/// The column of conventional zones of the table of zoned.md section 2: in service, read only, offline.
#[test]
fn every_command_in_every_state_of_a_conventional_zone() {
    let invalid = (0x0, 0x02);
    let states = [
        (ZoneState::NotWritePointer, Ok(()), Ok(vec![0, 7, 8, 0])),
        (ZoneState::ReadOnly, Err((0x1, 0xBA)), Ok(vec![0, 7, 8, 0])),
        (ZoneState::Offline, Err((0x1, 0xBB)), Err((0x1, 0xBB))),
    ];
    for (state, writes, reads) in states {
        let mut zns = fresh(&namespace());
        write(&mut zns, 21, &[7, 8], false).unwrap();
        if state != ZoneState::NotWritePointer {
            zns.fail_zone(CONVENTIONAL, state == ZoneState::Offline).unwrap();
        }
        for action in ZoneAction::ALL {
            assert_eq!(act(&mut zns, 1, action).map_err(code), Err(invalid), "{}", action.name());
        }
        let appended = zns.append(NOW, 16, 1, false, &Payload::Write(&bytes_of(&[5])));
        assert_eq!(appended.map(drop).map_err(code), Err(writes.err().unwrap_or(invalid)));
        assert_eq!(read(&mut zns, 20, 4).map_err(code), reads, "{state:?}");
        assert_eq!(zns.deallocate(NOW, 30, 2).map(drop).map_err(code), writes);
        assert_eq!(write(&mut zns, 22, &[9], false).map_err(code), writes);
        let info = zns.zone(CONVENTIONAL).unwrap();
        assert_eq!((info.state, info.conventional, info.write_pointer), (state, true, None));
        assert_eq!(
            (info.start, info.capacity, info.resets),
            (16, 16, 0),
            "all of it can be written"
        );
        assert_eq!(zns.resources(), (0, 0));
        // The other one goes on, and a power cut changes nothing.
        write(&mut zns, 3, &[4], true).unwrap();
        let config = *zns.config();
        let (mut zns, _) = Zns::recover(config, zns.into_media()).unwrap();
        assert_eq!(zns.zone(CONVENTIONAL).unwrap().state, state);
        assert_eq!(read(&mut zns, 3, 1).unwrap(), [4]);
        zns.check().unwrap();
    }
}

#[test]
fn blocks_are_overwritten_in_place_and_commands_end_with_their_zone() {
    let mut zns = fresh(&namespace());
    write(&mut zns, 9, &[1, 2, 3], false).unwrap();
    write(&mut zns, 10, &[4], false).unwrap();
    write(&mut zns, 0, &[5], false).unwrap();
    assert_eq!(read(&mut zns, 8, 5).unwrap(), [0, 1, 4, 3, 0]);
    zns.deallocate(NOW, 9, 2).unwrap();
    assert_eq!(read(&mut zns, 8, 5).unwrap(), [0, 0, 0, 3, 0]);
    for (lba, blocks) in [(15, 2), (31, 2), (14, 3)] {
        let versions = vec![9; blocks];
        let boundary = (0x1, 0xB8);
        assert_eq!(write(&mut zns, lba, &versions, false).map_err(code), Err(boundary), "{lba}");
        let blocks = u32::try_from(blocks).unwrap();
        assert_eq!(read(&mut zns, lba, blocks).map_err(code), Err(boundary));
        assert_eq!(zns.deallocate(NOW, lba, blocks).map(drop).map_err(code), Err(boundary));
    }
    let other = zns.deallocate(NOW, 32, 1).map(drop).map_err(code);
    assert_eq!(other, Err((0x0, 0x02)), "a sequential zone is reset");
    let mut zns = fresh(&ZnsConfig { read_across: true, ..namespace() });
    write(&mut zns, 14, &[1, 2], false).unwrap();
    write(&mut zns, 31, &[3], false).unwrap();
    write(&mut zns, 32, &[4, 5], false).unwrap();
    let found = read(&mut zns, 14, 20).unwrap();
    assert_eq!((&found[..3], &found[16..]), (&[1, 2, 0][..], &[0, 3, 4, 5][..]));
    zns.fail_zone(CONVENTIONAL, true).unwrap();
    assert_eq!(read(&mut zns, 14, 20).map_err(code), Err((0x1, 0xBB)));
}

/// Actions on all zones and the limits of open and active ones do not know of conventional zones.
#[test]
fn what_is_said_of_all_zones_leaves_conventional_ones_alone() {
    use ZoneState::{NotWritePointer, ReadOnly};

    for action in ZoneAction::ALL {
        let mut zns = fresh(&with_conventional(&config(1, 4, limits(1, 2)), 3));
        write(&mut zns, 0, &[1; 16], false).unwrap();
        write(&mut zns, 17, &[2], false).unwrap();
        write(&mut zns, 48, &[3], false).unwrap();
        zns.fail_zone(ZoneId::new(2), false).unwrap();
        assert_eq!(zns.resources(), (1, 1));
        zns.manage(NOW, Select::All, action).unwrap();
        let states: Vec<_> =
            (0..3).map(|zone| zns.zone(ZoneId::new(zone)).unwrap().state).collect();
        assert_eq!(states, [NotWritePointer, NotWritePointer, ReadOnly], "{}", action.name());
        assert_eq!(read(&mut zns, 17, 1).unwrap(), [2]);
        let none = zns.report(ZoneId::new(0), Some(NotWritePointer), 9, false).unwrap();
        assert_eq!((none.matching, none.zones[1].start), (2, 16));
        assert_eq!(zns.report(ZoneId::new(0), None, 99, true).unwrap().matching, 7);
    }
}

const TRANSFER: u64 = 10_240;
const PROGRAM: u64 = 200_000;

fn timed() -> Zns<NullMedia> {
    Zns::new(with_conventional(&config(1, 4, NO_LIMITS), 2), ZnsMedia::NULL).unwrap()
}

fn write_at(zns: &mut Zns<NullMedia>, now: u64, lba: u64, blocks: u32) -> u64 {
    zns.write(Nanos::new(now), lba, blocks, false, &Payload::None).unwrap().at.get()
}

/// Both kinds of zones program the same two dies, so they wait for each other.
#[test]
fn conventional_and_sequential_zones_share_their_dies() {
    let one = TRANSFER + PROGRAM;
    assert_eq!(write_at(&mut timed(), 0, 0, 2), one, "a die each");
    let mut zns = timed();
    assert_eq!(write_at(&mut zns, 0, 32, 2), one);
    assert_eq!(write_at(&mut zns, 0, 4, 2), 2 * one, "behind the sequential zone");
    assert_eq!(write_at(&mut zns, 0, 34, 2), 3 * one, "behind the conventional one");
    let read = zns.read(Nanos::new(10 * one), 4, 1, &mut []).unwrap();
    assert_eq!(read.at.get(), 10 * one + 40_000 + TRANSFER);
    let (stats, host) = (zns.stats(), *zns.host_stats());
    assert_eq!((stats.programs.total(), stats.conventional.programs.total()), (6, 2));
    assert_eq!((host.write_pages, host.read_pages), (6, 1));
    zns.check().unwrap();
}

/// Overwriting collects garbage, on blocks of the conventional zones alone: the erases of the others stay.
#[test]
fn overwriting_collects_garbage_beside_the_sequential_zones() {
    let mut zns = fresh(&with_conventional(&config(1, 4, NO_LIMITS), 2));
    write(&mut zns, 32, &[6; 12], false).unwrap();
    let mut rng = Rng::fork(5, 44);
    let mut held = [0; 32];
    for version in 1..3000 {
        // Half of the blocks are written seldom, so that victims hold some of them.
        let at = if rng.below(16) == 0 { rng.below(32) } else { rng.below(16) };
        write(&mut zns, at, &[version], false).unwrap();
        held[usize::try_from(at).unwrap()] = version;
    }
    let stats = zns.stats();
    let copied = stats.programs.of(onefold_units::Cause::Gc);
    assert!(
        copied > 0 && stats.conventional.erases > 20,
        "{copied} copied, {} erased",
        stats.conventional.erases
    );
    assert_eq!(stats.erases, stats.conventional.erases);
    assert_eq!(zns.wear().max(), Some(0));
    for zone in [0, 1_u64] {
        let from = usize::try_from(zone * 16).unwrap();
        assert_eq!(read(&mut zns, zone * 16, 16).unwrap(), held[from..from + 16]);
    }
    assert_eq!(read(&mut zns, 32, 12).unwrap(), [6; 12]);
    zns.check().unwrap();
}

/// Programs fail until no block is left: then a write says so, the zones can only be read, and nothing that was acknowledged is lost.
#[test]
fn conventional_zones_outlive_blocks_whose_programs_fail() {
    let mut read_only = 0;
    let name = "conventional_zones_outlive_blocks_whose_programs_fail";
    for_each_seed(("onefold-ssd", "ssd", name), 40, |seed| {
        let mut config = with_conventional(&config(1, 4, NO_LIMITS), 2);
        config.conventional.as_mut().unwrap().faults =
            FaultSpec { program: 0.03, seed, ..FaultSpec::default() };
        let mut zns = fresh(&config);
        let (mut held, mut rng) = ([0; 32], Rng::fork(seed, 45));
        for version in 1..800 {
            let at = rng.below(32);
            let block = usize::try_from(at).unwrap();
            match write(&mut zns, at, &[version], false) {
                Ok(()) => held[block] = version,
                Err(ZnsError::WriteFault { zone }) => {
                    assert_eq!(zns.zone(zone).unwrap().state, ZoneState::ReadOnly);
                    held[block] = read(&mut zns, at, 1).unwrap()[0];
                }
                Err(error) => assert!(matches!(error, ZnsError::ZoneIsReadOnly { .. }), "{error}"),
            }
            assert_eq!(read(&mut zns, at, 1).unwrap(), [held[block]]);
        }
        let all = |zns: &mut Zns<_>| -> Vec<u64> {
            (0..2).flat_map(|zone| read(zns, zone * 16, 16).unwrap()).collect()
        };
        assert_eq!(all(&mut zns), held);
        // The sequential zones have blocks of their own.
        write(&mut zns, 32, &[3; 12], false).unwrap();
        let states = |zns: &Zns<_>| [0, 1].map(|zone| zns.zone(ZoneId::new(zone)).unwrap().state);
        let states = states(&zns);
        assert_eq!(states[0], states[1], "they share what is left");
        read_only += u32::from(states[0] == ZoneState::ReadOnly);
    });
    if onefold_testkit::chosen_seed().is_none() {
        assert!(read_only > 0);
    }
}

#[test]
fn what_cannot_be_read_is_an_error_of_its_block() {
    let mut zns = fresh(&namespace());
    write(&mut zns, 4, &[1, 2, 3, 4], false).unwrap();
    zns.flush(NOW).unwrap();
    let device = zns.conventional_mut().unwrap();
    let medium = device.ftl_mut().nand_mut().media_mut().inner_mut();
    let geometry = geometry(2, 14);
    let damaged = (0..geometry.total_slots())
        .filter(|slot| medium.corrupt(onefold_units::Ppn::new(u32::try_from(*slot).unwrap()), 9))
        .count();
    assert!(damaged >= 4);
    let error = read(&mut zns, 5, 1).unwrap_err();
    assert_eq!(error, ZnsError::UnrecoveredRead { lba: 5 });
    assert_eq!(read(&mut zns, 9, 1).unwrap(), [0]);
}

#[test]
fn conventional_zones_that_do_not_fit_are_refused() {
    let refused = |change: fn(&mut onefold_ssd::SsdConfig)| {
        let mut config = namespace();
        change(config.conventional.as_mut().unwrap());
        Zns::new(config, ZnsMedia::NULL).err().unwrap()
    };
    let wrong = |units, blocks| ZnsConfigError::Conventional { units, blocks, zone: 16, all: 20 };
    assert_eq!(refused(|device| device.ftl.logical_units = 40), wrong(40, 14));
    let none = refused(|device| device.ftl.logical_units = 0);
    assert!(matches!(none, ZnsConfigError::Mapped(_)), "{none}");
    assert_eq!(refused(|device| device.geometry = geometry(4, 14)), wrong(32, 14));
    assert_eq!(refused(|device| device.geometry = geometry(2, 20)), wrong(32, 20));
    let space = refused(|device| device.ftl.logical_units = 16 * 40);
    assert!(matches!(space, ZnsConfigError::Mapped(_)), "{space}");
    let other = ZnsConfig { conventional: None, ..namespace() };
    let mut zns = fresh(&namespace());
    write(&mut zns, 32, &[1], false).unwrap();
    let media = ZnsMedia { conventional: None, ..zns.into_media() };
    let without = ZnsConfig { geometry: geometry(2, 6), ..other };
    let error = Zns::recover(without, media).err().unwrap();
    assert!(matches!(error, onefold_ssd::zns::ZnsRecoverError::Record { .. }), "{error}");
}
