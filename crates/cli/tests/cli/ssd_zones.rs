//! Zoned namespaces in images as a user meets them.

use std::process::Command;

use crate::common::{Folder, Server, json, message, ssd, text};
use onefold_serve::nbd::{Client, Endpoint};

#[test]
fn zones_are_told_reset_finished_and_failed() {
    let folder = Folder::new("zones");
    let image = folder.zoned_image("16MiB");
    let info = json(&["info", text(&image)]);
    assert_eq!(info["device"]["zoned"]["zones"], 4);
    assert_eq!(info["device"]["zoned"]["by_state"]["empty"], 4);
    let act = |zone: &str, action: &str| {
        json(&["zones", text(&image), "--zone", zone, "--act", action])["zones"][0]["state"].clone()
    };
    assert_eq!(act("1", "finish"), "full");
    assert_eq!(act("2", "read-only"), "read only");
    assert_eq!(act("3", "offline"), "offline");
    let full = json(&["zones", text(&image), "--state", "full"]);
    assert_eq!(full["schema"], "onefold.ssd.zones/1");
    assert_eq!(full["zones"].as_array().unwrap().len(), 1);
    let zone = &full["zones"][0];
    assert_eq!(
        (&zone["zone"], &zone["type"], &zone["state_code"]),
        (&1.into(), &2.into(), &14.into())
    );
    assert_eq!((&zone["start_block"], &zone["capacity_blocks"]), (&1024.into(), &1024.into()));
    assert!(zone["write_pointer"].is_null());
    assert_eq!(act("1", "reset"), "empty");
    let shown = ssd(&["info", text(&image)]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("2 empty, 1 offline, 1 read only"), "{shown}");
    let check = json(&["check", text(&image)]);
    assert_eq!((&check["damaged"], &check["clean_shutdown"]), (&false.into(), &true.into()));
}

#[test]
fn what_zones_cannot_do_is_refused() {
    let folder = Folder::new("zones-refused");
    let (zoned, block) = (folder.zoned_image("16MiB"), folder.image());
    let act = ["zones", text(&zoned), "--zone", "0", "--act", "offline"];
    assert_eq!(ssd(&act).status.code(), Some(0));
    for (arguments, code, part) in [
        (vec!["serve", text(&zoned), "--nbd", "127.0.0.1:0"], 2, "onefold volume create"),
        (vec!["snapshot", "list", text(&zoned)], 3, "needs namespace.type"),
        (vec!["zones", text(&block)], 2, "has no zones"),
        (vec!["zones", text(&zoned), "--act", "reset"], 2, "--zone or --state"),
        (vec!["zones", text(&zoned), "--zone", "4"], 2, "no zone 4, expected 0 to 3"),
        (vec!["zones", text(&zoned), "--zone", "0", "--act", "reset"], 1, "reset of ZoneId(0)"),
        (vec!["create", "x.img", "--preset", "zn540", "--size", "1GiB"], 3, "multiple of 2GiB"),
    ] {
        let output = ssd(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains(part), "{arguments:?}: {}", message(&output));
    }
    assert_eq!(json(&["info", text(&zoned)])["image"]["clean"], true);
}

/// What zones lose is told with a way out, given up by `check --repair` only, and told once.
#[test]
fn zones_that_lost_something_are_refused_and_given_up() {
    let folder = Folder::new("zones-lost");
    // A reset is noticed where a checkpoint knows what was there; a zone that is gone, where one does not know whether anything was.
    for (action, told, closed) in
        [("reset", "somebody reset it", true), ("offline", "is offline", false)]
    {
        let image = folder.0.join(format!("{action}.img"));
        let create = ["create", text(&image), "--preset", "femu-zns", "--set", "geometry.pages=16"];
        let zones = ["--set", "namespace.zone_size=4MiB", "--size", "96MiB"];
        assert_eq!(ssd(&[&create[..], &zones[..]].concat()).status.code(), Some(0));
        let volume = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
            command.arg("volume").args(arguments).output().unwrap()
        };
        assert_eq!(volume(&["create", text(&image), "--op", "0.5"]).status.code(), Some(0));
        let socket = folder.0.join(format!("{action}.nbd"));
        let server = Server::start_noun("volume", &image, &socket, &[]);
        let endpoint = Endpoint::Unix(socket);
        let mut client = Client::device(&endpoint).unwrap();
        client.write(0, &vec![7; 1 << 20], true).unwrap();
        drop(client);
        if closed {
            assert_eq!(server.terminate(), Some(0));
        } else {
            drop(server);
        }
        let dump = volume(&["dump", text(&image), "map", "0"]);
        let map: serde_json::Value = serde_json::from_slice(&dump.stdout).unwrap();
        let zone = (map["at_block"].as_u64().unwrap() / 1024).to_string();
        json(&["zones", text(&image), "--zone", &zone, "--act", action]);
        let refused = volume(&["check", text(&image)]);
        let text_of = message(&refused);
        assert_eq!(refused.status.code(), Some(8), "{text_of}");
        let parts = [told, "Nothing was changed", "volume check --repair", &zone];
        assert!(parts.iter().all(|part| text_of.contains(part)), "{text_of}");
        let repaired = volume(&["check", text(&image), "--repair"]);
        assert_eq!(repaired.status.code(), Some(1), "{}", message(&repaired));
        let said = String::from_utf8_lossy(&repaired.stdout).into_owned();
        assert!(said.contains("given up: ") && said.contains("with losses"), "{said}");
        let clean = volume(&["check", text(&image)]);
        assert_eq!(clean.status.code(), Some(0), "{}", message(&clean));
    }
}

/// A volume makes a block device of zones; the image below says what it asked of them.
#[test]
fn a_volume_makes_a_disk_of_zones() {
    let folder = Folder::new("zones-volume");
    let image = folder.0.join("zoned.img");
    let create = ["create", text(&image), "--preset", "femu-zns", "--set", "geometry.pages=16"];
    let zones = ["--set", "namespace.zone_size=4MiB", "--size", "96MiB"];
    let made = ssd(&[&create[..], &zones[..]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let volume = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
        command.arg("volume").args(arguments).output().unwrap()
    };
    let refused = volume(&["create", text(&image), "--mode", "han"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(message(&refused).contains("use mode log"), "{}", message(&refused));
    let made = volume(&["create", text(&image), "--op", "0.5"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    let socket = folder.0.join("nbd");
    let server = Server::start_noun("volume", &image, &socket, &[]);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(volume(&["check", text(&image), "--data"]).status.code(), Some(0));
    let twice = volume(&["create", text(&image)]);
    assert!(message(&twice).contains("--force"), "{}", message(&twice));
    let labels = json(&["zones", text(&image), "--state", "full"]);
    assert_eq!(labels["zones"].as_array().unwrap().len(), 2, "a zone for each copy of the label");
}
