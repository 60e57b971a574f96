//! Devices whose calls wait for a drive: the other requests of a connection go on.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::device::{Behaviour, TestDevice};
use crate::common::wire::{DISC, FLUSH, READ, TRIM, request, write};
use crate::common::{Rig, eventually, rig};
use crate::server::{Opened, connect};

const SIZE: u64 = 1 << 20;

fn waiting_rig() -> (Rig<TestDevice>, Arc<Behaviour>) {
    let (device, behaviour) = TestDevice::new(SIZE);
    behaviour.waits.store(true, Ordering::SeqCst);
    (rig(device, |_| {}), behaviour)
}

fn executing(behaviour: &Behaviour, count: u64) {
    eventually("the writes are executed", || behaviour.waiting.load(Ordering::SeqCst) == count);
}

/// A write may wait for space, which a trim that comes later makes: it is not executed in place although it is alone.
#[test]
fn a_trim_gets_past_a_write_that_waits() {
    let (rig, behaviour) = waiting_rig();
    let _open = Opened(&behaviour);
    let mut client = connect(&rig.socket);
    behaviour.block_writes(true);
    client.send(&write(0, 1, 0, &[1; 512]));
    executing(&behaviour, 1);
    client.send(&request(0, TRIM, 2, 4096, 4096));
    assert_eq!(client.reply().unwrap().cookie, 2);
    behaviour.block_writes(false);
    assert_eq!(client.reply().unwrap().cookie, 1);
}

#[test]
fn requests_overtake_one_that_waits() {
    let (rig, behaviour) = waiting_rig();
    let _open = Opened(&behaviour);
    let mut client = connect(&rig.socket);
    behaviour.block_writes(true);
    client.send(&[write(0, 1, 0, &[1; 512]), request(0, READ, 2, 4096, 512)].concat());
    assert_eq!(client.reply().unwrap().cookie, 2);
    client.send(&request(0, FLUSH, 3, 0, 0));
    assert_eq!(client.reply().unwrap().cookie, 3);
    behaviour.block_writes(false);
    assert_eq!(client.reply().unwrap().cookie, 1);
    assert_eq!(client.read(0, 512), [1; 512]);
    // DISC waits for what is in flight.
    let last = [write(0, 4, 0, &[4; 512]), request(0, DISC, 5, 0, 0)].concat();
    client.send(&last);
    assert_eq!(client.reply().unwrap().cookie, 4);
    assert_eq!(client.reply(), None);
}

/// Rule E6: the threads of a dead connection are done before another does I/O, and begin nothing more.
#[test]
fn no_new_connection_does_io_before_the_threads_of_a_dead_one_have_finished() {
    let (rig, behaviour) = waiting_rig();
    let _open = Opened(&behaviour);
    let mut old = connect(&rig.socket);
    behaviour.block_writes(true);
    old.send(&(0..40).flat_map(|n| write(0, n, 0, &[1; 512])).collect::<Vec<_>>());
    executing(&behaviour, 32);
    drop(old);
    let mut new = connect(&rig.socket);
    new.send(&[write(0, 50, 0, &[3; 512]), write(0, 51, 512, &[3; 512])].concat());
    new.stream.0.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(new.reply(), None, "it did I/O beside the dead connection");
    assert_eq!(behaviour.calls.load(Ordering::SeqCst), 32);
    behaviour.block_writes(false);
    new.stream.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut cookies = [new.reply().unwrap().cookie, new.reply().unwrap().cookie];
    cookies.sort_unstable();
    assert_eq!(cookies, [50, 51]);
    assert_eq!(behaviour.calls.load(Ordering::SeqCst), 34, "a write of the dead connection began");
    assert_eq!(new.read(0, 1024), [3; 1024], "an old write came late");
}

/// A request whose thread panicked is never answered: its client hears of that, and others go on.
#[test]
fn a_panic_in_a_thread_ends_its_connection_alone() {
    let (rig, behaviour) = waiting_rig();
    let mut other = connect(&rig.socket);
    let mut client = connect(&rig.socket);
    behaviour.panics.store(true, Ordering::SeqCst);
    client.send(&write(0, 1, 0, &[1; 512]));
    assert_eq!(client.stream.0.read(&mut [0]).unwrap(), 0, "the connection is closed");
    behaviour.panics.store(false, Ordering::SeqCst);
    assert_eq!(other.read(0, 512), [0; 512]);
    rig.server.stop().unwrap();
}

#[test]
fn a_stopping_server_answers_what_waits() {
    let (rig, behaviour) = waiting_rig();
    let _open = Opened(&behaviour);
    let mut client = connect(&rig.socket);
    behaviour.block_writes(true);
    client.send(&[write(0, 1, 0, &[1; 512]), write(0, 2, 512, &[2; 512])].concat());
    executing(&behaviour, 2);
    let other = Arc::clone(&behaviour);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        other.block_writes(false);
    });
    rig.server.stop().unwrap();
    opener.join().unwrap();
    let mut cookies = [client.reply().unwrap().cookie, client.reply().unwrap().cookie];
    cookies.sort_unstable();
    assert_eq!(cookies, [1, 2]);
    assert_eq!(client.reply(), None);
}

#[test]
fn many_requests_are_answered_in_any_order() {
    let (rig, _) = waiting_rig();
    let mut client = connect(&rig.socket);
    for page in 0..200_u64 {
        let data = [u8::try_from(page).unwrap(); 4096];
        assert_eq!(client.ask(&write(0, page, page * 4096, &data)).error, 0);
    }
    let bytes: Vec<u8> = (0..200).flat_map(|p| request(0, READ, p, p * 4096, 4096)).collect();
    let mut sender = client.stream.0.try_clone().unwrap();
    let thread = std::thread::spawn(move || sender.write_all(&bytes).unwrap());
    let mut seen = [false; 200];
    for _ in 0..200 {
        let reply = client.reply().unwrap();
        let page = usize::try_from(reply.cookie).unwrap();
        assert_eq!(reply.bytes(reply.cookie * 4096, 4096), [u8::try_from(page).unwrap(); 4096]);
        assert!(!std::mem::replace(&mut seen[page], true), "page {page} came twice");
    }
    thread.join().unwrap();
}

#[test]
fn at_most_128_requests_wait() {
    let (rig, behaviour) = waiting_rig();
    let _open = Opened(&behaviour);
    let mut client = connect(&rig.socket);
    behaviour.block_writes(true);
    client.send(&(0..300).flat_map(|n| write(0, n, 0, &[1; 512])).collect::<Vec<_>>());
    executing(&behaviour, 32);
    // Reads behind the limit are not executed either.
    client.send(&request(0, READ, 300, 0, 512));
    client.stream.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert_eq!(client.reply(), None);
    behaviour.block_writes(false);
    client.stream.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut cookies: Vec<u64> = (0..301).map(|_| client.reply().unwrap().cookie).collect();
    cookies.sort_unstable();
    assert!(cookies.into_iter().eq(0..301));
}
