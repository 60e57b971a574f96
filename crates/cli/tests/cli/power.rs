//! Power cuts of a drive that is served, and clients that live through them.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use onefold_serve::nbd::{Client, Endpoint};

use crate::common::{Folder, Server, json, message, ssd, text};

const BLOCK: usize = 4096;

fn connect(socket: &Path) -> Client {
    Client::device(&Endpoint::Unix(socket.to_owned())).unwrap()
}

fn at(block: u64) -> u64 {
    block * 4096
}

/// What a block holds; `None` if the connection is gone.
fn try_block(client: &mut Client, number: u64) -> Option<u8> {
    let mut bytes = [0; BLOCK];
    client.read(at(number), &mut bytes).ok()?;
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {number} is torn");
    Some(bytes[0])
}

fn block(client: &mut Client, number: u64) -> u8 {
    try_block(client, number).unwrap()
}

/// A new connection with what the first blocks hold. The next power cut may come before all are read.
fn read_again(socket: &Path, deadline: Instant) -> (Client, [u8; 64]) {
    let mut found = [0; 64];
    loop {
        assert!(Instant::now() < deadline, "no connection lives long enough");
        let Ok(mut client) = Client::device(&Endpoint::Unix(socket.to_owned())) else { continue };
        let mut blocks = (0..).zip(&mut found);
        let read = |(number, byte): (u64, &mut u8)| {
            try_block(&mut client, number).map(|found| *byte = found).is_some()
        };
        if blocks.all(read) {
            return (client, found);
        }
    }
}

/// Waits until the drive has come up so often after a cut.
fn wait_for_cuts(image: &Path, cuts: u64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let unclean = || json(&["info", text(image)])["device"]["lifetime"]["unclean_starts"].as_u64();
    while unclean().unwrap() < cuts {
        assert!(Instant::now() < deadline, "no power cut");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_was_flushed_survives_a_cut_and_the_drive_is_served_on() {
    let folder = Folder::new("cut-after");
    let (image, socket) = (folder.image(), folder.0.join("nbd"));
    let server = Server::start_with(&image, &socket, &["--cut", "after=48writes"]);
    let mut client = connect(&socket);
    for number in 0..32 {
        client.write(at(number), &[1; BLOCK], false).unwrap();
    }
    client.flush().unwrap();
    // Less than the server keeps to write it together: all of it is in memory.
    let answered = (0..32).take_while(|n| client.write(at(*n), &[2; BLOCK], false).is_ok());
    assert_eq!(answered.count(), 15, "the 48th write has no answer");
    assert!(client.flush().is_err(), "a connection from before the cut");

    let mut client = connect(&socket);
    for number in 0..32 {
        assert_eq!(block(&mut client, number), 1, "block {number}");
    }
    client.write(at(40), &[3; BLOCK], false).unwrap();
    client.flush().unwrap();
    for number in 0..100 {
        client.write(at(number), &[4; BLOCK], false).unwrap();
    }
    client.flush().unwrap();
    assert_eq!((block(&mut client, 40), block(&mut client, 99)), (4, 4));
    let lifetime = json(&["info", text(&image)])["device"]["lifetime"].clone();
    assert_eq!((&lifetime["power_cycles"], &lifetime["unclean_starts"]), (&2.into(), &1.into()));
    let (code, said) = server.terminate_with_messages();
    assert_eq!(code, Some(0), "{said:?}");
    let cuts: Vec<_> = said.iter().filter(|line| line.starts_with("power cut ")).collect();
    assert_eq!(cuts.len(), 1, "{said:?}");
    assert!(cuts[0].contains(
        ": 16 writes (64 KiB) were not flushed, 64 KiB in memory dropped; recovered in "
    ));
    let check = json(&["check", text(&image)]);
    assert_eq!((&check["damaged"], &check["clean_shutdown"]), (&false.into(), &true.into()));
}

/// A client that writes, flushes and connects again whenever its connection ends, over cuts at any moment, with a buffer.
#[test]
fn a_client_that_connects_again_lives_through_cuts() {
    let folder = Folder::new("cut-every");
    let (image, socket) = (folder.0.join("disk.img"), folder.0.join("nbd"));
    let create = ["create", text(&image), "--size", "64MiB", "--set", "buffer.size=1MiB"];
    assert_eq!(ssd(&create).status.code(), Some(0));
    let server = Server::start_with(&image, &socket, &["--cut", "every=100ms"]);
    // Of each block what a flush covered, and what was written after that.
    let mut flushed = [0_u8; 64];
    let mut since = vec![Vec::new(); 64];
    let mut client = connect(&socket);
    let (mut value, mut cuts) = (0_u8, 0);
    let deadline = Instant::now() + Duration::from_mins(1);
    while cuts < 5 {
        assert!(Instant::now() < deadline, "{cuts} cuts");
        value = value.wrapping_add(1);
        let number = u64::from(value) * 7 % 64;
        let place = usize::try_from(number).unwrap();
        since[place].push(value);
        let done = client.write(at(number), &[value; BLOCK], false);
        let done = if value.is_multiple_of(16) { done.and_then(|()| client.flush()) } else { done };
        if done.is_err() {
            cuts += 1;
            let blocks;
            // What is found is durable: a drive that comes up has nothing in memory.
            (client, blocks) = read_again(&socket, deadline);
            for (number, found) in blocks.into_iter().enumerate() {
                let may_be = flushed[number] == found || since[number].contains(&found);
                assert!(
                    may_be,
                    "block {number} is {found}, not {} or {:?}",
                    flushed[number], since[number]
                );
                flushed[number] = found;
                since[number].clear();
            }
        } else if value.is_multiple_of(16) {
            for (flushed, since) in flushed.iter_mut().zip(&mut since) {
                *flushed = since.pop().unwrap_or(*flushed);
                since.clear();
            }
        }
    }
    drop(client);
    let (code, said) = server.terminate_with_messages();
    assert_eq!(code, Some(0), "{said:?}");
    assert!(said.iter().filter(|line| line.starts_with("power cut ")).count() >= 5, "{said:?}");
    assert_eq!(json(&["check", text(&image)])["damaged"], false);
}

/// The kernel keeps the file open over a cut, so its user hears of it by an error of the next flush.
#[test]
fn the_fuse_file_fails_one_flush_and_works_again() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped 1 test: needs root and /dev/fuse");
        return;
    }
    let folder = Folder::new("cut-fuse");
    let (image, socket, mount) = (folder.image(), folder.0.join("nbd"), folder.0.join("mount"));
    fs::create_dir(&mount).unwrap();
    let more = ["--cut", "signal", "--fuse", text(&mount)];
    let server = Server::start_with(&image, &socket, &more);
    let file = OpenOptions::new().read(true).write(true).open(mount.join("disk")).unwrap();
    file.write_all_at(&[1; BLOCK], 0).unwrap();
    file.sync_all().unwrap();
    server.signal("USR1");
    wait_for_cuts(&image, 1);
    // A flush that is sent before the cut is over fails; a read of a new connection waits for that.
    assert_eq!(block(&mut connect(&socket), 0), 1);
    file.sync_all().unwrap();
    file.write_all_at(&[2; BLOCK], 0).unwrap();
    server.signal("USR1");
    wait_for_cuts(&image, 2);
    assert_eq!(block(&mut connect(&socket), 0), 1);
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(5), "a write is gone");
    file.write_all_at(&[3; BLOCK], 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(block(&mut connect(&socket), 0), 3);
    drop(file);
    let (code, said) = server.terminate_with_messages();
    assert_eq!(code, Some(0), "{said:?}");
    assert_eq!(said.iter().filter(|line| line.starts_with("power cut ")).count(), 2, "{said:?}");
}

#[test]
fn a_cut_that_cannot_be_is_refused() {
    let folder = Folder::new("cut-refused");
    let image = folder.image();
    let tape = folder.0.join("tape");
    for (more, part) in [
        (vec!["--cut", "after=5"], "expected after=Nwrites"),
        (vec!["--cut", "every=1ms"], "from 100ms"),
        (vec!["--cut", "signal", "--on-full", "block"], "exclude each other"),
        (vec!["--cut", "signal", "--tape", text(&tape)], "cannot be used with"),
    ] {
        let serve = ["serve", text(&image), "--nbd", "127.0.0.1:0"];
        let output = ssd(&[&serve[..], &more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", message(&output));
        assert!(message(&output).contains(part), "{more:?}: {}", message(&output));
    }
    assert!(!tape.exists());
}
