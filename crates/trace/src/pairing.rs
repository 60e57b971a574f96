//! Brings completions back to the requests they complete.
//!
//! Requests wait in file order until their completion is seen or [`WINDOW`] younger requests wait
//! behind them, so memory is bounded and the order never changes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use onefold_units::convert::{index64, u64_from};

use crate::Record;

/// Requests that may wait. The deepest queue of a block device is 2^16.
const WINDOW: usize = 1 << 16;

#[derive(Debug)]
struct Waiting {
    record: Record,
    done: bool,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// Number of the request since the start.
    number: u64,
    /// The request was given back to the queue; its next issue is no new request.
    requeued: bool,
}

/// Requests of one key, oldest first. Mostly there is one, which needs no allocation.
#[derive(Debug)]
struct Queue {
    first: Open,
    more: VecDeque<Open>,
}

impl Queue {
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Open> {
        std::iter::once(&mut self.first).chain(&mut self.more)
    }

    fn len(&self) -> usize {
        1 + self.more.len()
    }
}

/// Requests waiting for their completions, found by a key of the format.
#[derive(Debug)]
pub(crate) struct Pairing<K> {
    waiting: VecDeque<Waiting>,
    /// Number of the first waiting request.
    first: u64,
    open: BTreeMap<K, Queue>,
    opens: usize,
    /// Completions of no known request.
    pub(crate) orphans: u64,
    /// Issues that repeat a requeued request.
    pub(crate) requeued: u64,
}

impl<K> Default for Pairing<K> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            first: 0,
            open: BTreeMap::new(),
            opens: 0,
            orphans: 0,
            requeued: 0,
        }
    }
}

impl<K: Ord + Clone> Pairing<K> {
    /// A request was issued.
    pub(crate) fn issue(&mut self, key: K, record: Record, out: &mut Vec<Record>) {
        let number = self.first + u64_from(self.waiting.len());
        let new = Open { number, requeued: false };
        match self.open.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Queue { first: new, more: VecDeque::new() });
            }
            Entry::Occupied(mut place) => {
                if let Some(open) = place.get_mut().iter_mut().find(|open| open.requeued) {
                    open.requeued = false;
                    self.requeued += 1;
                    return;
                }
                place.get_mut().more.push_back(new);
            }
        }
        self.opens += 1;
        self.waiting.push_back(Waiting { record, done: false });
        self.release(WINDOW, out);
    }

    /// A request that no completion names.
    pub(crate) fn pass(&mut self, record: Record, out: &mut Vec<Record>) {
        self.waiting.push_back(Waiting { record, done: true });
        self.release(WINDOW, out);
    }

    /// A request went back to the queue.
    pub(crate) fn requeue(&mut self, key: &K) {
        let open = self.open.get_mut(key).and_then(|queue| queue.iter_mut().find(|o| !o.requeued));
        if let Some(open) = open {
            open.requeued = true;
        }
    }

    /// A request completed at `t_ns`, in the clock of the requests.
    pub(crate) fn complete(&mut self, key: &K, t_ns: u64, out: &mut Vec<Record>) {
        let Some(queue) = self.open.get_mut(key) else {
            self.orphans += 1;
            return;
        };
        let open = queue.first;
        match queue.more.pop_front() {
            Some(next) => queue.first = next,
            None => {
                self.open.remove(key);
            }
        }
        self.opens -= 1;
        if let Some(place) = open.number.checked_sub(self.first)
            && let Some(waiting) = self.waiting.get_mut(index64(place))
        {
            waiting.done = true;
            // A completion before its issue is a clock step between CPUs: the latency is unknown.
            waiting.record.lat_ns = t_ns.checked_sub(waiting.record.t_ns);
        }
        self.release(WINDOW, out);
    }

    /// Gives out everything.
    pub(crate) fn finish(&mut self, out: &mut Vec<Record>) {
        self.release(0, out);
        self.open.clear();
        self.opens = 0;
    }

    fn release(&mut self, window: usize, out: &mut Vec<Record>) {
        while let Some(front) = self.waiting.front() {
            if !front.done && self.waiting.len() <= window {
                break;
            }
            out.extend(self.waiting.pop_front().map(|waiting| waiting.record));
            self.first += 1;
        }
        if self.opens > 2 * WINDOW {
            self.forget_released();
        }
    }

    /// Drops entries of requests that left without a completion.
    fn forget_released(&mut self) {
        let first = self.first;
        self.open.retain(|_, queue| {
            queue.more.retain(|open| open.number >= first);
            if queue.first.number >= first {
                return true;
            }
            let next = queue.more.pop_front();
            queue.first = next.unwrap_or(queue.first);
            next.is_some()
        });
        self.opens = self.open.values().map(Queue::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::Pairing;
    use crate::{Record, TraceOp};

    fn record(t_ns: u64) -> Record {
        Record::new(t_ns, TraceOp::Read, 0, 512)
    }

    #[test]
    fn latencies_come_back_in_file_order() {
        let mut pairing = Pairing::default();
        let mut out = Vec::new();
        pairing.issue(1, record(10), &mut out);
        pairing.issue(2, record(20), &mut out);
        pairing.complete(&2, 25, &mut out);
        assert!(out.is_empty(), "the first request still waits");
        pairing.complete(&1, 40, &mut out);
        assert_eq!(out.iter().map(|r| r.lat_ns).collect::<Vec<_>>(), [Some(30), Some(5)]);
        pairing.complete(&1, 41, &mut out);
        assert_eq!(pairing.orphans, 1);
    }

    #[test]
    fn a_requeued_issue_counts_once() {
        let mut pairing = Pairing::default();
        let mut out = Vec::new();
        pairing.issue(1, record(10), &mut out);
        pairing.requeue(&1);
        pairing.issue(1, record(30), &mut out);
        pairing.complete(&1, 50, &mut out);
        pairing.finish(&mut out);
        assert_eq!((out.len(), out[0].lat_ns, pairing.requeued), (1, Some(40), 1));
    }

    #[test]
    fn requests_without_completion_do_not_pile_up() {
        let mut pairing = Pairing::default();
        let mut out = Vec::new();
        for n in 0..300_000_u64 {
            pairing.issue(n, record(n), &mut out);
        }
        assert!(pairing.open.len() < 200_000 && out.len() > 200_000);
        pairing.finish(&mut out);
        assert_eq!(out.len(), 300_000);
        assert!(out.iter().map(|r| r.t_ns).eq(0..300_000));
    }
}
