//! Clients that ask for more than there is: memory, connections, patience.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onefold_device::BlockDevice;
use onefold_serve::Options;

use crate::common::device::TestDevice;
use crate::common::memory::MemoryDevice;
use crate::common::wire::{
    ACK, CLIENT_FLAGS, Client, DF, ERR_POLICY, EXPORT_NAME, GO, LIST, READ, Source, WRITE,
    handshake, info, option, request, write,
};
use crate::common::{Rig, eventually, rig};
use crate::server::{Opened, connect};

const SIZE: u64 = 64 << 20;
const MIB: usize = 1 << 20;

/// Connects clients.
type Clients = fn(&Path) -> Vec<Client<UnixStream>>;
/// Sets limits.
type Change = fn(&mut Options);

/// Memory for a few large requests, and clients that may all come from one process.
fn small(options: &mut Options) {
    options.limits.connections = 32;
    options.limits.connections_per_peer = 32;
    options.limits.handshakes = 4;
    options.limits.total_bytes = 128 * MIB;
}

fn held<D: BlockDevice>(rig: &Rig<D>) -> usize {
    rig.server.connection_memory().held
}

/// Sends as much as the socket takes and waits for nothing.
fn send_some(client: &mut Client<UnixStream>, bytes: &[u8]) {
    client.stream.0.set_nonblocking(true).unwrap();
    let _ = client.stream.0.write(bytes);
    client.stream.0.set_nonblocking(false).unwrap();
}

/// Connected clients that ask for `count` reads of `len` bytes each and take no reply.
fn deaf(
    socket: &Path,
    clients: usize,
    flags: u16,
    len: u32,
    count: u64,
) -> Vec<Client<UnixStream>> {
    let reads: Vec<u8> = (0..count).flat_map(|n| request(flags, READ, n, 0, len)).collect();
    let mut all: Vec<_> = (0..clients).map(|_| connect(socket)).collect();
    for client in &mut all {
        send_some(client, &reads);
    }
    all
}

/// 64 slow readers took 662 MiB, later 1.4 GiB, where 512 MiB were the limit: replies of up to 512 KiB, what
/// a read with holes was cut from, and 4 MiB of each connection were counted nowhere. That no connection uses
/// more than it was promised is asserted in the server.
#[test]
fn the_memory_of_slow_readers_is_bounded_and_comes_back() {
    let (device, behaviour) = TestDevice::new(SIZE);
    let rig = rig(device, small);
    let mut writer = connect(&rig.socket);
    // Every second page is a hole.
    for at in (0..4 * MIB as u64).step_by(8192) {
        assert_eq!(writer.ask(&write(0, at, at, &[1; 4096])).error, 0);
    }
    for (flags, len) in [(DF, 32 * MIB), (0, 32 * MIB), (0, 4 * MIB), (DF, MIB), (0, MIB / 2)] {
        for delay_us in [0, 20_000] {
            behaviour.delay_us.store(delay_us, Ordering::SeqCst);
            let readers = deaf(&rig.socket, 24, flags, u32::try_from(len).unwrap(), 100);
            eventually("replies wait", || held(&rig) > 4 * MIB);
            std::thread::sleep(Duration::from_millis(100));
            behaviour.delay_us.store(0, Ordering::SeqCst);
            assert_eq!(writer.read(0, 512), [1; 512], "another client goes on");
            drop(readers);
            eventually("their memory is back", || held(&rig) <= MIB / 2);
        }
    }
    let peak = rig.server.connection_memory().peak;
    assert!((64 * MIB..=128 * MIB).contains(&peak), "{peak}");
}

/// Writes that wait for a drive were copied for it without a limit: 128 of 32 MiB.
#[test]
fn the_memory_of_writes_that_wait_is_bounded() {
    let (device, behaviour) = TestDevice::new(SIZE);
    behaviour.waits.store(true, Ordering::SeqCst);
    let rig = rig(device, |options| options.limits.bytes = 16 * MIB);
    let _open = Opened(&behaviour);
    let mut client = connect(&rig.socket);
    behaviour.block_writes(true);
    let mut sender = client.stream.0.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        for cookie in 0..60 {
            sender.write_all(&write(0, cookie, 0, &vec![1; MIB])).unwrap();
        }
    });
    let waiting = || behaviour.waiting.load(Ordering::SeqCst);
    // With their requests and replies 16 are a little more than 16 MiB.
    eventually("the limit is reached", || waiting() == 15);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(waiting(), 15);
    behaviour.block_writes(false);
    let mut cookies: Vec<u64> = (0..60).map(|_| client.reply().unwrap().cookie).collect();
    thread.join().unwrap();
    cookies.sort_unstable();
    assert!(cookies.into_iter().eq(0..60));
    assert!(rig.server.connection_memory().peak < 24 * MIB);
    assert_eq!(client.read(0, 512), [1; 512]);
}

#[test]
fn an_idle_client_holds_nothing_and_is_not_dropped() {
    let rig = rig(MemoryDevice::new(SIZE), |options| {
        small(options);
        options.limits.idle = Duration::from_millis(20);
        options.limits.stall = Duration::from_millis(20);
    });
    let mut idle = connect(&rig.socket);
    for _ in 0..3 {
        assert_eq!(idle.read(0, 4 << 20).len(), 4 * MIB);
        eventually("its memory is back", || held(&rig) == 0);
    }
    // Not even when all memory is in use and waited for.
    let readers = deaf(&rig.socket, 6, DF, 32 << 20, 2);
    eventually("the memory is taken", || held(&rig) > 64 * MIB);
    // Slow ones are closed for it.
    assert_eq!(connect(&rig.socket).read(0, 32 << 20).len(), 32 * MIB);
    assert_eq!(idle.read(0, 512), [0; 512]);
    drop(readers);
}

/// Clients that took no replies, or left a large write half-sent, kept the shared memory: large requests of
/// all others waited for ever.
#[test]
fn who_holds_up_memory_that_others_wait_for_is_closed() {
    let stuck: [Clients; 2] = [
        |socket| deaf(socket, 6, DF, 32 << 20, 4),
        |socket| {
            let mut writers: Vec<_> = (0..6).map(|_| connect(socket)).collect();
            let half = [request(0, WRITE, 1, 0, 32 << 20), vec![0; 100]].concat();
            for client in &mut writers {
                client.send(&half);
            }
            writers
        },
    ];
    for make in stuck {
        let rig = rig(MemoryDevice::new(SIZE), |options| {
            small(options);
            options.limits.stall = Duration::from_millis(100);
        });
        let mut good = connect(&rig.socket);
        let _stuck = make(&rig.socket);
        eventually("the memory is taken", || held(&rig) > 64 * MIB);
        assert_eq!(good.read(0, 32 << 20).len(), 32 * MIB);
        let data = vec![7; 32 * MIB];
        assert_eq!(good.ask(&write(0, 1, 0, &data)).error, 0);
    }
}

/// Input buffers of earlier writes, each allowed by itself, could be all the memory there is: then everybody
/// would wait for the others.
#[test]
fn connections_that_wait_for_memory_do_not_keep_it_from_each_other() {
    let rig = rig(MemoryDevice::new(SIZE), |options| {
        small(options);
        options.limits.idle = Duration::from_hours(1);
        options.limits.stall = Duration::from_hours(1);
    });
    let mut clients: Vec<_> = (0..30).map(|_| connect(&rig.socket)).collect();
    let data = vec![1; 4 * MIB - 100];
    for client in &mut clients {
        assert_eq!(client.ask(&write(0, 1, 0, &data)).error, 0);
    }
    assert!(held(&rig) > 100 * MIB, "each has its buffer");
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                client.send(&request(DF, READ, 2, 0, 32 << 20));
                let reply = client.reply().expect("an answer");
                assert!(reply.bytes(0, 32 * MIB)[..data.len()] == data);
            });
        }
    });
}

/// Where it stops in the handshake: the answer to GO, and its text.
fn go(stream: &mut Source<UnixStream>) -> (u32, String) {
    stream.0.write_all(&option(GO, &info(b"", &[]))).unwrap();
    let answer = stream.answers().pop().unwrap();
    (answer.kind, String::from_utf8_lossy(&answer.data).into_owned())
}

fn greeted(socket: &Path) -> Source<UnixStream> {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut stream = Source(stream);
    stream.greeting();
    stream.0.write_all(&CLIENT_FLAGS).unwrap();
    stream
}

/// Idle clients took all 64 connections, and a newcomer waited for ever without a word.
#[test]
fn a_connection_too_many_is_told_so_at_once() {
    let of_peer = |options: &mut Options| options.limits.connections_per_peer = 2;
    let of_all = |options: &mut Options| options.limits.connections = 2;
    let cases: [(Change, &str); 2] =
        [(of_peer, "allows to one client"), (of_all, "the server has as many")];
    for (limit, words) in cases {
        let rig = rig(MemoryDevice::new(SIZE), limit);
        let (first, mut second) = (connect(&rig.socket), connect(&rig.socket));
        let mut third = greeted(&rig.socket);
        let (kind, text) = go(&mut third);
        assert!(kind == ERR_POLICY && text.contains(words), "{kind:x} {text}");
        // A name that is not served is the worse error, and takes no place.
        third.0.write_all(&option(GO, &info(b"other", &[]))).unwrap();
        assert_ne!(third.answers().pop().unwrap().kind, ERR_POLICY);
        let mut old = greeted(&rig.socket);
        old.0.write_all(&option(EXPORT_NAME, b"")).unwrap();
        assert_eq!(old.0.read(&mut [0]).unwrap(), 0, "the old option cannot be refused in words");
        assert_eq!(second.read(0, 512), [0; 512]);
        drop(first);
        eventually("the place is free again", || go(&mut third).0 == ACK);
        third.0.write_all(&request(0, READ, 7, 0, 512)).unwrap();
        assert_eq!(third.reply(|_| 512).unwrap().bytes(0, 512), [0; 512]);
    }
}

/// Clients that say nothing kept their places for the ten seconds of a handshake.
#[test]
fn clients_that_say_nothing_keep_nobody_out() {
    let rig = rig(MemoryDevice::new(SIZE), |options| {
        options.limits.handshakes = 4;
        options.limits.handshake = Duration::from_hours(1);
    });
    let mut settled = connect(&rig.socket);
    let mut silent: Vec<_> = (0..40).map(|_| greeted(&rig.socket)).collect();
    let mut good = connect(&rig.socket);
    assert_eq!(good.read(0, 512), [0; 512]);
    assert_eq!(settled.read(0, 512), [0; 512]);
    assert_eq!(silent[0].0.read(&mut [0]).unwrap_or(0), 0, "the oldest gave way");
    assert_eq!(go(silent.last_mut().unwrap()).0, ACK, "a young one goes on");
}

/// The time for the handshake was looked at only when there was nothing to do.
#[test]
fn a_client_that_asks_without_end_has_no_more_time_than_others() {
    let rig = rig(MemoryDevice::new(SIZE), |options| {
        options.limits.handshake = Duration::from_millis(100);
    });
    let mut chatty = greeted(&rig.socket);
    let list = option(LIST, &[]).repeat(20);
    eventually("it is cut", || {
        let sent = chatty.0.write_all(&list).is_ok();
        // The last answers of twenty options, or the end.
        !sent || (0..20).any(|_| chatty.answers().is_empty())
    });
    assert_eq!(connect(&rig.socket).read(0, 512), [0; 512]);
}

/// A client that closed its side for sending and took no reply kept every new connection waiting: it might
/// still execute something, it seemed.
#[test]
fn a_half_closed_client_that_takes_no_reply_keeps_nobody_waiting() {
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let old = deaf(&rig.socket, 1, DF, 8 << 20, 4).pop().unwrap();
    eventually("its replies wait", || held(&rig) >= 8 * MIB);
    old.stream.0.shutdown(Shutdown::Write).unwrap();
    let mut new = connect(&rig.socket);
    assert_eq!(new.read(0, 512), [0; 512]);
}

/// Whoever comes and goes leaves nothing behind.
#[test]
fn a_thousand_connections_leave_nothing_behind() {
    let rig = rig(MemoryDevice::new(SIZE), |_| {});
    let mut good = connect(&rig.socket);
    let ways: [&[u8]; 4] =
        [b"", b"\0\0\0\x03IHAVEOPT\0\0\0\x07", &handshake(true, true), b"GET / HTTP/1.1\r\n\r\n"];
    let half_write =
        [handshake(false, false), write(0, 1, 0, &[1; 4096])[..2000].to_vec()].concat();
    for round in 0..250 {
        for way in ways.iter().copied().chain([&half_write[..]]) {
            let mut stream = UnixStream::connect(&rig.socket).unwrap();
            // Some are cut off before they can say it.
            let _ = stream.write_all(way);
        }
        assert_eq!(good.read(0, 512), [0; 512], "round {round}");
    }
    drop(good);
    eventually("all memory is back", || held(&rig) == 0);
}
