//! The FUSE file, mounted (needs root and /dev/fuse).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use onefold_device::BlockDevice;
use onefold_device::observed::{Frontend, Observed};
use onefold_serve::{Options, ServeError, Server};
use onefold_units::Op;
use rustix::fs::{FallocateFlags, fallocate};

use crate::common::device::TestDevice;
use crate::common::memory::MemoryDevice;
use crate::common::skip;

const SIZE: u64 = 8 << 20;

fn can_mount(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        skip(test, "root");
        return false;
    }
    if !Path::new("/dev/fuse").exists() {
        skip(test, "/dev/fuse");
        return false;
    }
    true
}

fn options(dir: &Path) -> Options {
    let mut options = Options::new("disk");
    options.fuse = Some(dir.to_owned());
    options
}

/// Without this a test would read and write the host's own disk.
fn open(dir: &Path) -> File {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(mounts.contains(&format!("onefold {} fuse", dir.display())), "not in {mounts}");
    OpenOptions::new().read(true).write(true).open(dir.join("disk")).unwrap()
}

/// The file system said that its blocks had 512 bytes, so that loop devices discarded parts of pages.
#[test]
fn blocks_are_pages() {
    if !can_mount("blocks_are_pages") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server =
        Server::start(Observed::new(MemoryDevice::new(SIZE)), &options(dir.path())).unwrap();
    let file = open(dir.path());
    let told = rustix::fs::fstatvfs(&file).unwrap();
    assert_eq!((told.f_bsize, told.f_frsize, told.f_blocks), (4096, 4096, SIZE / 4096));
    assert_eq!((told.f_bfree, file.metadata().unwrap().blksize()), (0, 4096));
    drop(file);
    server.stop().unwrap();
}

#[test]
fn the_file_is_the_device() {
    if !can_mount("the_file_is_the_device") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (device, behaviour) = TestDevice::new(SIZE);
    let server = Server::start(Observed::new(device), &options(dir.path())).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["disk"]);
    let file = open(dir.path());
    let metadata = file.metadata().unwrap();
    assert_eq!((metadata.len(), metadata.mode() & 0o777), (SIZE, 0o600));
    assert_eq!(metadata.blksize(), 16_384, "the unit of the device");

    let data: Vec<u8> = (0..3_u32 << 20).map(|n| (n >> 10).to_le_bytes()[0]).collect();
    file.write_all_at(&data, 12_345).unwrap();
    file.sync_all().unwrap();
    assert_eq!(behaviour.flushes.load(Ordering::SeqCst), 1);
    let mut back = vec![0; data.len()];
    server.observed().read(12_345, &mut back).unwrap();
    assert!(back == data, "the device holds what was written");

    punch_and_zero(&file, &server);
    assert!(file.write_at(&[1], SIZE).is_err(), "the file does not grow");
    assert!(file.set_len(SIZE + 1).is_err() && file.set_len(0).is_err());
    assert!(File::create(dir.path().join("other")).is_err());
    drop(file);
    let nbd = *server.observed().counts().frontend(Frontend::Fuse);
    assert_eq!((nbd.op(Op::Trim).requests, nbd.op(Op::WriteZeroes).requests), (1, 1));
    let before = behaviour.flushes.load(Ordering::SeqCst);
    server.stop().unwrap();
    assert_eq!(behaviour.flushes.load(Ordering::SeqCst), before + 1, "the final flush");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it is unmounted");
}

/// A punched hole may be a write-zeroes of the file system: it is never a plain trim.
fn punch_and_zero(file: &File, server: &Server<TestDevice>) {
    let modes = [
        (FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE, 0, false),
        (FallocateFlags::KEEP_SIZE | FallocateFlags::ZERO_RANGE, 65_536, true),
    ];
    for (mode, offset, mapped) in modes {
        file.write_all_at(&[9; 16_384], offset).unwrap();
        fallocate(file, mode, offset + 4096, 8192).unwrap();
        let mut bytes = vec![1; 16_384];
        server.observed().read(offset, &mut bytes).unwrap();
        assert_eq!(bytes, [vec![9; 4096], vec![0; 8192], vec![9; 4096]].concat());
        assert_eq!(server.observed().extent(offset + 4096, 4096).unwrap().mapped, mapped);
    }
    for mode in [FallocateFlags::empty(), FallocateFlags::ZERO_RANGE, FallocateFlags::KEEP_SIZE] {
        let error = fallocate(file, mode, 0, 4096).unwrap_err();
        assert_eq!(error, rustix::io::Errno::OPNOTSUPP, "{mode:?}");
    }
}

/// The kernel would believe the size it was told first for an hour.
#[test]
fn a_new_size_shows_at_once() {
    if !can_mount("a_new_size_shows_at_once") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (device, behaviour) = TestDevice::new(SIZE);
    behaviour.short_by.store(SIZE / 2, Ordering::SeqCst);
    let server = Server::start(Observed::new(device), &options(dir.path())).unwrap();
    let file = open(dir.path());
    let (mut one, half) = ([0], SIZE / 2);
    assert_eq!(file.metadata().unwrap().len(), half);
    assert_eq!(file.read_at(&mut one, half).unwrap(), 0, "nothing is behind the end");
    behaviour.shorten(0, SIZE);
    assert_eq!(file.read_at(&mut one, half).unwrap(), 1);
    assert_eq!(file.metadata().unwrap().len(), SIZE);
    file.write_all_at(&[7; 4096], SIZE - 4096).unwrap();
    let read = file.read_at(&mut one, SIZE - 1).unwrap();
    assert_eq!((read, one), (1, [7]));
    behaviour.shorten(half, half);
    assert_eq!(file.metadata().unwrap().len(), half);
    assert_eq!(file.read_at(&mut one, SIZE - 1).unwrap(), 0, "what was known of it is forgotten");
    assert!(file.write_at(&[1], SIZE - 1).is_err());
    drop(file);
    server.stop().unwrap();
}

#[test]
fn delayed_replies_come_when_they_are_due() {
    if !can_mount("delayed_replies_come_when_they_are_due") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (device, behaviour) = TestDevice::new(SIZE);
    let server = Server::start(Observed::new(device), &options(dir.path())).unwrap();
    let file = open(dir.path());
    behaviour.delay_us.store(20_000, Ordering::SeqCst);
    let start = Instant::now();
    file.write_all_at(&[1; 4096], 0).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(20));
    drop(file);
    server.stop().unwrap();
}

#[test]
fn a_file_in_use_does_not_keep_the_server() {
    if !can_mount("a_file_in_use_does_not_keep_the_server") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.limits.drain = Duration::from_millis(300);
    let server = Server::start(Observed::new(MemoryDevice::new(SIZE)), &options).unwrap();
    let file = open(dir.path());
    let start = Instant::now();
    server.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it is detached");
    drop(file);
}

#[test]
fn a_missing_directory_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let missing = options(&dir.path().join("nothing"));
    match Server::start(Observed::new(MemoryDevice::new(SIZE)), &missing) {
        Err(error @ ServeError::Mount { .. }) => {
            assert!(error.to_string().contains("expected an empty directory"), "{error}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it started"),
    }
}
