//! Devices that fail: the error is that of the request, nothing wrong is read, and what fails no more is as before.

use onefold_testkit::{LIB, for_each_seed};
use onefold_units::convert::index64;

use super::disk::Faults;
use super::*;

/// What a block may hold: the last version that was written, and those after it that failed.
struct Block {
    versions: Vec<u64>,
    /// A write failed and none has succeeded since: the block may be neither old nor new, which is an error.
    is_doubtful: bool,
}

#[test]
fn a_failed_request_is_an_error_of_its_own() {
    let (disk, summed) = made(CACHE_REGION_BLOCKS);
    let fails = |faults| disk.set_faults(faults);
    let whole = Faults::default();
    write(&summed, 1, 1).unwrap();
    fails(Faults { reads: 1000, ..whole });
    assert_eq!(read(&summed, 1), Err(IoFailed::Error));
    fails(Faults { full_from: Some(0), ..whole });
    assert_eq!(write(&summed, 1, 2), Err(IoFailed::NoSpace));
    assert_eq!(read(&summed, 1), Ok(1), "what was not written is as before");
    // A part of a request is written: it is new, and the rest is old.
    fails(Faults { full_from: Some(1 + 2), ..whole });
    let two = [content(1, 3), content(2, 3)].concat();
    assert_eq!(summed.write(1, &two), Err(IoFailed::NoSpace));
    assert_eq!((read(&summed, 1), read(&summed, 2)), (Ok(3), Ok(0)));
    fails(whole);
    summed.write(1, &two).unwrap();
    assert_eq!((read(&summed, 1), read(&summed, 2)), (Ok(3), Ok(3)));
    fails(Faults { syncs: 1000, ..whole });
    assert_eq!(summed.flush(Duration::ZERO), Err(IoFailed::Error));
    fails(whole);
    assert_eq!(summed.flush(Duration::ZERO), Err(IoFailed::Error), "what was lost stays lost");
    assert_eq!(summed.due(), None);
}

/// Whatever took the error of a synchronisation, a flush does not say that all is well.
#[test]
fn a_mark_that_was_not_durable_fails_flushes() {
    let (disk, summed) = made(2 * CACHE_REGION_BLOCKS);
    write(&summed, 0, 1).unwrap();
    disk.set_faults(Faults { syncs: 1000, ..Faults::default() });
    assert_eq!(write(&summed, 1024, 1), Err(IoFailed::Error));
    disk.set_faults(Faults::default());
    assert_eq!(summed.flush(Duration::ZERO), Err(IoFailed::Error));
}

/// Pages that the device does not take keep their regions dirty, and flushes of data go on.
#[test]
fn checksums_that_are_not_taken_fail_no_flush() {
    let (disk, summed) = made(CACHE_REGION_BLOCKS);
    write(&summed, 0, 1).unwrap();
    let full_from = Some(header(CACHE_REGION_BLOCKS).layout.sums_at());
    disk.set_faults(Faults { full_from, ..Faults::default() });
    for round in 1..4 {
        summed.flush(round * LATER).unwrap();
    }
    assert_eq!(summed.details().dirty_regions, 1);
    disk.set_faults(Faults::default());
    summed.flush(4 * LATER).unwrap();
    assert_eq!(summed.details().dirty_regions, 0);
    let after = open(&Disk::of(disk.blocks(), disk.image()));
    assert_eq!((after.details().remade_regions, read(&after, 0)), (0, Ok(1)));
}

/// A block that cannot be read when its checksum is made anew is an error until it is written, and the others are not.
#[test]
fn a_region_with_unreadable_blocks_can_be_opened() {
    let (disk, summed) = made(8);
    (0..8).for_each(|block| write(&summed, block, 1).unwrap());
    summed.flush(Duration::ZERO).unwrap();
    let found = find(&disk).unwrap().unwrap();
    // Reads fail at random, more often than not.
    disk.set_faults(Faults { reads: 600, ..Faults::default() });
    let opened = (0..1000).find_map(|_| Summed::open(disk.clone(), &found, true).ok());
    let opened = opened.expect("it opens at some time");
    disk.set_faults(Faults::default());
    let bad = (0..8).filter(|block| read(&opened, *block).is_err()).count();
    assert_eq!(u64_from(bad), opened.details().unread_blocks);
    (0..8).for_each(|block| write(&opened, block, 2).unwrap());
    (0..8).for_each(|block| assert_eq!(read(&opened, block), Ok(2)));
}

#[test]
fn any_request_may_fail() {
    const BLOCKS: u64 = CACHE_REGION_BLOCKS + 30;
    for_each_seed(("onefold-device", LIB, "any_request_may_fail"), 30, |seed| {
        let mut rng = Rng::fork(seed, 0);
        let (disk, summed) = made(BLOCKS);
        super::super::lock(&summed.state).pages.set_max(1 + index64(rng.below(2)));
        let mut blocks: Vec<Block> =
            (0..BLOCKS).map(|_| Block { versions: vec![0], is_doubtful: false }).collect();
        let (mut faults, mut now, mut stopped) = (Faults::default(), Duration::ZERO, false);
        for version in 1..400 {
            let at = [rng.below(10), 1020 + rng.below(30)][index64(rng.below(2))];
            let block = &mut blocks[index64(at)];
            match rng.below(20) {
                0..9 => {
                    let written = write(&summed, at, version).is_ok();
                    assert!(written || faults.reads + faults.writes + faults.syncs > 0);
                    if written {
                        block.versions.clear();
                    }
                    block.versions.push(version);
                    block.is_doubtful = !written;
                }
                9..15 => match read(&summed, at) {
                    Ok(found) => assert!(block.versions.contains(&found), "{found}"),
                    Err(_) => assert!(faults.reads > 0 || block.is_doubtful || stopped),
                },
                15..18 => {
                    now += LATER / 3;
                    let flushed = summed.flush(now);
                    assert!(flushed.is_ok() || faults.syncs > 0 || stopped);
                    assert!(flushed.is_err() || !stopped, "seed {seed}: nobody is told twice");
                }
                _ => {
                    let often = [20, 200, 1000][index64(rng.below(3))];
                    let one = |of: u64| if of == 0 { often } else { 0 };
                    faults = Faults { reads: one(rng.below(3)), ..Faults::default() };
                    faults.writes = one(rng.below(3));
                    faults.syncs = if rng.below(12) == 0 { 500 } else { 0 };
                    disk.set_faults(faults);
                }
            }
            stopped |= super::super::lock(&summed.state).failed;
            if stopped {
                break;
            }
        }
        disk.set_faults(Faults::default());
        for at in (0..BLOCKS).filter(|_| !stopped) {
            write(&summed, at, 1000).unwrap();
            assert_eq!(read(&summed, at), Ok(1000));
        }
        assert_eq!(summed.close().is_err(), stopped);
    });
}
