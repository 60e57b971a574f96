//! Lifetime counters of an image: exact after a clean stop, as old as the last flush after a kill, and never invented.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::{Folder, TEXT, plain, zones};
use onefold_device::{
    Access, BlockDevice, Image, KeptLifetime, Lifetime, Select, SsdDevice, ZnsConfig, ZoneAction,
    ZonedDevice,
};
use onefold_format::{ImageLabel, LABEL_BYTES};
use onefold_units::convert::index64;
use onefold_units::{Cause, ZoneId};

const BLOCK: u64 = 4096;

fn kept(folder: &Folder) -> KeptLifetime {
    Image::open(&folder.path(), Access::ReadOnly).unwrap().lifetime()
}

fn counters(folder: &Folder) -> Lifetime {
    match kept(folder) {
        KeptLifetime::Counters(counters) => counters,
        other => panic!("{other:?}"),
    }
}

fn write(device: &SsdDevice, blocks: u64) {
    for block in 0..blocks {
        device.write(block * BLOCK, &[7; 4096], false).unwrap();
    }
}

/// Where the data ends, and how long the file is.
fn end(folder: &Folder) -> (u64, u64) {
    let bytes = Image::open(&folder.path(), Access::ReadOnly).unwrap().file_bytes();
    (bytes - 2 * BLOCK, bytes)
}

/// Makes the image one that a build wrote which does not count.
fn make_old(folder: &Folder, cuts_off: bool) {
    let (data, _) = end(folder);
    let file = OpenOptions::new().read(true).write(true).open(folder.path()).unwrap();
    for copy in 0..2 {
        let offset = u64::from(copy) * u64::try_from(LABEL_BYTES).unwrap();
        let mut bytes = vec![0; LABEL_BYTES];
        file.read_exact_at(&mut bytes, offset).unwrap();
        let label = ImageLabel::decode(&bytes, copy).unwrap();
        let old = ImageLabel { counts: false, ..label };
        file.write_all_at(&old.encode().unwrap(), offset).unwrap();
    }
    if cuts_off {
        file.set_len(data).unwrap();
    }
}

#[test]
fn a_clean_stop_keeps_every_count() {
    let folder = Folder::new(&plain());
    let made = counters(&folder);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(made.since <= now && now - made.since < 600, "{}", made.since);
    assert_eq!(made, Lifetime { since: made.since, ..Lifetime::default() });
    let mut erases = 0;
    for cycle in 1..4 {
        let device = folder.open().device;
        for _ in 0..4 {
            write(&device, device.size() / BLOCK);
        }
        device.read(0, &mut [0; 8192]).unwrap();
        device.trim(0, 3 * BLOCK).unwrap();
        device.write_zeroes(BLOCK, BLOCK, true, false).unwrap();
        assert!(
            device.read(device.size(), &mut [0; 512]).is_err(),
            "what is refused is not counted"
        );
        let served = device.lifetime().unwrap();
        device.close().unwrap();
        assert_eq!(device.lifetime(), None);
        let size = device.size();
        drop(device);
        let found = counters(&folder);
        assert_eq!(found.since, made.since);
        assert_eq!(found.host_written_bytes, cycle * 4 * size);
        assert_eq!(found.host_read_bytes, cycle * 8192);
        assert_eq!(found.host_discarded_bytes, cycle * 4 * BLOCK);
        assert_eq!((found.power_cycles, found.unclean_starts, found.failed_reads), (cycle, 0, 0));
        assert_eq!(found.programs.of(Cause::User), found.host_written_bytes / BLOCK);
        assert!(found.programs.of(Cause::Checkpoint) > served.programs.of(Cause::Checkpoint));
        assert!(found.erases > erases && found.erases >= served.erases);
        erases = found.erases;
    }
}

#[test]
fn a_kill_loses_at_most_what_came_after_a_flush() {
    let folder = Folder::new(&plain());
    let device = folder.open().device;
    write(&device, 5);
    device.flush().unwrap();
    write(&device, 3);
    drop(device);
    let found = counters(&folder);
    assert_eq!((found.host_written_bytes, found.power_cycles), (5 * BLOCK, 1));
    assert_eq!(found.unclean_starts, 0, "that is known when it is opened");
    let device = folder.open().device;
    device.write(0, &[1; 4096], true).unwrap();
    drop(device);
    let found = counters(&folder);
    assert_eq!(found.host_written_bytes, 6 * BLOCK, "a write with FUA saves them, too");
    assert_eq!((found.power_cycles, found.unclean_starts), (2, 1));
    folder.open().device.close().unwrap();
    folder.open().device.close().unwrap();
    assert_eq!((counters(&folder).power_cycles, counters(&folder).unclean_starts), (4, 2));
}

/// A copy that a flush made durable was written again by the next: torn, it took all counts with it.
#[test]
fn two_flushes_do_not_write_the_same_copy() {
    let folder = Folder::new(&plain());
    let device = folder.open().device;
    write(&device, 5);
    device.flush().unwrap();
    write(&device, 1);
    device.flush().unwrap();
    drop(device);
    let (data, _) = end(&folder);
    let file = OpenOptions::new().read(true).write(true).open(folder.path()).unwrap();
    let mut left = [0, BLOCK].map(|copy| {
        let mut whole = [0; 512];
        file.read_exact_at(&mut whole, data + copy).unwrap();
        file.write_all_at(&[0xA5; 40], data + copy + 100).unwrap();
        let left = counters(&folder).host_written_bytes;
        file.write_all_at(&whole, data + copy).unwrap();
        left
    });
    left.sort_unstable();
    assert_eq!(left, [5 * BLOCK, 6 * BLOCK]);
}

#[test]
fn counters_are_saved_beside_requests_now_and_then() {
    let folder = Folder::new(&plain());
    let device = folder.open().device;
    write(&device, 5);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    device.read(0, &mut [0; 512]).unwrap();
    let saved = Image::saved_lifetime(&folder.path()).unwrap();
    assert_eq!(saved, KeptLifetime::Counters(device.lifetime().unwrap()));
    drop(device);
    assert_eq!(counters(&folder).host_written_bytes, 5 * BLOCK);
}

#[test]
fn an_older_image_counts_from_its_first_opening() {
    for cuts_off in [false, true] {
        let folder = Folder::new(&plain());
        let device = folder.open().device;
        write(&device, 5);
        device.close().unwrap();
        drop(device);
        let (data, whole) = end(&folder);
        make_old(&folder, cuts_off);
        assert_eq!(
            std::fs::metadata(folder.path()).unwrap().len(),
            if cuts_off { data } else { whole }
        );
        assert_eq!(kept(&folder), KeptLifetime::Nothing, "what another build did is not known");
        let device = folder.open().device;
        write(&device, 2);
        device.flush().unwrap();
        drop(device);
        assert_eq!(std::fs::metadata(folder.path()).unwrap().len(), whole);
        let found = counters(&folder);
        assert_eq!((found.host_written_bytes, found.power_cycles), (2 * BLOCK, 1));
        assert!(folder.is_whole());
    }
}

#[test]
fn one_damaged_copy_does_no_harm_and_two_start_anew() {
    let folder = Folder::new(&plain());
    for _ in 0..2 {
        let device = folder.open().device;
        write(&device, 5);
        device.close().unwrap();
    }
    let (data, _) = end(&folder);
    let file = OpenOptions::new().read(true).write(true).open(folder.path()).unwrap();
    let whole = [0, BLOCK].map(|copy| {
        let mut bytes = [0; 512];
        file.read_exact_at(&mut bytes, data + copy).unwrap();
        bytes
    });
    let mut left = Vec::new();
    for (copy, bytes) in [0, BLOCK].into_iter().zip(whole) {
        file.write_all_at(&[0xA5; 40], data + copy + 100).unwrap();
        left.push(counters(&folder).host_written_bytes);
        file.write_all_at(&bytes, data + copy).unwrap();
    }
    left.sort_unstable();
    assert!(left[0] >= 5 * BLOCK && left[1] == 10 * BLOCK, "{left:?}");
    for copy in [0, BLOCK] {
        file.write_all_at(&[0xA5; 40], data + copy + 100).unwrap();
    }
    assert_eq!(kept(&folder), KeptLifetime::Damaged);
    assert!(folder.is_whole(), "data is not affected");
    let device = folder.open().device;
    write(&device, 1);
    device.close().unwrap();
    drop(device);
    let found = counters(&folder);
    assert_eq!((found.host_written_bytes, found.power_cycles), (BLOCK, 1));
}

#[test]
fn zones_count_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zoned.img");
    let config: ZnsConfig = zones(4, 16);
    drop(Image::create(&path, &config, TEXT.to_owned()).unwrap());
    let open = || {
        let image = Image::open(&path, Access::Exclusive).unwrap();
        ZonedDevice::open(image, &config).unwrap().device
    };
    let found = || match Image::saved_lifetime(&path).unwrap() {
        KeptLifetime::Counters(counters) => counters,
        other => panic!("{other:?}"),
    };
    let device = open();
    device.write(0, &[1; 3 * 4096], false).unwrap();
    device.flush().unwrap();
    device.write(3, &[1; 4096], false).unwrap();
    drop(device);
    assert_eq!((found().host_written_bytes, found().unclean_starts), (3 * BLOCK, 0));
    let device = open();
    device.read(0, &mut vec![0; index64(2 * BLOCK)]).unwrap();
    device.manage(Select::One(ZoneId::new(0)), ZoneAction::Reset).unwrap();
    device.write(0, &vec![1; index64(16 * BLOCK)], false).unwrap();
    device.close().unwrap();
    let counters = found();
    assert_eq!((counters.host_written_bytes, counters.host_read_bytes), (19 * BLOCK, 2 * BLOCK));
    assert_eq!((counters.power_cycles, counters.unclean_starts), (2, 1));
    assert!(counters.programs.of(Cause::User) >= 16, "a full zone is programmed");
}
