//! The server with sockets and threads, by our own client.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use onefold_device::observed::{Frontend, Observed};
use onefold_serve::nbd::{Endpoint, ListenError};
use onefold_serve::{Options, ServeError, Server};
use onefold_units::Op;

use crate::common::device::{Behaviour, TestDevice};
use crate::common::memory::MemoryDevice;
use crate::common::wire::{Client, DISC, FLUSH, READ, handshake, request, write};
use crate::common::{eventually, rig};

const SIZE: u64 = 1 << 20;

pub(crate) fn connect(socket: &Path) -> Client<UnixStream> {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client::new(stream, true, true)
}

fn start_error(change: impl FnOnce(&mut Options)) -> ServeError {
    let mut options = Options::new("disk");
    change(&mut options);
    match Server::start(Observed::new(MemoryDevice::new(SIZE)), &options) {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[test]
fn several_connections_share_one_device() {
    let rig = rig(MemoryDevice::new(SIZE), |options| {
        options.nbd.push("127.0.0.1:0".parse().unwrap());
    });
    let mut first = connect(&rig.socket);
    let Endpoint::Tcp(address) = rig.server.endpoints()[1].clone() else { panic!("not TCP") };
    let mut second = Client::new(TcpStream::connect(address).unwrap(), false, false);
    assert_eq!((first.size, second.size), (SIZE, SIZE));
    assert_eq!(first.flags & 0x100, 0x100, "CAN_MULTI_CONN");
    assert_eq!(first.ask(&write(0, 1, 512, &[7; 1024])).error, 0);
    assert_eq!(second.ask(&request(0, FLUSH, 2, 0, 0)).error, 0);
    second.send(&request(0, READ, 3, 512, 1024));
    let reply = second.stream.reply(|_| 1024).unwrap();
    assert_eq!(reply.bytes(0, 1024), [7; 1024]);
    let counts = rig.server.observed().counts();
    let nbd = counts.frontend(Frontend::Nbd);
    assert_eq!((nbd.op(Op::Write).requests, nbd.op(Op::Write).bytes), (1, 1024));
    assert_eq!((nbd.op(Op::Read).requests, nbd.op(Op::Flush).requests), (1, 1));
    assert_eq!(nbd.unaligned, 2);
}

#[test]
fn many_requests_in_one_send_are_all_answered() {
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let mut client = connect(&rig.socket);
    let mut bytes = Vec::new();
    for page in 0..200_u64 {
        bytes.extend(write(0, page, page * 4096, &[u8::try_from(page).unwrap(); 4096]));
        bytes.extend(request(0, READ, 1000 + page, page * 4096, 4096));
    }
    // From another thread, as more is sent than the socket holds.
    let mut sender = client.stream.0.try_clone().unwrap();
    let thread = std::thread::spawn(move || sender.write_all(&bytes).unwrap());
    for page in 0..200_u64 {
        let written = client.reply().unwrap();
        assert_eq!((written.cookie, written.error), (page, 0));
        let read = client.reply().unwrap();
        assert_eq!(read.cookie, 1000 + page);
        assert_eq!(read.bytes(page * 4096, 4096), [u8::try_from(page).unwrap(); 4096]);
    }
    thread.join().unwrap();
}

#[test]
fn large_requests_pass_in_both_directions() {
    let rig = rig(MemoryDevice::new(64 << 20), |_| {});
    let mut client = connect(&rig.socket);
    let data: Vec<u8> = (0..32_u32 << 20).map(|n| (n >> 8).to_le_bytes()[0]).collect();
    assert_eq!(client.ask(&write(0, 1, 4096, &data)).error, 0);
    assert!(client.read(4096, 32 << 20) == data);
}

#[test]
fn replies_overtake_a_delayed_one_and_it_is_not_early() {
    let (device, behaviour) = TestDevice::new(SIZE);
    behaviour.delay_us.store(50_000, Ordering::SeqCst);
    behaviour.slow_from.store(4096, Ordering::SeqCst);
    let rig = rig(device, |_| {});
    let mut client = connect(&rig.socket);
    let start = Instant::now();
    let slow = write(0, 1, 4096, &[1; 512]);
    client.send(&[slow, write(0, 2, 0, &[2; 512]), request(0, READ, 3, 0, 512)].concat());
    assert_eq!(client.reply().unwrap().cookie, 2);
    assert_eq!(client.reply().unwrap().cookie, 3);
    let inflight = |rig: &crate::common::Rig<_>| {
        rig.server.observed().counts().frontend(Frontend::Nbd).op(Op::Write).inflight
    };
    assert!(inflight(&rig) == 1 || start.elapsed() >= Duration::from_millis(50));
    assert_eq!(client.reply().unwrap().cookie, 1);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(inflight(&rig), 0);
    // DISC waits for what is in flight.
    client.send(&[write(0, 4, 4096, &[1; 512]), request(0, DISC, 5, 0, 0)].concat());
    assert_eq!(client.reply().unwrap().cookie, 4);
    assert_eq!(client.reply(), None);
}

/// Lets blocked writes go on when a test fails, so that its server can end.
pub(crate) struct Opened<'a>(pub(crate) &'a Behaviour);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.block_writes(false);
    }
}

/// Rule E6: a client dies while its write is executed; its next connection has to wait.
#[test]
fn no_new_connection_does_io_before_a_dead_one_has_finished() {
    let (device, behaviour) = TestDevice::new(SIZE);
    let rig = rig(device, |_| {});
    let _open = Opened(&behaviour);
    let mut old = connect(&rig.socket);
    behaviour.block_writes(true);
    // The second write is behind the first in the old connection's buffer.
    old.send(&[write(0, 1, 0, &[1; 512]), write(0, 2, 0, &[1; 512])].concat());
    eventually("the old write is executed", || behaviour.waiting.load(Ordering::SeqCst) == 1);
    drop(old);
    let mut new = connect(&rig.socket);
    let before = behaviour.calls.load(Ordering::SeqCst);
    new.send(&write(0, 3, 0, &[3; 512]));
    new.stream.0.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(new.reply(), None, "it did I/O beside the dead connection");
    assert_eq!(behaviour.calls.load(Ordering::SeqCst), before);
    behaviour.block_writes(false);
    new.stream.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(new.reply().unwrap().cookie, 3);
    assert_eq!(new.read(0, 512), [3; 512], "an old write came late");
    // The old connection's second write was dropped: two calls of it and one of ours at most.
    assert_eq!(behaviour.calls.load(Ordering::SeqCst), before + 2);
}

#[test]
fn a_stopping_server_answers_flushes_and_ends() {
    let (device, behaviour) = TestDevice::new(SIZE);
    behaviour.delay_us.store(100_000, Ordering::SeqCst);
    let rig = rig(device, |_| {});
    let mut client = connect(&rig.socket);
    client.send(&write(0, 1, 0, &[1; 512]));
    eventually("the write is executed", || behaviour.calls.load(Ordering::SeqCst) == 1);
    let socket = rig.socket.clone();
    rig.server.stop().unwrap();
    assert_eq!(client.reply().unwrap().cookie, 1, "a reply in flight is still sent");
    assert_eq!(client.reply(), None);
    assert_eq!(behaviour.flushes.load(Ordering::SeqCst), 1);
    assert!(!socket.exists());
}

/// CVE-2024-7409: clients hang in every state while the server stops.
#[test]
fn stuck_clients_do_not_keep_the_server() {
    let (device, behaviour) = TestDevice::new(64 << 20);
    let rig = rig(device, |options| options.limits.drain = Duration::from_secs(1));
    let path = rig.socket.clone();
    let raw = || UnixStream::connect(&path).unwrap();
    let silent = raw();
    let mut half_option = raw();
    half_option.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x10abc").unwrap();
    let idle = connect(&path);
    let mut half_write = connect(&path);
    half_write.send(&write(0, 1, 0, &[1; 4096])[..100]);
    let mut deaf = connect(&path);
    for cookie in 0..4 {
        deaf.send(&request(4, READ, cookie, 0, 8 << 20));
    }
    behaviour.delay_us.store(3_600_000_000, Ordering::SeqCst);
    let mut patient = connect(&path);
    patient.send(&write(0, 1, 0, &[1; 512]));
    eventually("all were served", || behaviour.calls.load(Ordering::SeqCst) >= 2);
    let start = Instant::now();
    rig.server.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop((silent, half_option, idle, half_write, deaf, patient));
}

/// CVE-2019-14850: a client that never finishes its handshake costs nothing and is cut.
#[test]
fn an_unfinished_handshake_ends_without_backend_work() {
    let (device, behaviour) = TestDevice::new(SIZE);
    let rig = rig(device, |options| {
        options.limits.handshake = Duration::from_millis(100);
    });
    let mut hanging: Vec<_> = (0..2).map(|_| UnixStream::connect(&rig.socket).unwrap()).collect();
    let mut good = connect(&rig.socket);
    assert_eq!(good.read(0, 512), [0; 512]);
    assert_eq!(behaviour.calls.load(Ordering::SeqCst), 1);
    for stream in &mut hanging {
        let mut bytes = Vec::new();
        // The greeting, then the end.
        let _ = stream.read_to_end(&mut bytes);
        assert_eq!(bytes.len(), 18);
    }
    // Once past the handshake a client may be silent.
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(good.read(0, 512), [0; 512]);
}

/// Rule E8: a client that does not take its replies is not read any more.
#[test]
fn replies_nobody_takes_do_not_grow() {
    let (device, behaviour) = TestDevice::new(64 << 20);
    let rig = rig(device, |_| {});
    let mut client = connect(&rig.socket);
    client.stream.0.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    for cookie in 0..2000 {
        if client.stream.0.write_all(&request(4, READ, cookie, 0, 1 << 20)).is_err() {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    let calls = behaviour.calls.load(Ordering::SeqCst);
    assert!(calls < 8, "{calls} replies of 1 MiB were made for nobody");
    let mut good = connect(&rig.socket);
    assert_eq!(good.read(0, 512), [0; 512]);
}

#[test]
fn at_most_128_requests_are_in_flight() {
    let (device, behaviour) = TestDevice::new(SIZE);
    behaviour.delay_us.store(300_000, Ordering::SeqCst);
    let rig = rig(device, |_| {});
    let mut client = connect(&rig.socket);
    let bytes: Vec<u8> = (0..300).flat_map(|c| request(0, READ, c, 0, 512)).collect();
    client.send(&bytes);
    eventually("the limit is reached", || behaviour.calls.load(Ordering::SeqCst) >= 128);
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(behaviour.calls.load(Ordering::SeqCst), 128);
    let mut cookies: Vec<u64> = (0..300).map(|_| client.reply().unwrap().cookie).collect();
    cookies.sort_unstable();
    assert!(cookies.into_iter().eq(0..300));
}

#[test]
fn garbage_is_survived_by_the_others() {
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let mut good = connect(&rig.socket);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 400], &[0; 400]] {
        let mut bad = UnixStream::connect(&rig.socket).unwrap();
        let _ = bad.write_all(garbage);
        let _ = bad.shutdown(Shutdown::Write);
        let mut bytes = Vec::new();
        let _ = bad.read_to_end(&mut bytes);
        let mut late = UnixStream::connect(&rig.socket).unwrap();
        late.write_all(&handshake(true, true)).unwrap();
        let _ = late.write_all(garbage);
        let _ = late.shutdown(Shutdown::Write);
        let _ = late.read_to_end(&mut bytes);
        assert_eq!(good.read(0, 512), [0; 512]);
    }
}

#[test]
fn the_socket_is_private_and_nothing_is_overwritten() {
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let mode = std::fs::metadata(&rig.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let live = Endpoint::Unix(rig.socket.clone());
    let error = start_error(|options| options.nbd.push(live));
    assert!(error.to_string().contains("a server answers there"), "{error}");

    let stale = rig.dir.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let datagram = rig.dir.path().join("datagram");
    let _kept = UnixDatagram::bind(&datagram).unwrap();
    let file = rig.dir.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    for (path, found) in [(&datagram, "a file is there"), (&file, "a file is there")] {
        let endpoint = Endpoint::Unix(path.clone());
        let error = start_error(|options| options.nbd.push(endpoint));
        assert!(matches!(error, ServeError::Listen(ListenError::InUse { .. })), "{error}");
        assert!(error.to_string().contains(found), "{error}");
        assert!(path.exists());
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    let mut options = Options::new("disk");
    options.nbd.push(Endpoint::Unix(stale.clone()));
    let server = Server::start(Observed::new(MemoryDevice::new(SIZE)), &options).unwrap();
    assert_eq!(connect(&stale).read(0, 512), [0; 512], "a left-over socket gives way");
    server.stop().unwrap();
    let mut client = connect(&rig.socket);
    assert_eq!(client.read(0, 512), [0; 512], "the running server was not disturbed");
}

#[test]
fn a_port_in_use_or_open_to_others_is_refused() {
    let rig = rig(MemoryDevice::new(SIZE), |options| {
        options.nbd.push("127.0.0.1:0".parse().unwrap());
    });
    let taken = rig.server.endpoints()[1].clone();
    let error = start_error(|options| options.nbd.push(taken));
    assert!(matches!(error, ServeError::Listen(ListenError::InUse { .. })), "{error}");
    for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:10809"] {
        let error = start_error(|options| options.nbd.push(open.parse().unwrap()));
        let refused = matches!(error, ServeError::Listen(ListenError::NotLoopback { .. }));
        assert!(refused && error.to_string().contains("--insecure-listen"), "{error}");
        let error = start_error(|options| {
            options.nbd.push("127.0.0.1:0".parse().unwrap());
            options.metrics = Some(open.parse().unwrap());
        });
        assert!(matches!(error, ServeError::Listen(ListenError::NotLoopback { .. })), "{error}");
    }
    let mut options = Options::new("disk");
    options.insecure_listen = true;
    options.nbd.push("0.0.0.0:0".parse().unwrap());
    Server::start(Observed::new(MemoryDevice::new(SIZE)), &options).unwrap().stop().unwrap();
    assert!(matches!(start_error(|_| {}), ServeError::NoFrontend));
}
