//! The bytes that came from the peer and are not handled yet.

/// Room for many small requests in one receive, in bytes.
const BASE: usize = 256 << 10;
/// Larger buffers than this are given back as soon as they are empty.
const KEEP: usize = 4 << 20;
/// Less free room than this at the end is worth moving the rest of a request to the front.
const LEAST_ROOM: usize = 64 << 10;

/// A buffer that requests are parsed and executed from in place.
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; BASE], start: 0, end: 0 }
    }

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
                self.bytes = vec![0; BASE];
            }
        }
    }

    /// Memory to be had before `need` bytes of data fit, in bytes.
    pub(super) fn growth(&self, need: usize) -> usize {
        need.saturating_sub(self.bytes.len())
    }

    /// Room to receive into, such that `need` bytes of data fit.
    pub(super) fn room(&mut self, need: usize) -> &mut [u8] {
        if need > self.bytes.len() {
            let mut grown = vec![0; need];
            grown[..self.end - self.start].copy_from_slice(&self.bytes[self.start..self.end]);
            self.bytes = grown;
            self.end -= self.start;
            self.start = 0;
        } else if need > self.bytes.len() - self.start
            || (self.start > 0 && self.bytes.len() - self.end < LEAST_ROOM)
        {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.bytes[self.end..]
    }

    /// `count` bytes were received into the room.
    pub(super) fn received(&mut self, count: usize) {
        self.end += count;
    }
}
