//! Opening what a power cut, another host or nobody wrote (I9).

use onefold_units::convert::{index64, low8};
use onefold_units::{Rng, ZoneId};
use onefold_zoned::{Finding, JournalFault, Lost, MountError, Options, inspect, mount};

use crate::disk::Disks;
use crate::rig::{Rig, SECOND, ZONE, formatted, two_devices};
use crate::verify::verify;

/// A volume with chunks of all kinds, flushed.
fn used() -> Rig {
    let mut rig = Rig::new(&two_devices(), Options::default());
    rig.fill_chunks(0..3);
    rig.advance(30 * SECOND);
    rig.write_now(5, 70, 1);
    rig.fill_chunks(4..6);
    rig.flush_now();
    rig
}

fn try_open(disks: &Disks, rig: &Rig) -> Result<u64, MountError> {
    let mut disks = disks.clone();
    let now = onefold_units::Nanos::ZERO;
    let (volume, _) = mount(&mut disks, rig.volume.geometry(), Options::default(), now)?;
    Ok(volume.generation())
}

#[test]
fn a_damaged_root_record_is_made_good_from_the_other_set() {
    let rig = used();
    let second = u64::from(2 * ZONE);
    for at in [0, second] {
        let mut disks = rig.disks.clone();
        disks.0[0].scribble(at, |block| block[20] ^= 1);
        let geometry = rig.volume.geometry().clone();
        let (mut opened, _) = Rig::mount(disks, &geometry, Options::default());
        verify(&mut opened.disks, &geometry).unwrap();
        assert_eq!(opened.read_now(0, 6), [1, 0, 0, 0, 0, 70]);
    }
    let mut disks = rig.disks.clone();
    for at in [0, second] {
        disks.0[0].scribble(at, |block| block[20] ^= 1);
    }
    assert!(matches!(try_open(&disks, &rig), Err(MountError::NoRoot(_))));
}

/// The zoned device has one copy of the root record, which nothing but a format writes.
#[test]
fn a_damaged_copy_of_the_root_record_is_made_anew_by_a_repair() {
    let rig = used();
    let geometry = rig.volume.geometry().clone();
    let repair = Options { give_up_lost: true, ..Options::default() };
    for at in [0, 20, 100] {
        let mut disks = rig.disks.clone();
        disks.0[1].scribble(0, |block| block[at] ^= 1);
        assert!(matches!(try_open(&disks, &rig), Err(MountError::Copy { device: 1, .. })));
        let found = inspect(&mut disks, &geometry).unwrap().findings;
        assert!(matches!(found[..], [Finding::Copy { device: 1, .. }]), "{found:?}");
        assert!(found[0].is_repairable());
        let (mut opened, _) = Rig::mount(disks, &geometry, repair.clone());
        assert_eq!(opened.read_now(0, 6), [1, 0, 0, 0, 0, 70]);
        try_open(&opened.disks, &rig).unwrap();
        assert_eq!(inspect(&mut opened.disks, &geometry).unwrap().findings, []);
    }
}

/// A device without a copy that also lacks data may be that of another volume: it is not written to.
#[test]
fn a_device_that_may_be_of_another_volume_does_not_become_ours() {
    let rig = used();
    let geometry = rig.volume.geometry().clone();
    let mut disks = rig.disks.clone();
    let (mut other, _) = formatted(ZONE, &two_devices());
    other.0[1].scribble(0, |block| block[20] ^= 1);
    disks.0[1] = other.0[1].clone();
    let repair = Options { give_up_lost: true, ..Options::default() };
    let refused = Rig::try_mount(disks, &geometry, repair).map(drop);
    assert!(matches!(refused, Err(MountError::Copy { device: 1, .. })), "{refused:?}");
}

/// A damaged journal block map is told, whatever of it is damaged, and the volume stays as it is.
#[test]
fn a_damaged_journal_block_map_is_refused() {
    let options = crate::append::options(&(16..80), 1);
    let mut rig = Rig::new(&two_devices(), options);
    rig.write_now(16, 1, 64);
    rig.flush_now();
    crate::verify::forget_sums(&mut rig.disks, 2 * u64::from(ZONE));
    let geometry = rig.volume.geometry().clone();
    let map = u64::from(rig.volume.layout().metadata_blocks);
    let refused = |disks: &Disks, expected: fn(&JournalFault) -> bool| {
        let found = try_open(disks, &rig).unwrap_err();
        assert!(matches!(found, MountError::Journal(fault) if expected(&fault)), "{found}");
        let findings = inspect(&mut disks.clone(), &geometry).unwrap().findings;
        assert_eq!(findings, [Finding::Map(found)]);
    };
    let damaged = |block: u64, at: usize, bytes: &[u8]| {
        let mut disks = rig.disks.clone();
        disks.0[0]
            .scribble(map + block, |found| found[at..at + bytes.len()].copy_from_slice(bytes));
        disks
    };
    refused(&damaged(0, 0, &[0]), |fault| matches!(fault, JournalFault::Head(_)));
    refused(&damaged(0, 4, &[200]), |fault| matches!(fault, JournalFault::Blocks { .. }));
    // None, that of metadata, that of the other stream.
    let log = low8(rig.head(onefold_zoned::Stream::Log).raw().into());
    for zone in [99, 0, 10, log] {
        refused(&damaged(0, 16, &[zone]), |fault| matches!(fault, JournalFault::Zone { .. }));
    }
    refused(&damaged(1, 0, &[200]), |fault| matches!(fault, JournalFault::Outside { .. }));
    refused(&damaged(1, 0, &[18]), |fault| matches!(fault, JournalFault::Twice { .. }));
}

/// The kernel target leaves such blocks as they are: its next flush completes the set with its root record only.
#[test]
fn blocks_of_a_flush_that_a_power_cut_ended_are_put_right() {
    let rig = used();
    let mut disks = rig.disks.clone();
    disks.0[0].scribble(u64::from(2 * ZONE) + 1, |block| block[0] = 9);
    let geometry = rig.volume.geometry().clone();
    let (mut opened, recovery) = Rig::mount(disks, &geometry, Options::default());
    assert_eq!(recovery.repaired_blocks, 1);
    verify(&mut opened.disks, &geometry).unwrap();
}

/// A device that lost what it had flushed is refused. If it is given up, blocks that are valid behind the write pointer are told and
/// read as zeroes.
#[test]
fn blocks_behind_the_write_pointer_are_lost() {
    let rig = used();
    let mut disks = rig.disks.clone();
    let zone = rig.data(1).unwrap();
    assert!(rig.is_sequential(1));
    for set in [0, u64::from(2 * ZONE)] {
        // A map block lies between the root record and the validity bits.
        disks.0[0].scribble(set + 2 + u64::from(zone), |block| block[1] |= 2);
    }
    crate::verify::forget_sums(&mut disks, u64::from(2 * ZONE));
    let geometry = rig.volume.geometry().clone();
    let lost = Lost { zone: ZoneId::new(zone), chunk: Some(1), written: 1, blocks: 1 };
    assert_eq!(try_open(&disks, &rig), Err(MountError::Lost(lost)));
    let found = inspect(&mut disks, &geometry).unwrap();
    assert_eq!((found.findings, found.zones.len()), (vec![Finding::Lost(lost)], 24));
    let options = Options { give_up_lost: true, ..Options::default() };
    let (mut opened, recovery) = Rig::mount(disks, &geometry, options);
    assert_eq!(recovery.lost_blocks, 1);
    assert_eq!(opened.read_now(16, 16), [vec![2], vec![0; 15]].concat());
    opened.flush_now();
    verify(&mut opened.disks, &geometry).unwrap();
}

#[test]
fn devices_of_other_volumes_and_none_are_refused() {
    let rig = used();
    let empty = Disks::new(ZONE, &two_devices());
    assert!(matches!(try_open(&empty, &rig), Err(MountError::NoRoot(_))));
    let mut disks = rig.disks.clone();
    disks.0[1] = empty.0[1].clone();
    assert!(matches!(try_open(&disks, &rig), Err(MountError::Copy { device: 1, .. })));
    let (mut other, geometry) = formatted(ZONE, &two_devices());
    let mut identity = crate::rig::identity(2);
    identity.uuid = [3; 16];
    onefold_zoned::format(&mut other, &geometry, &identity).unwrap();
    disks.0[1] = other.0[1].clone();
    assert_eq!(try_open(&disks, &rig), Err(MountError::OtherVolume { device: 1 }));
}

#[test]
fn a_map_that_cannot_be_is_refused() {
    let rig = used();
    let entry = |chunk: usize, data: u32, buffer: u32| {
        let mut disks = rig.disks.clone();
        crate::verify::forget_sums(&mut disks, u64::from(2 * ZONE));
        for set in [0, u64::from(2 * ZONE)] {
            disks.0[0].scribble(set + 1, |block| {
                block[chunk * 8..chunk * 8 + 4].copy_from_slice(&data.to_le_bytes());
                block[chunk * 8 + 4..chunk * 8 + 8].copy_from_slice(&buffer.to_le_bytes());
            });
        }
        try_open(&disks, &rig)
    };
    let none = u32::MAX;
    assert!(entry(9, none, none).is_ok());
    let taken = rig.data(4).unwrap();
    for (data, buffer) in
        [(24, none), (1, none), (10, none), (taken, none), (none, 9), (9, 8), (22, 23), (22, 22)]
    {
        let found = entry(9, data, buffer);
        assert!(matches!(found, Err(MountError::Map { .. })), "{data} {buffer}: {found:?}");
    }
}

/// I9: whatever is there, opening ends without a panic, and so does using what was opened.
#[test]
fn no_bytes_make_opening_panic() {
    let rig = used();
    let mut rng = Rng::new(3);
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..600 {
        let mut disks = rig.disks.clone();
        for _ in 0..=rng.below(6) {
            let sets = [0, u64::from(2 * ZONE)].into_iter().skip(index64(rng.below(2)));
            let block = if rng.below(2) == 0 { rng.below(2) } else { rng.below(26) };
            let (at, len) = (index64(rng.below(128)), 1 + index64(rng.below(8)));
            let byte = [0, 0xFF, low8(rng.next_u64())][index64(rng.below(3))];
            for set in sets {
                disks.0[0].scribble(set + block, |block| block[at..at + len].fill(byte));
            }
        }
        let geometry = rig.volume.geometry().clone();
        match Rig::try_mount(disks, &geometry, Options::default()) {
            Ok((mut rig, _)) => {
                opened += 1;
                rig.fill_chunks(0..4);
                rig.advance(30 * SECOND);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(opened > 50 && refused > 50, "{opened} opened, {refused} refused");
}
