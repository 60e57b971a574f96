//! What a file or device holds that somebody is about to overwrite.
//!
//! Known formats alone do not tell: most of what people keep has none of the marks that a table could list. So only what reads as
//! zeroes is taken for empty. Of a target with no more than [`WHOLE`] bytes of data all of it is read, where holes of files are no data;
//! of a larger one the first and the last [`END`] bytes of it, [`SAMPLES`] pieces spread evenly, and what its user says it is going to
//! overwrite.

mod looks;

use std::fmt;
use std::ops::Range;

use onefold_units::convert::{index64, u64_from};
use onefold_volume::IoFailed;

pub use looks::looks_like;

/// Bytes of data that are all read.
const WHOLE: u64 = 4 << 30;

/// Bytes at each end of a larger target that are read.
const END: u64 = 64 << 20;

/// Pieces of it that are read.
const SAMPLES: u64 = 1024;

/// Bytes of such a piece.
const SAMPLE: u64 = 64 << 10;

/// Bytes in memory at a time.
const PIECE: u64 = 1 << 20;

/// What a file or device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contents {
    /// Something that is known by its looks.
    Known(&'static str),
    /// Data of an unknown kind.
    Data {
        /// Offset of the first byte that is not zero, of those that were read.
        at: u64,
    },
    /// Something that cannot be read.
    Unread {
        /// Offset of the piece that could not.
        at: u64,
    },
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(what) => f.write_str(what),
            Self::Data { at } => write!(f, "data: its first non-zero byte is at offset {at}"),
            Self::Unread { at } => write!(f, "something that cannot be read, at offset {at}"),
        }
    }
}

/// What is looked at.
pub(crate) trait Target {
    /// Parts that may hold something, in their order.
    fn parts(&self) -> Vec<Range<u64>>;

    /// Fills `bytes`; the range is one of [`parts`](Self::parts), or a piece of it.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), IoFailed>;
}

/// What a target holds, `None` if nothing that was read. `written` is what its user is going to overwrite, at the least.
pub(crate) fn contents(target: &impl Target, written: &[Range<u64>]) -> Option<Contents> {
    let parts = target.parts();
    let written = parts.iter().flat_map(|part| written.iter().map(|one| overlap(part, one)));
    chosen(&parts).into_iter().chain(written).find_map(|range| look(target, range))
}

/// What a target looks like by its beginning.
pub(crate) fn looks(target: &impl Target) -> Option<&'static str> {
    let parts = target.parts();
    let first = parts.first().filter(|first| first.start == 0)?;
    let len = looks::HEAD_BYTES.min(index64(first.end));
    let mut head = vec![0; len];
    target.read(0, &mut head).ok()?;
    looks_like(&head)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

fn look(target: &impl Target, range: Range<u64>) -> Option<Contents> {
    let mut at = range.start;
    let mut piece = vec![0; index64(PIECE.min(range.end.saturating_sub(at)))];
    while at < range.end {
        let bytes = &mut piece[..index64(PIECE.min(range.end - at))];
        if target.read(at, bytes).is_err() {
            return Some(Contents::Unread { at });
        }
        if let Some(found) = first_set(bytes) {
            return Some(Contents::Data { at: at + u64_from(found) });
        }
        at += u64_from(bytes.len());
    }
    None
}

/// Where the first byte is that is not zero.
fn first_set(bytes: &[u8]) -> Option<usize> {
    // Whole chunks are compared at once: most are zero.
    const CHUNK: usize = 4096;
    let chunk = bytes.chunks(CHUNK).position(|chunk| *chunk != [0; CHUNK][..chunk.len()])?;
    let from = chunk * CHUNK;
    bytes[from..].iter().position(|byte| *byte != 0).map(|at| from + at)
}

/// The ranges to be read of the data in `parts`.
fn chosen(parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let total: u64 = parts.iter().map(|part| part.end - part.start).sum();
    if total <= WHOLE {
        return parts.to_vec();
    }
    // In bytes of data, which are counted through all parts: a sample in a hole would tell nothing.
    let samples = (1..SAMPLES).map(|number| {
        let begin = total / SAMPLES / SAMPLE * SAMPLE * number;
        begin..begin + SAMPLE
    });
    let wanted: Vec<_> =
        std::iter::once(0..END).chain(samples).chain(std::iter::once(total - END..total)).collect();
    let mut chosen = Vec::new();
    let mut before = 0;
    for part in parts {
        let counted = before..before + (part.end - part.start);
        let within = wanted.iter().map(|range| overlap(range, &counted));
        let within = within.filter(|range| range.start < range.end);
        let place = |at: u64| at - counted.start + part.start;
        chosen.extend(within.map(|range| place(range.start)..place(range.end)));
        before = counted.end;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Zeroes but for one byte, in parts of a space of bytes.
    struct Fake {
        parts: Vec<Range<u64>>,
        set: Option<u64>,
        broken: Option<u64>,
        read: RefCell<u64>,
    }

    impl Fake {
        fn new(parts: &[Range<u64>]) -> Self {
            Self { parts: parts.to_vec(), set: None, broken: None, read: RefCell::new(0) }
        }
    }

    impl Target for Fake {
        fn parts(&self) -> Vec<Range<u64>> {
            self.parts.clone()
        }

        fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
            let range = offset..offset + u64_from(bytes.len());
            assert!(self.parts.iter().any(|part| overlap(part, &range) == range), "{range:?}");
            *self.read.borrow_mut() += u64_from(bytes.len());
            if self.broken.is_some_and(|at| range.contains(&at)) {
                return Err(IoFailed::Error);
            }
            bytes.fill(0);
            if let Some(at) = self.set.filter(|at| range.contains(at)) {
                bytes[index64(at - offset)] = 7;
            }
            Ok(())
        }
    }

    #[test]
    fn one_byte_anywhere_in_what_is_small_is_found() {
        let parts = [0..3 << 20, 16 << 20..(16 << 20) + 5000];
        for at in [0, 4095, (3 << 20) - 1, 16 << 20, (16 << 20) + 4999] {
            let target = Fake { set: Some(at), ..Fake::new(&parts) };
            assert_eq!(contents(&target, &[]), Some(Contents::Data { at }));
        }
        assert_eq!(contents(&Fake::new(&parts), &[]), None);
        let broken = Fake { broken: Some(2 << 20), ..Fake::new(&parts) };
        assert_eq!(contents(&broken, &[]), Some(Contents::Unread { at: 2 << 20 }));
    }

    #[test]
    fn of_what_is_large_the_ends_samples_and_what_is_written_are_read() {
        let (end, tera) = (3 << 40, 1_u64 << 40);
        let parts = [tera..2 * tera, 2 * tera + (1 << 30)..end];
        let found = |at: u64| contents(&Fake { set: Some(at), ..Fake::new(&parts) }, &[]);
        for at in [tera, tera + END - 1, end - END, end - 1] {
            assert_eq!(found(at), Some(Contents::Data { at }));
        }
        let between = tera + END + 12_345;
        assert_eq!(found(between), None);
        let target = Fake { set: Some(between), ..Fake::new(&parts) };
        let written = between - 100..between + 1;
        let found = contents(&target, std::slice::from_ref(&written));
        assert_eq!(found, Some(Contents::Data { at: between }));
        let empty = Fake::new(&parts);
        assert_eq!(contents(&empty, &[]), None);
        let read = *empty.read.borrow();
        assert!(read <= 2 * END + SAMPLES * SAMPLE, "{read}");
        // Data that covers the 512th part of all cannot be missed.
        let long = (tera + end / 2)..(tera + end / 2 + end / 512);
        let hit = chosen(&parts).iter().any(|range| long.contains(&range.start));
        assert!(hit);
    }
}
