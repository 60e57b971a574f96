//! A bounded queue of records between one I/O thread and the writer thread.
//!
//! Invariants: 1. Only the owning thread moves `tail`, only the writer moves `head`. 2. The words
//! of the records in `head..tail` are not touched by the owner. 3. Neither side ever waits.

use std::sync::atomic::{AtomicU64, Ordering};

use onefold_units::convert::{index64, u64_from};

/// Memory of a ring, in bytes.
const RING_BYTES: usize = 4 << 20;
/// 64-bit words of a record.
const WORDS: usize = 6;
/// Records that a ring holds.
pub(super) const CAPACITY: usize = RING_BYTES / (8 * WORDS);

/// One finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub arrival_ns: u64,
    pub latency_ns: u64,
    pub offset: u64,
    pub len: u64,
    pub aux: u64,
    pub op: u8,
    pub flags: u8,
    pub status: u16,
    pub client: u16,
}

impl Entry {
    fn pack(&self) -> [u64; WORDS] {
        let tags = u64::from(self.op)
            | u64::from(self.flags) << 8
            | u64::from(self.status) << 16
            | u64::from(self.client) << 32;
        [self.arrival_ns, self.latency_ns, self.offset, self.len, self.aux, tags]
    }

    fn unpack(words: [u64; WORDS]) -> Self {
        let [arrival_ns, latency_ns, offset, len, aux, tags] = words;
        let [op, flags, s0, s1, c0, c1, ..] = tags.to_le_bytes();
        let (status, client) = (u16::from_le_bytes([s0, s1]), u16::from_le_bytes([c0, c1]));
        Self { arrival_ns, latency_ns, offset, len, aux, op, flags, status, client }
    }
}

pub(super) struct Ring {
    words: Box<[AtomicU64]>,
    /// Records taken out since the beginning.
    head: AtomicU64,
    /// Records put in since the beginning.
    tail: AtomicU64,
    dropped: AtomicU64,
}

impl Ring {
    pub(super) fn new() -> Self {
        Self {
            words: (0..CAPACITY * WORDS).map(|_| AtomicU64::new(0)).collect(),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    fn slot(&self, number: u64) -> &[AtomicU64] {
        let at = index64(number % u64_from(CAPACITY)) * WORDS;
        &self.words[at..at + WORDS]
    }

    /// Puts a record in, or counts it as dropped if there is no room. For the owner only.
    pub(super) fn push(&self, entry: &Entry) {
        let tail = self.tail.load(Ordering::Relaxed);
        // Acquire: the writer has read the words before it moved `head` past them.
        if tail - self.head.load(Ordering::Acquire) >= u64_from(CAPACITY) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for (word, value) in self.slot(tail).iter().zip(entry.pack()) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: whoever sees the new tail sees the words.
        self.tail.store(tail + 1, Ordering::Release);
    }

    /// Takes every record out. For the writer only.
    pub(super) fn drain(&self, mut each: impl FnMut(&Entry)) {
        let tail = self.tail.load(Ordering::Acquire);
        let mut head = self.head.load(Ordering::Relaxed);
        while head < tail {
            let mut words = [0; WORDS];
            for (word, stored) in words.iter_mut().zip(self.slot(head)) {
                *word = stored.load(Ordering::Relaxed);
            }
            each(&Entry::unpack(words));
            head += 1;
            self.head.store(head, Ordering::Release);
        }
    }

    /// Records dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use onefold_units::convert::u64_from;

    use super::{CAPACITY, Entry, Ring};

    fn entry(number: u64) -> Entry {
        Entry {
            arrival_ns: number,
            latency_ns: u64::MAX,
            offset: number << 12,
            len: 4096,
            aux: number << 20,
            op: 4,
            flags: 16,
            status: 28,
            client: 65_535,
        }
    }

    #[test]
    fn a_full_ring_drops_the_newest_and_counts() {
        let ring = Ring::new();
        let capacity = u64::try_from(CAPACITY).unwrap();
        for round in 0..3 {
            for number in 0..capacity + 5 {
                ring.push(&entry(round * 7 + number));
            }
            let mut taken = Vec::new();
            ring.drain(|e| taken.push(*e));
            assert_eq!(taken.len(), CAPACITY);
            assert_eq!(taken[0], entry(round * 7));
            assert_eq!(taken[CAPACITY - 1], entry(round * 7 + capacity - 1));
            assert_eq!(ring.take_dropped(), 5);
            ring.drain(|_| panic!("it was emptied"));
        }
    }

    #[test]
    fn a_concurrent_reader_sees_every_record_once_and_in_order() {
        const RECORDS: u64 = 100_000;
        let ring = Ring::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..RECORDS {
                    // A reader that gets no processor for a while is not the question.
                    while number - ring.head.load(Ordering::Acquire) >= u64_from(CAPACITY) {
                        std::thread::yield_now();
                    }
                    ring.push(&entry(number));
                }
            });
            let mut next = 0;
            while next < RECORDS {
                ring.drain(|taken| {
                    assert_eq!(*taken, entry(next));
                    next += 1;
                });
            }
        });
        assert_eq!(ring.take_dropped(), 0);
    }
}
