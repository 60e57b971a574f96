//! The rows of docs/exit-codes.md, by commands that end so.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use onefold_serve::nbd::{Client, Endpoint};

use crate::common::{Folder, Server, message, text};
use crate::interrupt::interrupted;

fn onefold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).args(arguments).output().unwrap()
}

/// An image of which pages of the remap log are damaged.
fn damaged_log(folder: &Folder) -> PathBuf {
    let image = folder.0.join("log.img");
    let create = ["ssd", "create", text(&image), "--preset", "s1", "--size", "64MiB"];
    let keys = ["--set", "ftl.remap=lh", "--set", "ftl.remap_log=8KiB"];
    assert!(onefold(&[&create[..], &keys].concat()).status.success());
    let socket = folder.0.join("log.sock");
    let server = Server::start(&image, &socket);
    let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
    client.write(0, &vec![5; 16 << 20], false).unwrap();
    let clone = ["--src", "0", "--dst", "32MiB", "--len", "16MiB"];
    let cloned = onefold(&[&["ssd", "clone", text(&socket)], &clone[..]].concat());
    assert!(cloned.status.success(), "{}", message(&cloned));
    client.write(8 << 20, &vec![3; 4 << 20], false).unwrap();
    client.flush().unwrap();
    // Dropping it kills it.
    drop((client, server));
    damage_log(&image);
    image
}

/// Changes a byte in each page of the remap log.
fn damage_log(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let bytes = fs::read(path).unwrap();
    for (at, _) in bytes.chunks(4096).enumerate().filter(|(_, page)| page.starts_with(b"OFRL")) {
        file.write_all_at(b"!", (at * 4096 + 99) as u64).unwrap();
    }
}

/// The code of a command that is what a row of the table says.
fn ends(row: (&str, &str, &str), folder: &Folder) -> Option<i32> {
    let (code, commands, meaning) = row;
    let there = |name: &str| folder.0.join(name);
    let endless =
        ["sim", "run", "--workload", "randwrite,requests=1G", "--set", "precondition.fill=0"];
    let output = match (code, commands) {
        ("0", _) => onefold(&["config", "presets"]),
        ("1", "all") => onefold(&["trace", "info", text(&there("missing"))]),
        ("1", _) => onefold(&["ssd", "check", text(&damaged_log(folder)), "--accept-loss"]),
        ("2", _) => onefold(&["trace", "info", "--nonsense"]),
        ("3", _) => onefold(&["config", "show", "--set", "capacity.logical=9TiB"]),
        ("4", "reading a trace") => {
            fs::write(there("bad"), "no trace\n").unwrap();
            onefold(&["trace", "info", text(&there("bad"))])
        }
        ("4", _) => onefold(&["ssd", "check", text(&there("log.img"))]),
        ("5", "all") => {
            let image = folder.image();
            let _server = Server::start(&image, &there("nbd"));
            onefold(&["ssd", "serve", text(&image), "--nbd", "127.0.0.1:0"])
        }
        ("6", _) => {
            let disk = ["try", "--fs", "none", "--size", "64MiB", "--drives", "none"];
            let script = "dd if=/dev/zero of=$ONEFOLD_DEVICE bs=4096 count=1 conv=notrunc";
            let run = ["--budget", "writes<1", "--", "sh", "-c", script];
            onefold(&[&disk[..], &run].concat())
        }
        ("127", _) => onefold(&["try", "--fs", "none", "--", "./no-such-program"]),
        ("7", _) => crate::crash::failing(folder),
        ("8", _) => onefold(&["volume", "check", text(&there("missing"))]),
        ("130", _) => interrupted(&endless, "-INT", 130, "the part that was run"),
        ("143", _) => interrupted(&endless, "-TERM", 143, "the part that was run"),
        _ => panic!("no command ends with {code}: {meaning}"),
    };
    output.status.code()
}

#[test]
fn every_documented_code_is_reached() {
    let folder = Folder::new("codes");
    let page = include_str!("../../../../docs/exit-codes.md");
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut codes = 0;
    for row in rows {
        let [code, commands, meaning] =
            row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        // Takes an image with damage of two kinds, of which one can be repaired: no test makes one.
        if (code, commands) == ("5", "check, scrub") {
            continue;
        }
        assert_eq!(ends((code, commands, meaning), &folder), code.parse().ok(), "{row}");
        codes += 1;
    }
    assert_eq!(codes, 14);
    let help = onefold(&["--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("143  all"));
}
