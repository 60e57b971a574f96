//! What the tests share: a device, the protocol by hand, and a server on a temporary socket.

pub(crate) mod device;
pub(crate) mod memory;
pub(crate) mod session;
pub(crate) mod wire;

use std::path::PathBuf;

use onefold_device::BlockDevice;
use onefold_device::observed::{DeviceStats, Observed};
use onefold_serve::nbd::Endpoint;
use onefold_serve::{Options, Server};

/// A server on a Unix socket in a directory of its own.
pub(crate) struct Rig<D: BlockDevice> {
    pub(crate) server: Server<D>,
    pub(crate) socket: PathBuf,
    pub(crate) dir: tempfile::TempDir,
}

/// Starts a server; `change` may alter its options.
pub(crate) fn rig<D: BlockDevice + DeviceStats + 'static>(
    device: D,
    change: impl FnOnce(&mut Options),
) -> Rig<D> {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("nbd.sock");
    let mut options = Options::new("disk");
    options.nbd.push(Endpoint::Unix(socket.clone()));
    change(&mut options);
    let server = Server::start(Observed::new(device), &options).unwrap();
    Rig { server, socket, dir }
}

/// Tells that a test did not run, and fails if the environment demands it.
pub(crate) fn skip(test: &str, missing: &str) {
    eprintln!("skipped 1 test: {test}: {missing} is missing");
    let required = std::env::var("ONEFOLD_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|tier| tier == "t1"), "{test} needs {missing}");
}

/// Whether a program can be started.
pub(crate) fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// Waits for something that another thread does, at most 10 s.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if happened() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("did not happen: {what}");
}
