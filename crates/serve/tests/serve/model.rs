//! The protocol machine and a device against an array of bytes.

use proptest::prelude::*;

use crate::common::memory::MemoryDevice;
use crate::common::session::{Session, Stand};
use crate::common::wire::{
    DF, FLUSH, FUA, NO_HOLE, Piece, READ, REQ_ONE, STATUS, Source, TRIM, ZEROES, request, write,
};

const SIZE: u64 = 64 << 10;

#[derive(Clone, Debug)]
enum Asked {
    Read { offset: u64, len: u32, df: bool },
    Write { offset: u64, len: u16, byte: u8, fua: bool },
    Trim { offset: u64, len: u32 },
    Zero { offset: u64, len: u32, keep: bool },
    Status { offset: u64, len: u32, one: bool },
    Flush,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..SIZE,
        4 => (0..16_u64).prop_map(|page| page * 4096),
        1 => SIZE - 2..SIZE + 2,
        1 => any::<u64>(),
    ]
}

fn len() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..9000_u32, 4 => (0..9_u32).prop_map(|pages| pages * 4096), 1 => any::<u32>()]
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        (offset(), len(), any::<bool>()).prop_map(|(offset, len, df)| Asked::Read {
            offset,
            len,
            df
        }),
        (offset(), 0..9000_u16, any::<u8>(), any::<bool>())
            .prop_map(|(offset, len, byte, fua)| Asked::Write { offset, len, byte, fua }),
        (offset(), len()).prop_map(|(offset, len)| Asked::Trim { offset, len }),
        (offset(), len(), any::<bool>()).prop_map(|(offset, len, keep)| Asked::Zero {
            offset,
            len,
            keep
        }),
        (offset(), len(), any::<bool>()).prop_map(|(offset, len, one)| Asked::Status {
            offset,
            len,
            one
        }),
        Just(Asked::Flush),
    ]
}

fn encode(asked: &Asked, cookie: u64, structured: bool) -> Vec<u8> {
    let flag = |set: bool, flag: u16| if set { flag } else { 0 };
    match *asked {
        Asked::Read { offset, len, df } => {
            request(flag(df && structured, DF), READ, cookie, offset, len)
        }
        Asked::Write { offset, len, byte, fua } => {
            write(flag(fua, FUA), cookie, offset, &vec![byte; usize::from(len)])
        }
        Asked::Trim { offset, len } => request(0, TRIM, cookie, offset, len),
        Asked::Zero { offset, len, keep } => {
            request(flag(keep, NO_HOLE), ZEROES, cookie, offset, len)
        }
        Asked::Status { offset, len, one } => {
            request(flag(one, REQ_ONE), STATUS, cookie, offset, len)
        }
        Asked::Flush => request(0, FLUSH, cookie, 0, 0),
    }
}

/// The range in the model, or the error that the server has to give.
fn range(offset: u64, len: u32, beyond: u32) -> Result<std::ops::Range<usize>, u32> {
    let end = offset.checked_add(u64::from(len)).filter(|end| *end <= SIZE);
    match end {
        _ if len == 0 => Err(22),
        Some(end) => Ok(usize::try_from(offset).unwrap()..usize::try_from(end).unwrap()),
        None => Err(beyond),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_server_behaves_like_an_array_of_bytes(
        structured in any::<bool>(),
        requests in prop::collection::vec(asked(), 1..40),
        cuts in prop::collection::vec(1..5000_usize, 1..20),
    ) {
        let mut session = Session::ready(MemoryDevice::new(SIZE), structured, structured);
        let stream: Vec<u8> = (0..)
            .zip(&requests)
            .flat_map(|(cookie, asked)| encode(asked, cookie, structured))
            .collect();
        let (mut rest, mut sent) = (&stream[..], Vec::new());
        for cut in cuts.iter().cycle() {
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            prop_assert_eq!(session.feed(head), Stand::Open);
            sent.extend(session.take());
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        let lens = |cookie: u64| match requests[usize::try_from(cookie).unwrap()] {
            Asked::Read { len, .. } => len,
            _ => 0,
        };
        let mut source = Source(&sent[..]);
        let mut model = vec![0_u8; usize::try_from(SIZE).unwrap()];
        for (cookie, asked) in (0..).zip(&requests) {
            let reply = source.reply(lens).unwrap();
            prop_assert_eq!(reply.cookie, cookie);
            let expected = match *asked {
                Asked::Read { offset, len, .. } => range(offset, len, 22).map(|range| {
                    let at = if structured { offset } else { 0 };
                    assert_eq!(reply.bytes(at, range.len()), model[range]);
                }),
                Asked::Write { offset, len, byte, .. } => {
                    range(offset, len.into(), 28).map(|range| model[range].fill(byte))
                }
                Asked::Trim { offset, len } => range(offset, len, 22).map(|r| model[r].fill(0)),
                Asked::Zero { offset, len, .. } => range(offset, len, 28).map(|r| model[r].fill(0)),
                Asked::Status { .. } if !structured => Err(22),
                Asked::Status { offset, len, one } => range(offset, len, 22).map(|range| {
                    let [Piece::Status { extents, .. }] = &reply.pieces[..] else {
                        panic!("{reply:?}");
                    };
                    let mut at = range.start;
                    for (len, state) in extents {
                        let end = at + *len as usize;
                        assert!(*state == 0 || model[at..end].iter().all(|byte| *byte == 0));
                        at = end;
                    }
                    assert!(at == range.end || (one && extents.len() == 1));
                }),
                Asked::Flush => Ok(()),
            };
            prop_assert_eq!(reply.error, expected.err().unwrap_or(0), "{:?}", asked);
        }
        prop_assert!(source.0.is_empty(), "one reply per request");
    }

    #[test]
    fn any_bytes_are_survived_in_bounded_memory(
        start in 0..3_u8,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cut in 0..300_usize,
    ) {
        let mut session = match start {
            0 => Session::new(MemoryDevice::new(SIZE), false),
            1 => Session::ready(MemoryDevice::new(SIZE), false, false),
            _ => Session::ready(MemoryDevice::new(SIZE), true, true),
        };
        let (head, tail) = bytes.split_at(cut.min(bytes.len()));
        session.feed(head);
        session.feed(tail);
        prop_assert!(session.most_needed <= (32 << 20) + 28);
    }
}
