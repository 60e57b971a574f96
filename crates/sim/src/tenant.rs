//! One load on the device: its requests, its pace, its part of the address space, its metrics.

use std::ops::Range;

use onefold_ssd::HostStats;
use onefold_trace::workload::Request;
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Keep, Keeper, Op, PAGE_BYTES, keep};

use crate::SimError;
use crate::checkpoint::CheckpointError;
use crate::control::Control;
use crate::dependencies::{Dependencies, scaled};
use crate::in_flight::InFlight;
use crate::metrics::Metrics;
use crate::source::{BATCH, Source};

/// A request's map entry is prefetched while the one so many places before it is issued. The best of 8, 16 and 32 for fresh
/// writes, measured on a machine whose memory answers after 200 ns.
const LEAD: usize = 16;

/// How a tenant issues requests.
pub(crate) enum Pace {
    /// A new request as soon as one of `depth` is done.
    Closed(InFlight),
    /// At its own times, divided by `speed`; later if it has to wait for others.
    Open { start: u64, speed: f64, outstanding: Outstanding, bound: Bound },
}

/// What requests of an open loop wait for.
pub(crate) enum Bound {
    /// Nothing.
    None,
    /// That fewer than so many are under way.
    Most(usize),
    /// That fewer are under way than when the trace was recorded, itself included.
    Recorded,
    /// What they waited for when the trace was recorded.
    Dependencies(Box<Dependencies>),
}

impl Bound {
    /// How many may be under way with this request, if that is limited.
    pub(crate) fn most(&self, request: &Request) -> Option<usize> {
        match self {
            Self::None | Self::Dependencies(_) => None,
            Self::Most(most) => Some(*most),
            Self::Recorded => request.depth.map(|depth| index(depth.get())),
        }
    }
}

impl Keep for Bound {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        match self {
            Self::Dependencies(dependencies) => dependencies.keep(keeper),
            Self::None | Self::Most(_) | Self::Recorded => {}
        }
    }
}

impl Keep for Pace {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        match self {
            Self::Closed(in_flight) => in_flight.keep(keeper),
            Self::Open { start, speed: _, outstanding, bound } => {
                start.keep(keeper);
                outstanding.keep(keeper);
                bound.keep(keeper);
            }
        }
    }
}

impl Pace {
    /// `depth` requests in flight from `start` on.
    pub(crate) fn closed(depth: u32, start: u64) -> Self {
        Self::Closed(InFlight::new(usize::try_from(depth).unwrap_or(usize::MAX), start))
    }

    /// At times counted from `start`.
    pub(crate) fn open(start: u64, speed: f64, bound: Bound) -> Self {
        Self::Open { start, speed, outstanding: Outstanding::default(), bound }
    }
}

/// The number of requests in flight in an open loop, and its integral over time.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    done: std::collections::BinaryHeap<std::cmp::Reverse<u64>>,
    pub(crate) integral: u128,
    since: u64,
    /// When the last request ended that another one waited for.
    waited: u64,
}

onefold_units::keep!(Outstanding { done, integral, since, waited });

impl Outstanding {
    /// When fewer than `most` are under way.
    fn room(&mut self, most: usize) -> u64 {
        while self.done.len() >= most {
            let Some(std::cmp::Reverse(done)) = self.done.peek().copied() else { break };
            self.accumulate(done);
            self.done.pop();
            self.waited = self.waited.max(done);
        }
        self.waited
    }

    fn advance(&mut self, now: u64) {
        while let Some(&std::cmp::Reverse(done)) = self.done.peek() {
            if done > now {
                break;
            }
            self.accumulate(done);
            self.done.pop();
        }
        self.accumulate(now);
    }

    fn accumulate(&mut self, until: u64) {
        let span = u128::from(until.saturating_sub(self.since));
        self.integral += span * u128::try_from(self.done.len()).unwrap_or(u128::MAX);
        self.since = self.since.max(until);
    }

    fn issue(&mut self, now: u64, done: u64) {
        self.advance(now);
        self.done.push(std::cmp::Reverse(done));
    }

    fn finish(&mut self) {
        self.advance(u64::MAX - 1);
    }
}

/// What requests come to that were issued one after the other.
pub(crate) struct Issued {
    /// When the last one was issued.
    pub(crate) last: u64,
    last_done: u64,
    latency_sum: u128,
}

impl Issued {
    /// None so far, `last` being when the one before them was issued.
    pub(crate) const fn after(last: u64) -> Self {
        Self { last, last_done: 0, latency_sum: 0 }
    }

    /// One was issued at `now` and completes at `done`.
    #[inline]
    pub(crate) fn add(&mut self, now: u64, done: u64) {
        self.last = now;
        self.last_done = self.last_done.max(done);
        self.latency_sum += u128::from(done - now);
    }
}

/// One load.
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) pace: Pace,
    /// First byte of its range.
    pub(crate) base: u64,
    pub(crate) stream: u16,
    pub(crate) weight: u32,
    pub(crate) metrics: Metrics,
    pub(crate) host: HostStats,
    /// Requests issued.
    pub(crate) issued: u64,
    /// Those of earlier passes over its trace.
    passed: u64,
    /// Requests of the measured part that failed.
    pub(crate) failed: u64,
    /// Sum of all latencies, for Little's law.
    pub(crate) latency_sum: u128,
    pub(crate) first_at: Option<u64>,
    pub(crate) last_issue: u64,
    pub(crate) last_done: u64,
    /// Requests in flight, integrated over time, where the run counts them itself.
    pub(crate) counted: Option<u128>,
    batch: [Request; BATCH],
    filled: usize,
    at: usize,
}

keep!(Tenant { source, pace, metrics, host, issued, passed, failed, latency_sum, first_at, last_issue, last_done,
    counted } but { name, base, stream, weight, batch, filled, at });

impl Tenant {
    pub(crate) fn new(name: String, source: Source, pace: Pace, base: u64) -> Self {
        Self {
            name,
            source,
            pace,
            base,
            stream: 0,
            weight: 1,
            metrics: Metrics::new(),
            host: HostStats::default(),
            issued: 0,
            passed: 0,
            failed: 0,
            latency_sum: 0,
            first_at: None,
            last_issue: 0,
            last_done: 0,
            counted: None,
            batch: [Request::EMPTY; BATCH],
            filled: 0,
            at: 0,
        }
    }

    /// Begins its trace again, behind what was done. Whether it has one.
    pub(crate) fn rewind(&mut self) -> Result<bool, SimError> {
        let rewound = self.source.rewind()?;
        if rewound {
            self.passed = self.issued;
        }
        if rewound && let Pace::Open { start, bound, .. } = &mut self.pace {
            *start = self.last_done.max(*start);
            if let Bound::Dependencies(dependencies) = bound {
                **dependencies = Dependencies::default();
            }
        }
        Ok(rewound)
    }

    /// Takes from its source what was issued when its state was kept: sources are not kept, but begin anew.
    pub(crate) fn catch_up(&mut self, control: &Control<'_>) -> Result<(), SimError> {
        let mut left = self.issued - self.passed;
        while left > 0 {
            if self.peek()?.is_none() {
                return Err(CheckpointError::Load.into());
            }
            let taken = (self.filled - self.at).min(index64(left));
            self.at += taken;
            left -= u64_from(taken);
            self.source.passes_by();
            control.go_on()?;
        }
        self.source.caught_up();
        Ok(())
    }

    /// What was measured so far does not count.
    pub(crate) fn forget_measured(&mut self) {
        (self.metrics, self.host, self.failed) = (Metrics::new(), HostStats::default(), 0);
    }

    /// The next request, and whether it is the first of a fresh batch. `None` at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Option<Request>, SimError> {
        if self.at == self.filled {
            self.filled = self.source.fill(&mut self.batch)?;
            self.at = 0;
        }
        Ok(self.batch[..self.filled].get(self.at).copied())
    }

    /// Whether the next request begins a batch.
    #[inline]
    pub(crate) const fn at_batch_start(&self) -> bool {
        self.at == 0
    }

    /// Offsets on the device of the first requests of a batch, which [`Tenant::after`] does not give.
    pub(crate) fn first(&self) -> impl Iterator<Item = u64> + '_ {
        self.batch[..self.filled].iter().take(LEAD).map(|request| request.offset + self.base)
    }

    /// The offset on the device of the request [`LEAD`] places after this one, if it was fetched already.
    #[inline]
    pub(crate) fn after(&self, place: usize) -> Option<u64> {
        let request = self.batch[..self.filled].get(place + LEAD)?;
        Some(request.offset + self.base)
    }

    /// Whether all requests fetched were issued.
    #[inline]
    pub(crate) const fn is_batch_over(&self) -> bool {
        self.at == self.filled
    }

    /// The next request, which [`Tenant::peek`] has seen to.
    #[inline]
    pub(crate) fn due(&self) -> &Request {
        &self.batch[self.at]
    }

    /// When it is issued, where all ends of those before are known.
    #[inline]
    pub(crate) fn due_at(&mut self) -> u64 {
        if let Pace::Closed(in_flight) = &self.pace {
            return in_flight.earliest();
        }
        let request = *self.due();
        self.next_time(&request)
    }

    /// When the next request is issued, where all ends of those before are known.
    pub(crate) fn next_time(&mut self, request: &Request) -> u64 {
        match &mut self.pace {
            Pace::Closed(in_flight) => in_flight.earliest(),
            Pace::Open { outstanding, bound, .. } => {
                let room = bound.most(request).map_or(0, |most| outstanding.room(most));
                self.arrival(request).map_or(self.last_done, |at| room.max(at))
            }
        }
    }

    /// When the next request of an open loop arrives; `None` while what it waits for has not ended.
    pub(crate) fn arrival(&mut self, request: &Request) -> Option<u64> {
        let Pace::Open { start, speed, bound, .. } = &mut self.pace else { return None };
        if let Bound::Dependencies(dependencies) = bound
            && let Some(recorded) = self.source.recorded()
        {
            return dependencies.time(recorded, (*start, *speed));
        }
        let at = request.at.map_or(0, onefold_units::Nanos::get);
        Some(*start + scaled(at, *speed))
    }

    /// Requests that were fetched and can be issued one after the other, at most so many. In an open loop it is one: when
    /// the next is due may depend on what became of it.
    pub(crate) fn upcoming_places(&self, most: u64) -> Range<usize> {
        let most = if matches!(self.pace, Pace::Closed(_)) { most } else { 1 };
        self.at..self.filled.min(self.at.saturating_add(index64(most)))
    }

    /// Requests are about to be issued, none before `time`.
    pub(crate) fn begin(&mut self, time: u64) {
        if self.first_at.is_none() {
            self.first_at = Some(self.due_at().max(time));
        }
    }

    /// A request that was fetched.
    #[inline]
    pub(crate) fn fetched(&self, place: usize) -> &Request {
        &self.batch[place]
    }

    /// A request that was issued at `now` is in flight until `done`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the simulator's loop")]
    pub(crate) fn take_place(&mut self, now: u64, done: u64) {
        match &mut self.pace {
            Pace::Closed(in_flight) => in_flight.replace_earliest(done),
            Pace::Open { .. } => self.issued_openly(now, done),
        }
    }

    /// The next `count` requests were issued.
    pub(crate) fn issued(&mut self, count: usize, issued: &Issued) {
        self.at += count;
        self.issued += u64_from(count);
        self.last_issue = issued.last;
        self.latency_sum += issued.latency_sum;
        self.last_done = self.last_done.max(issued.last_done);
    }

    #[inline(never)]
    fn issued_openly(&mut self, now: u64, done: u64) {
        let Pace::Open { start, speed, outstanding, bound } = &mut self.pace else { return };
        if let Bound::Dependencies(dependencies) = bound {
            dependencies.send(None, now, (*start, *speed));
            dependencies.ended(done);
        }
        outstanding.issue(now, done);
    }

    /// The next request was issued at `now`.
    #[inline]
    pub(crate) fn began(&mut self, now: u64) {
        self.at += 1;
        self.issued += 1;
        if self.first_at.is_none() {
            self.first_at = Some(now);
        }
        self.last_issue = now;
    }

    /// A request that was issued at `began` completed at `done`.
    #[inline]
    pub(crate) fn ended(&mut self, began: u64, done: u64) {
        self.latency_sum += u128::from(done - began);
        self.last_done = self.last_done.max(done);
    }

    /// The load asked for this, in the measured part.
    pub(crate) fn count(&mut self, op: Op, offset: u64, len: u64) {
        self.host.count(op, pages_of(offset, len));
    }

    /// The load asked for a remap of so many bytes, in the measured part.
    pub(crate) const fn count_remap(&mut self, len: u64) {
        self.host.count_remap(len / PAGE_BYTES);
    }

    /// Requests in flight, integrated over time from the first request to the last completion. This
    /// is counted without looking at latencies, so that Little's law says something.
    pub(crate) fn in_flight_integral(&mut self, depth: u64) -> u128 {
        let first = self.first_at.unwrap_or(0);
        if let Some(counted) = self.counted {
            return counted;
        }
        match &mut self.pace {
            Pace::Closed(in_flight) => {
                let full = u128::from(depth) * u128::from(self.last_issue - first);
                full + in_flight.remaining_after(self.last_issue)
            }
            Pace::Open { outstanding, .. } => {
                outstanding.finish();
                outstanding.integral
            }
        }
    }
}

/// Pages that a request touches.
pub(crate) const fn pages_of(offset: u64, len: u64) -> u64 {
    if len == 0 { 0 } else { (offset + len).div_ceil(PAGE_BYTES) - offset / PAGE_BYTES }
}
