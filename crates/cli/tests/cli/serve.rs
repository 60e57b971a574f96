//! Options that `onefold ssd serve` and `onefold volume serve` share: recordings and modelled time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use crate::common::{Folder, Server, message, ssd, text};
use onefold_serve::nbd::{Client, Endpoint};
use serde_json::Value;

fn onefold(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_onefold")).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", message(&output));
    output
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&onefold(&[arguments, &["--format", "json"]].concat()).stdout).unwrap()
}

/// A device that `onefold NOUN serve` serves: an image, a volume in a file, or a volume on an image.
fn served(folder: &Folder, on: &str) -> (&'static str, PathBuf) {
    if on == "file" {
        let path = folder.0.join("volume");
        let size = ["--backing-size", "64MiB", "--size", "32MiB"];
        onefold(&[&["volume", "create", text(&path)], &size[..]].concat());
        return ("volume", path);
    }
    let path = folder.image();
    if on == "ssd" {
        return ("ssd", path);
    }
    onefold(&["volume", "create", text(&path), "--segment", "256KiB"]);
    ("volume", path)
}

/// Operation, first sector of 512 B, sectors, flags.
type Request = (String, u64, u64, String);

/// What a trace says, in its order.
fn requests(trace: &Path) -> Vec<Request> {
    let csv = trace.with_extension("csv");
    onefold(&["trace", "convert", text(trace), "--to", "onefold-csv", "-o", text(&csv)]);
    let text = std::fs::read_to_string(csv).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("t_ns,op,sector512,nsect,flags,lat_ns"));
    let request = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        let number = |at: usize| columns[at].parse::<u64>().unwrap();
        assert!(number(5) > 0, "{line}: a latency is recorded");
        (columns[1].to_owned(), number(2), number(3), columns[4].to_owned())
    };
    lines.map(request).collect()
}

#[test]
fn a_recording_has_what_the_client_did_and_replays() {
    for on in ["ssd", "file", "image"] {
        let folder = Folder::new(&format!("serve-record-{on}"));
        let (noun, path) = served(&folder, on);
        let (socket, trace) = (folder.0.join("nbd"), folder.0.join("trace.oft"));
        let server = Server::start_noun(noun, &path, &socket, &["--record", text(&trace)]);
        let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
        let size = client.size();
        client.write(0, &[1; 8192], false).unwrap();
        client.write(1 << 20, &[2; 4096], true).unwrap();
        client.write(512, &[3; 512], false).unwrap();
        client.flush().unwrap();
        client.read(4096, &mut vec![0; 65_536]).unwrap();
        client.read(size - 4096, &mut [0; 4096]).unwrap();
        drop(client);
        assert_eq!(server.terminate(), Some(0), "{on}");

        let request = |op: &str, sector, sectors, flags: &str| {
            (op.to_owned(), sector, sectors, flags.to_owned())
        };
        let expected = [
            request("W", 0, 16, ""),
            request("W", 2048, 8, "F"),
            request("W", 1, 1, ""),
            request("F", 0, 0, ""),
            request("R", 8, 128, ""),
            request("R", size / 512 - 8, 8, ""),
            // The server's own, before it ends.
            request("F", 0, 0, ""),
        ];
        assert_eq!(requests(&trace), expected, "{on}");
        let told = json(&["trace", "info", text(&trace)]);
        assert_eq!(told["requests"], 7, "{on}");
        let again = ["sim", "run", "--trace", text(&trace), "--preset", "s1"];
        let replay = json(&[&again, &["--set", "precondition.fill=0"][..]].concat());
        let host = ["read_requests", "write_requests", "flush_requests"];
        assert_eq!(host.map(|key| replay["host"][key].as_u64()), [Some(2), Some(3), Some(2)]);

        // A recording is never written over, and then nothing is served.
        let before = std::fs::read(&trace).unwrap();
        let nbd = format!("unix:{}", socket.display());
        let second = [noun, "serve", text(&path), "--nbd", &nbd, "--record", text(&trace)];
        let second = Command::new(env!("CARGO_BIN_EXE_onefold")).args(second).output().unwrap();
        assert_eq!(second.status.code(), Some(2), "{on}: {}", message(&second));
        assert!(std::fs::read(&trace).unwrap() == before, "{on}");
    }
}

/// What flash programmed for the bytes of a client, through a volume and without: asked while it is served, and said at its end.
#[test]
fn what_was_written_is_told_down_to_flash() {
    for on in ["ssd", "file", "image"] {
        let folder = Folder::new(&format!("serve-written-{on}"));
        let (noun, path) = served(&folder, on);
        let socket = folder.0.join("nbd");
        let server = Server::start_noun(noun, &path, &socket, &[]);
        let mut client = Client::device(&Endpoint::Unix(socket)).unwrap();
        for block in 0..200 {
            client.write(block * 8192, &[7; 4096], false).unwrap();
        }
        client.flush().unwrap();
        if noun == "volume" {
            let info = json(&["volume", "info", text(&path)]);
            let flash = &info["live"]["written"];
            let ratio = |key: &str| flash[key].as_f64();
            assert_eq!(flash["host_bytes"], 200 * 4096);
            assert_eq!(ratio("waf").is_some(), on == "image", "{flash}");
            if let (Some(host), Some(device), Some(all)) =
                (ratio("waf_host"), ratio("waf_device"), ratio("waf"))
            {
                assert!(host > 1.0 && device >= 1.0 && (host * device - all).abs() < 1e-9);
            }
            let shown = onefold(&["volume", "info", text(&path)]);
            let shown = String::from_utf8(shown.stdout).unwrap();
            assert_eq!(shown.contains("programmed by flash: "), on == "image", "{shown}");
        }
        drop(client);
        let (_, said) = server.terminate_with_messages();
        let said = said.join("\n");
        assert_eq!(said.contains("sent to the backing per byte written: 1."), noun == "volume");
        assert_eq!(said.contains(" programmed by flash: "), on != "file", "{said}");
        assert_eq!(said.contains(" per byte sent, "), on == "image", "{said}");
    }
}

const READS: u64 = 8;
/// What the modelled device takes for one.
const READ: Duration = Duration::from_millis(60);
const BLOCK: usize = 4096;

/// How long a client waits for some reads of blocks that lie on flash.
fn time_of_reads((noun, path): (&str, &Path), socket: &Path, latency: &[&str]) -> Duration {
    let server = Server::start_noun(noun, path, socket, latency);
    let mut client = Client::device(&Endpoint::Unix(socket.to_owned())).unwrap();
    let begin = Instant::now();
    let mut block = [0; BLOCK];
    for at in 0..READS {
        client.read(at * BLOCK as u64, &mut block).unwrap();
        assert_eq!(block, [7; BLOCK]);
    }
    let took = begin.elapsed();
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    took
}

/// With `model` no reply comes before the modelled SSD would have it. A volume did not wait for its SSD.
#[test]
fn replies_wait_for_the_modelled_device_if_asked_to() {
    for noun in ["ssd", "volume"] {
        let folder = Folder::new(&format!("serve-latency-{noun}"));
        let (image, socket) = (folder.0.join("disk.img"), folder.0.join("nbd"));
        let slow = ["--preset", "s1", "--size", "64MiB", "--set", "timing.read=60ms"];
        let made = ssd(&[&["create", text(&image)], &slow[..]].concat());
        assert_eq!(made.status.code(), Some(0), "{}", message(&made));
        if noun == "volume" {
            onefold(&["volume", "create", text(&image), "--segment", "256KiB"]);
        }
        let server = Server::start_noun(noun, &image, &socket, &["--latency", "none"]);
        let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
        client.write(0, &vec![7; BLOCK * usize::try_from(READS).unwrap()], true).unwrap();
        drop(client);
        assert_eq!(server.terminate(), Some(0));
        let all = READ * u32::try_from(READS).unwrap();
        let model = time_of_reads((noun, &image), &socket, &["--latency", "model"]);
        assert!(model >= all, "{noun}: {model:?}");
        let none = time_of_reads((noun, &image), &socket, &["--latency", "none"]);
        assert!(none < all, "{noun}: {none:?}");
    }
}

#[test]
fn a_volume_without_a_modelled_device_has_no_modelled_time() {
    let folder = Folder::new("serve-no-model");
    let zoned = folder.zoned_image("128MiB");
    onefold(&["volume", "create", text(&zoned)]);
    for path in [served(&folder, "file").1, zoned] {
        let serve = ["serve", text(&path), "--nbd", "127.0.0.1:0", "--latency", "model"];
        let refused =
            Command::new(env!("CARGO_BIN_EXE_onefold")).arg("volume").args(serve).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", message(&refused));
        let part = "--latency model is for an emulated SSD without zones";
        assert!(message(&refused).contains(part), "{}", message(&refused));
    }
}

/// What serves an image in a directory, and nowhere else.
fn serve_in(image: &Path, mount: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
    command.args(["ssd", "serve", text(image), "--fuse", text(mount)]);
    command
}

/// A directory, and the server that is mounted there; `None` where nothing can be mounted.
fn mounted(folder: &Folder, image: &Path) -> Option<(PathBuf, Child)> {
    let mount = folder.0.join("fuse");
    std::fs::create_dir(&mount).unwrap();
    let mut server = serve_in(image, &mount).spawn().unwrap();
    while !mount.join("disk").exists() {
        if server.try_wait().unwrap().is_some() {
            eprintln!("skipped 1 case: cannot mount a FUSE file system here");
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some((mount, server))
}

fn unmount(mount: &Path) {
    let status = Command::new("umount").args(["--lazy", text(mount)]).status().unwrap();
    assert!(status.success());
}

#[test]
fn the_mount_of_a_killed_server_is_named_with_what_to_do() {
    let folder = Folder::new("deadmount");
    let image = folder.image();
    let Some((mount, mut server)) = mounted(&folder, &image) else { return };
    server.kill().unwrap();
    server.wait().unwrap();
    let again = serve_in(&image, &mount).output().unwrap();
    unmount(&mount);
    assert_eq!(again.status.code(), Some(1), "{}", message(&again));
    assert!(message(&again).contains("umount --lazy"), "{}", message(&again));
}

#[test]
fn a_server_whose_only_directory_is_unmounted_ends_in_good_order() {
    let folder = Folder::new("unmounted");
    let image = folder.image();
    let Some((mount, mut server)) = mounted(&folder, &image) else { return };
    unmount(&mount);
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert_eq!(json(&["ssd", "info", text(&image)])["image"]["clean"], true);
}

#[test]
fn info_of_a_drive_says_that_a_volume_on_it_is_served() {
    let folder = Folder::new("infovolume");
    let (noun, path) = served(&folder, "image");
    let socket = folder.0.join("nbd");
    let server = Server::start_noun(noun, &path, &socket, &[]);
    let info = Command::new(env!("CARGO_BIN_EXE_onefold"))
        .args(["ssd", "info", text(&path)])
        .output()
        .unwrap();
    assert_eq!(info.status.code(), Some(0), "{}", message(&info));
    let said = String::from_utf8_lossy(&info.stdout);
    assert!(
        said.contains("a volume on it is served now") && said.contains("onefold volume info"),
        "{said}"
    );
    // Its life is in the image meanwhile.
    assert!(said.contains("in its life"), "{said}");
    assert_eq!(server.terminate(), Some(0));
}
