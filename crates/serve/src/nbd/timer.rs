//! Replies that wait for their modelled time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use onefold_units::Op;

use super::outbox::Outbox;
use super::parse::Output;

/// A reply and when it may be sent. Ordered by time, then by arrival.
struct Waiting {
    due: Instant,
    number: u64,
    op: Option<Op>,
    reply: Output,
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
    number: u64,
    bytes: usize,
}

impl Delayed {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Memory of all waiting replies, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the first reply is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(first)| first.due)
    }

    /// Keeps a reply until `due`.
    pub(super) fn push(&mut self, due: Instant, op: Option<Op>, reply: Output) {
        self.bytes += reply.capacity();
        self.number += 1;
        self.heap.push(Reverse(Waiting { due, number: self.number, op, reply }));
    }

    /// Moves every reply that is due at `now` to `out`, telling which operation it answers.
    pub(super) fn release(&mut self, now: Instant, out: &mut Outbox, mut sent: impl FnMut(Op)) {
        while let Some(first) = self.heap.peek_mut() {
            if first.0.due > now {
                break;
            }
            let Reverse(Waiting { op, reply, .. }) =
                std::collections::binary_heap::PeekMut::pop(first);
            self.bytes -= reply.capacity();
            out.push(reply);
            if let Some(op) = op {
                sent(op);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Delayed, Outbox, Output};

    #[test]
    fn replies_leave_in_the_order_of_their_time_and_not_before() {
        let (mut delayed, mut out, start) = (Delayed::default(), Outbox::default(), Instant::now());
        for (after, reply) in [(30, b"c"), (10, b"a"), (20, b"b"), (10, b"A")] {
            let mut kept = Output::with_room(1);
            kept.put(reply);
            delayed.push(start + Duration::from_micros(after), None, kept);
        }
        delayed.release(start + Duration::from_micros(20), &mut out, |_| {});
        let sent: Vec<u8> = out.slices().0.iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(sent, b"aAb");
        assert_eq!((delayed.len(), delayed.bytes()), (1, 1));
        assert_eq!(delayed.next_due(), Some(start + Duration::from_micros(30)));
    }
}
