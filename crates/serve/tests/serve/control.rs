//! The control export beside the device, and our own client.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onefold_device::mailbox::Mailbox;
use onefold_device::observed::{DeviceStats, Observed};
use onefold_device::{BlockDevice, Due, Extent};
use onefold_serve::nbd::{Client, ClientError, Endpoint};
use onefold_serve::{Options, Server};
use onefold_units::Status;

use crate::common::memory::MemoryDevice;
use crate::common::session::Session;
use crate::common::wire::{CLIENT_FLAGS, Source, info, option, request};
use crate::common::{rig, skip};

const SIZE: u64 = 8 << 20;
const CONTROL: u64 = 1 << 20;
const LIST: u32 = 3;
const GO: u32 = 7;

/// A device with an export for control that keeps what is written, but for writes of ones.
struct Controlled {
    device: MemoryDevice,
    control: Arc<MemoryDevice>,
}

impl Controlled {
    fn new() -> Self {
        Self { device: MemoryDevice::new(SIZE), control: Arc::new(MemoryDevice::new(CONTROL)) }
    }
}

impl DeviceStats for Controlled {}

struct Picky(Arc<MemoryDevice>);

macro_rules! forward {
    ($at:tt) => {
        fn size(&self) -> u64 {
            self.$at.size()
        }

        fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
            self.$at.read(offset, buf)
        }

        fn flush(&self) -> Result<Due, Status> {
            self.$at.flush()
        }

        fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
            self.$at.trim(offset, len)
        }

        fn write_zeroes(&self, at: u64, len: u64, unmap: bool, fua: bool) -> Result<Due, Status> {
            self.$at.write_zeroes(at, len, unmap, fua)
        }

        fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
            self.$at.extent(offset, len)
        }
    };
}

impl BlockDevice for Picky {
    forward!(0);

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.0.write(offset, data, fua)?;
        if data.first() == Some(&1) { Err(Status::InvalidField) } else { Ok(None) }
    }
}

impl BlockDevice for Controlled {
    forward!(device);

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.device.write(offset, data, fua)
    }

    fn control(&self) -> Option<Box<dyn BlockDevice>> {
        Some(Box::new(Picky(Arc::clone(&self.control))))
    }
}

#[test]
fn it_is_listed_and_chosen_by_name() {
    let mut session = Session::new(Controlled::new(), false);
    session.feed(&CLIENT_FLAGS);
    session.take();
    session.feed(&option(LIST, &[]));
    let bytes = session.take();
    let names: Vec<_> = Source(&bytes[..]).answers().into_iter().map(|a| a.data).collect();
    assert_eq!(names, [&b"\0\0\0\x04disk"[..], b"\0\0\0\x08disk.ctl", b""]);
    for (name, size, blocks, flags) in [
        (&b"disk.ctl"[..], CONTROL, [4096_u32, 4096, 4096], 0x10D_u16),
        (b".ctl", CONTROL, [4096, 4096, 4096], 0x10D),
        (b"disk", SIZE, [512, 4096, 32 << 20], 0x96D),
    ] {
        let mut session = Session::new(Controlled::new(), false);
        session.feed(&CLIENT_FLAGS);
        session.take();
        session.feed(&option(GO, &info(name, &[1])));
        let bytes = session.take();
        let answers = Source(&bytes[..]).answers();
        assert_eq!(
            answers[0].data,
            [&[0, 0][..], &size.to_be_bytes(), &flags.to_be_bytes()].concat()
        );
        assert!(answers[1].data.ends_with(if size == SIZE { b"disk" } else { b".ctl" }));
        assert_eq!(
            answers[2].data,
            [&[0, 3][..], blocks.map(u32::to_be_bytes).as_flattened()].concat()
        );
        // Ranges are those of the export that was chosen.
        session.feed(&request(0, 0, 7, CONTROL, 4096));
        let bytes = session.take();
        let reply = Source(&bytes[..]).reply(|_| 4096).unwrap();
        assert_eq!(reply.error, if size == SIZE { 0 } else { 22 });
    }
    for name in [&b"disk.ctl.ctl"[..], b"other.ctl", b"ctl"] {
        let mut session = Session::new(Controlled::new(), false);
        session.feed(&CLIENT_FLAGS);
        session.feed(&option(GO, &info(name, &[])));
        assert!(!session.machine.in_transmission());
    }
    // Without one, its name is unknown.
    let mut session = Session::new(MemoryDevice::new(SIZE), false);
    session.feed(&CLIENT_FLAGS);
    session.feed(&option(GO, &info(b"disk.ctl", &[])));
    assert!(!session.machine.in_transmission());
}

#[test]
fn the_client_reaches_both() {
    let rig = rig(Controlled::new(), |options| options.nbd.push("127.0.0.1:0".parse().unwrap()));
    for endpoint in rig.server.endpoints() {
        let mut device = Client::device(endpoint).unwrap();
        let mut control = Client::connect(endpoint, "disk.ctl").unwrap();
        assert_eq!((device.size(), control.size()), (SIZE, CONTROL));
        device.write(0, &[9; 4096], true).unwrap();
        device.flush().unwrap();
        control.write(0, &[3; 4096], false).unwrap();
        let mut back = [0; 4096];
        device.read(0, &mut back).unwrap();
        assert_eq!(back, [9; 4096]);
        control.read(0, &mut back).unwrap();
        assert_eq!(back, [3; 4096]);
        let refused = device.read(SIZE, &mut back).unwrap_err();
        assert!(matches!(refused, ClientError::Request { errno: 22 }));
        device.read(0, &mut back).unwrap();
        // A refused command has its reply in the slot.
        let mut mailbox = Client::control(endpoint).unwrap();
        assert_eq!(mailbox.exchange(&[1; 4096]).unwrap(), [1; 4096]);
        assert_eq!(mailbox.exchange(&[2; 4096]).unwrap(), [2; 4096]);
    }
}

#[test]
fn a_read_only_device_takes_no_commands() {
    let rig = rig(Controlled::new(), |options| options.read_only = true);
    let mut mailbox = Client::control(&rig.server.endpoints()[0]).unwrap();
    let error = mailbox.exchange(&[2; 4096]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    let error = Client::connect(&rig.server.endpoints()[0], "other").err().unwrap();
    assert_eq!(error.to_string(), "the NBD server has no export `other`: no export has this name");
}

/// The class of nbd issue 135: whatever a server says, the client says what is wrong.
#[test]
fn the_client_survives_a_lying_server() {
    let greeting = b"NBDMAGICIHAVEOPT\0\x03";
    let answer = |kind: u32, len: u32| {
        let mut bytes = greeting.to_vec();
        bytes.extend(0x0003_e889_0455_65a9_u64.to_be_bytes());
        bytes.extend([7, kind, len].into_iter().flat_map(u32::to_be_bytes));
        bytes
    };
    for (bytes, text) in [
        (b"HTTP/1.1 400 Bad".to_vec(), "something else answers"),
        (b"NBDMAGICIHAVEOPT\0\0".to_vec(), "an old version"),
        (b"NBDMAG".to_vec(), "sends no greeting"),
        (answer(3, u32::MAX), "makes no sense"),
        (answer(0x8000_0006, 0), "has no export"),
        ([&greeting[..], &[0; 20]].concat(), "makes no sense"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("liar");
        let listener = UnixListener::bind(&path).unwrap();
        let liar = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            stream.write_all(&bytes).unwrap();
            // Until the client has nothing more to say: else what it says next finds nobody.
            while matches!(stream.read(&mut [0; 64]), Ok(1..)) {}
        });
        let error = Client::device(&Endpoint::Unix(path)).err().unwrap();
        assert!(error.to_string().contains(text), "{error}, expected {text}");
        liar.join().unwrap();
    }
}

#[test]
fn the_fuse_directory_has_a_file_for_it() {
    let test = "the_fuse_directory_has_a_file_for_it";
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        return skip(test, "root or /dev/fuse");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::new("disk");
    options.fuse = Some(dir.path().to_owned());
    let server = Server::start(Observed::new(Controlled::new()), &options).unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["disk", "disk.ctl"]);
    let open = |name: &str| -> File {
        OpenOptions::new().read(true).write(true).open(dir.path().join(name)).unwrap()
    };
    let (disk, control) = (open("disk"), open("disk.ctl"));
    assert_eq!(control.metadata().unwrap().len(), CONTROL);
    disk.write_all_at(&[9; 4096], 0).unwrap();
    control.write_all_at(&[3; 4096], 0).unwrap();
    assert_eq!(control.write_at(&[1; 4096], 4096).unwrap_err().raw_os_error(), Some(22));
    assert!(control.write_at(&[2; 4096], CONTROL).is_err());
    let mut back = [0; 4096];
    // Nothing is cached: each read asks the device.
    server.observed().device().control.write(0, &[5; 4096], false).unwrap();
    control.read_exact_at(&mut back, 0).unwrap();
    assert_eq!(back, [5; 4096]);
    disk.sync_all().unwrap();
    disk.read_exact_at(&mut back, 0).unwrap();
    assert_eq!(back, [9; 4096]);
    control.sync_all().unwrap();
    let punched = rustix::fs::fallocate(
        &control,
        rustix::fs::FallocateFlags::KEEP_SIZE | rustix::fs::FallocateFlags::PUNCH_HOLE,
        0,
        4096,
    );
    assert_eq!(punched, Err(rustix::io::Errno::OPNOTSUPP));
    drop((disk, control));
    server.stop().unwrap();
}
