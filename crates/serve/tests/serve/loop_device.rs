//! File systems on a loop device on the FUSE file (needs root, /dev/fuse and loop devices).

use std::path::Path;
use std::process::Command;

use onefold_device::observed::{Frontend, Observed};
use onefold_serve::{Options, Server};
use onefold_units::Op;

use crate::common::memory::MemoryDevice;
use crate::common::{has_program, skip};

const SIZE: u64 = 320 << 20;

/// Runs a program; its output, or what it complained about.
fn try_run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{program} {arguments:?}: {}", text(&output.stderr)))
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    try_run(program, arguments).unwrap()
}

/// A loop device that is detached when the test ends, however it ends.
struct Loop(String);

impl Loop {
    /// Attaches the file, and makes sure that it is this file: with a dead server a test would
    /// read and write the host's own disk and pass.
    fn attach(file: &Path) -> Result<Self, String> {
        let file = file.to_str().unwrap();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        assert!(mounts.lines().any(|l| l.starts_with("onefold ") && l.contains(" fuse")));
        let name = try_run("losetup", &["-f", "--show", "--direct-io=on", file])?;
        let device = Self(name.trim().to_owned());
        let listed = run("losetup", &["-n", "-O", "BACK-FILE,DIO", "-l", &device.0]);
        assert!(listed.contains(file) && listed.trim().ends_with('1'), "{listed}");
        Ok(device)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = try_run("losetup", &["-d", &self.0]);
    }
}

/// A mount that ends with the test.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = try_run("umount", &[self.0.to_str().unwrap()]);
    }
}

fn file_system(name: &str, mkfs: &[&str], check: &[&str]) {
    let test = format!("{name}_lives_on_the_loop_device");
    let programs = [mkfs[0], check[0], "losetup", "fstrim"];
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        return skip(&test, "root or /dev/fuse");
    }
    // Administrators' programs are not in everybody's path.
    if let Some(missing) =
        programs.iter().find(|p| !has_program(p) && !Path::new("/usr/sbin").join(p).exists())
    {
        return skip(&test, missing);
    }
    let (fuse, mountpoint) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut options = Options::new("disk");
    options.fuse = Some(fuse.path().to_owned());
    let server = Server::start(Observed::new(MemoryDevice::new(SIZE)), &options).unwrap();
    let device = match Loop::attach(&fuse.path().join("disk")) {
        Ok(device) => device,
        Err(error) => {
            skip(&test, &format!("a loop device ({error})"));
            return server.stop().unwrap();
        }
    };
    if !use_file_system(&device, mountpoint.path(), mkfs) {
        skip(&test, "the file system in this kernel");
        drop(device);
        return server.stop().unwrap();
    }
    run(check[0], &[&check[1..], &[device.0.as_str()]].concat());
    let counts = server.observed().counts();
    let fuse = counts.frontend(Frontend::Fuse);
    assert!(fuse.op(Op::Flush).requests > 0, "fsync reached the device");
    assert!(fuse.op(Op::Trim).requests > 0, "fstrim reached the device");
    assert!(Op::ALL.iter().all(|op| fuse.op(*op).errors == 0));
    drop(device);
    server.stop().unwrap();
}

/// Makes, fills, trims and compares; `false` if the kernel cannot mount it.
fn use_file_system(device: &Loop, mountpoint: &Path, mkfs: &[&str]) -> bool {
    run(mkfs[0], &[&mkfs[1..], &[device.0.as_str()]].concat());
    let directory = mountpoint.to_str().unwrap();
    if try_run("mount", &[&device.0, directory]).is_err() {
        return false;
    }
    let path = mountpoint.join("file");
    let data: Vec<u8> = (0..24_u32 << 20).map(|n| (n / 4096).to_le_bytes()[0]).collect();
    {
        let _mounted = Mounted(mountpoint);
        std::fs::write(mountpoint.join("gone"), &data).unwrap();
        std::fs::write(&path, &data).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        std::fs::remove_file(mountpoint.join("gone")).unwrap();
        run("sync", &[]);
        run("fstrim", &[directory]);
    }
    run("mount", &[&device.0, directory]);
    let _mounted = Mounted(mountpoint);
    assert!(std::fs::read(&path).unwrap() == data, "the file is what was written");
    true
}

#[test]
fn ext4_lives_on_the_loop_device() {
    file_system("ext4", &["mkfs.ext4", "-q", "-F"], &["e2fsck", "-f", "-n"]);
}

#[test]
fn xfs_lives_on_the_loop_device() {
    file_system("xfs", &["mkfs.xfs", "-q", "-f"], &["xfs_repair", "-n"]);
}

#[test]
fn btrfs_lives_on_the_loop_device() {
    file_system("btrfs", &["mkfs.btrfs", "-q", "-f"], &["btrfs", "check"]);
}
