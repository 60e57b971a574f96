//! The handshake, against the classes of bugs in section 8 of frontends.md.

use onefold_serve::nbd::parse::CloseReason;

use crate::common::memory::MemoryDevice;
use crate::common::session::{Session, Stand};
use crate::common::wire::{
    ACK, Answer, CLIENT_FLAGS, ERR_INVALID, ERR_TOO_BIG, ERR_UNKNOWN, ERR_UNSUP, EXPORT_NAME, GO,
    LIST, SET_META, STATUS, STRUCTURED, Source, contexts, info, option, request,
};

const SIZE: u64 = 1 << 20;
const ABORT: u32 = 2;
const STARTTLS: u32 = 5;
const INFO: u32 = 6;
const LIST_META: u32 = 9;
const EXTENDED_HEADERS: u32 = 11;

fn session() -> Session<MemoryDevice> {
    let mut session = Session::new(MemoryDevice::new(SIZE), false);
    assert_eq!(session.feed(&CLIENT_FLAGS), Stand::Open);
    let greeting = session.take();
    let mut source = Source(&greeting[..]);
    source.greeting();
    assert!(source.0.is_empty());
    session
}

/// Sends an option and returns its answers.
fn ask(session: &mut Session<MemoryDevice>, number: u32, data: &[u8]) -> Vec<Answer> {
    assert_eq!(session.feed(&option(number, data)), Stand::Open);
    let bytes = session.take();
    let mut source = Source(&bytes[..]);
    let answers = source.answers();
    assert!(source.0.is_empty(), "bytes after the last answer");
    assert!(answers.iter().all(|answer| answer.option == number));
    answers
}

fn kinds(answers: &[Answer]) -> Vec<u32> {
    answers.iter().map(|answer| answer.kind).collect()
}

#[test]
fn unknown_client_flags_close() {
    for flags in [4_u32, 0x8000_0000, 0xffff_ffff] {
        let mut session = Session::new(MemoryDevice::new(SIZE), false);
        let closed = Stand::Closed(CloseReason::ClientFlags);
        assert_eq!(session.feed(&flags.to_be_bytes()), closed, "{flags:x}");
        assert_eq!(session.feed(&option(LIST, &[])), closed, "a closed machine stays closed");
    }
}

#[test]
fn a_wrong_magic_closes() {
    let mut session = session();
    let closed = Stand::Closed(CloseReason::OptionMagic);
    assert_eq!(session.feed(b"IHAVEOPX\0\0\0\x03\0\0\0\0"), closed);
}

#[test]
fn go_tells_size_flags_name_and_block_sizes() {
    let mut session = session();
    let answers = ask(&mut session, GO, &info(b"disk", &[1, 3]));
    assert_eq!(kinds(&answers), [3, 3, 3, ACK]);
    let mut export = vec![0, 0];
    export.extend(SIZE.to_be_bytes());
    export.extend(0x096d_u16.to_be_bytes());
    assert_eq!(answers[0].data, export);
    assert_eq!(answers[1].data, b"\0\x01disk");
    assert_eq!(answers[2].data, b"\0\x03\0\0\x02\0\0\0\x10\0\x02\0\0\0");
    assert!(session.machine.in_transmission());
}

#[test]
fn flags_follow_structured_replies_and_read_only() {
    for (read_only, structured, expected) in [
        (false, false, 0x096d_u16),
        (true, false, 0x096f),
        (false, true, 0x09ed),
        (true, true, 0x09ef),
    ] {
        let mut session = Session::new(MemoryDevice::new(SIZE), read_only);
        session.feed(&CLIENT_FLAGS);
        session.take();
        if structured {
            assert_eq!(kinds(&ask(&mut session, STRUCTURED, &[])), [ACK]);
        }
        let answers = ask(&mut session, INFO, &info(b"", &[]));
        assert_eq!(kinds(&answers), [3, 3, ACK], "no name unless asked");
        assert_eq!(answers[0].data[10..12], expected.to_be_bytes());
        assert!(!session.machine.in_transmission(), "INFO does not start transmission");
    }
}

#[test]
fn export_name_answers_without_a_header_and_with_zeroes_unless_agreed() {
    for (flags, len) in [(1_u32, 134), (3, 10)] {
        let mut session = Session::new(MemoryDevice::new(SIZE), false);
        session.feed(&flags.to_be_bytes());
        session.take();
        assert_eq!(session.feed(&option(EXPORT_NAME, b"disk")), Stand::Open);
        let reply = session.take();
        assert_eq!(reply.len(), len);
        assert_eq!(reply[..8], SIZE.to_be_bytes());
        assert_eq!(reply[8..10], 0x096d_u16.to_be_bytes());
        assert!(session.machine.in_transmission());
    }
    let closed = Stand::Closed(CloseReason::UnknownExport);
    assert_eq!(session().feed(&option(EXPORT_NAME, b"other")), closed);
}

#[test]
fn list_abort_and_what_is_not_supported() {
    let mut session = session();
    let answers = ask(&mut session, LIST, &[]);
    assert_eq!(kinds(&answers), [2, ACK]);
    assert_eq!(answers[0].data, b"\0\0\0\x04disk");
    assert_eq!(kinds(&ask(&mut session, LIST, b"x")), [ERR_INVALID]);
    for number in [0, 4, STARTTLS, EXTENDED_HEADERS, 12, 99, u32::MAX] {
        assert_eq!(kinds(&ask(&mut session, number, b"abc")), [ERR_UNSUP], "{number}");
    }
    assert_eq!(kinds(&ask(&mut session, STRUCTURED, b"x")), [ERR_INVALID]);
    assert_eq!(session.feed(&option(ABORT, &[])), Stand::Closed(CloseReason::Aborted));
    let bytes = session.take();
    assert_eq!(kinds(&Source(&bytes[..]).answers()), [ACK]);
}

/// CVE-2017-15118: a name longer than the buffer for it.
#[test]
fn names_of_every_length_are_answered() {
    let mut session = session();
    for (len, kind) in
        [(1, ERR_UNKNOWN), (255, ERR_UNKNOWN), (256, ERR_UNKNOWN), (4096, ERR_UNKNOWN)]
            .into_iter()
            .chain([(4097, ERR_TOO_BIG), (65_000, ERR_TOO_BIG)])
    {
        let name = vec![b'n'; len];
        for number in [INFO, GO] {
            assert_eq!(kinds(&ask(&mut session, number, &info(&name, &[]))), [kind], "{len}");
        }
    }
    assert_eq!(kinds(&ask(&mut session, INFO, &info(b"", &[]))), [3, 3, ACK]);
    for name in [&b"disk\0"[..], b"Disk", b"\xff\xfe"] {
        assert_eq!(kinds(&ask(&mut session, GO, &info(name, &[]))), [ERR_UNKNOWN]);
    }
}

/// CVE-2022-26495 and -26496: a length that overflows when something is added to it.
#[test]
fn lying_lengths_are_refused_before_they_are_used() {
    let mut session = session();
    for lie in [0xffff_ffff_u32, 0xffff_fffe, 0x8000_0000, 5] {
        let mut data = info(b"disk", &[1]);
        data[..4].copy_from_slice(&lie.to_be_bytes());
        assert_eq!(kinds(&ask(&mut session, GO, &data)), [ERR_INVALID], "name length {lie:x}");
    }
    for count in [0_u16, 1, 3, 0xffff] {
        let mut data = info(b"disk", &[1, 3]);
        let at = data.len() - 6;
        data[at..at + 2].copy_from_slice(&count.to_be_bytes());
        assert_eq!(kinds(&ask(&mut session, INFO, &data)), [ERR_INVALID], "{count} kinds");
    }
    for data in [&b""[..], b"\0", b"\0\0\0", b"\0\0\0\0", b"\0\0\0\0\0"] {
        assert_eq!(kinds(&ask(&mut session, GO, data)), [ERR_INVALID], "{data:?}");
    }
    assert_eq!(kinds(&ask(&mut session, STRUCTURED, &[])), [ACK]);
    for lie in [0xffff_ffff_u32, 0xffff_fffe, 0x8000_0000, 2] {
        for at in [0, 8, 12] {
            let mut data = contexts(b"disk", &[b"base:allocation"]);
            data[at..at + 4].copy_from_slice(&lie.to_be_bytes());
            for number in [LIST_META, SET_META] {
                let answers = ask(&mut session, number, &data);
                assert_eq!(kinds(&answers), [ERR_INVALID], "{lie:x} at {at}");
            }
        }
    }
    for len in [0x1_0001_u32, 0x8000_0000, 0xffff_fffe, 0xffff_ffff] {
        let mut session = self::session();
        let mut bytes = option(LIST, &[]);
        bytes[12..].copy_from_slice(&len.to_be_bytes());
        assert_eq!(session.feed(&bytes), Stand::Closed(CloseReason::OptionTooLong), "{len:x}");
        assert!(session.most_needed <= 16, "nothing was to be kept for it");
    }
    let most = vec![0; 64 << 10];
    assert_eq!(kinds(&ask(&mut session, 77, &most)), [ERR_UNSUP]);
}

#[test]
fn contexts_need_structured_replies_and_belong_to_a_name() {
    let mut session = session();
    let chosen = contexts(b"disk", &[b"x:y", b"base:allocation"]);
    assert_eq!(kinds(&ask(&mut session, SET_META, &chosen)), [ERR_INVALID]);
    assert_eq!(kinds(&ask(&mut session, STRUCTURED, &[])), [ACK]);
    for (number, queries, found) in [
        (LIST_META, &[][..], true),
        (LIST_META, &[&b"base:"[..]], true),
        (LIST_META, &[b"qemu:"], false),
        (SET_META, &[], false),
        (SET_META, &[b"base:"], false),
        (SET_META, &[b"base:allocation"], true),
    ] {
        let answers = ask(&mut session, number, &contexts(b"disk", queries));
        let expected = if found { vec![4, ACK] } else { vec![ACK] };
        assert_eq!(kinds(&answers), expected, "{number} {queries:?}");
        if found {
            assert_eq!(answers[0].data[4..], *b"base:allocation");
        }
    }
    let unknown = contexts(b"other", &[b"base:allocation"]);
    assert_eq!(kinds(&ask(&mut session, SET_META, &unknown)), [ERR_UNKNOWN]);
    // The failed selection removed the one before it.
    assert_eq!(kinds(&ask(&mut session, GO, &info(b"disk", &[]))), [3, 3, ACK]);
    session.feed(&request(0, STATUS, 1, 0, 4096));
    let bytes = session.take();
    assert_eq!(Source(&bytes[..]).reply(|_| 0).unwrap().error, 22);
}

/// CVE-2019-14851 (assertions by option order) and CVE-2021-3716 (state across STARTTLS): every
/// order of these options is answered, and what was agreed depends only on what was accepted.
#[test]
fn every_order_of_options_is_answered() {
    let chosen = contexts(b"", &[b"base:allocation"]);
    let asked = info(b"", &[1]);
    let steps: [(u32, &[u8]); 6] = [
        (INFO, &asked),
        (STRUCTURED, &[]),
        (SET_META, &chosen),
        (LIST, &[]),
        (STARTTLS, &[]),
        (99, b"data"),
    ];
    let mut orders = 0;
    permute(&mut (0..steps.len()).collect::<Vec<_>>(), 0, &mut |order| {
        for last in [GO, EXPORT_NAME] {
            orders += 1;
            let mut session = session();
            let (mut structured, mut allocation) = (false, false);
            for &step in order {
                let (number, data) = steps[step];
                let answers = ask(&mut session, number, data);
                let accepted = answers.last().unwrap().kind == ACK;
                structured |= number == STRUCTURED;
                assert_eq!(
                    accepted,
                    !matches!(number, STARTTLS | 99) && (number != SET_META || structured)
                );
                allocation |= number == SET_META && accepted;
            }
            let data = if last == GO { &asked[..] } else { b"" };
            assert_eq!(session.feed(&option(last, data)), Stand::Open);
            assert!(session.machine.in_transmission());
            assert_eq!(session.machine.reply_style().structured(), structured);
            session.take();
            session.feed(&request(0, STATUS, 1, 0, 4096));
            let bytes = session.take();
            let reply = Source(&bytes[..]).reply(|_| 0).unwrap();
            assert_eq!(reply.error == 0, allocation, "{order:?}");
        }
    });
    assert_eq!(orders, 1440);
}

fn permute(items: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
    if from == items.len() {
        return visit(items);
    }
    for at in from..items.len() {
        items.swap(from, at);
        permute(items, from + 1, visit);
        items.swap(from, at);
    }
}
