//! NBD requests after a good handshake: every request gets exactly one well-formed reply, whatever
//! the pieces its bytes arrive in.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use onefold_fuzz::choice;
use onefold_fuzz::nbd::{DISK_BYTES, check_replies, converse, export, handshake};

const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;

fuzz_target!(|data: &[u8]| {
    let Some((chunk, rest)) = choice(data) else { return };
    let Some((mode, rest)) = choice(rest) else { return };
    let (structured, read_only) = (mode & 1 == 1, mode & 2 == 2);
    if mode & 4 == 4 {
        raw(rest, structured, read_only, chunk);
    } else {
        shaped(rest, structured, read_only, chunk);
    }
});

/// Arbitrary bytes: no panic, and pieces do not matter.
fn raw(data: &[u8], structured: bool, read_only: bool, chunk: u8) {
    let mut input = handshake(structured);
    input.extend(data);
    let whole = converse(export(read_only), &input, input.len());
    let pieces = converse(export(read_only), &input, usize::from(chunk));
    assert_eq!(whole, pieces);
}

/// Requests with the right magic and a payload where one belongs: each is answered once.
fn shaped(data: &[u8], structured: bool, read_only: bool, chunk: u8) {
    let mut input = handshake(structured);
    let mut reads = BTreeMap::new();
    let mut requests: u64 = 0;
    let mut rest = data;
    while let Some((fields, after)) = rest.split_first_chunk::<8>() {
        rest = after;
        let [flags, kind, offset @ .., len_high, len_low] = *fields;
        let kind = u16::from(kind % 9);
        let offset = u64::from(u32::from_be_bytes(offset)) % (DISK_BYTES + 8192);
        let len = u32::from(u16::from_be_bytes([len_high, len_low]));
        let cookie = requests;
        input.extend(0x2560_9513_u32.to_be_bytes());
        input.extend(u16::from(flags).to_be_bytes());
        input.extend(kind.to_be_bytes());
        input.extend(cookie.to_be_bytes());
        input.extend(offset.to_be_bytes());
        input.extend(len.to_be_bytes());
        let bytes = usize::try_from(len).expect("64 bit");
        if kind == DISCONNECT {
            break;
        }
        if kind == WRITE {
            input.extend(std::iter::repeat_n(flags, bytes));
        }
        if kind == 0 {
            reads.insert(cookie, bytes);
        }
        requests += 1;
    }
    let outcome = converse(export(read_only), &input, usize::from(chunk) * 64 + 1);
    assert_eq!(outcome.closed, None);
    let from = outcome.replies_from.expect("the handshake is good");
    let length_of = |cookie| reads.get(&cookie).copied().unwrap_or(0);
    let answered = check_replies(&outcome.sent[from..], length_of);
    assert_eq!(u64::try_from(answered), Ok(requests));
}
