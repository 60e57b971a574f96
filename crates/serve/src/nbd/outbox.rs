//! Replies on their way to the peer: a queue of buffers. Small replies share a buffer, and a large one has
//! its own, which is handed on and never copied: what the queue holds is what it was told to take.

use std::collections::VecDeque;
use std::io::IoSlice;

use super::parse::Output;

/// Size of a buffer for small replies, in bytes.
const CHUNK: usize = 64 << 10;
/// Buffers that one send takes.
const SLICES: usize = 16;

/// The queue.
#[derive(Default)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    /// Bytes to be sent.
    len: usize,
    capacity: usize,
}

impl Outbox {
    /// Largest reply that shares a buffer.
    pub(super) const SMALL: usize = 40 << 10;

    /// Bytes to be sent.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory held.
    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Memory to be had before a small reply fits.
    pub(super) fn growth(&self) -> usize {
        if self.queue.back().is_some_and(|last| last.room() >= Self::SMALL) { 0 } else { CHUNK }
    }

    /// Lets `put` append a small reply and change it.
    pub(super) fn with_tail<T>(&mut self, put: impl FnOnce(&mut Output) -> T) -> T {
        let last = if self.growth() == 0 { self.queue.pop_back() } else { None };
        let mut tail = last.unwrap_or_else(|| {
            self.capacity += CHUNK;
            Output::with_room(CHUNK)
        });
        let (len, capacity) = (tail.len(), tail.capacity());
        let result = put(&mut tail);
        self.len = self.len + tail.len() - len;
        self.capacity = self.capacity + tail.capacity() - capacity;
        self.queue.push_back(tail);
        result
    }

    /// Appends a reply that has its own buffer.
    pub(super) fn push(&mut self, reply: Output) {
        self.len += reply.len();
        self.capacity += reply.capacity();
        // An empty buffer stays behind it for the small replies to come.
        let behind = usize::from(self.queue.back().is_some_and(Output::is_empty));
        self.queue.insert(self.queue.len() - behind, reply);
    }

    /// What comes next, and how many of the slices that is.
    pub(super) fn slices(&self) -> ([IoSlice<'_>; SLICES], usize) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let pending = self.queue.iter().filter(|reply| !reply.is_empty());
        let count = slices.iter_mut().zip(pending).fold(0, |count, (slice, reply)| {
            *slice = IoSlice::new(reply.pending());
            count + 1
        });
        (slices, count)
    }

    /// `count` bytes were sent. Says whether a buffer has become empty.
    pub(super) fn sent(&mut self, mut count: usize) -> bool {
        self.len -= count;
        let mut emptied = false;
        while let Some(first) = self.queue.front_mut() {
            let taken = count.min(first.len());
            first.sent(taken);
            count -= taken;
            let first_is_chunk = first.capacity() == CHUNK;
            if !first.is_empty() {
                break;
            }
            emptied |= taken > 0;
            // A last buffer for small replies is kept for the next ones.
            if self.queue.len() == 1 && first_is_chunk {
                break;
            }
            self.capacity -= self.queue.pop_front().map_or(0, |gone| gone.capacity());
        }
        emptied
    }

    /// Gives memory back that nothing to be sent needs.
    pub(super) fn shrink(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Outbox, Output};

    fn take(outbox: &mut Outbox, count: usize) -> Vec<u8> {
        let mut bytes =
            outbox.slices().0.iter().flat_map(|slice| slice.to_vec()).collect::<Vec<_>>();
        bytes.truncate(count);
        outbox.sent(bytes.len());
        bytes
    }

    #[test]
    fn replies_leave_in_order_and_their_memory_with_them() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.growth(), CHUNK);
        outbox.with_tail(|out| out.put(b"ab"));
        assert_eq!(outbox.growth(), 0);
        let mut large = Output::with_room(3 * CHUNK);
        large.put(&vec![b'c'; 3 * CHUNK]);
        outbox.push(large);
        outbox.with_tail(|out| out.put(b"de"));
        assert_eq!((outbox.len(), outbox.capacity()), (4 + 3 * CHUNK, 5 * CHUNK));
        assert_eq!(take(&mut outbox, 3), b"abc");
        assert_eq!(outbox.capacity(), 4 * CHUNK);
        assert_eq!(take(&mut outbox, 3 * CHUNK - 1).len(), 3 * CHUNK - 1);
        assert_eq!(take(&mut outbox, 9), b"de");
        assert_eq!((outbox.is_empty(), outbox.capacity(), outbox.growth()), (true, CHUNK, 0));
        outbox.shrink();
        assert_eq!(outbox.capacity(), 0);
    }
}
