//! The memory that the connections hold together: a hard limit, shared fairly.
//!
//! Terms: the *floor* is what a connection may have at any time without asking others; what the floors of
//! all connections leave of the limit is *shared*.
//!
//! Invariants: 1. What is promised to all connections never exceeds the limit. 2. A connection asks before
//! it takes memory, and so holds no more than it was promised. 3. Shared memory is given out in the order
//! in which it was asked for, so that small requests do not starve a large one. 4. Who waits for shared
//! memory gets on within its floor meanwhile.

mod buffer;
mod mapping;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use buffer::Buffer;

/// What a connection may have at any time: a full input buffer and as many replies.
const FLOOR: usize = 512 << 10;

/// Memory that the connections of a server hold together, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionMemory {
    /// Now.
    pub held: usize,
    /// At most since the start.
    pub peak: usize,
}

/// Memory that all connections share.
#[derive(Debug)]
pub(crate) struct Budget {
    floor: usize,
    shared: Mutex<Shared>,
    held: AtomicUsize,
    peak: AtomicUsize,
}

#[derive(Debug)]
struct Shared {
    free: usize,
    /// Accounts that wait, in the order of asking.
    queue: VecDeque<u64>,
    next: u64,
}

impl Budget {
    /// `limit` bytes for at most so many connections.
    pub(crate) fn new(limit: usize, connections: usize) -> Arc<Self> {
        let floor = FLOOR.min(limit / 2 / connections.max(1));
        let shared = Shared { free: limit - floor * connections, queue: VecDeque::new(), next: 0 };
        Arc::new(Self {
            floor,
            shared: Mutex::new(shared),
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        })
    }

    /// What is promised to connections.
    pub(crate) fn memory(&self) -> ConnectionMemory {
        ConnectionMemory { held: self.held.load(Relaxed), peak: self.peak.load(Relaxed) }
    }

    /// Whether a connection waits for shared memory.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.shared().queue.is_empty()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of so many bytes of one connection that is shared memory.
    fn beyond_floor(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.floor)
    }
}

/// What one connection was promised. Dropping it gives everything back.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    held: usize,
    /// Its place among those that wait.
    ticket: Option<u64>,
}

impl Account {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), held: 0, ticket: None }
    }

    /// Asks for `more` bytes. After a `false` the account waits for its turn: it is to ask again.
    pub(crate) fn take(&mut self, more: usize) -> bool {
        let budget = &self.budget;
        let needed = budget.beyond_floor(self.held + more) - budget.beyond_floor(self.held);
        if needed > 0 && !self.take_shared(needed) {
            return false;
        }
        self.held += more;
        let held = self.budget.held.fetch_add(more, Relaxed) + more;
        self.budget.peak.fetch_max(held, Relaxed);
        true
    }

    fn take_shared(&mut self, needed: usize) -> bool {
        let mut shared = self.budget.shared();
        let is_next = shared.queue.front().is_none_or(|first| Some(*first) == self.ticket);
        if is_next && shared.free >= needed {
            shared.free -= needed;
            if self.ticket.take().is_some() {
                shared.queue.pop_front();
            }
            return true;
        }
        if self.ticket.is_none() {
            let ticket = shared.next;
            shared.next += 1;
            shared.queue.push_back(ticket);
            self.ticket = Some(ticket);
        }
        false
    }

    /// It does not wait any more.
    pub(crate) fn leave_queue(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.budget.shared().queue.retain(|waiting| *waiting != ticket);
        }
    }

    /// Gives back what is beyond the `used` bytes.
    pub(crate) fn settle(&mut self, used: usize) {
        debug_assert!(used <= self.held, "invariant 2: {used} of {} bytes are used", self.held);
        let surplus = self.held.saturating_sub(used);
        let budget = &self.budget;
        let given = budget.beyond_floor(self.held) - budget.beyond_floor(self.held - surplus);
        if given > 0 {
            budget.shared().free += given;
        }
        self.held -= surplus;
        budget.held.fetch_sub(surplus, Relaxed);
    }

    /// Bytes that it was promised.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Whether it has memory that another account waits for.
    pub(crate) fn is_in_the_way(&self) -> bool {
        let has_shared = self.budget.beyond_floor(self.held) > 0;
        has_shared && self.ticket.is_none() && self.budget.is_waited_for()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.leave_queue();
        self.settle(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Budget, ConnectionMemory};

    /// 100 bytes for 5 connections: a floor of 10 each, and 50 that are shared.
    fn accounts() -> (std::sync::Arc<Budget>, [Account; 3]) {
        let budget = Budget::new(100, 5);
        let accounts = [(); 3].map(|()| Account::new(&budget));
        (budget, accounts)
    }

    #[test]
    fn nobody_is_promised_more_than_there_is_and_everybody_has_a_floor() {
        let (budget, [mut a, mut b, mut c]) = accounts();
        assert!(a.take(60) && !b.take(11) && !c.take(11));
        assert!(b.take(10) && c.take(10), "the floor is there at any time");
        assert_eq!(budget.memory(), ConnectionMemory { held: 80, peak: 80 });
        assert!(a.is_in_the_way() && !b.is_in_the_way());
        drop(a);
        assert!(b.take(50) && !c.take(1));
        b.settle(0);
        assert!(c.take(50));
        drop((b, c));
        assert_eq!(budget.memory(), ConnectionMemory { held: 0, peak: 80 });
    }

    /// Small requests that come again and again would keep a large one waiting for ever.
    #[test]
    fn shared_memory_is_given_out_in_the_order_of_asking() {
        let (budget, [mut a, mut b, mut c]) = accounts();
        assert!(a.take(30) && !b.take(50));
        assert!(!c.take(11), "there is room, but b was first");
        a.settle(0);
        assert!(!c.take(11) && b.take(50) && c.take(11));
        assert!(!budget.is_waited_for());
        assert!(!a.take(31) && budget.is_waited_for());
        drop(a);
        assert!(!budget.is_waited_for(), "who is gone waits for nothing");
    }
}
