//! Replies that wait for their modelled time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use onefold_units::Op;

use super::parse::Output;

/// Buffers kept for reuse.
const SPARE_BUFFERS: usize = 128;
/// Largest buffer kept for reuse, in bytes.
const SPARE_BYTES: usize = 64 << 10;

/// A reply and when it may be sent. Ordered by time, then by arrival.
struct Waiting {
    due: Instant,
    number: u64,
    op: Option<Op>,
    reply: Vec<u8>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Waiting {
    fn key(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

/// The delayed replies of one connection.
#[derive(Default)]
pub(super) struct Delayed {
    heap: BinaryHeap<Reverse<Waiting>>,
    spare: Vec<Vec<u8>>,
    number: u64,
    bytes: usize,
}

impl Delayed {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Bytes of all waiting replies.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the first reply is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(first)| first.due)
    }

    /// Keeps a reply until `due`.
    pub(super) fn push(&mut self, due: Instant, op: Option<Op>, reply: &[u8]) {
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.extend_from_slice(reply);
        self.bytes += kept.len();
        self.number += 1;
        self.heap.push(Reverse(Waiting { due, number: self.number, op, reply: kept }));
    }

    /// Moves every reply that is due at `now` to `out`, telling which operation it answers.
    pub(super) fn release(&mut self, now: Instant, out: &mut Output, mut sent: impl FnMut(Op)) {
        while let Some(first) = self.heap.peek_mut() {
            if first.0.due > now {
                break;
            }
            let Reverse(Waiting { op, mut reply, .. }) =
                std::collections::binary_heap::PeekMut::pop(first);
            out.put(&reply);
            self.bytes -= reply.len();
            if let Some(op) = op {
                sent(op);
            }
            if self.spare.len() < SPARE_BUFFERS && reply.capacity() <= SPARE_BYTES {
                reply.clear();
                self.spare.push(reply);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Delayed, Output};

    #[test]
    fn replies_leave_in_the_order_of_their_time_and_not_before() {
        let (mut delayed, mut out, start) = (Delayed::default(), Output::default(), Instant::now());
        for (after, reply) in [(30, b"c"), (10, b"a"), (20, b"b"), (10, b"A")] {
            delayed.push(start + Duration::from_micros(after), None, reply);
        }
        delayed.release(start + Duration::from_micros(20), &mut out, |_| {});
        assert_eq!(out.pending(), b"aAb");
        assert_eq!((delayed.len(), delayed.bytes()), (1, 1));
        assert_eq!(delayed.next_due(), Some(start + Duration::from_micros(30)));
    }
}
