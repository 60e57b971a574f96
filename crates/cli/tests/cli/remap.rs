//! Remaps, clones and snapshots of a served device, as a user runs them.

use std::path::{Path, PathBuf};

use crate::common::{Folder, Server, json, message, ssd, text};
use onefold_device::mailbox;
use onefold_format::{RemapFlags, RemapReply, RemapVector, ReplyContent, VectorRange};
use onefold_serve::nbd::{Client, ClientError, Endpoint};
use serde_json::Value;

const MIB: usize = 1 << 20;

/// An image with a log of remaps and room for snapshots.
fn image(folder: &Folder, size: &str, more: &[&str]) -> PathBuf {
    let image = folder.0.join("disk.img");
    let create = ["create", text(&image), "--size", size, "--set", "ftl.remap=lh"];
    let output = ssd(&[&create, more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    image
}

fn device(socket: &Path) -> Client {
    Client::device(&Endpoint::Unix(socket.to_owned())).unwrap()
}

/// Bytes that differ from page to page and from round to round.
fn content(round: u64, at: usize, len: usize) -> Vec<u8> {
    let word = |at: usize| (at as u64 ^ round << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (at / 8..(at + len) / 8).flat_map(|at| word(at).to_le_bytes()).collect()
}

/// The device and a model of it.
struct Disk {
    client: Client,
    model: Vec<u8>,
}

impl Disk {
    fn write(&mut self, round: u64, at: usize, len: usize) {
        for at in (at..at + len).step_by(MIB) {
            let bytes = content(round, at, MIB);
            self.client.write(at as u64, &bytes, false).unwrap();
            self.model[at..at + MIB].copy_from_slice(&bytes);
        }
    }

    fn expect_equal(&mut self) {
        let mut bytes = vec![0; MIB];
        for at in (0..self.model.len()).step_by(MIB) {
            self.client.read(at as u64, &mut bytes).unwrap();
            assert!(bytes == self.model[at..at + MIB], "the MiB at {at} differs");
        }
    }
}

/// Pages programmed for any cause.
fn programs(image: &Path) -> u64 {
    let info = json(&["info", text(image)]);
    let pages = info["device"]["flash"]["program_pages"].as_object().unwrap().clone();
    pages.values().map(|pages| pages.as_u64().unwrap()).sum()
}

#[test]
fn info_says_what_a_recovery_would_cost() {
    let folder = Folder::new("remap-cost");
    let image = image(&folder, "64MiB", &[]);
    let info = json(&["info", text(&image)]);
    let (cost, remap) = (&info["device"]["recovery_cost"], &info["device"]["remap"]);
    // The log is 2 MiB of NVRAM in segments of 1 KiB, and empty on flash.
    assert!(cost["nvram_bytes"].as_u64().unwrap() > 2 << 20, "{cost}");
    assert!(cost["flash_bytes"].as_u64().unwrap() > 0 && cost["log_flash_bytes"] == 0, "{cost}");
    assert!(cost["time_ns"].as_u64().unwrap() > 0, "{cost}");
    assert_eq!(remap["tables"]["segments_bytes"], 2048 / 8, "{remap}");
    // Two bits for each of 16,384 pages, and for those of the table of snapshots.
    assert!(remap["tables"]["units_bytes"].as_u64().unwrap() >= 4096, "{remap}");
    assert_eq!(remap["segment_cycles_max"], 0);
    let output = ssd(&["info", text(&image)]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("recovery would read") && table.contains("DRAM of remap"), "{table}");
}

#[test]
fn clones_and_snapshots_survive_overwriting_and_a_kill() {
    let folder = Folder::new("remap");
    let image = image(&folder, "64MiB", &["--set", "capacity.snapshots=16MiB"]);
    let socket = folder.0.join("nbd");
    let server = Server::start(&image, &socket);
    let mut disk = Disk { client: device(&socket), model: vec![0; 64 * MIB] };
    disk.write(1, 0, 16 * MIB);
    disk.client.flush().unwrap();

    let before = programs(&image);
    let clone = ["--src", "0", "--dst", "32MiB", "--len", "16MiB"];
    let done = json(&[&["clone", text(&socket)], &clone[..]].concat());
    assert_eq!(done["schema"], "onefold.ssd.clone/1");
    assert_eq!(
        (&done["ranges"][0]["remapped_pages"], &done["repeated"]),
        (&4096.into(), &false.into())
    );
    disk.model.copy_within(0..16 * MIB, 32 * MIB);
    // The image is busy: the way leads through its control socket.
    let create = ["snapshot", "create", text(&image), "day-1", "--range", "0:8MiB"];
    let done = json(&create);
    assert_eq!(done["schema"], "onefold.ssd.snapshot/1");
    assert!(done["stall_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(programs(&image), before + 1, "the table of snapshots and nothing else");
    let snapshot = disk.model[..8 * MIB].to_vec();
    disk.expect_equal();

    for round in 2..6 {
        disk.write(round, 0, 12 * MIB);
    }
    disk.client.flush().unwrap();
    // Dropping it kills it.
    drop(server);
    std::fs::remove_file(&socket).unwrap();
    let server = Server::start(&image, &socket);
    disk.client = device(&socket);
    disk.expect_equal();
    let onto = ["snapshot", "clone", text(&socket), "day-1", "--dst", "48MiB"];
    assert_eq!(ssd(&onto).status.code(), Some(0));
    disk.model[48 * MIB..56 * MIB].copy_from_slice(&snapshot);
    disk.expect_equal();
    assert_eq!(ssd(&["snapshot", "restore", text(&socket), "day-1"]).status.code(), Some(0));
    disk.model[..8 * MIB].copy_from_slice(&snapshot);
    disk.expect_equal();
    drop(disk.client);
    assert_eq!(server.terminate(), Some(0));

    // Without a server the image itself is opened.
    let list = json(&["snapshot", "list", text(&image)]);
    assert_eq!(list["snapshots"][0]["name"], "day-1");
    assert_eq!(
        (&list["capacity_bytes"], &list["snapshots"][0]["len"]),
        (&(16 << 20).into(), &(8 << 20).into())
    );
    let shown = ssd(&["snapshot", "list", text(&image)]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.ends_with("1 snapshots hold 8 MiB of 16 MiB\n"), "{shown}");
    assert_eq!(ssd(&["snapshot", "delete", text(&image), "day-1"]).status.code(), Some(0));
    assert_eq!(json(&["snapshot", "list", text(&image)])["snapshots"], Value::Array(vec![]));
    assert_eq!(ssd(&["check", text(&image)]).status.code(), Some(0));
}

#[test]
fn what_cannot_be_remapped_is_refused_with_the_limit() {
    let folder = Folder::new("remap-refuse");
    let image = image(&folder, "64MiB", &[]);
    let (image, missing) = (text(&image), text(&folder.0).to_owned() + "/none.img");
    let none = folder.0.join("copies.img");
    let none = text(&none);
    assert_eq!(ssd(&["create", none, "--size", "64MiB"]).status.code(), Some(0));
    let remap = |more: &[&'static str]| [&["remap", image], more].concat();
    for (arguments, code, part) in [
        (remap(&["--copy", "63MiB", "0", "2MiB"]), 2, "beyond the device of 16384 units"),
        (
            remap(&["--copy", "0", "8KiB", "5000B"]),
            2,
            "LEN is 5000 B, expected a multiple of 4 KiB",
        ),
        (
            remap(&["--copy", "0", "8KiB", "8KiB", "--copy", "4KiB", "1MiB", "4KiB"]),
            2,
            "targets of the remap overlap at unit 1",
        ),
        (remap(&["--copy", "0", "8KiB"]), 2, "3 values required"),
        (remap(&["--copy", "0", "8", "4KiB"]), 2, "SRC is 8 B, expected a multiple of 4 KiB"),
        (remap(&["--copy", "0", "8x", "4KiB"]), 2, "an unknown unit; expected an offset"),
        (remap(&[]), 2, "--copy"),
        (vec!["remap", none, "--copy", "0", "1MiB", "4KiB", "--move"], 2, "cannot move"),
        (vec!["remap", none, "--copy", "0", "1MiB", "4KiB", "--atomic"], 2, "leave out the number"),
        (vec!["create", &missing, "--set", "ftl.remap=gf"], 3, "does not survive power loss"),
        (
            vec!["create", &missing, "--set", "ftl.remap=ln", "--set", "ftl.remap_mode=paper"],
            3,
            "ftl.remap_mode = \"paper\" is for comparison",
        ),
        (remap(&["--copy", "0", "1MiB", "4KiB", "--cmd-id", "0"]), 2, "hexadecimal digits"),
        (remap(&["--copy", "0", "1MiB", "4KiB", "--move", "--move-on-flush"]), 2, "cannot be used"),
        (vec!["clone", &missing, "--src", "0", "--dst", "1MiB", "--len", "4KiB"], 2, "cannot open"),
        (vec!["snapshot", "list", "unix:/none"], 1, "no control export at unix:/none"),
        (
            vec!["snapshot", "create", image, "a", "--range", "0:1MiB"],
            1,
            "no capacity for snapshots: create it with --set",
        ),
        (vec!["snapshot", "create", image, "a/b", "--range", "0:1MiB"], 2, "letters, digits"),
        (vec!["snapshot", "restore", image, "a"], 2, "there is no snapshot a: there are none"),
    ] {
        let output = ssd(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains(part), "{arguments:?}: {}", message(&output));
        assert!(output.stdout.is_empty());
    }
    assert!(!Path::new(&missing).exists());
    assert_eq!(json(&["info", image])["image"]["clean"], true, "refusals close it in good order");
}

/// A trace has no place for snapshots, and nobody is to take a replay for the whole.
#[test]
fn a_recording_without_its_snapshots_is_announced() {
    let folder = Folder::new("remap-record");
    let image = image(&folder, "64MiB", &["--set", "capacity.snapshots=4MiB"]);
    let socket = folder.0.join("nbd");
    let record = |name: &str, command: Option<&[&str]>| {
        let trace = folder.0.join(name);
        let server = Server::start_with(&image, &socket, &["--record", text(&trace)]);
        device(&socket).write(0, &content(1, 0, MIB), false).unwrap();
        command.map(json);
        let (code, messages) = server.terminate_with_messages();
        assert_eq!(code, Some(0));
        messages.join("\n")
    };
    let socket = text(&socket);
    let clone = ["clone", socket, "--src", "0", "--dst", "32MiB", "--len", "1MiB"];
    for (name, command) in [("plain.oft", None), ("remaps.oft", Some(&clone[..]))] {
        let said = record(name, command);
        assert!(!said.contains("not recorded"), "{said}");
    }
    let snapshot = ["snapshot", "create", socket, "a", "--range", "0:1MiB"];
    let said = record("snapshots.oft", Some(&snapshot));
    assert!(said.contains("snapshots.oft lacks what they did with 256 mapping units"), "{said}");
}

/// Where a log page rots that nothing replaces, the device does not open; who accepts that loses what the page
/// may have been about, and no more.
#[test]
fn a_damaged_log_page_is_explained_and_given_up_only_if_asked() {
    let folder = Folder::new("log-damage");
    let image = image(&folder, "64MiB", &["--set", "ftl.remap_log=8KiB"]);
    let socket = folder.0.join("nbd");
    let server = Server::start(&image, &socket);
    let mut disk = Disk { client: device(&socket), model: vec![0; 64 * MIB] };
    disk.write(1, 0, 16 * MIB);
    let clone = ["clone", text(&socket), "--src", "0", "--dst", "32MiB", "--len", "16MiB"];
    assert_eq!(json(&clone)["ranges"][0]["copied_pages"], 0);
    disk.model.copy_within(0..16 * MIB, 32 * MIB);
    disk.write(2, 8 * MIB, 4 * MIB);
    disk.client.flush().unwrap();
    // Dropping it kills it.
    drop(server);
    std::fs::remove_file(&socket).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&image).unwrap();
    let bytes = std::fs::read(&image).unwrap();
    // Some of them have been replaced by others.
    let pages = bytes.chunks(4096).enumerate().filter(|(_, page)| page.starts_with(b"OFRL"));
    for (log, _) in pages {
        std::os::unix::fs::FileExt::write_all_at(&file, b"!", (log * 4096 + 99) as u64).unwrap();
    }

    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let refused = ssd(&["info", text(&image)]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(message(&refused).contains("a page of the remap log, is damaged"));
    let checked = ssd(&["check", text(&image)]);
    assert_eq!(checked.status.code(), Some(4), "{}", message(&checked));
    assert!(said(&checked).contains("units that did not change since"), "{}", said(&checked));
    assert!(said(&checked).contains("give these units up with --accept-loss"));
    let checked = ssd(&["check", text(&image), "--format", "json"]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let at_stake = checked["log_damage"]["units_at_stake"].as_u64().unwrap();
    assert_eq!(
        (&checked["lost_units"], &checked["log_damage"]["given_up"]),
        (&0.into(), &false.into())
    );
    let accepted = ssd(&["check", text(&image), "--accept-loss"]);
    assert_eq!(accepted.status.code(), Some(1), "{}", message(&accepted));
    assert!(said(&accepted).ends_with("the device opens again\n"), "{}", said(&accepted));
    // Nothing is left to be accepted; what is lost stays damage until it is written.
    let again = ssd(&["check", text(&image), "--accept-loss"]);
    assert_eq!(again.status.code(), Some(4), "{}", message(&again));
    assert!(said(&again).contains(&format!("{at_stake} units are lost")), "{}", said(&again));

    let server = Server::start(&image, &socket);
    disk.client = device(&socket);
    let (mut page, mut lost) = ([0; 4096], 0);
    for at in (0..64 * MIB).step_by(4096) {
        match disk.client.read(at as u64, &mut page) {
            Ok(()) => assert!(page == disk.model[at..at + 4096], "byte {at}"),
            Err(ClientError::Request { errno: 5 }) => lost += 1,
            Err(error) => panic!("{error}"),
        }
        let written_since = (8 * MIB..12 * MIB).contains(&at);
        assert!(lost == 2048 || !written_since, "byte {at}");
    }
    assert_eq!(lost, at_stake);
    disk.write(3, 0, 64 * MIB);
    disk.expect_equal();
    drop(disk.client);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(ssd(&["check", text(&image)]).status.code(), Some(0));
}

/// What no command line sends: the bytes of the mailbox over NBD.
#[test]
fn bad_blocks_are_refused_over_nbd() {
    let folder = Folder::new("mailbox");
    let image = image(&folder, "64MiB", &[]);
    let socket = folder.0.join("nbd");
    let _server = Server::start(&image, &socket);
    let endpoint = Endpoint::Unix(socket);
    let mut control = Client::connect(&endpoint, "disk.img.ctl").unwrap();
    assert_eq!(control.size(), 1 << 20);
    let vector = |ranges: &[(u64, u64, u32)]| {
        let ranges =
            ranges.iter().map(|(dst, src, len)| VectorRange { dst: *dst, src: *src, len: *len });
        let (flags, ranges) = (RemapFlags::COPY, ranges.collect());
        RemapVector { flags, cmd_id: 7, ranges }.encode().unwrap()
    };
    let sealed = |mut block: [u8; 4096]| {
        block[32..36].fill(0);
        let sum = onefold_format::checksum(&block);
        block[32..36].copy_from_slice(&sum.to_le_bytes());
        block
    };
    let good = vector(&[(100, 0, 4)]);
    let mut damaged = good;
    damaged[64] ^= 1;
    let mut unknown = good;
    unknown[7] = 0x80;
    let mut many = good;
    many[8] = 169;
    let mut moves = good;
    moves[6] = 1;
    moves[16..32].fill(0);
    let cases = vec![
        (good, 0, ""),
        (damaged, 22, "the checksum at byte 32 is wrong"),
        (sealed(unknown), 22, "unknown flags 0x8000"),
        (sealed(moves), 22, "a MOVE needs a command id"),
        (sealed(many), 22, "169 ranges, expected 1 to 168; split it"),
        ([0xFF; 4096], 22, "the magic number at byte 0 is missing"),
        (vector(&[(16_383, 0, 2)]), 22, "beyond the device of 16384 units"),
        (vector(&[(0, u64::MAX - 1, 1)]), 22, "beyond the device of 16384 units"),
        (vector(&[(0, 8, 4), (3, 8, 4)]), 22, "targets of the remap overlap at unit 3"),
    ];
    for (block, errno, part) in cases {
        let written = control.write(9 * 4096, &block, false);
        let found = match written {
            Ok(()) => 0,
            Err(ClientError::Request { errno }) => errno,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(found, errno, "{part}");
        let mut reply = [0; 4096];
        control.read(9 * 4096, &mut reply).unwrap();
        match RemapReply::decode(&reply).unwrap().content {
            ReplyContent::Refusal(text) => assert!(text.contains(part), "{text}"),
            ReplyContent::Results(results) => assert_eq!((results.len(), errno), (1, 0)),
            ReplyContent::Caps(_) => panic!("the reply is missing"),
        }
    }
    for (offset, len) in [(512, 4096), (0, 512), (0, 8192)] {
        let refused = control.write(offset, &vec![0; len], false);
        assert!(matches!(refused, Err(ClientError::Request { errno: 22 })));
    }
    let caps = mailbox::Client::new(Client::control(&endpoint).unwrap()).caps().unwrap();
    assert_eq!((caps.granularity_bytes, caps.ranges_max, caps.units_max), (4096, 168, 16_384));
}
