//! The bytes that came from the peer and are not handled yet.

use std::ops::Range;

use crate::memory::Buffer;

/// Room for many small requests in one receive, in bytes.
const BASE: usize = 256 << 10;
/// Larger buffers than this are given back as soon as they are empty.
const KEEP: usize = 4 << 20;
/// Less free room than this at the end is worth moving the rest of a request to the front.
const LEAST_ROOM: usize = 64 << 10;

/// A buffer that requests are parsed and executed from in place.
#[derive(Default)]
pub(super) struct Input {
    bytes: Buffer,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > KEEP {
                self.bytes = Buffer::default();
            }
        }
    }

    /// Memory to be had before `need` bytes of data fit, in bytes: a new buffer, beside the old one.
    pub(super) fn growth(&self, need: usize) -> usize {
        if need > self.bytes.len() { need.max(BASE) } else { 0 }
    }

    /// Room to receive into, such that `need` bytes of data fit.
    pub(super) fn room(&mut self, need: usize) -> &mut [u8] {
        if need > self.bytes.len() {
            self.move_to(self.growth(need));
        } else if need > self.bytes.len() - self.start
            || (self.start > 0 && self.bytes.len() - self.end < LEAST_ROOM)
        {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.bytes[self.end..]
    }

    fn move_to(&mut self, size: usize) {
        let mut bytes = Buffer::new(size);
        let rest = self.end - self.start;
        bytes[..rest].copy_from_slice(self.data());
        (self.bytes, self.start, self.end) = (bytes, 0, rest);
    }

    /// `count` bytes were received into the room.
    pub(super) fn received(&mut self, count: usize) {
        self.end += count;
    }

    /// Memory that [`Input::split`] of `count` bytes needs.
    pub(super) fn split_growth(&self, count: usize) -> usize {
        (self.data().len() - count).max(BASE)
    }

    /// Gives away the first `count` bytes, with the buffer they are in, instead of copying them. Says
    /// where `part` of them is in it.
    pub(super) fn split(&mut self, count: usize, part: &Range<usize>) -> (Buffer, Range<usize>) {
        let part = self.start + part.start..self.start + part.end;
        let size = self.split_growth(count);
        self.start += count;
        let mut bytes = Buffer::new(size);
        let rest = self.end - self.start;
        bytes[..rest].copy_from_slice(&self.bytes[self.start..self.end]);
        (self.start, self.end) = (0, rest);
        (std::mem::replace(&mut self.bytes, bytes), part)
    }

    /// Gives memory back that what is there does not need.
    pub(super) fn shrink(&mut self) {
        if self.data().is_empty() {
            *self = Self::default();
        } else if self.bytes.len() > BASE && self.data().len() <= BASE {
            // What is large goes first: never more is held than before.
            let rest = self.data().to_vec();
            *self = Self::default();
            self.room(rest.len())[..rest.len()].copy_from_slice(&rest);
            self.received(rest.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BASE, Input};

    fn feed(input: &mut Input, bytes: &[u8]) {
        input.room(bytes.len() + input.data().len())[..bytes.len()].copy_from_slice(bytes);
        input.received(bytes.len());
    }

    #[test]
    fn what_came_in_stays_through_growth_split_and_shrinking() {
        let mut input = Input::default();
        assert_eq!(input.capacity(), 0);
        feed(&mut input, b"abc");
        input.consume(1);
        input.room(3 * BASE);
        assert_eq!((input.data(), input.capacity()), (&b"bc"[..], 3 * BASE));
        feed(&mut input, b"defg");
        let (bytes, part) = input.split(4, &(1..3));
        assert_eq!((&bytes[part], bytes.len()), (&b"cd"[..], 3 * BASE));
        assert_eq!((input.data(), input.capacity()), (&b"fg"[..], BASE));
        input.room(2 * BASE);
        input.shrink();
        assert_eq!((input.data(), input.capacity()), (&b"fg"[..], BASE));
        input.consume(2);
        input.shrink();
        assert_eq!(input.capacity(), 0);
    }
}
