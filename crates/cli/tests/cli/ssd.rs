//! `onefold ssd` as a user runs it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use onefold_serve::nbd::{Client, Endpoint};
use serde_json::Value;

use crate::common::{Folder, Server, json, message, ssd, text};

#[test]
fn an_image_is_made_once_checked_and_described() {
    let folder = Folder::new("create");
    let image = folder.image();
    let again = ssd(&["create", text(&image)]);
    assert_eq!(again.status.code(), Some(2));
    assert!(message(&again).contains("exists already and was not changed"), "{}", message(&again));
    let check = json(&["check", text(&image)]);
    assert_eq!(check["schema"], "onefold.ssd.check/1");
    assert_eq!((&check["damaged"], &check["clean_shutdown"]), (&false.into(), &true.into()));
    let info = json(&["info", text(&image)]);
    assert_eq!(info["device"]["logical_bytes"], 64 << 20);
    assert_eq!(info["config"]["capacity"]["logical"], "64MiB");
}

#[test]
fn what_cannot_be_used_is_refused_with_its_exit_code() {
    let folder = Folder::new("refuse");
    let image = folder.image();
    let other = folder.0.join("other.img");
    fs::write(&other, vec![1; 200_000]).unwrap();
    let missing = folder.0.join("missing.img");
    for (arguments, code, part) in [
        (vec!["serve", text(&image)], 2, "nothing to serve on"),
        (vec!["serve", text(&image), "--nbd", "0.0.0.0:0"], 2, "not a loopback address"),
        (vec!["serve", text(&missing), "--nbd", "127.0.0.1:0"], 2, "cannot open"),
        (vec!["serve", text(&other), "--nbd", "127.0.0.1:0"], 1, "not a Onefold image"),
        (vec!["info", text(&other)], 1, "not a Onefold image"),
        (vec!["check", text(&other)], 8, "not a Onefold image"),
        (vec!["check", text(&missing)], 8, "cannot open"),
        (vec!["create", text(&missing), "--size", "1GB2"], 2, "an unknown unit; expected a size"),
        (vec!["create", text(&missing), "--set", "capacity.logical=0.999"], 3, "capacity.logical"),
    ] {
        let output = ssd(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains(part), "{arguments:?}: {}", message(&output));
        assert!(output.stdout.is_empty());
    }
    assert!(!missing.exists());
}

#[test]
fn a_served_image_is_busy_answers_and_stops_cleanly() {
    let folder = Folder::new("serve");
    let image = folder.image();
    let socket = folder.0.join("nbd");
    let server = Server::start(&image, &socket);
    let second = ssd(&["serve", text(&image), "--nbd", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(5), "{}", message(&second));
    assert_eq!(ssd(&["check", text(&image)]).status.code(), Some(8));
    let info = json(&["info", text(&image)]);
    assert_eq!(info["served"], true);
    assert_eq!(info["device"]["live"]["unflushed_bytes"], 0);
    let other = folder.0.join("other.img");
    assert_eq!(ssd(&["create", text(&other), "--size", "64MiB"]).status.code(), Some(0));
    let endpoint = format!("unix:{}", socket.display());
    let taken = ssd(&["serve", text(&other), "--nbd", &endpoint]);
    assert_eq!(taken.status.code(), Some(5), "{}", message(&taken));
    assert_eq!(server.terminate(), Some(0));
    assert!(!socket.exists() && !folder.0.join("disk.img.sock").exists());
    assert_eq!(json(&["info", text(&image)])["image"]["clean"], true);
    // The refused server closed its image in good order, too.
    assert_eq!(json(&["info", text(&other)])["image"]["clean"], true);
}

#[test]
fn the_buffer_is_chosen_at_creation_and_when_served() {
    let folder = Folder::new("buffer");
    let image = folder.0.join("disk.img");
    let create = ["create", text(&image), "--size", "64MiB", "--set", "buffer.size=1MiB"];
    assert_eq!(ssd(&create).status.code(), Some(0));
    let described = json(&["info", text(&image)]);
    assert_eq!(described["device"]["buffer"]["policy"], "lru");
    assert_eq!(described["device"]["buffer"]["bytes"], 1 << 20);
    let shown = ssd(&["info", text(&image)]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.lines().any(|line| line.starts_with("buffer ") && line.ends_with("1 MiB by lru"))
    );

    let socket = folder.0.join("nbd");
    let more = ["--set", "buffer.size=2MiB", "--set", "buffer.writeback=async"];
    let server = Server::start_with(&image, &socket, &more);
    let live = json(&["info", text(&image)]);
    assert_eq!(live["device"]["buffer"]["bytes"], 2 << 20);
    assert_eq!(live["device"]["live"]["buffer"]["areas"]["all"]["evictions"], 0);
    assert_eq!(server.terminate(), Some(0));
    let endpoint = format!("unix:{}", socket.display());
    let other = ["serve", text(&image), "--nbd", &endpoint, "--set", "geometry.pages=64"];
    let refused = ssd(&other);
    assert_eq!(refused.status.code(), Some(2), "{}", message(&refused));
    assert!(message(&refused).contains("cannot change on a device that exists"));
}

#[test]
fn a_killed_server_leaves_an_image_that_is_not_clean_and_no_damage() {
    let folder = Folder::new("kill");
    let image = folder.image();
    let socket = folder.0.join("nbd");
    drop(Server::start(&image, &socket));
    assert_eq!(json(&["check", text(&image)])["clean_shutdown"], false);
    // What a killed server leaves at its control socket does not stop the next one.
    assert!(folder.0.join("disk.img.sock").exists());
    fs::remove_file(&socket).unwrap();
    assert_eq!(Server::start(&image, &socket).terminate(), Some(0));
}

/// Counters of a whole life: the same from a server and from the image it leaves, and older by a flush after a kill.
#[test]
fn an_image_counts_its_life() {
    let folder = Folder::new("lifetime");
    let image = folder.image();
    let socket = folder.0.join("nbd");
    let lifetime = || json(&["info", text(&image)])["device"]["lifetime"].clone();
    assert_eq!((&lifetime()["power_cycles"], &lifetime()["waf"]), (&0.into(), &Value::Null));
    let server = Server::start(&image, &socket);
    let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
    client.write(0, &vec![7; 65_536], false).unwrap();
    client.flush().unwrap();
    let live = lifetime();
    assert_eq!((&live["host_bytes"], &live["power_cycles"]), (&65_536.into(), &1.into()));
    assert_eq!(live["flash_by_cause"]["user"], 65_536);
    drop(client);
    let (code, said) = server.terminate_with_messages();
    assert_eq!(code, Some(0));
    assert!(said.iter().any(|line| line.contains("programmed by flash")), "{said:?}");
    assert_eq!(lifetime()["host_bytes"], 65_536);
    drop(Server::start(&image, &socket));
    fs::remove_file(&socket).unwrap();
    assert_eq!(lifetime()["unclean_starts"], 0);
    assert_eq!(Server::start(&image, &socket).terminate(), Some(0));
    let kept = lifetime();
    assert_eq!((&kept["power_cycles"], &kept["unclean_starts"]), (&3.into(), &1.into()));
    let shown = ssd(&["info", text(&image)]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(": 3 starts, 1 of them unclean\n"), "{shown}");
    assert!(shown.contains("64 KiB written, 0 B read, 0 B discarded\n"), "{shown}");
    let end = fs::metadata(&image).unwrap().len() - 8192;
    let file = OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&[0xA5; 8192], end).unwrap();
    assert_eq!(lifetime(), serde_json::json!({"damaged": true}));
    let said = Server::start(&image, &socket);
    assert_eq!(lifetime()["host_bytes"], 0, "they start anew");
    assert_eq!(said.terminate(), Some(0));
}

#[test]
fn one_copy_of_the_label_is_enough() {
    let folder = Folder::new("label");
    let image = folder.image();
    let file = OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&[0xA5; 64], 65_536 + 16).unwrap();
    assert_eq!(ssd(&["check", text(&image)]).status.code(), Some(0));
    file.write_all_at(&[0xA5; 64], 16).unwrap();
    let output = ssd(&["check", text(&image)]);
    assert_eq!(output.status.code(), Some(8));
    assert!(message(&output).contains("both copies of the label are damaged"));
}

/// Keys of simulations are refused, or told if they are in a file that is for simulations as well.
#[test]
fn keys_that_do_nothing_on_a_drive_are_not_taken() {
    let folder = Folder::new("ssd-elsewhere");
    let image = folder.0.join("disk.img");
    for (set, more) in [
        ("run.qd=4", "leave run.qd out"),
        ("precondition.fill=0.5", "leave precondition.fill out"),
        ("volume.op=0.3", "`onefold volume create IMAGE` makes a volume on it"),
    ] {
        let create = ["create", text(&image), "--preset", "s1", "--size", "64MiB", "--set", set];
        let output = ssd(&create);
        assert_eq!(output.status.code(), Some(2), "{set}: {}", message(&output));
        let said = message(&output);
        assert!(said.contains("does nothing here") && said.contains(more), "{said}");
        assert!(!image.exists());
    }
    let file = folder.0.join("both.toml");
    fs::write(&file, "extends = \"preset:s1\"\n[run]\nqd = 4\n").unwrap();
    let output = ssd(&["create", text(&image), "-c", text(&file), "--size", "64MiB"]);
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    assert!(message(&output).contains("run.qd: not of a drive"), "{}", message(&output));
}

#[test]
fn a_key_of_a_drive_that_does_nothing_is_named() {
    let folder = Folder::new("ssd-idle");
    let create = |name: &str, sets: &[&str]| {
        let image = folder.0.join(name);
        let mut arguments = vec!["create", text(&image), "--size", "64MiB"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        let output = ssd(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
        message(&output)
    };
    let said = create("alone", &["dedup.scope=reads"]);
    assert!(said.contains("dedup.scope: without effect on the image: ftl.remap is none"), "{said}");
    let said = create("both", &["dedup.scope=reads", "ftl.remap=lh"]);
    assert!(!said.contains("without effect"), "{said}");
}

#[test]
fn what_cannot_be_aged_is_refused() {
    let folder = Folder::new("ssd-age");
    let image = folder.0.join("disk.img");
    for (preset, age, said) in [
        ("s1", "fill=2", "fill is 2, expected more than 0 and at most 1"),
        ("s1", "overwrite=1e9", "expected at most 100"),
        ("s1", "old", "expected fill=SHARE or overwrite=TIMES"),
        ("zn540", "fill=0.5", "--age is for drives without zones"),
    ] {
        let output = ssd(&["create", text(&image), "--preset", preset, "--age", age]);
        assert_eq!(output.status.code(), Some(2), "{age}: {}", message(&output));
        assert!(message(&output).contains(said), "{age}: {}", message(&output));
        assert!(!image.exists(), "{age}");
    }
}

/// Sizes were refused for a number of blocks that was in range, and presets with a capacity in bytes for
/// that capacity, which `--size` replaces.
#[test]
fn sizes_are_made_or_refused_for_what_is_wrong() {
    let folder = Folder::new("sizes");
    let image = folder.0.join("sized.img");
    for preset in ["femu-bb", "femu32", "jeong2021"] {
        let small = ["--size", "1GiB", "--set", "geometry.pages=16", "--format", "json"];
        let made = ssd(&[&["create", text(&image), "--preset", preset], &small[..]].concat());
        assert!(made.status.success(), "{preset}: {}", message(&made));
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        assert_eq!(made["logical_bytes"], 1 << 30, "{preset}");
        fs::remove_file(&image).unwrap();
    }
    for (arguments, said) in [
        (["--size", "3GB"], "expected a multiple of 4KiB help: choose 2929684KiB or 2929688KiB"),
        (["--size", "900TiB"], "geometry.blocks would be 67408458, expected 1 to 16777216"),
        (["--set", "capacity.logical=10.2GiB"], "no multiple of 1 B help: write 10444MiB"),
    ] {
        let refused = ssd(&[&["create", text(&image)], &arguments[..]].concat());
        assert!(message(&refused).contains(said), "{}", message(&refused));
        assert!(!image.exists());
    }
}

/// What `faults.die` counts is what was used: a restart takes a superblock for its checkpoint, and no more.
#[test]
fn restarts_hardly_age_a_drive() {
    let folder = Folder::new("taken");
    let (image, socket) = (folder.0.join("disk.img"), folder.0.join("nbd"));
    assert_eq!(ssd(&["create", text(&image), "--size", "64MiB"]).status.code(), Some(0));
    let taken = || json(&["info", text(&image)])["device"]["space"]["taken_superblocks"].as_u64();
    let before = taken().unwrap();
    for _ in 0..3 {
        Server::start(&image, &socket).terminate();
    }
    assert!(taken().unwrap() <= before + 6, "{before}, then {:?}", taken());
}

/// A drive that cannot be aged says what its faults did, and nothing of faults without them.
#[test]
fn a_drive_that_fails_while_it_is_aged_says_why() {
    let folder = Folder::new("age-die");
    let image = folder.0.join("disk.img");
    let aged = ["create", text(&image), "--size", "64MiB", "--age", "fill=1,overwrite=2"];
    let refused = ssd(&[&aged[..], &["--set", "faults.die=40"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let said = message(&refused);
    assert!(
        said.contains("faults.die failed die ") && said.contains("raise it, or age less"),
        "{said}"
    );
}

/// The die of an image fails while it is served, and stays so.
#[test]
fn a_drive_whose_die_failed_can_be_read_and_says_so() {
    let folder = Folder::new("die");
    let (image, socket) = (folder.0.join("disk.img"), folder.0.join("nbd"));
    let create = ["create", text(&image), "--size", "64MiB", "--set", "faults.die=40"];
    assert_eq!(ssd(&create).status.code(), Some(0));
    let server = Server::start(&image, &socket);
    let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
    let (content, mut written) = (vec![7; 65_536], 0_u64);
    while client.write(written % 512 * 65_536, &content, false).is_ok() {
        written += 1;
        assert!(written < 20_000, "no die failed");
    }
    let failed = json(&["info", text(&image)])["device"]["failed_die"].clone();
    assert!(failed["lost_bytes"].as_u64().unwrap() > 0, "{failed}");
    let mut bytes = vec![0; 65_536];
    let lost = (0..512).filter(|n| client.read(n * 65_536, &mut bytes).is_err()).count();
    assert!(lost > 0, "{written} writes");
    drop(client);
    server.terminate();
    let kept = json(&["info", text(&image)])["device"]["failed_die"].clone();
    assert_eq!(kept["die"], failed["die"]);
    let shown = ssd(&["info", text(&image)]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("are lost, and the drive can only be read"), "{shown}");
    assert_eq!(ssd(&["check", text(&image)]).status.code(), Some(4));
}
