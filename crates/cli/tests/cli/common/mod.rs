//! The command `onefold ssd` and its server, as tests run them.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

/// A folder that is short enough for the path of a Unix socket.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onefold-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// An image of 64 MiB.
    pub(crate) fn image(&self) -> PathBuf {
        let image = self.0.join("disk.img");
        let output = ssd(&["create", text(&image), "--preset", "s1", "--size", "64MiB"]);
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
        image
    }

    /// An image of zones of 4 MiB.
    pub(crate) fn zoned_image(&self, size: &str) -> PathBuf {
        let image = self.0.join("zoned.img");
        let create = ["create", text(&image), "--preset", "femu-zns", "--size", size];
        let small = ["--set", "geometry.pages=16", "--set", "namespace.zone_size=4MiB"];
        let output = ssd(&[&create[..], &small].concat());
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
        image
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn ssd(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("ssd").args(arguments).output().unwrap()
}

/// Standard error on one line: messages are wrapped to the width of a terminal.
pub(crate) fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).replace('\u{2502}', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn json(arguments: &[&str]) -> Value {
    let output = ssd(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A running server, killed when dropped.
pub(crate) struct Server(Child, Option<JoinHandle<Vec<String>>>);

impl Server {
    /// Starts one and waits until it says that it serves.
    pub(crate) fn start(image: &Path, socket: &Path) -> Self {
        Self::start_with(image, socket, &[])
    }

    /// The same with more arguments.
    pub(crate) fn start_with(image: &Path, socket: &Path, more: &[&str]) -> Self {
        Self::start_noun("ssd", image, socket, &[&["--latency", "none"], more].concat())
    }

    /// Serves an emulated SSD or a volume.
    pub(crate) fn start_noun(noun: &str, image: &Path, socket: &Path, more: &[&str]) -> Self {
        let endpoint = format!("unix:{}", socket.display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_onefold"))
            .args([noun, "serve", text(image), "--nbd", &endpoint])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let said: Vec<String> =
            lines.by_ref().take_while(|line| !line.starts_with("serving ")).collect();
        // Further messages must not end the server.
        let messages = std::thread::spawn(move || lines.collect());
        let running = child.try_wait().unwrap().is_none();
        let server = Self(child, Some(messages));
        assert!(running, "{said:?}");
        server
    }

    /// Sends it a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    pub(crate) fn terminate(self) -> Option<i32> {
        self.terminate_with_messages().0
    }

    /// The same; and what it said while it served.
    pub(crate) fn terminate_with_messages(mut self) -> (Option<i32>, Vec<String>) {
        self.signal("TERM");
        let code = self.0.wait().unwrap().code();
        (code, self.1.take().map(|messages| messages.join().unwrap()).unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
