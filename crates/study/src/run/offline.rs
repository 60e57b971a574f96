//! Bounds of policies that know the future: the requests are kept, then replayed once per size.

use std::thread;

use onefold_buffer::offline::{
    NextUse, NextWrite, Request, min_by_request, min_bypass_by_request, min_w,
};
use onefold_buffer::{Counts, Req, Stats};
use onefold_config::size_text;
use onefold_units::convert::{narrow, u64_from};
use onefold_units::{Lpn, Op};

use crate::Row;
use crate::cpu::thread_cpu;
use crate::file::Bound;
use crate::latency::{Clocks, Timer};
use crate::stream::Block;

/// Bytes of memory of one request: itself, and its part in the table of next uses.
const REQUEST_BYTES: u64 = 36;
/// Bytes of memory per entry of the device while that table is made.
const ENTRY_BYTES: u64 = 4;
/// Who the requests of the warm-up belong to: bounds decide nothing by tenant, so that their numbers
/// can be told from those that count.
const WARM_UP: u8 = u8::MAX;

/// The requests of a workload, as long as they fit into memory.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Only this tenant's.
    only: Option<u8>,
    requests: Vec<Request>,
    /// Requests seen that were to be kept.
    seen: u64,
    most: u64,
    limit_bytes: u64,
    entries: u32,
}

impl Kept {
    /// Nothing yet of a workload on a device of `entries` entries.
    pub(super) fn new(only: Option<u8>, entries: u32, limit_bytes: u64) -> Self {
        let rest = limit_bytes.saturating_sub(u64::from(entries) * ENTRY_BYTES);
        let most = (rest / REQUEST_BYTES).min(u64::from(u32::MAX - 1));
        Self { only, requests: Vec::new(), seen: 0, most, limit_bytes, entries }
    }

    /// Whether it keeps the same requests as another one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.only == other.only
    }

    /// Whether it keeps what a bound needs.
    pub(super) const fn is_for(&self, bound: Bound) -> bool {
        self.only.is_some() == bound.is_of_target()
    }

    pub(super) fn add(&mut self, block: &Block, warming: bool) {
        let all = block.requests().iter();
        for r in all.filter(|r| self.only.is_none_or(|only| only == r.tenant) && r.op != Op::Flush)
        {
            self.seen += 1;
            if self.seen <= self.most {
                let tenant = if warming { WARM_UP } else { r.tenant };
                self.requests.push(Request { op: r.op, tenant, lpn: r.lpn, n: r.n });
            }
        }
        if self.seen > self.most {
            self.requests = Vec::new();
        }
    }

    /// Why the bounds cannot be computed, if they cannot.
    fn excess(&self) -> Option<String> {
        if self.seen <= self.most {
            return None;
        }
        let needed = self.seen * REQUEST_BYTES + u64::from(self.entries) * ENTRY_BYTES;
        Some(format!(
            "the bound needs all {} requests in memory, {}, expected at most {}; raise --memory, or \
             shorten the workload with --scale",
            self.seen,
            size_text(needed),
            size_text(self.limit_bytes)
        ))
    }
}

/// How bounds are computed.
#[derive(Clone, Copy)]
pub(super) struct Replays<'a> {
    pub(super) entry_bytes: u32,
    pub(super) threads: usize,
    pub(super) timers: &'a [Timer],
}

impl Replays<'_> {
    /// Fills in the rows of one bound.
    pub(super) fn compute(&self, kept: &Kept, bound: Bound, rows: &mut [Row]) {
        if let Some(excess) = kept.excess() {
            for row in rows {
                row.error = Some(excess.clone());
            }
            return;
        }
        let requests = &kept.requests;
        match bound {
            // Its reads are free, so its requests have no times.
            Bound::MinW => {
                let next = NextWrite::new(requests);
                self.each(rows, requests, |slots, _| min_w(&next, slots));
            }
            Bound::MinBypass => {
                let next = NextUse::new(requests);
                self.each(rows, requests, |slots, add| min_bypass_by_request(&next, slots, add));
            }
            // `alone` is LRU and never comes here.
            Bound::Min | Bound::MinAlone | Bound::Alone => {
                let next = NextUse::new(requests);
                self.each(rows, requests, |slots, add| min_by_request(&next, slots, add));
            }
        }
    }

    /// Replays the requests for every row, several at a time.
    fn each(
        &self,
        rows: &mut [Row],
        requests: &[Request],
        replay: impl Fn(u32, &mut dyn FnMut(&Request, Counts)) -> Stats + Sync,
    ) {
        let counted = u64_from(requests.iter().filter(|r| r.tenant != WARM_UP).count());
        for together in rows.chunks_mut(self.threads.max(1)) {
            thread::scope(|scope| {
                for row in together {
                    scope.spawn(|| {
                        let start = thread_cpu();
                        row.slots = narrow(row.size_bytes / u64::from(self.entry_bytes));
                        row.requests = counted;
                        let mut clocks = Clocks::new(self.timers, row.tenants.len());
                        let stats = replay(row.slots, &mut |r, counts| clocks.add(&req(r), counts));
                        clocks.fill(row, &stats, self.entry_bytes);
                        row.cpu_s = thread_cpu().saturating_sub(start).as_secs_f64();
                    });
                }
            });
        }
    }
}

fn req(r: &Request) -> Req {
    Req { tenant: r.tenant, ..Req::new(r.op, Lpn::new(r.lpn), r.n) }
}
