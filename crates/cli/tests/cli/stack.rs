//! `onefold stack`: made, served, killed, checked, and told about, from the configuration that `sim run` takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Folder, Server, message, text};
use onefold_serve::nbd::{Client, Endpoint};
use serde_json::Value;

const STACK: &str = r#"
workload = "randwrite,bs=4KiB,requests=20k"

[precondition]
fill = 0.0

[[stack]]
name = "cache"
kind = "ssd"
extends = "preset:s1"
geometry.channels = 1
geometry.ways = 1
geometry.blocks = 100
capacity.logical = "64MiB"
buffer = { size = "1MiB" }

[[stack]]
name = "zones"
kind = "zns"
extends = "preset:femu-zns"
geometry.pages = 16
capacity.logical = "100MiB"
namespace.zone_size = "4MiB"

[[stack]]
name = "placed"
kind = "dmz"
on = ["cache", "zones"]

[[stack]]
name = "data"
kind = "log"
on = "placed"
volume.op = 0.3
"#;

fn stack(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("stack").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = stack(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn written(folder: &Folder) -> PathBuf {
    let file = folder.0.join("stack.toml");
    std::fs::write(&file, STACK).unwrap();
    file
}

fn made(folder: &Folder) -> PathBuf {
    let file = written(folder);
    let made = stack(&["create", text(&file)]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    file
}

fn place<'a>(info: &'a Value, name: &str) -> &'a Value {
    info["stack"].as_array().unwrap().iter().find(|place| place["name"] == name).unwrap()
}

fn checked(file: &Path) -> (Option<i32>, String) {
    let output = stack(&["check", text(file), "--data"]);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_stack_is_served_killed_and_whole() {
    let folder = Folder::new("stack-served");
    let (file, socket) = (made(&folder), folder.0.join("nbd"));
    let server = Server::start_noun("stack", &file, &socket, &[]);
    let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
    for block in 0..64 {
        client.write(block * 40_960, &[7; 4096], false).unwrap();
    }
    client.flush().unwrap();
    client.write(1 << 20, &[8; 4096], false).unwrap();
    let info = json(&["info", text(&file)]);
    assert_eq!(info["served"], true);
    let data = place(&info, "data");
    assert_eq!(data["host"]["write_pages"], 65);
    let [sent, below] = [&data["written_pages"], &place(&info, "placed")["host"]["write_pages"]]
        .map(|pages| pages.as_u64().unwrap());
    assert!(sent >= 64 && below >= sent && below <= sent + 8, "{sent} {below}");
    let flash: u64 = ["cache", "zones"]
        .map(|device| place(&info, device)["written_pages"].as_u64().unwrap())
        .iter()
        .sum();
    let rows = String::from_utf8(stack(&["info", text(&file)]).stdout).unwrap();
    assert!(rows.contains(&format!("\nall: pages in, out, ratio 65, {flash}, ")), "{rows}");
    drop(server);
    let server = Server::start_noun("stack", &file, &socket, &[]);
    let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
    let mut found = vec![0; 4096];
    for block in 0..64 {
        client.read(block * 40_960, &mut found).unwrap();
        assert_eq!(found, [7; 4096]);
    }
    assert_eq!(server.terminate(), Some(0));
    let (code, said) = checked(&file);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("data (log)\n  data: 64 blocks mapped") || said.contains("65 blocks mapped")
    );
    let info = json(&["info", text(&file)]);
    assert_eq!(
        (&info["served"], &place(&info, "data")["on"][0]),
        (&false.into(), &"placed".into())
    );
}

/// The simulator and the served stack have places of the same sizes, and the same names for what they count.
#[test]
fn both_clocks_have_one_stack() {
    let folder = Folder::new("stack-clocks");
    let file = made(&folder);
    let simulated = Command::new(env!("CARGO_BIN_EXE_onefold"))
        .args(["sim", "run", "-c", text(&file), "--format", "json"])
        .output()
        .unwrap();
    let simulated: Value = serde_json::from_slice(&simulated.stdout).unwrap();
    let socket = folder.0.join("nbd");
    let _server = Server::start_noun("stack", &file, &socket, &[]);
    let served = json(&["info", text(&file)]);
    let top = place(&served, "data")["logical_bytes"].clone();
    assert_eq!(simulated["device"]["logical_bytes"], top);
    for one in simulated["stack"].as_array().unwrap() {
        let other = place(&served, one["name"].as_str().unwrap());
        assert_eq!((&one["kind"], &one["on"]), (&other["kind"], &other["on"]));
        assert!(one["written_pages"].is_u64() && other["written_pages"].is_u64());
        assert!(one["host"]["write_pages"].is_u64() && other["host"]["write_pages"].is_u64());
    }
}

#[test]
fn what_is_not_the_stack_is_refused() {
    let folder = Folder::new("stack-refused");
    let file = written(&folder);
    let missing = stack(&["serve", text(&file), "--nbd", "unix:nbd"]);
    assert!(message(&missing).contains("`onefold stack create` makes"), "{}", message(&missing));
    let file = made(&folder);
    let again = stack(&["create", text(&file)]);
    assert_eq!(again.status.code(), Some(2), "{}", message(&again));
    assert!(message(&again).contains("nothing was changed"), "{}", message(&again));
    let other = stack(&["check", text(&file), "--set", "stack.data.volume.op=0.5"]);
    let said = message(&other);
    assert!(said.contains("volume of data was made with") && said.contains("B exported"), "{said}");
    let smaller = ["--set", "stack.cache.capacity.logical=60MiB"];
    let other = stack(&[&["check", text(&file)], &smaller[..]].concat());
    let said = message(&other);
    assert!(
        said.contains("B of logical capacity") && said.contains("keys of this device"),
        "{said}"
    );
    let unknown = stack(&["info", text(&file), "--at", "data=x.img"]);
    assert!(message(&unknown).contains("expected a device of the stack: cache, zones"));
    std::fs::write(folder.0.join("plain.toml"), "name = \"none\"\n").unwrap();
    let none = stack(&["info", text(&folder.0.join("plain.toml"))]);
    assert!(message(&none).contains("has no [[stack]]"), "{}", message(&none));
    // All of it is made anew, images with other keys as well.
    let whole = stack(&[&["create", text(&file), "--force"], &smaller[..]].concat());
    assert_eq!(whole.status.code(), Some(0), "{}", message(&whole));
    let whole = stack(&[&["check", text(&file)], &smaller[..]].concat());
    assert_eq!(whole.status.code(), Some(0), "{}", message(&whole));
}

/// An image that somebody has open is busy, and no file to be used in the place of a device.
#[test]
fn an_image_in_use_is_no_file() {
    let folder = Folder::new("stack-busy");
    let file = made(&folder);
    let image = std::fs::File::open(folder.0.join("cache.img")).unwrap();
    image.lock().unwrap();
    for command in [&["check"][..], &["info"], &["create"], &["create", "--force"]] {
        let busy = stack(&[command, &[text(&file)]].concat());
        let code = if command[0] == "check" { 8 } else { 5 };
        assert_eq!(busy.status.code(), Some(code), "{command:?}: {}", message(&busy));
        assert!(message(&busy).contains("image::busy"), "{}", message(&busy));
    }
}

/// Images are told about as they are, and stay so.
#[test]
fn what_is_told_about_stays_as_it_is() {
    let folder = Folder::new("stack-told");
    let (file, socket) = (made(&folder), folder.0.join("nbd"));
    drop(Server::start_noun("stack", &file, &socket, &[]));
    let image = folder.0.join("cache.img");
    let before = std::fs::read(&image).unwrap();
    let info = json(&["info", text(&file)]);
    assert_eq!(place(&info, "cache")["clean"], false);
    assert!(place(&info, "cache")["details"].is_object());
    assert!(before == std::fs::read(&image).unwrap());
}

/// What is made in part goes again, and what was there stays.
#[test]
fn a_stack_that_cannot_be_made_leaves_nothing() {
    let folder = Folder::new("stack-unmade");
    let file = written(&folder);
    let odd = folder.0.join("odd.img");
    std::fs::write(&odd, [7; 4096]).unwrap();
    let at = format!("zones={}", odd.display());
    let made = stack(&["create", text(&file), "--at", &at]);
    assert_eq!(made.status.code(), Some(2), "{}", message(&made));
    assert!(message(&made).contains("has no zones"), "{}", message(&made));
    assert!(!folder.0.join("cache.img").exists() && odd.exists());
}

/// A file takes the place of an emulated SSD. What it has more than that is not used, so that both clocks have one stack.
#[test]
fn a_file_takes_the_place_of_a_device() {
    let folder = Folder::new("stack-file");
    let file = written(&folder);
    let disk = folder.0.join("disk");
    std::fs::File::create(&disk).unwrap().set_len((64 << 20) - 4096).unwrap();
    let at = format!("cache={}", disk.display());
    let small = stack(&["create", text(&file), "--at", &at]);
    assert_eq!(small.status.code(), Some(2), "{}", message(&small));
    assert!(message(&small).contains("cache of the stack has 67108864 B"), "{}", message(&small));
    std::fs::File::options().write(true).open(&disk).unwrap().set_len(99 << 20).unwrap();
    let within = folder.0.join("a").join("b");
    let at = ["--at", &at, "--dir", text(&within)];
    let made = stack(&[&["create", text(&file)], &at[..]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
    assert!(within.join("zones.img").exists());
    let socket = folder.0.join("nbd");
    let server = Server::start_noun("stack", &file, &socket, &at);
    let info = json(&[&["info", text(&file)], &at[..]].concat());
    assert!(place(&info, "cache")["details"].is_null());
    assert!(place(&info, "placed")["written_pages"].is_u64());
    assert_eq!(place(&info, "cache")["logical_bytes"], 64 << 20);
    assert_eq!(server.terminate(), Some(0));
    let info = json(&[&["info", text(&file)], &at[..]].concat());
    assert_eq!(place(&info, "cache")["path"], text(&disk));
    let output = stack(&[&["check", text(&file)], &at[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
}

/// Damage of a device ends the check: what lies on it cannot be seen.
#[test]
fn a_check_ends_at_damage() {
    let folder = Folder::new("stack-damage");
    let file = made(&folder);
    let image = folder.0.join("cache.img");
    let bytes = std::fs::read(&image).unwrap();
    // All that is stored there, but for the labels.
    let mut damaged = bytes.clone();
    damaged[1 << 20..].iter_mut().for_each(|byte| *byte = if *byte == 0 { 0 } else { !*byte });
    std::fs::write(&image, damaged).unwrap();
    let (code, said) = checked(&file);
    assert_eq!(code, Some(4), "{said}");
    assert!(!said.contains("zones (zns)") && said.contains("what lies above was not checked"));
}
