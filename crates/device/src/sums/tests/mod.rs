//! Checksums against a model: power cuts, damage, failures, and requests at once.

mod damage;
mod disk;
mod failures;
mod power;
mod together;

use std::time::Duration;

use onefold_format::{CACHE_REGION_BLOCKS, CacheHeader, CacheLayout};
use onefold_units::convert::u64_from;
use onefold_units::{IoFailed, Rng};

use super::{Store, Summed, find};
use disk::{Block, Disk, Event, Image, ZEROES};

/// Long enough for all regions that are not written to become clean, twice.
const LATER: Duration = Duration::from_secs(10);

fn header(data_blocks: u64) -> CacheHeader {
    CacheHeader { uuid: [3; 16], layout: CacheLayout::new(data_blocks) }
}

/// What a block holds: number and version. Version 0 is what nobody wrote.
fn content(block: u64, version: u64) -> Block {
    let mut content = ZEROES;
    if version > 0 {
        let words = content.chunks_mut(8);
        words.for_each(|word| word.copy_from_slice(&(version << 20 | block).to_le_bytes()));
    }
    content
}

fn made(data_blocks: u64) -> (Disk, Summed<Disk>) {
    let disk = Disk::new(header(data_blocks).layout.blocks());
    let summed = Summed::make(disk.clone(), header(data_blocks)).unwrap();
    (disk, summed)
}

fn open(disk: &Disk) -> Summed<Disk> {
    let found = find(disk).unwrap().expect("it has checksums");
    Summed::open(disk.clone(), &found, true).unwrap()
}

fn write(summed: &Summed<Disk>, block: u64, version: u64) -> Result<(), IoFailed> {
    summed.write(block, &content(block, version))
}

/// The version that a block holds.
fn read(summed: &Summed<Disk>, block: u64) -> Result<u64, IoFailed> {
    let mut found = [0xEE; 4096];
    summed.read(block, &mut found)?;
    let word = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert_eq!(found, content(block, word >> 20), "block {block} is none that was written");
    Ok(word >> 20)
}

#[test]
fn what_is_written_is_read_and_what_is_not_is_zeroes() {
    let (disk, summed) = made(2 * CACHE_REGION_BLOCKS + 5);
    let bytes: Vec<u8> = (1020..1030).flat_map(|block| content(block, 9)).collect();
    summed.write(1020, &bytes).unwrap();
    write(&summed, 2052, 2).unwrap();
    let check = |summed: &Summed<Disk>| {
        let version = |block| if (1020..1030).contains(&block) { 9 } else { 0 };
        for block in [0, 1019, 1020, 1023, 1024, 1029, 1030, 2051] {
            assert_eq!(read(summed, block), Ok(version(block)), "block {block}");
        }
        assert_eq!(read(summed, 2052), Ok(2));
    };
    check(&summed);
    assert_eq!(summed.details().dirty_regions, 3);
    summed.close().unwrap();
    assert_eq!(summed.details().dirty_regions, 0);
    let again = open(&disk);
    assert_eq!(again.details().remade_regions, 0);
    check(&again);
    let scan = again.scan();
    assert_eq!((scan.checked, scan.differing), (2 * CACHE_REGION_BLOCKS + 5, 0));
}

/// Regions become clean one interval after the first look that finds them left alone, and not before.
#[test]
fn regions_that_are_left_alone_become_clean() {
    let (disk, summed) = made(2 * CACHE_REGION_BLOCKS);
    write(&summed, 0, 1).unwrap();
    write(&summed, 1024, 1).unwrap();
    summed.flush(Duration::from_secs(9)).unwrap();
    assert_eq!(summed.due(), Some(LATER));
    summed.flush(LATER).unwrap();
    assert_eq!(summed.details().dirty_regions, 2, "they were written since the last look");
    write(&summed, 1, 1).unwrap();
    summed.flush(2 * LATER).unwrap();
    assert_eq!(summed.details().dirty_regions, 1);
    summed.flush(3 * LATER).unwrap();
    assert_eq!((summed.details().dirty_regions, summed.due()), (0, None));
    assert_eq!(open(&Disk::of(disk.blocks(), disk.image())).details().remade_regions, 0);
}

/// What a device holds when it gets its checksums is taken as it is.
#[test]
fn what_was_there_before_has_checksums() {
    let disk = Disk::new(header(1500).layout.blocks());
    for at in [1, 700, 1400] {
        disk.write(at, &content(at - 1, 7)).unwrap();
    }
    disk.flush().unwrap();
    drop(Summed::make(disk.clone(), header(1500)).unwrap());
    let summed = open(&disk);
    assert_eq!(summed.scan().differing, 0);
    assert_eq!((read(&summed, 699), read(&summed, 0)), (Ok(7), Ok(7)));
}

/// Pages that have no room in memory come back as they were.
#[test]
fn few_pages_in_memory_are_enough() {
    let (disk, summed) = made(6 * CACHE_REGION_BLOCKS);
    super::lock(&summed.state).pages.set_max(2);
    let mut model = vec![0; 6 * 1024];
    let mut rng = Rng::new(5);
    for version in 1..600 {
        let block = rng.below(u64_from(model.len()));
        model[usize::try_from(block).unwrap()] = version;
        write(&summed, block, version).unwrap();
        let other = rng.below(u64_from(model.len()));
        assert_eq!(read(&summed, other), Ok(model[usize::try_from(other).unwrap()]));
        assert!(summed.details().memory_bytes <= 2 * 4096);
    }
    summed.close().unwrap();
    let summed = open(&disk);
    assert_eq!(summed.details().remade_regions, 0);
    for (block, version) in (0..).zip(model) {
        assert_eq!(read(&summed, block), Ok(version));
    }
}
