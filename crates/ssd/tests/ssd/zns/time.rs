//! Virtual times against closed forms: transfer of 4 KiB 10.24 us, read 40 us, program 200 us, erase 2 ms.

use onefold_nand::NullMedia;
use onefold_ssd::Payload;
use onefold_ssd::zns::{Select, Zns, ZnsConfig, ZoneAction};
use onefold_units::{Nanos, ZoneId};

use super::common::{NO_LIMITS, config};

const TRANSFER: u64 = 10_240;
const READ: u64 = 40_000;
const PROGRAM: u64 = 200_000;
const ERASE: u64 = 2_000_000;

fn device(page: u32, zone_dies: u32) -> Zns<NullMedia> {
    let geometry = super::common::geometry(page, 24);
    let config = ZnsConfig { zone_dies, geometry, ..config(page, 4, NO_LIMITS) };
    Zns::new(config, NullMedia.into()).unwrap()
}

fn write(zns: &mut Zns<NullMedia>, now: u64, lba: u64, blocks: u32, fua: bool) -> u64 {
    let done = zns.write(Nanos::new(now), lba, blocks, fua, &Payload::None).unwrap();
    done.at.get() - now
}

fn read(zns: &mut Zns<NullMedia>, now: u64, lba: u64, blocks: u32) -> u64 {
    zns.read(Nanos::new(now), lba, blocks, &mut []).unwrap().at.get() - now
}

/// A zone is as fast as the dies it stripes over.
#[test]
fn a_wide_zone_programs_its_dies_side_by_side() {
    let one = TRANSFER + PROGRAM;
    assert_eq!(write(&mut device(1, 1), 0, 0, 6, false), 6 * one);
    assert_eq!(write(&mut device(1, 2), 0, 0, 6, false), 3 * one);
    // Two narrow zones lie on different dies and do not wait for each other.
    let mut zns = device(1, 1);
    assert_eq!(write(&mut zns, 0, 0, 6, false), 6 * one);
    assert_eq!(write(&mut zns, 0, 16, 6, false), 6 * one);
    // The third shares a die with one of them.
    assert_eq!(write(&mut zns, 0, 32, 1, false), 7 * one);
}

/// A block that does not fill its flash page waits in RAM; the one that fills it waits for the program.
#[test]
fn a_flash_page_is_programmed_when_it_is_full() {
    let dram = 1000;
    let mut zns = device(4, 2);
    assert_eq!(write(&mut zns, 0, 0, 1, false), dram);
    assert_eq!(write(&mut zns, 0, 1, 2, true), 2 * dram, "it is in NVRAM");
    assert_eq!(zns.nand().programmed_pages(), 0);
    assert_eq!(read(&mut zns, 0, 0, 3), 0);
    assert_eq!(write(&mut zns, 0, 3, 1, false), 4 * TRANSFER + PROGRAM);
    assert_eq!(zns.nand().programmed_pages(), 4);
    let later = 10_000_000;
    assert_eq!(read(&mut zns, later, 0, 4), READ + 4 * TRANSFER, "one array read");
    assert_eq!(read(&mut zns, 2 * later, 1, 1), READ + TRANSFER);
    assert_eq!(read(&mut zns, 3 * later, 4, 8), 0, "nothing is there");
}

#[test]
fn resets_erase_side_by_side_and_finishing_programs_the_rest() {
    for (dies, erases) in [(1, 3), (2, 2)] {
        // Superblocks of four blocks: three one after the other, or two on each of two dies.
        let mut zns = device(1, dies);
        write(&mut zns, 0, 0, 5, false);
        let now = 10_000_000;
        let zone = Select::One(ZoneId::new(0));
        let done = zns.manage(Nanos::new(now), zone, ZoneAction::Reset).unwrap();
        assert_eq!(done.at.get() - now, erases * ERASE);
        assert_eq!(zns.stats().erases, erases * u64::from(dies));
    }
    let mut zns = device(4, 2);
    write(&mut zns, 0, 0, 1, false);
    let zone = Select::One(ZoneId::new(0));
    let done = zns.manage(Nanos::ZERO, zone, ZoneAction::Finish).unwrap();
    assert_eq!(done.at.get(), 4 * TRANSFER + PROGRAM);
    let programs = zns.stats().programs;
    let causes = [onefold_units::Cause::User, onefold_units::Cause::Padding];
    assert_eq!(causes.map(|cause| programs.of(cause)), [1, 3]);
}

/// With a cache, writes complete in RAM until it is full of pages under way.
#[test]
fn a_write_cache_answers_early() {
    let dram = 1000;
    let config = ZnsConfig { cache_bytes: 2 * 4096, ..*device(1, 1).config() };
    let mut zns = Zns::new(config, NullMedia.into()).unwrap();
    assert_eq!(write(&mut zns, 0, 0, 1, false), dram);
    assert_eq!(write(&mut zns, 0, 1, 1, false), dram);
    assert_eq!(read(&mut zns, 100, 0, 1), dram, "it is in the cache");
    // The third waits for the first to leave.
    let one = TRANSFER + PROGRAM;
    assert_eq!(write(&mut zns, 200, 2, 1, false), one - 200 + dram);
    assert_eq!(zns.flush(Nanos::new(300)).unwrap().at.get(), 3 * one);
    assert_eq!(read(&mut zns, 5_000_000, 0, 1), READ + TRANSFER);
    assert_eq!(write(&mut zns, 10_000_000, 3, 1, true), one, "FUA waits for the program");
    // One that power does not take has nothing to flush.
    let config = ZnsConfig { cache_volatile: false, ..config };
    let mut zns = Zns::new(config, NullMedia.into()).unwrap();
    assert_eq!(write(&mut zns, 0, 0, 1, true), dram);
    assert_eq!(zns.flush(Nanos::new(5)).unwrap().at.get(), 5);
}
