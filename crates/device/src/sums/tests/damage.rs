//! Damage: a read of what rotted is an error, its neighbours are right, and a write makes it good.

use onefold_format::{CACHE_BLOCK_BYTES, CacheHeaderError};

use super::*;

const BLOCKS: u64 = CACHE_REGION_BLOCKS + 100;

/// One with some blocks written, which was closed.
fn closed() -> Disk {
    let (disk, summed) = made(BLOCKS);
    for block in [0, 5, 6, 7, 1024, 1030] {
        write(&summed, block, 3).unwrap();
    }
    summed.close().unwrap();
    disk
}

#[test]
fn rot_of_a_block_is_an_error_for_that_block_until_it_is_written() {
    for byte in [0, 511, 512, CACHE_BLOCK_BYTES - 1] {
        let disk = closed();
        disk.flip(1 + 6, byte);
        // A block of zeroes that nobody wrote is no exception.
        disk.flip(1 + 100, byte);
        let summed = open(&disk);
        assert_eq!((read(&summed, 5), read(&summed, 7)), (Ok(3), Ok(3)));
        for block in [6, 100] {
            assert_eq!(read(&summed, block), Err(IoFailed::Error));
            let mut three = [0; 3 * CACHE_BLOCK_BYTES];
            assert_eq!(summed.read(block - 1, &mut three), Err(IoFailed::Error));
        }
        assert_eq!((summed.scan().differing, summed.details().damaged_reads), (2, 4));
        summed.read_unjudged(6, &mut [0; 4096]).unwrap();
        write(&summed, 6, 4).unwrap();
        write(&summed, 100, 5).unwrap();
        assert_eq!((read(&summed, 6), read(&summed, 100)), (Ok(4), Ok(5)));
        summed.close().unwrap();
        assert_eq!(open(&disk).scan().differing, 0);
    }
}

#[test]
fn rot_of_a_checksum_is_an_error_for_its_block() {
    let disk = closed();
    let sums_at = header(BLOCKS).layout.sums_at();
    disk.flip(sums_at, 5 * 4 + 1);
    disk.flip(sums_at + 1, 6 * 4 + 3);
    let summed = open(&disk);
    assert_eq!(
        (read(&summed, 5), read(&summed, 1030)),
        (Err(IoFailed::Error), Err(IoFailed::Error))
    );
    assert_eq!((read(&summed, 6), read(&summed, 1024)), (Ok(3), Ok(3)));
    assert_eq!(summed.scan().differing, 2);
    write(&summed, 5, 4).unwrap();
    assert_eq!(read(&summed, 5), Ok(4));
}

/// What was read wrong once is read again.
#[test]
fn a_block_that_reads_right_the_second_time_is_no_error() {
    struct Once(Disk, std::sync::atomic::AtomicU64);
    impl Store for Once {
        fn blocks(&self) -> u64 {
            self.0.blocks()
        }
        fn parts(&self) -> Vec<std::ops::Range<u64>> {
            self.0.parts()
        }
        fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
            self.0.read(at, bytes)?;
            let reads = self.1.fetch_add(u64::from(at == 7), std::sync::atomic::Ordering::Relaxed);
            bytes[9] ^= u8::from(at == 7 && reads == 0);
            Ok(())
        }
        fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
            self.0.write(at, bytes)
        }
        fn write_durable(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
            self.0.write_durable(at, bytes)
        }
        fn flush(&self) -> Result<(), IoFailed> {
            self.0.flush()
        }
    }
    let disk = closed();
    let found = find(&disk).unwrap().unwrap();
    let summed = Summed::open(Once(disk, 0.into()), &found, true).unwrap();
    let mut block = [0; 4096];
    summed.read(6, &mut block).unwrap();
    assert_eq!(block, content(6, 3));
    assert_eq!(summed.details().damaged_reads, 0);
}

#[test]
fn one_whole_copy_of_the_header_is_enough() {
    let copy = header(BLOCKS).layout.copy_at();
    for at in [0, copy] {
        let disk = closed();
        disk.flip(at, 20);
        let summed = open(&disk);
        assert!(summed.details().damaged_header);
        assert_eq!(read(&summed, 5), Ok(3));
        drop(summed);
        assert!(!open(&disk).details().damaged_header, "it was made anew");
    }
    let disk = closed();
    disk.flip(0, 20);
    disk.flip(copy, 20);
    assert!(find(&disk).unwrap().is_none());
}

/// A volume without checksums has none, whatever lies behind it; a header of a newer build is refused.
#[test]
fn what_is_no_cache_with_checksums_is_told() {
    assert!(find(&Disk::new(40)).unwrap().is_none());
    assert!(find(&Disk::new(0)).unwrap().is_none());
    let disk = closed();
    let shorter = Disk::of(disk.blocks() - 1, disk.image());
    assert!(find(&shorter).unwrap().is_none());
    let mut newer = header(BLOCKS).encode();
    newer[8] = 2;
    let sum = onefold_format::checksum(&newer[..48]);
    newer[48..52].copy_from_slice(&sum.to_le_bytes());
    disk.write(0, &newer).unwrap();
    assert!(matches!(find(&disk), Err(CacheHeaderError::Version(2))));
}

/// Where dirty bits rotted, nothing is taken for right that is not: what was not cleaned since is an error.
#[test]
fn rot_of_dirty_bits_makes_no_wrong_block_right() {
    let disk = closed();
    let summed = open(&disk);
    write(&summed, 5, 4).unwrap();
    summed.flush(Duration::ZERO).unwrap();
    // Neither closed nor cleaned: the bit says so.
    disk.flip(header(BLOCKS).layout.bits_at(), 3);
    let again = open(&disk);
    assert_eq!((again.details().damaged_bits, again.details().remade_regions), (1, 0));
    assert_eq!((read(&again, 5), read(&again, 6)), (Err(IoFailed::Error), Ok(3)));
    drop(again);
    assert_eq!(open(&disk).details().damaged_bits, 0, "they were made anew");
}

/// Without leave to change anything, blocks of dirty regions are not judged, and others are.
#[test]
fn a_device_that_may_not_be_changed_is_not() {
    let disk = closed();
    let summed = open(&disk);
    write(&summed, 5, 4).unwrap();
    summed.flush(Duration::ZERO).unwrap();
    disk.flip(1 + 1030, 9);
    let events = disk.events().len();
    let found = find(&disk).unwrap().unwrap();
    let looked = Summed::open(disk.clone(), &found, false).unwrap();
    assert_eq!((read(&looked, 5), read(&looked, 1030)), (Ok(4), Err(IoFailed::Error)));
    let scan = looked.scan();
    assert_eq!((scan.unknown, scan.checked, scan.differing), (1024, 100, 1));
    let details = looked.details();
    assert_eq!((details.dirty_regions, details.remade_regions), (1, 0));
    assert_eq!(disk.events().len(), events);
}
