//! Request counters, one set per client so that connections do not share cache lines.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use onefold_units::Op;

/// Buckets of a latency histogram: bucket `i` counts latencies below [`bucket_limit_ns`]`(i)` that
/// the buckets before did not count; the last one has no limit.
pub const BUCKETS: usize = 22;

/// Lowest bucket limit as a power of two, in nanoseconds: 1.024 us.
const FIRST_LIMIT_LOG2: u32 = 10;

/// Upper limit of a histogram bucket in nanoseconds, `None` for the last.
#[must_use]
pub fn bucket_limit_ns(bucket: usize) -> Option<u64> {
    let shift = FIRST_LIMIT_LOG2 + u32::try_from(bucket).ok()?;
    if bucket + 1 < BUCKETS { Some(1 << shift) } else { None }
}

fn bucket_of(nanos: u64) -> usize {
    let log2 = nanos.checked_ilog2().unwrap_or(0);
    // A latency of exactly 2^k belongs to the bucket above the limit 2^k, so that `<` holds.
    let bucket = (log2 + 1).saturating_sub(FIRST_LIMIT_LOG2);
    usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// Through which protocol a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frontend {
    /// Network block device, section 2 of frontends.md.
    Nbd,
    /// A file in a FUSE mount, section 3 of frontends.md.
    Fuse,
    /// A caller inside the process.
    Local,
}

impl Frontend {
    /// Every front end, in report order.
    pub const ALL: [Self; 3] = [Self::Nbd, Self::Fuse, Self::Local];

    /// Stable name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::Fuse => "fuse",
            Self::Local => "local",
        }
    }

    const fn slot(self) -> usize {
        match self {
            Self::Nbd => 0,
            Self::Fuse => 1,
            Self::Local => 2,
        }
    }
}

/// What was counted for one operation of one front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounts {
    /// Requests that ended, failed ones included.
    pub requests: u64,
    /// Bytes of the requests that succeeded.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests begun whose reply is not due yet.
    pub inflight: u64,
    /// Sum of the latencies of all requests in nanoseconds, modelled delay included.
    pub nanos: u64,
    /// Histogram of the latencies; see [`bucket_limit_ns`].
    pub buckets: [u64; BUCKETS],
}

impl OpCounts {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.inflight += other.inflight;
        self.nanos = self.nanos.wrapping_add(other.nanos);
        for (sum, part) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += part;
        }
    }
}

/// What was counted for one front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontendCounts {
    ops: [OpCounts; 5],
    /// Requests with data whose offset or length is not a multiple of 4 KiB.
    pub unaligned: u64,
}

impl FrontendCounts {
    /// The counts of one operation.
    #[must_use]
    pub fn op(&self, op: Op) -> &OpCounts {
        &self.ops[slot(op)]
    }

    fn add(&mut self, other: &Self) {
        for (sum, part) in self.ops.iter_mut().zip(&other.ops) {
            sum.add(part);
        }
        self.unaligned += other.unaligned;
    }
}

/// What was counted since the device was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedCounts {
    frontends: [FrontendCounts; 3],
}

impl ObservedCounts {
    /// The counts of one front end.
    #[must_use]
    pub fn frontend(&self, frontend: Frontend) -> &FrontendCounts {
        &self.frontends[frontend.slot()]
    }

    pub(super) fn add(&mut self, frontend: Frontend, counts: &FrontendCounts) {
        self.frontends[frontend.slot()].add(counts);
    }
}

const fn slot(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Trim => 3,
        Op::WriteZeroes => 4,
    }
}

/// How a request ended.
pub(super) struct Ended {
    pub op: Op,
    pub bytes: u64,
    pub nanos: u64,
    pub failed: bool,
    pub unaligned: bool,
}

#[derive(Default)]
struct OpCounters {
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    begun: AtomicU64,
    over: AtomicU64,
    nanos: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

/// The live counters of one client. Relaxed atomics: a report may be a few requests behind.
#[derive(Default)]
pub(super) struct Counters {
    ops: [OpCounters; 5],
    unaligned: AtomicU64,
}

impl Counters {
    pub(super) fn begin(&self, op: Op) {
        self.ops[slot(op)].begun.fetch_add(1, Relaxed);
    }

    /// The reply of a request may be sent: it is no longer in flight.
    pub(super) fn over(&self, op: Op) {
        self.ops[slot(op)].over.fetch_add(1, Relaxed);
    }

    pub(super) fn end(&self, ended: &Ended) {
        let op = &self.ops[slot(ended.op)];
        op.requests.fetch_add(1, Relaxed);
        if ended.failed {
            op.errors.fetch_add(1, Relaxed);
        } else {
            op.bytes.fetch_add(ended.bytes, Relaxed);
        }
        op.nanos.fetch_add(ended.nanos, Relaxed);
        op.buckets[bucket_of(ended.nanos)].fetch_add(1, Relaxed);
        if ended.unaligned {
            self.unaligned.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn snapshot(&self) -> FrontendCounts {
        let mut counts = FrontendCounts::default();
        for (into, from) in counts.ops.iter_mut().zip(&self.ops) {
            // Read before `begun`, so that the difference is never negative.
            let over = from.over.load(Relaxed);
            into.inflight = from.begun.load(Relaxed).saturating_sub(over);
            into.requests = from.requests.load(Relaxed);
            into.bytes = from.bytes.load(Relaxed);
            into.errors = from.errors.load(Relaxed);
            into.nanos = from.nanos.load(Relaxed);
            for (bucket, live) in into.buckets.iter_mut().zip(&from.buckets) {
                *bucket = live.load(Relaxed);
            }
        }
        counts.unaligned = self.unaligned.load(Relaxed);
        counts
    }
}

/// The counts of clients that are gone.
#[derive(Default)]
pub(super) struct Retired(Mutex<ObservedCounts>);

impl Retired {
    pub(super) fn add(&self, frontend: Frontend, counts: &FrontendCounts) {
        // A reply that its connection did not outlive is not in flight any more.
        let mut counts = *counts;
        for op in &mut counts.ops {
            op.inflight = 0;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(frontend, &counts);
    }

    pub(super) fn snapshot(&self) -> ObservedCounts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, bucket_limit_ns, bucket_of};

    #[test]
    fn every_latency_is_below_its_limit_and_not_below_the_one_before() {
        for nanos in [0, 1, 1023, 1024, 1025, 2047, 2048, 1 << 29, 1 << 30, u64::MAX] {
            let bucket = bucket_of(nanos);
            assert!(bucket_limit_ns(bucket).is_none_or(|limit| nanos < limit), "{nanos}");
            if let Some(before) = bucket.checked_sub(1) {
                assert!(bucket_limit_ns(before).is_some_and(|limit| nanos >= limit), "{nanos}");
            }
        }
        assert_eq!(bucket_limit_ns(BUCKETS - 1), None);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }
}
