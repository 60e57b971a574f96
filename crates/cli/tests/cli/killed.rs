//! Commands for a volume whose server was killed.
//!
//! `volume clone`, asked while its server was just killed, printed what its parser of JSON had to say of an answer that never came.

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Folder, Server, message, text};
use onefold_serve::nbd::{Client, Endpoint};

fn volume(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("volume").args(arguments).output().unwrap()
}

fn create(path: &Path) {
    let made = volume(&["create", text(path), "--backing-size", "128MiB", "--size", "32MiB"]);
    assert_eq!(made.status.code(), Some(0), "{}", message(&made));
}

/// Every command that a server takes.
fn commands(path: &str) -> [Vec<&str>; 6] {
    [
        vec!["info", path],
        vec!["snapshot", "create", path, "monday"],
        vec!["snapshot", "list", path],
        vec!["clone", path, "trial"],
        vec!["resize", path, "--size", "48MiB"],
        vec!["scrub", path],
    ]
}

/// Without a server, commands do at once what they are asked for. Its socket is still there.
#[test]
fn commands_work_after_their_server_was_killed() {
    let folder = Folder::new("killed-gone");
    let (path, socket) = (folder.0.join("volume"), folder.0.join("nbd"));
    create(&path);
    for command in commands(text(&path)) {
        let server = Server::start_noun("volume", &path, &socket, &[]);
        let mut client = Client::device(&Endpoint::Unix(socket.clone())).unwrap();
        client.write(0, &[7; 4096], false).unwrap();
        client.flush().unwrap();
        // SIGKILL.
        drop(server);
        assert!(folder.0.join("volume.sock").exists());
        let output = volume(&command);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", message(&output));
    }
    let check = volume(&["check", text(&path), "--data"]);
    assert_eq!(check.status.code(), Some(0), "{}", message(&check));
}

/// A server that takes the question and is killed before it answers.
#[test]
fn a_server_that_went_away_is_said_to_be_gone() {
    let folder = Folder::new("killed-asked");
    let path = folder.0.join("volume");
    create(&path);
    // Its lock, and its socket.
    let held = File::open(&path).unwrap();
    held.lock().unwrap();
    let listener = UnixListener::bind(folder.0.join("volume.sock")).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    for command in commands(text(&path)) {
        let output = volume(&command);
        let said = message(&output);
        // A scrub has the exit codes of fsck(8).
        let code = if command[0] == "scrub" { 8 } else { 5 };
        assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
        assert!(said.contains("the server went away"), "{command:?}: {said}");
        assert!(!said.contains("JSON") && !said.contains("EOF"), "{command:?}: {said}");
    }
}
