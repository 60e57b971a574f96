//! Every command in every state (zoned.md section 2, Z1), and the limits of open and active zones.

use onefold_ssd::Payload;
use onefold_ssd::zns::{Select, Zns, ZnsError, ZoneAction, ZoneState};
use onefold_testkit::CutMedia;
use onefold_units::ZoneId;

use super::common::{NO_LIMITS, NOW, act, bytes_of, config, fresh, limits, read, write};

const ZONE: ZoneId = ZoneId::new(1);
const START: u64 = 16;

/// Zone 1 in a state; where it can have data, it has three blocks.
fn zone_in(state: ZoneState) -> Zns<CutMedia> {
    let mut zns = fresh(&config(2, 4, NO_LIMITS));
    if state != ZoneState::Empty {
        write(&mut zns, START, &[7, 8, 9], false).unwrap();
    }
    match state {
        ZoneState::Empty | ZoneState::ImplicitlyOpen | ZoneState::NotWritePointer => {}
        ZoneState::ExplicitlyOpen => act(&mut zns, 1, ZoneAction::Open).unwrap(),
        ZoneState::Closed => act(&mut zns, 1, ZoneAction::Close).unwrap(),
        ZoneState::Full => act(&mut zns, 1, ZoneAction::Finish).unwrap(),
        ZoneState::ReadOnly => zns.fail_zone(ZONE, false).unwrap(),
        ZoneState::Offline => zns.fail_zone(ZONE, true).unwrap(),
    }
    assert_eq!(zns.zone(ZONE).unwrap().state, state);
    zns
}

fn state_after(zns: &Zns<CutMedia>, result: Result<(), ZnsError>) -> Result<ZoneState, u8> {
    let state = zns.zone(ZONE).unwrap().state;
    result.map(|()| state).map_err(|error| error.status().1)
}

/// The table of zoned.md section 2, row by row, in the order of [`STATES`]. Numbers are status codes of type 1h.
#[test]
fn every_command_in_every_state() {
    use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
    const STATES: [ZoneState; 7] =
        [Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full, ReadOnly, Offline];
    let written = [
        Ok(ImplicitlyOpen),
        Ok(ImplicitlyOpen),
        Ok(ExplicitlyOpen),
        Ok(ImplicitlyOpen),
        Err(0xB9),
        Err(0xBA),
        Err(0xBB),
    ];
    let invalid = Err(0xBF);
    let open = Ok(ExplicitlyOpen);
    let actions = [
        (ZoneAction::Open, [open, open, open, open, invalid, invalid, invalid]),
        (
            ZoneAction::Close,
            [invalid, Ok(Closed), Ok(Closed), Ok(Closed), invalid, invalid, invalid],
        ),
        (ZoneAction::Finish, [Ok(Full), Ok(Full), Ok(Full), Ok(Full), Ok(Full), invalid, invalid]),
        (
            ZoneAction::Reset,
            [Ok(Empty), Ok(Empty), Ok(Empty), Ok(Empty), Ok(Empty), invalid, invalid],
        ),
        (
            ZoneAction::Offline,
            [invalid, invalid, invalid, invalid, invalid, Ok(Offline), Ok(Offline)],
        ),
    ];
    for (at, state) in STATES.into_iter().enumerate() {
        for (action, expected) in &actions {
            let mut zns = zone_in(state);
            let result = act(&mut zns, 1, *action);
            assert_eq!(state_after(&zns, result), expected[at], "{} {state:?}", action.name());
            zns.check().unwrap();
        }
        let pointer = START + if state == Empty { 0 } else { 3 };
        let mut zns = zone_in(state);
        let result = write(&mut zns, pointer, &[5], false);
        assert_eq!(state_after(&zns, result), written[at], "write {state:?}");
        let mut zns = zone_in(state);
        let result = zns.append(NOW, START, 1, false, &Payload::Write(&bytes_of(&[5])));
        assert_eq!(result.map(|done| done.lba).ok(), written[at].ok().map(|_| pointer));
        let found = read(&mut zone_in(state), START, 5);
        match state {
            Empty => assert_eq!(found.unwrap(), [0; 5]),
            Offline => assert_eq!(found.unwrap_err().status(), (1, 0xBB)),
            _ => assert_eq!(found.unwrap(), [7, 8, 9, 0, 0], "{state:?}"),
        }
    }
}

#[test]
fn writes_begin_at_the_write_pointer_and_end_at_the_capacity() {
    let mut zns = fresh(&config(1, 4, NO_LIMITS));
    write(&mut zns, 16, &[1, 2, 3], false).unwrap();
    for lba in [16, 18, 20, 31] {
        assert_eq!(write(&mut zns, lba, &[9], false).unwrap_err().status(), (1, 0xBC), "{lba}");
    }
    assert_eq!(write(&mut zns, 19, &[9; 10], false).unwrap_err().status(), (1, 0xB8));
    // The write pointer is checked before the capacity, and the range before both.
    assert_eq!(write(&mut zns, 20, &[9; 12], false).unwrap_err().status(), (1, 0xBC));
    assert_eq!(write(&mut zns, 60, &[9; 12], false).unwrap_err().status(), (0, 0x80));
    let none = zns.write(NOW, 19, 0, false, &Payload::None);
    assert_eq!(none.unwrap_err().status(), (0, 0x02));
    write(&mut zns, 19, &[4; 9], false).unwrap();
    assert_eq!(zns.zone(ZONE).unwrap().state, ZoneState::Full);
    assert_eq!(zns.zone(ZONE).unwrap().write_pointer, None);
    assert_eq!(read(&mut zns, 16, 16).unwrap(), [1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0]);
    assert_eq!(zns.resources(), (0, 0), "a full zone holds no resource");
}

#[test]
fn appends_name_a_zone_and_have_a_limit() {
    let mut zns =
        fresh(&onefold_ssd::zns::ZnsConfig { append_blocks: Some(4), ..config(1, 4, NO_LIMITS) });
    let append = |zns: &mut Zns<CutMedia>, lba, blocks| {
        zns.append(NOW, lba, blocks, false, &Payload::Zeroes).map(|done| done.lba)
    };
    assert_eq!(append(&mut zns, 32, 4), Ok(32));
    assert_eq!(append(&mut zns, 32, 3), Ok(36));
    assert_eq!(append(&mut zns, 33, 1).unwrap_err().status(), (0, 0x02));
    assert_eq!(append(&mut zns, 32, 5).unwrap_err().status(), (0, 0x02));
    assert_eq!(append(&mut zns, 32, 4), Ok(39));
    assert_eq!(append(&mut zns, 32, 2).unwrap_err().status(), (1, 0xB8));
    assert_eq!(append(&mut zns, 32, 1), Ok(43));
    assert_eq!(append(&mut zns, 32, 1).unwrap_err().status(), (1, 0xB9));
    assert_eq!(zns.stats().appends, 4);
}

#[test]
fn reads_cross_zones_only_where_that_is_offered() {
    for read_across in [false, true] {
        let config = onefold_ssd::zns::ZnsConfig { read_across, ..config(1, 4, NO_LIMITS) };
        let mut zns = fresh(&config);
        write(&mut zns, 0, &[1; 12], false).unwrap();
        write(&mut zns, 16, &[2; 3], false).unwrap();
        let found = read(&mut zns, 11, 7);
        if read_across {
            assert_eq!(found.unwrap(), [1, 0, 0, 0, 0, 2, 2]);
            zns.fail_zone(ZONE, true).unwrap();
            assert_eq!(read(&mut zns, 11, 7).unwrap_err().status(), (1, 0xBB));
        } else {
            assert_eq!(found.unwrap_err().status(), (1, 0xB8));
        }
        assert_eq!(read(&mut zns, 60, 5).unwrap_err().status(), (0, 0x80));
    }
}

/// The zone that a write closes is the implicitly open one that was opened first; writing to it again does not make it
/// younger, and explicitly open zones stay.
#[test]
fn the_oldest_implicitly_open_zone_is_closed() {
    use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
    let mut zns = fresh(&config(1, 6, limits(3, 5)));
    let states = |zns: &Zns<CutMedia>| -> Vec<ZoneState> {
        (0..6).map(|zone| zns.zone(ZoneId::new(zone)).unwrap().state).collect()
    };
    act(&mut zns, 0, ZoneAction::Open).unwrap();
    write(&mut zns, 16, &[1], false).unwrap();
    write(&mut zns, 32, &[1], false).unwrap();
    write(&mut zns, 17, &[1], false).unwrap();
    write(&mut zns, 48, &[1], false).unwrap();
    let expected = [ExplicitlyOpen, Closed, ImplicitlyOpen, ImplicitlyOpen, Empty, Empty];
    assert_eq!(states(&zns), expected);
    assert_eq!(zns.stats().implicit_closes, 1);
    // Opening a zone closes one, too.
    act(&mut zns, 1, ZoneAction::Open).unwrap();
    act(&mut zns, 3, ZoneAction::Open).unwrap();
    let expected = [ExplicitlyOpen, ExplicitlyOpen, Closed, ExplicitlyOpen, Empty, Empty];
    assert_eq!(states(&zns), expected);
    // Three are explicitly open: nothing can be closed for another one.
    assert_eq!(write(&mut zns, 33, &[1], false).unwrap_err().status(), (1, 0xBE));
    assert_eq!(act(&mut zns, 4, ZoneAction::Open).unwrap_err().status(), (1, 0xBE));
    assert_eq!(states(&zns), expected, "what is refused changes nothing");
    act(&mut zns, 0, ZoneAction::Close).unwrap();
    write(&mut zns, 64, &[1], false).unwrap();
    // Five are active, and that is tested first: nothing is closed in vain.
    let expected = [Closed, ExplicitlyOpen, Closed, ExplicitlyOpen, ImplicitlyOpen, Empty];
    assert_eq!(states(&zns), expected);
    assert_eq!(write(&mut zns, 80, &[1], false).unwrap_err().status(), (1, 0xBD));
    assert_eq!(states(&zns), expected);
    // An empty zone is finished without resources.
    act(&mut zns, 5, ZoneAction::Finish).unwrap();
    assert_eq!(zns.resources(), (3, 5));
}

#[test]
fn all_zones_at_once() {
    use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
    let make = || {
        let mut zns = fresh(&config(2, 7, limits(3, 4)));
        for zone in [1, 2, 3, 4, 5_u32] {
            write(&mut zns, u64::from(zone) * 16, &[1], false).unwrap();
            match zone {
                1 => zns.fail_zone(ZONE, false).unwrap(),
                2 => act(&mut zns, 2, ZoneAction::Finish).unwrap(),
                3 => act(&mut zns, 3, ZoneAction::Close).unwrap(),
                4 => act(&mut zns, 4, ZoneAction::Open).unwrap(),
                _ => {}
            }
        }
        zns.fail_zone(ZoneId::new(6), true).unwrap();
        zns
    };
    let before = [Empty, ReadOnly, Full, Closed, ExplicitlyOpen, ImplicitlyOpen, Offline];
    let after = [
        (
            ZoneAction::Open,
            [Empty, ReadOnly, Full, ExplicitlyOpen, ExplicitlyOpen, ImplicitlyOpen, Offline],
        ),
        (ZoneAction::Close, [Empty, ReadOnly, Full, Closed, Closed, Closed, Offline]),
        (ZoneAction::Finish, [Empty, ReadOnly, Full, Full, Full, Full, Offline]),
        (ZoneAction::Reset, [Empty, ReadOnly, Empty, Empty, Empty, Empty, Offline]),
        (
            ZoneAction::Offline,
            [Empty, Offline, Full, Closed, ExplicitlyOpen, ImplicitlyOpen, Offline],
        ),
    ];
    for (action, expected) in after {
        let mut zns = make();
        let states =
            |zns: &Zns<CutMedia>| zns.report(ZoneId::new(0), None, 100, false).unwrap().zones;
        let found: Vec<_> = states(&zns).iter().map(|zone| zone.state).collect();
        assert_eq!(found, before);
        zns.manage(NOW, Select::All, action).unwrap();
        let found: Vec<_> = states(&zns).iter().map(|zone| zone.state).collect();
        assert_eq!(found, expected, "{}", action.name());
        zns.check().unwrap();
    }
}

/// Opening all closed zones opens none if they are too many.
#[test]
fn all_zones_are_opened_or_none() {
    let mut zns = fresh(&config(1, 6, limits(2, 4)));
    for zone in 0..3_u32 {
        write(&mut zns, u64::from(zone) * 16, &[1], false).unwrap();
        act(&mut zns, zone, ZoneAction::Close).unwrap();
    }
    let refused = zns.manage(NOW, Select::All, ZoneAction::Open).unwrap_err();
    assert_eq!(refused.status(), (1, 0xBE));
    assert_eq!(zns.resources(), (0, 3));
    act(&mut zns, 0, ZoneAction::Reset).unwrap();
    zns.manage(NOW, Select::All, ZoneAction::Open).unwrap();
    assert_eq!(zns.resources(), (2, 2));
}

#[test]
fn reports_count_what_matches_or_what_they_hold() {
    let mut zns = fresh(&config(1, 6, NO_LIMITS));
    for zone in [1_u64, 2, 4] {
        write(&mut zns, zone * 16, &[1, 2], false).unwrap();
    }
    let open = Some(ZoneState::ImplicitlyOpen);
    let report = zns.report(ZoneId::new(2), open, 1, false).unwrap();
    assert_eq!((report.matching, report.zones.len()), (2, 1));
    assert_eq!((report.zones[0].start, report.zones[0].write_pointer), (32, Some(34)));
    assert_eq!((report.zones[0].capacity, report.zones[0].resets), (12, 0));
    assert_eq!(zns.report(ZoneId::new(2), open, 1, true).unwrap().matching, 1);
    assert_eq!(zns.report(ZoneId::new(0), None, 99, true).unwrap().matching, 6);
    assert_eq!(zns.report(ZoneId::new(6), None, 1, true).unwrap_err().status(), (0, 0x80));
    assert_eq!(act(&mut zns, 6, ZoneAction::Reset).unwrap_err().status(), (0, 0x80));
    act(&mut zns, 1, ZoneAction::Reset).unwrap();
    assert_eq!(zns.zone(ZONE).unwrap().resets, 1);
    assert_eq!(zns.zone(ZoneId::new(6)), None);
}
