//! `onefold volume` as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Folder, Server, message, ssd, text};
use onefold_serve::nbd::{Client, Endpoint};
use serde_json::Value;

fn volume(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("volume").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = volume(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn create(path: &Path) {
    let made = volume(&["create", text(path), "--backing-size", "64MiB", "--size", "32MiB"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
}

#[test]
fn a_volume_is_made_once_checked_described_and_dumped() {
    let folder = Folder::new("volume-create");
    let path = folder.0.join("volume");
    let plan = json(&["create", text(&path), "--backing-size", "64MiB", "--dry-run"]);
    assert_eq!(plan["dry_run"], true);
    assert!(!path.exists());
    create(&path);
    let again = volume(&["create", text(&path), "--backing-size", "64MiB"]);
    assert_eq!(again.status.code(), Some(2), "{}", message(&again));
    let over = volume(&["create", text(&path)]);
    assert_eq!(over.status.code(), Some(2));
    assert!(message(&over).contains("holds a volume"), "{}", message(&over));
    let check = json(&["check", text(&path), "--data"]);
    assert_eq!((&check["closed"], &check["found"]), (&true.into(), &0.into()));
    let info = json(&["info", text(&path)]);
    assert_eq!(info["logical_bytes"], 32 << 20);
    assert_eq!(info["live_bytes"].as_u64().unwrap() % 4096, 0);
    assert_eq!(json(&["dump", text(&path), "map", "7"])["mapped"], false);
    let segments = json(&["dump", text(&path), "segments"]);
    let meta = segments.as_array().unwrap().iter().find(|one| one["stream"] == 3).unwrap();
    let number = meta["segment"].to_string();
    let batches = json(&["dump", text(&path), "segment", &number]);
    assert_eq!(batches["batches"][0]["seq"], 1, "the first checkpoint");
}

/// The header of an XFS of 62.5 MiB whose log has 512 blocks from block 8,010 on.
fn xfs_header() -> [u8; 4096] {
    let mut block = [0; 4096];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"XFSB");
    put(4, &4096_u32.to_be_bytes());
    put(8, &(8 * 2000_u64).to_be_bytes());
    put(48, &(4 * 2048 + 10_u64).to_be_bytes());
    put(84, &2000_u32.to_be_bytes());
    put(88, &8_u32.to_be_bytes());
    put(96, &512_u32.to_be_bytes());
    put(124, &[11]);
    block
}

#[test]
fn journals_of_a_device_and_of_a_volume_are_shown() {
    let folder = Folder::new("volume-journals");
    let device = folder.0.join("device");
    fs::write(&device, xfs_header()).unwrap();
    fs::File::options().write(true).open(&device).unwrap().set_len(64 << 20).unwrap();
    let on_device = json(&["journals", text(&device)]);
    assert_eq!(on_device["content_of"], "device");
    let range = &on_device["ranges"][0];
    assert_eq!((&range["class"], &range["confidence"]), (&"jlog".into(), &"high".into()));
    assert_eq!((&range["first_block"], &range["blocks"]), (&8010.into(), &512.into()));
    let shown = volume(&["journals", text(&device)]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("from block 8010, confidence high: xfs at byte 0: log inside"),
        "{shown}"
    );

    for mode in ["log", "sung"] {
        let path = folder.0.join(mode);
        let size = ["--size", "64MiB", "--backing-size", "512MiB", "--mode", mode];
        let made = volume(&[&["create", text(&path)], &size[..]].concat());
        assert_eq!(made.status.code(), Some(0), "{}", message(&made));
        let empty = volume(&["journals", text(&path)]);
        assert_eq!(empty.stdout, b"no file system that keeps a journal\n", "{mode}");
        let socket = folder.0.join("nbd");
        let server = Server::start_noun("volume", &path, &socket, &[]);
        let mut client = Client::device(&Endpoint::Unix(socket)).unwrap();
        client.write(0, &xfs_header(), false).unwrap();
        client.flush().unwrap();
        drop(client);
        let busy = volume(&["journals", text(&path)]);
        assert_eq!(busy.status.code(), Some(5), "{}", message(&busy));
        assert_eq!(server.terminate(), Some(0));
        let content = json(&["journals", text(&path)]);
        assert_eq!(content["content_of"], "volume");
        assert_eq!(content["ranges"], on_device["ranges"], "{mode}");
        assert_eq!(
            json(&["info", text(&path)])["content"]["ranges"],
            on_device["ranges"],
            "{mode}"
        );
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_its_exit_code() {
    let folder = Folder::new("volume-refuse");
    let path = folder.0.join("volume");
    create(&path);
    let other = folder.0.join("other");
    fs::write(&other, vec![1; 8 << 20]).unwrap();
    let ext4 = folder.0.join("ext4");
    let mut image = vec![0; 64 << 20];
    image[1080..1082].copy_from_slice(&[0x53, 0xEF]);
    fs::write(&ext4, image).unwrap();
    let missing = folder.0.join("missing");
    for (arguments, code, part) in [
        (vec!["serve", text(&path)], 2, "nothing to serve on"),
        (vec!["serve", text(&other), "--nbd", "127.0.0.1:0"], 1, "no label of a volume"),
        (vec!["serve", text(&missing), "--nbd", "127.0.0.1:0"], 2, "cannot open"),
        (vec!["check", text(&missing)], 8, "cannot open"),
        (vec!["check", text(&other)], 8, "no label of a volume"),
        (vec!["create", text(&ext4)], 2, "ext4 file system; nothing was changed"),
        (vec!["create", text(&missing), "--backing-size", "1MiB"], 3, "choose a larger backing"),
        (
            vec!["create", text(&missing), "--backing-size", "64MiB", "--size", "64MiB"],
            3,
            "blocks are to be exported",
        ),
        (
            vec!["create", text(&missing), "--backing-size", "64MiB", "--segment", "10KiB"],
            2,
            "multiple of 4096 B",
        ),
        (
            vec!["create", text(&missing), "--backing-size", "64MiB", "--unit", "12KiB"],
            3,
            "power of two",
        ),
        (
            vec!["create", text(&missing), "--backing-size", "64MiB", "--op", "2"],
            2,
            "from 0.02 to 0.95",
        ),
        (vec!["dump", text(&path), "map", "99999999"], 2, "expected one of 0 to 8191"),
        (vec!["dump", text(&path), "segment", "9999"], 2, "expected one of 0 to"),
    ] {
        let output = volume(&arguments);
        assert!(message(&output).contains(part), "{arguments:?}: {}", message(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", message(&output));
    }
    assert!(!missing.exists());
}

#[test]
fn a_served_volume_is_busy_and_stops_cleanly() {
    let folder = Folder::new("volume-serve");
    let path = folder.0.join("volume");
    create(&path);
    let server = Server::start_noun("volume", &path, &folder.0.join("nbd"), &[]);
    let second = volume(&["serve", text(&path), "--nbd", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(5), "{}", message(&second));
    assert_eq!(volume(&["check", text(&path)]).status.code(), Some(8));
    let info = json(&["info", text(&path)]);
    assert_eq!((&info["served"], &info["logical_bytes"]), (&true.into(), &(32 << 20).into()));
    assert_eq!(
        (&info["live"]["written_bytes"], &info["live"]["frozen"]),
        (&0.into(), &Value::Null)
    );
    assert_eq!(info["live"]["recovery"]["closed"], true);
    let faults = ["crc_errors", "failed_requests", "resumed_writes", "retried_batches"];
    assert_eq!(faults.map(|fault| info["live"][fault].as_u64()), [Some(0); 4]);
    let shown = volume(&["info", text(&path)]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("served now, by "), "{shown:?}");
    assert_eq!(server.terminate(), Some(0));
    assert!(!folder.0.join("volume.sock").exists());
    assert_eq!(json(&["check", text(&path)])["closed"], true);
    let server = Server::start_noun(
        "volume",
        &path,
        &folder.0.join("nbd"),
        &["--io", "threads", "--no-direct"],
    );
    let info = json(&["info", text(&path)]);
    assert_eq!(info["live"]["io"], "threads, through the page cache");
    drop(server);
    let check = volume(&["check", text(&path), "--data"]);
    assert_eq!(check.status.code(), Some(0), "{}", message(&check));
}

#[test]
fn damaged_copies_of_the_label_are_repaired() {
    let folder = Folder::new("volume-repair");
    let path = folder.0.join("volume");
    create(&path);
    let mut image = fs::read(&path).unwrap();
    image[65_536 + 100] ^= 1;
    fs::write(&path, image).unwrap();
    let check = json(&["check", text(&path)]);
    assert_eq!(check["found"], 1);
    let repair = volume(&["check", text(&path), "--repair"]);
    assert_eq!(repair.status.code(), Some(1), "{}", message(&repair));
    assert_eq!(json(&["check", text(&path), "--data"])["found"], 0);
}

/// Blocks of a volume that [`create`] made whose root slots and first label are.
fn wipe_roots(path: &Path) {
    let mut image = fs::read(path).unwrap();
    let middle = 8192;
    for block in (16..17).chain(32..36).chain(middle + 16..middle + 20) {
        image[block * 4096..(block + 1) * 4096].fill(0x55);
    }
    fs::write(path, image).unwrap();
}

#[test]
fn a_volume_without_roots_is_made_anew() {
    let folder = Folder::new("volume-rebuild");
    let path = folder.0.join("volume");
    create(&path);
    let clean = volume(&["check", text(&path), "--rebuild"]);
    assert_eq!(clean.status.code(), Some(0), "{}", message(&clean));
    let socket = folder.0.join("nbd");
    let written = vec![7; 1 << 20];
    let server = Server::start_noun("volume", &path, &socket, &[]);
    let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
    client.write(1 << 20, &written, true).unwrap();
    let made = volume(&["snapshot", "create", text(&path), "monday"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    client.write(1 << 20, &[8; 4096], true).unwrap();
    drop(client);
    assert_eq!(server.terminate(), Some(0));

    wipe_roots(&path);
    let check = volume(&["check", text(&path)]);
    assert_eq!(check.status.code(), Some(8));
    assert!(message(&check).contains("--rebuild"), "{}", message(&check));
    let rebuilt = volume(&["check", text(&path), "--rebuild", "--format", "json"]);
    assert_eq!(rebuilt.status.code(), Some(1), "{}", message(&rebuilt));
    let rebuilt: Value = serde_json::from_slice(&rebuilt.stdout).unwrap();
    assert_eq!(rebuilt["rebuilt"]["from"], "checkpoint");
    assert_eq!(rebuilt["rebuilt"]["mapped_blocks"], 256);
    let check = json(&["check", text(&path), "--data"]);
    assert_eq!((&check["found"], &check["closed"]), (&0.into(), &true.into()));
    assert_eq!(json(&["snapshot", "list", text(&path)])[0]["name"], "monday");
    let server = Server::start_noun("volume", &path, &socket, &[]);
    let mut client = Client::device(&Endpoint::Unix(socket)).unwrap();
    let mut read = vec![0; 1 << 20];
    client.read(1 << 20, &mut read).unwrap();
    assert!(read[..4096] == [8; 4096] && read[4096..] == written[4096..]);
    drop(client);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn roots_of_other_modes_are_not_made_anew() {
    let folder = Folder::new("volume-rebuild-sung");
    let path = folder.0.join("volume");
    let sizes = ["--backing-size", "64MiB", "--size", "32MiB", "--mode", "sung"];
    let made = volume(&[&["create", text(&path)][..], &sizes].concat());
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    wipe_roots(&path);
    let before = fs::read(&path).unwrap();
    let refused = volume(&["check", text(&path), "--rebuild"]);
    assert_eq!(refused.status.code(), Some(8), "{}", message(&refused));
    assert!(message(&refused).contains("mode Sung"), "{}", message(&refused));
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_volume_lies_on_an_emulated_ssd() {
    let folder = Folder::new("volume-ssd");
    let image = folder.image();
    let refused = volume(&["serve", text(&image), "--nbd", "127.0.0.1:0"]);
    assert_eq!(refused.status.code(), Some(1), "{}", message(&refused));
    let said = message(&refused);
    assert!(said.contains("is the image of an emulated SSD and holds no volume"), "{said}");
    assert!(said.contains("onefold ssd serve") && said.contains("onefold volume create"), "{said}");
    let made = volume(&["create", text(&image), "--segment", "256KiB"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let server = Server::start_noun("volume", &image, &folder.0.join("nbd"), &[]);
    let drive = crate::common::json(&["info", text(&image)]);
    assert_eq!((&drive["served"], &drive["by_a_volume"]), (&true.into(), &true.into()));
    let starts = drive["device"]["lifetime"]["power_cycles"].as_u64().unwrap();
    assert!(starts >= 2, "created on and served: {starts}");
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(json(&["check", text(&image), "--data"])["closed"], true);
    assert_eq!(ssd(&["check", text(&image)]).status.code(), Some(0));
}

/// The unit and the superblock of a drive that another process serves, through its FUSE file and a loop device on that; and those
/// of an image.
#[test]
fn unit_and_superblock_of_a_drive_are_taken() {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse");
        return;
    }
    let folder = Folder::new("volume-unit");
    let (image, mount) = (folder.0.join("disk.img"), folder.0.join("mnt"));
    fs::create_dir(&mount).unwrap();
    let drive = ["create", text(&image), "--preset", "qlc-16k", "--set", "geometry.pages=48"];
    let made = ssd(&[&drive[..], &["--set", "ftl.streams=4"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    // By the size of the drive alone log segments would have 16 MiB.
    let found = |value: &Value| {
        ["unit_bytes", "superblock_bytes", "segment_bytes"].map(|key| value[key].as_u64().unwrap())
    };
    let expected = [16 << 10, 12 << 20, 12 << 20];
    let planned = json(&["create", text(&image), "--dry-run"]);
    assert_eq!((found(&planned), planned["streams"].as_u64()), (expected, Some(4)));
    let socket = folder.0.join("nbd");
    let server = Server::start_with(&image, &socket, &["--fuse", text(&mount)]);
    let file = mount.join("disk");
    let unit = |more: &[&str]| {
        json(&[&["create", text(&file), "--dry-run"], more].concat())["unit_bytes"].clone()
    };
    assert_eq!((unit(&[]), unit(&["--unit", "4KiB"])), (16_384.into(), 4096.into()));
    let shown = volume(&["create", text(&file), "--dry-run"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let fits =
        " log segments of 12 MiB (a superblock of the drive), unit 16 KiB as the drive has it, ";
    assert!(shown.contains(fits), "{shown}");
    // Nothing carries the stream of a write through a file.
    let planned = json(&["create", text(&file), "--dry-run"]);
    assert_eq!((found(&planned), planned["streams"].as_u64()), (expected, Some(1)));
    let attached = Command::new("losetup").args(["-f", "--show", text(&file)]).output();
    if let Some(attached) = attached.ok().filter(|output| output.status.success()) {
        let device = String::from_utf8(attached.stdout).unwrap();
        let planned = volume(&["create", device.trim(), "--dry-run", "--format", "json"]);
        let detached = Command::new("losetup").args(["-d", device.trim()]).status().unwrap();
        let planned: Value = serde_json::from_slice(&planned.stdout).unwrap();
        assert!(detached.success() && found(&planned) == expected, "{planned}");
    }
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_volume_changes_its_size() {
    let folder = Folder::new("volume-resize");
    let path = folder.0.join("volume");
    let made = volume(&["create", text(&path), "--backing-size", "160MiB", "--size", "64MiB"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let to = ["resize", text(&path), "--size", "100MiB", "--backing-size", "256MiB"];
    let plan = json(&[&to[..], &["--dry-run"]].concat());
    assert_eq!((&plan["dry_run"], &plan["logical_bytes"]), (&true.into(), &(100 << 20).into()));
    assert_eq!(json(&["info", text(&path)])["logical_bytes"], 64 << 20);
    json(&to);
    let info = json(&["info", text(&path)]);
    assert_eq!((&info["logical_bytes"], &info["closed"]), (&(100 << 20).into(), &true.into()));
    assert_eq!(fs::metadata(&path).unwrap().len(), 256 << 20);
    json(&["resize", text(&path), "--size", "16MiB", "--backing-size", "140MiB"]);
    assert_eq!(fs::metadata(&path).unwrap().len(), 140 << 20);
    assert_eq!(json(&["check", text(&path), "--data"])["found"], 0);
    for (size, code, reason) in [("1GiB", 3, "can hold data"), ("5001KiB", 2, "multiple")] {
        let refused = volume(&["resize", text(&path), "--size", size]);
        assert_eq!(refused.status.code(), Some(code), "{}", message(&refused));
        assert!(message(&refused).contains(reason), "{}", message(&refused));
    }
    assert_eq!(volume(&["resize", text(&path)]).status.code(), Some(2));
}

#[test]
fn the_modes_of_the_papers_are_made_described_checked_and_dumped() {
    for mode in ["sung", "han"] {
        let folder = Folder::new("volume-modes");
        let path = folder.0.join("volume");
        let arguments = ["create", text(&path), "--backing-size", "64MiB", "--mode", mode];
        let made = json(&[&arguments[..], &["--size", "32MiB"]].concat());
        assert_eq!((&made["mode"], &made["logical_bytes"]), (&mode.into(), &(32 << 20).into()));
        let info = json(&["info", text(&path)]);
        assert_eq!((&info["mode"], &info["closed"]), (&mode.into(), &true.into()));
        assert_eq!(info["table_bytes"]["paper"], 0);
        let partitions = json(&["dump", text(&path), "segments"]);
        assert_eq!(partitions.as_array().unwrap().len(), if mode == "han" { 4 } else { 1 });
        assert_eq!(json(&["dump", text(&path), "map", "7"])["mapped"], false);
        assert_eq!(json(&["dump", text(&path), "label"])["mode"], mode);
        let file = json(&["dump", text(&path), "segment", "0"]);
        assert_eq!(file["transactions"].as_array().unwrap().len(), 0);
        let check = json(&["check", text(&path), "--data"]);
        assert_eq!((&check["closed"], &check["found"]), (&true.into(), &0.into()));
    }
    let folder = Folder::new("volume-modes");
    let path = folder.0.join("volume");
    let han = ["create", text(&path), "--backing-size", "64MiB", "--mode", "han"];
    let refused = volume(&[&han[..], &["--segment", "1MiB"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", message(&refused));
    assert!(message(&refused).contains("four equal partitions"), "{}", message(&refused));
    let refused = volume(&[&han[..], &["--size", "64MiB"]].concat());
    assert_eq!(refused.status.code(), Some(3), "{}", message(&refused));
}

#[test]
fn snapshots_and_clones_are_made_listed_served_and_deleted() {
    let folder = Folder::new("volume-family");
    let path = folder.0.join("volume");
    create(&path);
    let done = |arguments: &[&str]| {
        let output = volume(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    };
    done(&["snapshot", "create", text(&path), "monday"]);
    done(&["clone", text(&path), "trial", "--of", "monday"]);
    let list = json(&["snapshot", "list", text(&path)]);
    assert_eq!((&list[0]["name"], &list[0]["kind"]), (&"monday".into(), &"snapshot".into()));
    assert_eq!((&list[1]["name"], &list[1]["kind"]), (&"trial".into(), &"clone".into()));
    assert_eq!(list[1]["parent"], list[0]["id"]);
    assert_eq!(json(&["info", text(&path)])["members"], list);
    assert_eq!(json(&["check", text(&path), "--data"])["members"], list);
    assert_eq!(json(&["dump", text(&path), "map", "7", "--member", "trial"])["mapped"], false);
    for (arguments, part) in [
        (vec!["snapshot", "create", text(&path), "monday"], "there is a snapshot"),
        (vec!["snapshot", "create", text(&path), ""], "an empty name"),
        (vec!["clone", text(&path), "more", "--of", "tuesday"], "there is no snapshot"),
        (vec!["snapshot", "delete", text(&path), "tuesday"], "there is no snapshot"),
        (vec!["serve", text(&path), "--nbd", "127.0.0.1:0", "--snapshot", "x"], "no snapshot"),
    ] {
        let output = volume(&arguments);
        assert_eq!(output.status.code(), Some(2), "{}", message(&output));
        assert!(message(&output).contains(part), "{}", message(&output));
    }
    done(&["snapshot", "delete", text(&path), "monday"]);
    done(&["snapshot", "delete", text(&path), "trial"]);
    assert_eq!(json(&["snapshot", "list", text(&path)]), serde_json::json!([]));
}

/// A client of the volume sees what was written before a snapshot, and the new size when it connects again.
#[test]
fn a_served_volume_takes_snapshots_and_another_size() {
    let folder = Folder::new("volume-online");
    let (path, socket) = (folder.0.join("volume"), folder.0.join("nbd"));
    let made = volume(&["create", text(&path), "--backing-size", "160MiB", "--size", "64MiB"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let server = Server::start_noun("volume", &path, &socket, &[]);
    let client = || Client::device(&Endpoint::Unix(socket.clone())).unwrap();
    let mut disk = client();
    disk.write(4096, &[1; 4096], false).unwrap();
    let done = |arguments: &[&str]| {
        let output = volume(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    };
    done(&["snapshot", "create", text(&path), "monday"]);
    done(&["clone", text(&path), "trial", "--of", "monday"]);
    disk.write(4096, &[2; 4096], false).unwrap();
    assert_eq!(json(&["snapshot", "list", text(&path)])[1]["name"], "trial");
    assert_eq!(json(&["info", text(&path)])["members"][0]["kind"], "snapshot");
    json(&["resize", text(&path), "--backing-size", "200MiB"]);
    done(&["snapshot", "delete", text(&path), "trial"]);
    assert_eq!(server.terminate(), Some(0));

    // Beside the device the snapshot is served, and never changes.
    let beside = folder.0.join("monday");
    let member = format!("monday=unix:{}", text(&beside));
    let server = Server::start_noun("volume", &path, &socket, &["--member", &member]);
    let mut page = [0; 4096];
    client().read(4096, &mut page).unwrap();
    assert_eq!(page, [2; 4096]);
    let mut monday = Client::device(&Endpoint::Unix(beside)).unwrap();
    monday.read(4096, &mut page).unwrap();
    assert_eq!(page, [1; 4096]);
    assert!(monday.write(0, &page, false).is_err(), "a snapshot takes no writes");
    drop(monday);
    assert_eq!(server.terminate(), Some(0));

    done(&["snapshot", "delete", text(&path), "monday"]);
    let server = Server::start_noun("volume", &path, &socket, &[]);
    json(&["resize", text(&path), "--size", "100MiB"]);
    let mut disk = client();
    disk.write(99 << 20, &[3; 4096], true).unwrap();
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(json(&["check", text(&path), "--data"])["found"], 0);
}

/// The device grows and shrinks beside a snapshot and a clone, which keep their sizes; the clone changes its own.
#[test]
fn a_served_volume_changes_its_size_beside_snapshots() {
    let folder = Folder::new("volume-resize-family");
    let (path, socket) = (folder.0.join("volume"), folder.0.join("nbd"));
    let beside = |name: &str| folder.0.join(name);
    let made = volume(&["create", text(&path), "--backing-size", "160MiB", "--size", "16MiB"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let client = |socket: &Path| Client::device(&Endpoint::Unix(socket.to_owned())).unwrap();
    let server = Server::start_noun("volume", &path, &socket, &[]);
    let mut disk = client(&socket);
    let last = (16 << 20) - 4096;
    disk.write(last, &[1; 4096], false).unwrap();
    for arguments in [&["snapshot", "create"][..], &["clone"]] {
        let name = if arguments.len() > 1 { "monday" } else { "trial" };
        let done = volume(&[arguments, &[text(&path), name]].concat());
        assert_eq!(done.status.code(), Some(0), "{}", message(&done));
    }
    // A client has the new size when it connects again.
    let resized = json(&["resize", text(&path), "--size", "64MiB"]);
    assert_eq!(resized["logical_bytes_before"], 16 << 20);
    let mut disk = client(&socket);
    assert_eq!(disk.size(), 64 << 20);
    disk.write(60 << 20, &[2; 4096], true).unwrap();
    disk.write(last, &[2; 4096], false).unwrap();
    let refused = volume(&["resize", text(&path), "--size", "8MiB"]);
    assert!(message(&refused).contains("holds data"), "{}", message(&refused));
    json(&["resize", text(&path), "--size", "8MiB", "--discard-tail"]);
    let snapshot = volume(&["resize", text(&path), "--size", "64MiB", "--member", "monday"]);
    assert!(message(&snapshot).contains("keeps the size"), "{}", message(&snapshot));
    let clone = json(&["resize", text(&path), "--size", "32MiB", "--member", "trial"]);
    assert_eq!((&clone["logical_bytes"], &clone["member"]), (&(32 << 20).into(), &"trial".into()));
    assert_eq!(server.terminate(), Some(0));

    let member = |name: &str| format!("{name}=unix:{}", text(&beside(name)));
    let members = [member("monday"), member("trial")];
    let more = ["--member", &members[0], "--member", &members[1]];
    let server = Server::start_noun("volume", &path, &socket, &more);
    let (mut monday, mut trial) = (client(&beside("monday")), client(&beside("trial")));
    let sizes = [client(&socket).size(), monday.size(), trial.size()];
    assert_eq!(sizes, [8 << 20, 16 << 20, 32 << 20]);
    let mut page = [0; 4096];
    for member in [&mut monday, &mut trial] {
        member.read(last, &mut page).unwrap();
        assert_eq!(page, [1; 4096]);
    }
    trial.write((32 << 20) - 4096, &[3; 4096], true).unwrap();
    // What was behind the end does not come back.
    json(&["resize", text(&path), "--size", "64MiB"]);
    let mut disk = client(&socket);
    for at in [60 << 20, last] {
        disk.read(at, &mut page).unwrap();
        assert_eq!(page, [0; 4096]);
    }
    drop((disk, monday, trial));
    assert_eq!(server.terminate(), Some(0));
    let kept = json(&["snapshot", "list", text(&path)]);
    assert_eq!((&kept[0]["bytes"], &kept[1]["bytes"]), (&(16 << 20).into(), &(32 << 20).into()));
    let smaller = ["resize", text(&path), "--size", "20MiB", "--member", "trial"];
    assert!(message(&volume(&smaller)).contains("holds data"));
    json(&[&smaller[..], &["--discard-tail"]].concat());
    assert_eq!(json(&["check", text(&path), "--data"])["found"], 0);
    let block = json(&["dump", text(&path), "map", "4095", "--member", "monday"]);
    assert_eq!(block["mapped"], true);
    assert_eq!(exit(&["dump", text(&path), "map", "4095"]).1["mapped"], false);
}

/// It exports more than it can hold, and says how much that is.
#[test]
fn a_thin_volume_takes_data_until_it_is_full() {
    let folder = Folder::new("volume-thin");
    let (path, socket) = (folder.0.join("volume"), folder.0.join("nbd"));
    let size = ["--backing-size", "64MiB", "--size", "512MiB"];
    let create = |more: &[&str]| volume(&[&["create", text(&path)], &size[..], more].concat());
    let refused = create(&[]);
    assert_eq!(refused.status.code(), Some(3), "{}", message(&refused));
    assert!(message(&refused).contains("thin volume of at most"), "{}", message(&refused));
    let han = create(&["--thin", "--mode", "han"]);
    assert!(message(&han).contains("leave out --thin"), "{}", message(&han));
    let made = create(&["--thin"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let server = Server::start_noun("volume", &path, &socket, &[]);
    let mut disk = Client::device(&Endpoint::Unix(socket)).unwrap();
    let data = vec![7; 1 << 20];
    let at = |n: u64| n * (5 << 20);
    let full = (0..100).find(|n| disk.write(at(*n), &data, false).is_err()).expect("it is full");
    assert!(full > 30, "{full} MiB");
    disk.write(at(full - 1), &data, false).expect("what is there can be written again");
    let info = json(&["info", text(&path)]);
    assert_eq!(info["thin"], true);
    let (data, capacity) = (info["data_bytes"].as_u64(), info["capacity_bytes"].as_u64());
    assert!(data >= Some(full << 20) && data <= capacity, "{data:?} of {capacity:?}");
    drop(disk);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(json(&["check", text(&path), "--data"])["found"], 0);
    json(&["resize", text(&path), "--size", "700MiB"]);
    assert_eq!(json(&["info", text(&path)])["logical_bytes"], 700 << 20);
}

fn exit(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = volume(&[arguments, &["--format", "json"]].concat());
    let code = output.status.code();
    (code, serde_json::from_slice(&output.stdout).unwrap_or_else(|_| message(&output).into()))
}

/// A volume of 64 blocks on which a server ended in good order.
fn written(folder: &Folder) -> std::path::PathBuf {
    let path = folder.0.join("volume");
    create(&path);
    let socket = folder.0.join("nbd");
    let server = Server::start_noun("volume", &path, &socket, &[]);
    let mut client = Client::device(&Endpoint::Unix(socket)).unwrap();
    client.write(0, &vec![7; 64 << 12], true).unwrap();
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    path
}

#[test]
fn a_volume_is_scrubbed() {
    let folder = Folder::new("volume-scrub");
    let path = written(&folder);
    let (code, clean) = exit(&["scrub", text(&path)]);
    assert_eq!((code, &clean["state"], &clean["found"]), (Some(0), &"done".into(), &0.into()));
    assert!(clean["checked_blocks"].as_u64().unwrap() > 64, "{clean}");

    let place = json(&["dump", text(&path), "map", "9"])["at_block"].as_u64().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(place * 4096 + 100).unwrap()] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for (more, writes) in [(&["--dry-run"][..], false), (&[], true)] {
        let (code, damaged) = exit(&[&["scrub", text(&path)], more].concat());
        assert_eq!((code, &damaged["found"]), (Some(4), &1.into()), "{damaged}");
        let expected = format!("block 9 at {place} is not what was written");
        assert_eq!(damaged["findings"][0], expected);
        assert_eq!(fs::read(&path).unwrap() != bytes, writes);
    }
    for refused in ["--status", "--stop"] {
        assert_eq!(exit(&["scrub", text(&path), refused]).0, Some(8));
    }

    let sung = folder.0.join("sung");
    let sizes = ["--backing-size", "64MiB", "--size", "32MiB", "--mode", "sung"];
    assert_eq!(volume(&[&["create", text(&sung)], &sizes[..]].concat()).status.code(), Some(0));
    let (code, refused) = exit(&["scrub", text(&sung)]);
    assert_eq!(code, Some(8));
    assert!(refused.as_str().unwrap().contains("mode sung has no checksums"), "{refused}");
}

#[test]
fn a_served_volume_is_scrubbed() {
    let folder = Folder::new("volume-scrub-served");
    let path = written(&folder);
    let socket = folder.0.join("nbd");
    let server = Server::start_noun("volume", &path, &socket, &["--scrub", "1h"]);
    let status = || exit(&["scrub", text(&path), "--status"]);
    let done = || {
        let (code, report) = status();
        assert_eq!(code, Some(0), "{report}");
        report["state"] == "done"
    };
    while !done() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(json(&["info", text(&path)])["live"]["scrub"]["found"], 0);
    assert_eq!(exit(&["scrub", text(&path), "--dry-run"]).0, Some(8));

    let (code, begun) = exit(&["scrub", text(&path)]);
    assert_eq!((code, &begun["served"]), (Some(0), &true.into()), "{begun}");
    let (code, stopped) = exit(&["scrub", text(&path), "--stop"]);
    assert_eq!(code, Some(0), "{stopped}");
    while status().1["state"] == "running" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(json(&["check", text(&path), "--data"])["found"], 0);
}
