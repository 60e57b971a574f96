//! Requests and replies, without sockets.

use std::sync::atomic::Ordering;

use onefold_device::BlockDevice;
use onefold_serve::nbd::parse::{CloseReason, MAX_PAYLOAD};

use crate::common::device::TestDevice;
use crate::common::memory::MemoryDevice;
use crate::common::session::{Session, Stand};
use crate::common::wire::{
    DF, DISC, FAST_ZERO, FLUSH, FUA, NO_HOLE, Piece, READ, REQ_ONE, Reply, STATUS, Source, TRIM,
    WRITE, ZEROES, handshake, request, write,
};

const SIZE: u64 = 1 << 20;

fn ask<D: BlockDevice>(session: &mut Session<D>, bytes: &[u8], read: u32) -> Reply {
    assert_eq!(session.feed(bytes), Stand::Open);
    let sent = session.take();
    let mut source = Source(&sent[..]);
    let reply = source.reply(|_| read).unwrap();
    assert!(source.0.is_empty(), "one request, one reply");
    reply
}

fn error_of(session: &mut Session<MemoryDevice>, bytes: &[u8]) -> u32 {
    let reply = ask(session, bytes, 0);
    assert!(reply.pieces.is_empty(), "{reply:?}");
    reply.error
}

#[test]
fn what_is_written_is_read_in_both_reply_styles() {
    for structured in [false, true] {
        let mut session = Session::ready(MemoryDevice::new(SIZE), structured, false);
        let data: Vec<u8> = (0..10_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        assert_eq!(ask(&mut session, &write(FUA, 7, 3000, &data), 0).error, 0);
        let reply = ask(&mut session, &request(0, READ, 8, 3000, 10_000), 10_000);
        assert_eq!((reply.cookie, reply.error, reply.structured), (8, 0, structured));
        let offset = if structured { 3000 } else { 0 };
        assert_eq!(reply.bytes(offset, 10_000), data);
    }
}

#[test]
fn holes_are_whole_pages_and_df_fills_them() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, true);
    ask(&mut session, &write(0, 1, 8192, &[9; 4096]), 0);
    let reply = ask(&mut session, &request(0, READ, 2, 100, 16_384), 0);
    assert_eq!(
        reply.pieces,
        [
            Piece::Data { offset: 100, data: vec![0; 3996] },
            Piece::Hole { offset: 4096, len: 4096 },
            Piece::Data { offset: 8192, data: vec![9; 4096] },
            Piece::Hole { offset: 12_288, len: 4096 },
            Piece::Data { offset: 16_384, data: vec![0; 100] },
        ]
    );
    let whole = ask(&mut session, &request(DF, READ, 3, 100, 16_384), 0);
    assert_eq!(whole.pieces.len(), 1);
    assert_eq!(whole.bytes(100, 16_384), reply.bytes(100, 16_384));
    let hole = ask(&mut session, &request(0, READ, 4, 65_536, 4096), 0);
    assert_eq!(hole.pieces, [Piece::Hole { offset: 65_536, len: 4096 }]);
}

#[test]
fn block_status_tells_the_extents_of_the_range() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, true);
    ask(&mut session, &write(0, 1, 8192, &[9; 4096]), 0);
    let status = |session: &mut Session<_>, flags, len| {
        let reply = ask(session, &request(flags, STATUS, 2, 4096, len), 0);
        assert_eq!(reply.error, 0);
        match &reply.pieces[..] {
            [Piece::Status { context: 1, extents }] => extents.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status(&mut session, 0, 16_384), [(4096, 3), (4096, 0), (8192, 3)]);
    assert_eq!(status(&mut session, REQ_ONE, 16_384), [(4096, 3)]);
    assert_eq!(status(&mut session, 0, 5000), [(4096, 3), (904, 0)]);
    assert_eq!(error_of(&mut session, &request(DF, STATUS, 2, 0, 4096)), 22);
    let mut without = Session::ready(MemoryDevice::new(SIZE), true, false);
    assert_eq!(error_of(&mut without, &request(0, STATUS, 2, 0, 4096)), 22);
}

#[test]
fn trim_and_zeroes_read_as_zeroes() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, true);
    for (flags, kind) in [(0, TRIM), (FUA, TRIM), (0, ZEROES), (FUA | NO_HOLE, ZEROES)]
        .into_iter()
        .chain([(FAST_ZERO, ZEROES)])
    {
        ask(&mut session, &write(0, 1, 0, &[5; 8192]), 0);
        assert_eq!(error_of(&mut session, &request(flags, kind, 2, 4096, 4096)), 0);
        let reply = ask(&mut session, &request(0, READ, 3, 0, 8192), 0);
        assert_eq!(reply.bytes(0, 8192), [[5; 4096], [0; 4096]].concat());
        let holes = reply.pieces.iter().filter(|p| matches!(p, Piece::Hole { .. })).count();
        assert_eq!(holes, usize::from(flags & NO_HOLE == 0), "{flags} {kind}");
    }
    for (offset, len) in [(0, 512), (512, 4096), (4096, 4095)] {
        assert_eq!(error_of(&mut session, &request(FAST_ZERO, ZEROES, 1, offset, len)), 95);
        assert_eq!(error_of(&mut session, &request(0, ZEROES, 1, offset, len)), 0);
    }
}

#[test]
fn flush_and_fua_reach_the_device() {
    let (device, behaviour) = TestDevice::new(SIZE);
    let mut session = Session::ready(device, false, false);
    assert_eq!(ask(&mut session, &request(0, FLUSH, 1, 0, 0), 0).error, 0);
    assert_eq!(behaviour.flushes.load(Ordering::SeqCst), 1);
    // A device cannot trim durably in one step.
    assert_eq!(ask(&mut session, &request(FUA, TRIM, 1, 0, 4096), 0).error, 0);
    assert_eq!(behaviour.flushes.load(Ordering::SeqCst), 2);
}

#[test]
fn ranges_beyond_the_end_are_refused_with_their_error() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, true);
    let ranges =
        [(SIZE, 1), (SIZE - 1, 2), (u64::MAX, 1), (u64::MAX - 4095, 4096), (1 << 63, u32::MAX)];
    for (offset, len) in ranges {
        for (kind, error) in [(READ, 22), (TRIM, 22), (ZEROES, 28), (STATUS, 22)] {
            let found = error_of(&mut session, &request(0, kind, 1, offset, len));
            assert_eq!(found, error, "{kind} at {offset} + {len}");
        }
        if len < 10_000 {
            let data = vec![1; len as usize];
            assert_eq!(error_of(&mut session, &write(0, 1, offset, &data)), 28);
        }
    }
    for kind in [READ, WRITE, TRIM, ZEROES, STATUS] {
        assert_eq!(error_of(&mut session, &request(0, kind, 1, 0, 0)), 22, "length 0: {kind}");
    }
    // Nothing was changed, and the last byte can be used.
    assert_eq!(error_of(&mut session, &write(0, 1, SIZE - 1, &[7])), 0);
    let reply = ask(&mut session, &request(0, READ, 1, SIZE - 2, 2), 0);
    assert_eq!(reply.bytes(SIZE - 2, 2), [0, 7]);
}

#[test]
fn unknown_commands_and_flags_are_refused() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, true);
    for kind in [5, 8, 9, 255, 65_535] {
        assert_eq!(error_of(&mut session, &request(0, kind, 1, 0, 512)), 22, "{kind}");
    }
    for (kind, allowed) in [
        (READ, DF),
        (WRITE, FUA),
        (FLUSH, 0),
        (TRIM, FUA),
        (ZEROES, FUA | NO_HOLE | FAST_ZERO),
        (STATUS, REQ_ONE),
    ] {
        for bit in 0..16 {
            let flag = 1_u16 << bit;
            let mut bytes = request(flag, kind, 1, 0, 4096);
            if kind == WRITE {
                bytes.extend([0; 4096]);
            }
            session.feed(&bytes);
            let sent = session.take();
            let reply = Source(&sent[..]).reply(|_| 0).unwrap();
            assert_eq!(reply.error == 0, flag & allowed != 0, "{kind} with {flag:x}");
        }
    }
    let mut simple = Session::ready(MemoryDevice::new(SIZE), false, false);
    assert_eq!(error_of(&mut simple, &request(DF, READ, 1, 0, 512)), 22, "DF was not offered");
}

#[test]
fn a_read_only_export_refuses_changes() {
    let mut session = Session::new(MemoryDevice::new(SIZE), true);
    session.feed(&handshake(true, true));
    session.take();
    assert_eq!(error_of(&mut session, &write(0, 1, 0, &[1; 512])), 1);
    for kind in [TRIM, ZEROES] {
        assert_eq!(error_of(&mut session, &request(0, kind, 1, 0, 4096)), 1);
    }
    let reply = ask(&mut session, &request(0, READ, 1, 0, 512), 0);
    assert_eq!(reply.bytes(0, 512), [0; 512]);
}

#[test]
fn media_errors_become_eio_and_name_the_page() {
    for structured in [false, true] {
        let (device, behaviour) = TestDevice::new(SIZE);
        let mut session = Session::ready(device, structured, false);
        behaviour.broken.store(true, Ordering::SeqCst);
        assert_eq!(ask(&mut session, &write(0, 1, 0, &[1; 512]), 0).error, 5);
        let one = ask(&mut session, &request(0, READ, 2, 4608, 512), 512);
        let many = ask(&mut session, &request(0, READ, 2, 4608, 4096), 4096);
        assert_eq!((one.error, many.error), (5, 5));
        if structured {
            assert_eq!(one.pieces, [Piece::ErrorAt(4608)]);
        }
        assert!(many.pieces.is_empty());
        behaviour.broken.store(false, Ordering::SeqCst);
        assert_eq!(ask(&mut session, &request(0, FLUSH, 3, 0, 0), 0).error, 0);
    }
}

/// The largest payload is served; one byte more is refused without memory for it.
#[test]
fn payloads_at_the_limit() {
    let size = 2 * u64::from(MAX_PAYLOAD);
    let mut session = Session::ready(MemoryDevice::new(size), true, false);
    let data = vec![3; MAX_PAYLOAD as usize];
    assert_eq!(error_of(&mut session, &write(0, 1, 512, &data)), 0);
    let reply = ask(&mut session, &request(0, READ, 2, 512, MAX_PAYLOAD), 0);
    assert!(reply.bytes(512, data.len()) == data);
    assert_eq!(error_of(&mut session, &request(0, READ, 3, 0, MAX_PAYLOAD + 1)), 22);
    let before = session.most_needed;
    let too_long = request(0, WRITE, 4, 0, MAX_PAYLOAD + 1);
    assert_eq!(session.feed(&too_long), Stand::Closed(CloseReason::PayloadTooLong));
    assert_eq!(session.most_needed, before);
}

/// The payload of a refused write is skipped, never kept.
#[test]
fn a_refused_write_needs_no_memory_and_is_answered_after_its_payload() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, false);
    session.feed(&request(0, WRITE, 1, SIZE, MAX_PAYLOAD));
    assert!(session.take().is_empty());
    for _ in 0..31 {
        session.feed(&vec![0; 1 << 20]);
        assert!(session.take().is_empty(), "the client still sends");
    }
    session.feed(&vec![0; (1 << 20) - 1]);
    assert!(session.take().is_empty());
    assert_eq!(error_of(&mut session, &[0]), 28);
    assert!(session.most_needed <= 28);
    assert_eq!(error_of(&mut session, &request(0, FLUSH, 2, 0, 0)), 0);
}

#[test]
fn a_wrong_request_magic_closes_and_disc_ends() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, false);
    let mut bytes = request(0, READ, 1, 0, 512);
    bytes[0] ^= 1;
    assert_eq!(session.feed(&bytes), Stand::Closed(CloseReason::RequestMagic));
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, false);
    let bytes = [request(0, FLUSH, 1, 0, 0), request(0, DISC, 2, 0, 0), request(0, FLUSH, 3, 0, 0)];
    assert_eq!(session.feed(&bytes.concat()), Stand::Disconnected);
    let sent = session.take();
    let mut source = Source(&sent[..]);
    assert_eq!(source.reply(|_| 0).unwrap().cookie, 1);
    assert!(source.0.is_empty(), "nothing is done after DISC");
}

#[test]
fn after_shutdown_every_request_is_refused() {
    let mut session = Session::ready(MemoryDevice::new(SIZE), true, false);
    session.machine.shut_down();
    assert_eq!(error_of(&mut session, &write(0, 1, 0, &[1; 512])), 108);
    assert_eq!(error_of(&mut session, &request(0, READ, 2, 0, 512)), 108);
}

/// Cuts a recorded connection at every byte (section 8, use after free at teardown): what was
/// answered before the cut is a prefix of the whole, and a write is executed only when it is whole.
#[test]
fn a_connection_may_be_cut_at_every_byte() {
    let stream = [
        handshake(true, true),
        write(0, 1, 0, &[1; 600]),
        write(FUA, 2, 4096, &[2; 512]),
        request(0, READ, 3, 0, 8192),
        write(0, 4, SIZE, &[9; 64]),
        request(0, STATUS, 5, 0, 8192),
        request(0, TRIM, 6, 0, 4096),
        request(0, FLUSH, 7, 0, 0),
        request(0, 77, 8, 0, 0),
        request(0, DISC, 9, 0, 0),
    ]
    .concat();
    let mut whole = Session::new(MemoryDevice::new(SIZE), false);
    assert_eq!(whole.feed(&stream), Stand::Disconnected);
    let sent = whole.take();
    let first_write = handshake(true, true).len() + 28 + 600;
    for cut in 0..stream.len() {
        let mut session = Session::new(MemoryDevice::new(SIZE), false);
        let (head, tail) = stream.split_at(cut);
        assert_eq!(session.feed(head), Stand::Open, "{cut}");
        let before = session.take();
        assert!(sent.starts_with(&before), "{cut}");
        let mut byte = [0];
        session.device.read(0, &mut byte).unwrap();
        assert!(byte[0] == 0 || cut >= first_write, "a torn write was executed at {cut}");
        // Split there instead of cut, the connection goes on as if nothing was.
        assert_eq!(session.feed(tail), Stand::Disconnected, "{cut}");
        assert_eq!([before, session.take()].concat(), sent, "{cut}");
    }
    let mut bytewise = Session::new(MemoryDevice::new(SIZE), false);
    for byte in stream.chunks(1) {
        bytewise.feed(byte);
    }
    assert_eq!(bytewise.take(), sent);
}
