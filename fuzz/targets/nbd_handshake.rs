//! The NBD handshake: any bytes, in pieces of any size, give the same well-formed answers. The
//! first byte is the size of the pieces, the second whether magic numbers are put right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_fuzz::choice;
use onefold_fuzz::nbd::{check_option_replies, converse, export, option};

fuzz_target!(|data: &[u8]| {
    let Some((chunk, rest)) = choice(data) else { return };
    let Some((shaped, rest)) = choice(rest) else { return };
    let input = if shaped & 1 == 1 { options(rest) } else { rest.to_vec() };
    let whole = converse(export(shaped & 2 == 2), &input, input.len());
    let pieces = converse(export(shaped & 2 == 2), &input, usize::from(chunk));
    assert_eq!(whole, pieces);
    let handshake = &whole.sent[..whole.replies_from.unwrap_or(whole.sent.len())];
    let _ = check_option_replies(handshake);
});

/// Client flags and options with right magic and length: number, length and data from the input.
fn options(data: &[u8]) -> Vec<u8> {
    let mut input = 3_u32.to_be_bytes().to_vec();
    let mut rest = data;
    while let Some((&[number, len], after)) = rest.split_first_chunk::<2>() {
        let (data, after) = after.split_at(after.len().min(usize::from(len)));
        input.extend(option(u32::from(number % 16), data));
        rest = after;
    }
    input
}
