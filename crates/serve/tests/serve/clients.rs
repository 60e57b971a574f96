//! The clients that users have. A missing one is a printed skip.

use std::path::Path;
use std::process::Command;

use onefold_device::observed::{Frontend, Recorded};
use onefold_serve::record;
use onefold_units::Op;

use crate::common::memory::MemoryDevice;
use crate::common::{Rig, has_program, rig, skip};

const SIZE: u64 = 64 << 20;

fn uri(rig: &Rig<MemoryDevice>) -> String {
    format!("nbd+unix:///disk?socket={}", rig.socket.display())
}

/// Runs a program and returns its output.
fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    // Clients written in Python need the interpreter that their packages are installed for.
    let path = format!("/usr/bin:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(dir).env("PATH", path).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {out}{err}");
    out.into_owned()
}

fn has(test: &str, program: &str) -> bool {
    let has = has_program(program);
    if !has {
        skip(test, program);
    }
    has
}

/// Half data, half holes.
fn image(dir: &Path) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(SIZE).unwrap()];
    for (n, page) in bytes.chunks_mut(4096).enumerate().filter(|(n, _)| n % 64 < 32) {
        page.fill(n.to_le_bytes()[0] | 1);
    }
    std::fs::write(dir.join("image"), &bytes).unwrap();
    bytes
}

#[test]
fn nbdinfo_lists_what_is_offered() {
    if !has("nbdinfo_lists_what_is_offered", "nbdinfo") {
        return;
    }
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let text = run("nbdinfo", &[&uri(&rig)], rig.dir.path());
    for line in [
        "using structured packets",
        "export-size: 67108864",
        "base:allocation",
        "can_df: true",
        "can_fast_zero: true",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "is_read_only: false",
        "block_size_minimum: 512",
        "block_size_preferred: 4096",
        "block_size_maximum: 33554432",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    let listed = format!("nbd+unix://?socket={}", rig.socket.display());
    assert!(run("nbdinfo", &["--list", &listed], rig.dir.path()).contains("export=\"disk\""));
}

#[test]
fn nbdcopy_copies_both_ways_and_the_map_shows_holes() {
    if !has("nbdcopy_copies_both_ways_and_the_map_shows_holes", "nbdcopy") {
        return;
    }
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let dir = rig.dir.path();
    let bytes = image(dir);
    run("nbdcopy", &["image", &uri(&rig)], dir);
    run("nbdcopy", &[&uri(&rig), "copy"], dir);
    assert!(std::fs::read(dir.join("copy")).unwrap() == bytes);
    let map = run("nbdinfo", &["--map", "--totals", &uri(&rig)], dir);
    assert!(map.contains("33554432") && map.contains("hole,zero"), "{map}");
    let counts = rig.server.observed().counts();
    assert_eq!(counts.frontend(Frontend::Nbd).op(Op::Write).errors, 0);
}

#[test]
fn qemu_converts_and_maps() {
    if !has("qemu_converts_and_maps", "qemu-img") {
        return;
    }
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let dir = rig.dir.path();
    let bytes = image(dir);
    let uri = uri(&rig);
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "image", &uri], dir);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", "image", &uri], dir);
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, "copy"], dir);
    assert!(std::fs::read(dir.join("copy")).unwrap() == bytes);
    let map = run("qemu-img", &["map", "--output=json", "-f", "raw", &uri], dir);
    assert_eq!(map.matches("\"data\": true").count(), 256, "{map}");
    assert!(run("qemu-img", &["info", &uri], dir).contains("64 MiB"));
    let script = ["-f", "raw", "-c", "write -P 7 -f 1000 3000", "-c", "flush"];
    let check = ["-c", "discard 8k 8k", "-c", "write -z 16k 8k", "-c", "read -P 7 1000 3000"];
    let rest = ["-c", "read -P 0 8k 16k", uri.as_str()];
    let text = run("qemu-io", &[&script[..], &check[..], &rest[..]].concat(), dir);
    assert!(!text.contains("failed") && !text.contains("error"), "{text}");
}

/// Requests that well-behaved clients do not send.
#[test]
fn a_lax_libnbd_client_gets_the_errors_of_the_protocol() {
    let test = "a_lax_libnbd_client_gets_the_errors_of_the_protocol";
    if !has(test, "nbdsh") {
        return;
    }
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let script = r#"
import errno
h.set_strict_mode(0)
h.set_request_block_size(False)
h.connect_uri(URI)
def fails(code, call, *a, **k):
    try:
        call(*a, **k)
    except nbd.Error as e:
        assert e.errnum == code, (a, k, e)
        return
    raise AssertionError((a, k))
size = h.get_size()
fails(errno.ENOSPC, h.pwrite, b"x" * 512, size)
fails(errno.EINVAL, h.pread, 512, size)
fails(errno.EINVAL, h.pread, 0, 0)
fails(errno.EINVAL, h.trim, 4096, size)
fails(errno.ENOSPC, h.zero, 4096, size)
fails(errno.EINVAL, h.trim, 4096, 0, flags=1 << 15)
fails(errno.ENOTSUP, h.zero, 512, 0, flags=nbd.CMD_FLAG_FAST_ZERO)
h.pwrite(b"y" * 100, 12345, flags=nbd.CMD_FLAG_FUA)
assert h.pread(100, 12345) == b"y" * 100
assert h.pread(100, 12345, flags=nbd.CMD_FLAG_DF) == b"y" * 100
h.shutdown()
"#;
    let script = script.replace("URI", &format!("{:?}", uri(&rig)));
    run("nbdsh", &["-c", &script], rig.dir.path());
}

#[test]
fn fio_verifies_what_it_wrote() {
    let test = "fio_verifies_what_it_wrote";
    if !has(test, "fio") {
        return;
    }
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let target = format!("--uri={}", uri(&rig));
    let arguments = [
        "--name=verify",
        "--ioengine=nbd",
        &target,
        "--rw=randwrite",
        "--bsrange=512-64k",
        "--size=64m",
        "--iodepth=32",
        "--io_size=16m",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--do_verify=1",
        "--randrepeat=0",
    ];
    run("fio", &arguments, rig.dir.path());
    let counts = rig.server.observed().counts();
    let nbd = counts.frontend(Frontend::Nbd);
    assert!(nbd.op(Op::Write).bytes >= 16 << 20 && nbd.op(Op::Read).bytes >= 16 << 20);
}

#[test]
fn a_recording_does_not_overwrite_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.oft");
    let device =
        Recorded { device_bytes: SIZE, device_uuid: [7; 16], lba_bytes: 4096, behind_loop: false };
    record(&path, &device).unwrap().finish().unwrap();
    let first = std::fs::read(&path).unwrap();
    assert!(first.starts_with(b"OFTRACE\0"));
    let error = record(&path, &device).err().unwrap();
    assert!(error.to_string().contains("does not exist yet"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), first);
}
