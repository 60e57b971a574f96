//! `onefold ssd` as a user runs it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A folder that is short enough for the path of a Unix socket.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onefold-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// An image of 64 MiB.
    fn image(&self) -> PathBuf {
        let image = self.0.join("disk.img");
        let output = ssd(&["create", text(&image), "--preset", "s1", "--size", "64MiB"]);
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
        image
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn ssd(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("ssd").args(arguments).output().unwrap()
}

/// Standard error on one line: messages are wrapped to the width of a terminal.
fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).replace('\u{2502}', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(arguments: &[&str]) -> Value {
    let output = ssd(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A running server, killed when dropped.
struct Server(Child);

impl Server {
    /// Starts one and waits until it says that it serves.
    fn start(image: &Path, socket: &Path) -> Self {
        Self::start_with(image, socket, &[])
    }

    /// The same with more arguments.
    fn start_with(image: &Path, socket: &Path, more: &[&str]) -> Self {
        let endpoint = format!("unix:{}", socket.display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_onefold"))
            .args(["ssd", "serve", text(image), "--nbd", &endpoint, "--latency", "none"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let said: Vec<String> =
            lines.by_ref().take_while(|line| !line.starts_with("serving ")).collect();
        // Further messages go nowhere, but must not end the server.
        std::thread::spawn(move || lines.for_each(drop));
        let running = child.try_wait().unwrap().is_none();
        let server = Self(child);
        assert!(running && said.len() <= 1, "{said:?}");
        server
    }

    fn terminate(mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
        (vec!["create", text(&missing), "--size", "1GB2"], 2, "whole number with a unit"),
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
