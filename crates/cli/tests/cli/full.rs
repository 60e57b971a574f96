//! A host whose file system is full under a served device: a small one of its own, which takes root. Skipped without.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Folder, Server, message, text};
use onefold_serve::nbd::{Client, ClientError, Endpoint};
use serde_json::Value;

const PIECE: usize = 64 << 10;
/// ENOSPC in NBD.
const NO_SPACE: u32 = 28;

/// A file system of 64 MiB in its own folder, with 8 MiB taken.
struct Host {
    /// Unmounted before its folder goes.
    folder: Folder,
}

impl Host {
    /// A file system of that kind; `None` where it cannot be made.
    fn new(name: &str, kind: &str) -> Option<Self> {
        let host = Self { folder: Folder::new(name) };
        fs::create_dir(host.at("mnt")).unwrap();
        let (mount, disk) = (host.at("mnt"), host.at("disk"));
        let made = if kind == "tmpfs" {
            run("mount", &["-t", "tmpfs", "-o", "size=64m", "tmpfs", text(&mount)])
        } else {
            fs::File::create(&disk).unwrap().set_len(64 << 20).unwrap();
            // Blocks set aside for root would hide a full file system from this test.
            run(&format!("mkfs.{kind}"), &["-q", "-m", "0", text(&disk)])
                && run("mount", &["-o", "loop", text(&disk), text(&mount)])
        };
        if !made {
            eprintln!("skipped 1 case: cannot mount a file system of kind {kind} here");
            return None;
        }
        fs::write(host.ballast(), vec![1; 8 << 20]).unwrap();
        Some(host)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn ballast(&self) -> PathBuf {
        self.at("mnt").join("ballast")
    }

    fn image(&self) -> PathBuf {
        self.at("mnt").join("image")
    }

    fn socket(&self) -> PathBuf {
        self.at("nbd")
    }

    fn make_room(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn serve(&self, noun: &str, more: &[&str]) -> (Server, Disk) {
        let server = Server::start_noun(noun, &self.image(), &self.socket(), more);
        let client = Client::device(&Endpoint::Unix(self.socket())).unwrap();
        (server, Disk { client, acknowledged: 0 })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        run("umount", &["-l", text(&self.at("mnt"))]);
    }
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn onefold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).args(arguments).output().unwrap()
}

/// A served device that is written from its beginning on.
struct Disk {
    client: Client,
    /// Pieces that were acknowledged.
    acknowledged: usize,
}

fn piece(number: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    bytes.iter().copied().cycle().take(PIECE).map(|byte| byte ^ 0x5A).collect()
}

fn offset(number: usize) -> u64 {
    u64::try_from(number * PIECE).unwrap()
}

fn errno(done: Result<(), ClientError>) -> Option<u32> {
    match done {
        Ok(()) => None,
        Err(ClientError::Request { errno }) => Some(errno),
        Err(other) => panic!("{other}"),
    }
}

impl Disk {
    fn write(&mut self) -> Option<u32> {
        let number = self.acknowledged;
        let failed = errno(self.client.write(offset(number), &piece(number), false));
        self.acknowledged += usize::from(failed.is_none());
        failed
    }

    /// Writes and flushes until there is no room. What was flushed last.
    fn fill(&mut self) -> usize {
        let mut durable = 0;
        loop {
            let failed = if self.acknowledged % 16 == 15 {
                let failed = errno(self.client.flush());
                durable = if failed.is_none() { self.acknowledged } else { durable };
                failed.or_else(|| self.write())
            } else {
                self.write()
            };
            if let Some(failed) = failed {
                assert_eq!(failed, NO_SPACE, "after {} pieces", self.acknowledged);
                return durable;
            }
            assert!(self.acknowledged < 2000, "the host does not get full");
        }
    }

    fn expect_all(&mut self, count: usize) {
        let mut back = vec![0; PIECE];
        for number in 0..count {
            self.client.read(offset(number), &mut back).unwrap();
            assert!(back == piece(number), "piece {number} of {count}");
        }
    }
}

fn info(host: &Host) -> Value {
    let output = onefold(&["ssd", "info", text(&host.image()), "--format", "json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn make(host: &Host) {
    let made =
        onefold(&["ssd", "create", text(&host.image()), "--preset", "s1", "--size", "96MiB"]);
    assert!(made.status.success(), "{}", message(&made));
    assert!(message(&made).contains("the file system of the host has"), "{}", message(&made));
    let shown = onefold(&["ssd", "info", text(&host.image())]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("may grow by"));
}

/// The server answered EIO to every request, reads included, and did so until it was restarted, also with room again.
fn an_ssd_goes_on(kind: &str) {
    let Some(host) = Host::new(&format!("full-{kind}"), kind) else { return };
    make(&host);
    let (server, mut disk) = host.serve("ssd", &["--latency", "none"]);
    let durable = disk.fill();
    assert!(durable > 100, "{durable} pieces fit");
    for _ in 0..20 {
        assert_eq!(disk.write(), Some(NO_SPACE));
        assert_eq!(errno(disk.client.flush()), Some(NO_SPACE));
    }
    disk.expect_all(disk.acknowledged);
    let live = &info(&host)["device"]["live"]["image"];
    assert_eq!(live["state"], "host_full", "{live}");
    assert!(live["refused_requests"].as_u64() >= Some(40), "{live}");

    host.make_room();
    assert_eq!(disk.write(), None);
    assert_eq!(errno(disk.client.flush()), None);
    let durable = disk.acknowledged;
    disk.expect_all(durable);
    assert_eq!(info(&host)["device"]["live"]["image"]["state"], "ok");
    drop(disk);
    let (code, said) = server.terminate_with_messages();
    assert_eq!(code, Some(0), "{said:?}");
    let times = |part: &str| said.iter().filter(|line| line.contains(part)).count();
    assert_eq!((times("is full"), times("takes writes again")), (1, 1), "{said:?}");
    assert!(!said.iter().any(|line| line.contains("errno") || line.contains("Poisoned")));

    let (server, mut disk) = host.serve("ssd", &["--latency", "none"]);
    disk.expect_all(durable);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
    let check = onefold(&["ssd", "check", text(&host.image())]);
    assert_eq!(check.status.code(), Some(0), "{}", message(&check));
}

#[test]
fn an_ssd_goes_on_when_a_tmpfs_has_room_again() {
    an_ssd_goes_on("tmpfs");
}

#[test]
fn an_ssd_goes_on_when_an_ext4_has_room_again() {
    an_ssd_goes_on("ext4");
}

#[test]
fn a_killed_server_on_a_full_host_loses_nothing_that_was_flushed() {
    let Some(host) = Host::new("full-kill", "tmpfs") else { return };
    make(&host);
    let (server, mut disk) = host.serve("ssd", &["--latency", "none"]);
    let durable = disk.fill();
    drop((disk, server));
    fs::remove_file(host.socket()).unwrap();
    // The host is still full: the device opens, and reads go on.
    let (server, mut disk) = host.serve("ssd", &["--latency", "none"]);
    disk.expect_all(durable);
    disk.acknowledged = durable;
    host.make_room();
    assert_eq!((disk.write(), errno(disk.client.flush())), (None, None));
    disk.expect_all(disk.acknowledged);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn writes_wait_for_room_if_asked_and_reads_do_not() {
    let Some(host) = Host::new("full-block", "tmpfs") else { return };
    make(&host);
    let (server, mut disk) = host.serve("ssd", &["--latency", "none", "--on-full", "block"]);
    disk.expect_all(0);
    let socket = host.socket();
    let writer = std::thread::spawn(move || {
        // One more piece than there is room for, and the flush of it.
        while disk.acknowledged < 1000 {
            assert_eq!(disk.write(), None);
        }
        assert_eq!(errno(disk.client.flush()), None);
        disk
    });
    while info(&host)["device"]["live"]["image"]["state"] != "host_full" {
        assert!(!writer.is_finished(), "there was room for everything");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut reader = Client::device(&Endpoint::Unix(socket)).unwrap();
    let mut back = vec![0; PIECE];
    reader.read(0, &mut back).unwrap();
    assert!(back == piece(0) && !writer.is_finished());
    host.make_room();
    let mut disk = writer.join().unwrap();
    disk.expect_all(1000);
    drop((disk, reader));
    assert_eq!(server.terminate(), Some(0));
}

/// What was written is in memory.
#[test]
fn a_flush_of_a_volume_waits_for_room_if_asked() {
    let Some(host) = Host::new("full-flush", "tmpfs") else { return };
    let image = host.image();
    let create = ["volume", "create", text(&image), "--size", "128MiB", "--backing-size", "256MiB"];
    let made = onefold(&create);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let (server, mut disk) = host.serve("volume", &["--on-full", "block"]);
    let filled = fs::write(host.at("mnt").join("filler"), vec![1; 64 << 20]);
    assert!(filled.is_err(), "it takes all that was left");
    assert_eq!(disk.write(), None);
    let flush = std::thread::spawn(move || (errno(disk.client.flush()), disk));
    std::thread::sleep(Duration::from_secs(1));
    assert!(!flush.is_finished(), "there is no room");
    host.make_room();
    let (flushed, mut disk) = flush.join().unwrap();
    assert_eq!(flushed, None);
    disk.expect_all(1);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
}

/// Its cache lies on the full file system, its zones do not.
#[test]
fn writes_to_a_zoned_volume_wait_for_room_if_asked() {
    const PIECES: usize = 1200;
    let Some(host) = Host::new("full-dmz", "tmpfs") else { return };
    let (image, cache) = (host.folder.zoned_image("128MiB"), host.at("mnt").join("cache"));
    let of_cache = ["--cache", text(&cache)];
    let create = ["volume", "create", text(&image), "--zoned", "dmz", "--cache-size", "80MiB"];
    let made = onefold(&[&create[..], &of_cache].concat());
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let more = [&of_cache[..], &["--on-full", "block"]].concat();
    let server = Server::start_noun("volume", &image, &host.socket(), &more);
    let client = || Client::device(&Endpoint::Unix(host.socket())).unwrap();
    let mut disk = Disk { client: client(), acknowledged: 0 };
    let done = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&done);
    let writer = std::thread::spawn(move || {
        while disk.acknowledged < PIECES {
            assert_eq!(disk.write(), None);
            told.store(disk.acknowledged, Ordering::Relaxed);
        }
        assert_eq!(errno(disk.client.flush()), None);
        disk
    });
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = done.load(Ordering::Relaxed);
        assert!(now < PIECES, "there was room for everything");
        if now > 0 && now == std::mem::replace(&mut before, now) {
            break;
        }
    }
    let mut back = vec![0; PIECE];
    client().read(0, &mut back).unwrap();
    assert!(back == piece(0) && !writer.is_finished());
    assert!(run("mount", &["-o", "remount,size=128m", text(&host.at("mnt"))]));
    let mut disk = writer.join().unwrap();
    disk.expect_all(PIECES);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn info_tells_the_room_under_a_volume_served_or_not() {
    let Some(host) = Host::new("full-info", "tmpfs") else { return };
    let path = host.image();
    let made =
        onefold(&["volume", "create", text(&path), "--backing-size", "128MiB", "--size", "96MiB"]);
    assert!(made.status.success(), "{}", message(&made));
    let told = || {
        let table = onefold(&["volume", "info", text(&path)]);
        let table = String::from_utf8(table.stdout).unwrap();
        assert!(table.contains("and the file system of the host has"), "{table}");
        let json = onefold(&["volume", "info", text(&path), "--format", "json"]);
        let info: Value = serde_json::from_slice(&json.stdout).unwrap();
        assert!(info["host"][0]["host_free_bytes"].as_u64().unwrap() < 64 << 20, "{info}");
    };
    told();
    let (server, disk) = host.serve("volume", &[]);
    told();
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_volume_goes_on_when_the_host_has_room_again() {
    let Some(host) = Host::new("full-volume", "tmpfs") else { return };
    let path = host.image();
    let made =
        onefold(&["volume", "create", text(&path), "--backing-size", "128MiB", "--size", "96MiB"]);
    assert!(made.status.success(), "{}", message(&made));
    assert!(message(&made).contains("the file system of the host has"), "{}", message(&made));
    let (server, mut disk) = host.serve("volume", &[]);
    let durable = disk.fill();
    assert_eq!(disk.write(), Some(NO_SPACE));
    disk.expect_all(durable);
    host.make_room();
    // It tries again by itself, each second.
    while disk.write() == Some(NO_SPACE) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(errno(disk.client.flush()), None);
    let durable = disk.acknowledged;
    disk.expect_all(durable);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
    let (server, mut disk) = host.serve("volume", &[]);
    disk.expect_all(durable);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
    let check = onefold(&["volume", "check", text(&path)]);
    assert_eq!(check.status.code(), Some(0), "{}", message(&check));
}

/// What the cache lies on is full. The driver told the volume that the device failed.
#[test]
fn a_zoned_volume_goes_on_when_the_host_of_its_cache_has_room_again() {
    let Some(host) = Host::new("full-dmz", "tmpfs") else { return };
    goes_on_when_its_cache_has_room_again(&host, &[]);
}

/// Checksums have their room from the beginning.
#[test]
fn a_zoned_volume_with_checksums_goes_on_when_the_host_of_its_cache_has_room_again() {
    let Some(host) = Host::new("full-dmz-sums", "tmpfs") else { return };
    goes_on_when_its_cache_has_room_again(&host, &["--cache-checksums"]);
}

fn goes_on_when_its_cache_has_room_again(host: &Host, options: &[&str]) {
    fs::write(host.ballast(), vec![1; 40 << 20]).unwrap();
    let (zoned, cache) = (host.folder.zoned_image("128MiB"), host.image());
    let made = ["volume", "create", text(&zoned), "--zoned", "dmz", "--cache", text(&cache)];
    let made = onefold(&[&made[..], &["--cache-size", "96MiB"], options].concat());
    assert!(made.status.success(), "{}", message(&made));
    let serve = || {
        let more = ["--cache", text(&cache)];
        let server = Server::start_noun("volume", &zoned, &host.socket(), &more);
        let client = Client::device(&Endpoint::Unix(host.socket())).unwrap();
        (server, Disk { client, acknowledged: 0 })
    };
    let (server, mut disk) = serve();
    let durable = disk.fill();
    assert!(durable > 100, "{durable} pieces fit");
    assert_eq!(disk.write(), Some(NO_SPACE));
    disk.expect_all(disk.acknowledged);

    host.make_room();
    // Metadata that waits is sent again within a second; until then changes are refused.
    let begin = Instant::now();
    while disk.write().is_some() {
        assert!(begin.elapsed() < Duration::from_mins(1), "it does not go on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(errno(disk.client.flush()), None);
    let durable = disk.acknowledged;
    disk.expect_all(durable);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
    let (server, mut disk) = serve();
    disk.expect_all(durable);
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
    let check = onefold(&["volume", "check", text(&zoned), "--cache", text(&cache)]);
    assert_eq!(check.status.code(), Some(0), "{}", message(&check));
}
