//! The event loop for layers that issue requests of their own to devices, as volumes do. It handles
//! arrivals, completions and deadlines in order of time.
//!
//! A request is taken in parts, which layers may refuse while they are busy. It waits then, and is
//! tried again after each event; behind a change that waits no other change is taken. What tells
//! the end of a request at once is run by `crate::at_once`.

use std::collections::VecDeque;

use onefold_config::Run;
use onefold_nand::Delay;
use onefold_ssd::HostStats;
use onefold_units::Op;
use onefold_units::convert::{index64, u64_from};

use crate::SimError;
use crate::control::{Control, Watch};
use crate::cpu::thread_cpu_s;
use crate::load::{Arrival, Load, next_arrival};
use crate::ran::{Ran, check_measured};
use crate::request::{Request, Steps, Work};
use crate::series::{Recorder, Windowed};
use crate::tenant::{Tenant, pages_of};

/// Layers above devices. Times are those of the run.
///
/// After any number of calls of [`Layers::submit`] comes one of [`Layers::turn`]. That and
/// [`Layers::advance`] let everything go on that can; then [`Layers::poll_ended`] is called until
/// it gives nothing.
pub(crate) trait Layers {
    /// What they and their devices count.
    type Counters: Default;
    /// Why a request failed.
    type Failure;

    fn counters(&self) -> Self::Counters;

    fn device(&self) -> &impl Windowed;

    /// Requests that may be under way; what comes then waits for one to end.
    fn requests_max(&self) -> usize {
        usize::MAX
    }

    /// Blocks of a read and of a write at most.
    fn blocks_max(&self) -> (u32, u32) {
        (u32::MAX, u32::MAX)
    }

    /// What a request consists of.
    ///
    /// # Errors
    /// It cannot be taken at these bytes.
    fn steps(&self, request: u64, op: Op, offset: u64, len: u64) -> Result<Steps, SimError>;

    /// CPU time of the host for a request, in ns.
    fn busy_ns(&self, _op: Op, _offset: u64, _len: u64) -> u64 {
        0
    }

    /// Takes a part of a request, which they know as `tag`.
    fn submit(
        &mut self,
        now: u64,
        tag: u64,
        request: &Request,
        work: Work,
    ) -> Result<Taken, Refused>;

    /// Lets everything go on.
    fn turn(&mut self, now: u64);

    /// When something happens by itself next.
    fn next_event(&self) -> Option<u64>;

    /// Does what happens at `now`, the time of the next event.
    fn advance(&mut self, now: u64);

    /// A part of a request that ended.
    fn poll_ended(&mut self) -> Option<Ended<Self::Failure>>;

    /// The error of a request that failed.
    fn error(failure: Self::Failure, request: u64, what: &'static str) -> SimError;

    /// Time of the run until `now` in which they could not have gone on, in ns.
    fn short_ns(&self, _now: u64) -> u64 {
        0
    }

    /// No request comes any more.
    fn finish(&mut self, _now: u64) {}
}

/// So many blocks of a request were taken.
pub(crate) struct Taken {
    pub(crate) blocks: u64,
    /// Whether [`Layers::poll_ended`] will tell its end; if not, it is over.
    pub(crate) later: bool,
}

/// Nothing of a request was taken.
pub(crate) enum Refused {
    /// It is to be tried again when something has happened.
    Busy,
    Never(SimError),
}

/// A part of a request that ended: the tag that it was given, and the delay it met. A tag that no
/// request has is that of one that nobody waits for.
pub(crate) struct Ended<F> {
    pub(crate) tag: u64,
    pub(crate) delay: Delay,
    pub(crate) result: Result<(), F>,
}

/// Requests that were not taken at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stalls {
    pub(crate) requests: u64,
    pub(crate) ns: u64,
    pub(crate) max_ns: u64,
    /// Without the time of [`Layers::short_ns`].
    pub(crate) max_paced_ns: u64,
}

/// What is counted at the top of the layers.
#[derive(Default)]
pub(crate) struct Top {
    /// What the load asked for in the measured part.
    pub(crate) host: HostStats,
    pub(crate) stalls: Stalls,
    /// Requests that ended, those before the measured part included.
    pub(crate) executed: u64,
}

/// Runs tenants through layers.
pub(crate) fn run<L: Layers>(
    layers: &mut L,
    tenants: Vec<Tenant>,
    run: &Run,
    control: &Control<'_>,
) -> Result<(Ran<L::Counters>, Top), SimError> {
    let mut runner = Runner {
        layers,
        loads: tenants.into_iter().map(Load::new).collect(),
        series: Recorder::new(run.window),
        active: Vec::new(),
        free: Vec::new(),
        waiting: VecDeque::new(),
        cpu_until: 0,
        clock: 0,
        issued: 0,
        warmup: run.warmup,
        at: 0,
        baseline: L::Counters::default(),
        top: Top::default(),
    };
    let begin = thread_cpu_s();
    let partial = runner.run(control)?;
    let cpu_s = thread_cpu_s() - begin;
    check_measured(runner.issued, runner.warmup, partial)?;
    let Runner { loads, series, at, baseline, top, .. } = runner;
    let tenants = loads.into_iter().map(Load::finish).collect();
    Ok((Ran { tenants, series, at, baseline, partial, cpu_s }, top))
}

struct Runner<'a, L: Layers> {
    layers: &'a mut L,
    loads: Vec<Load>,
    series: Recorder,
    /// Requests under way; the place is the tag that layers know them by.
    active: Vec<Option<Request>>,
    free: Vec<usize>,
    /// Requests that were refused, in their order.
    waiting: VecDeque<usize>,
    /// Until when the host's CPU works for requests before.
    cpu_until: u64,
    /// Time of the last event: what had to wait for a request to end arrives then.
    clock: u64,
    issued: u64,
    warmup: u64,
    /// When measuring began, and what counters said then.
    at: u64,
    baseline: L::Counters,
    top: Top,
}

impl<L: Layers> Runner<'_, L> {
    /// Whether it was interrupted.
    fn run(&mut self, control: &Control<'_>) -> Result<bool, SimError> {
        if self.warmup == 0 {
            self.begin_measuring(0);
        }
        let mut watch = Watch::new(control);
        let mut partial = false;
        loop {
            // After an interrupt only what is under way ends.
            let (arrival, more) = if partial { (None, false) } else { self.next_arrival()? };
            let event = self.layers.next_event();
            match (arrival, event) {
                (Some((arrival, now)), event) if event.is_none_or(|event| now <= event) => {
                    self.arrive(&arrival, now)?;
                }
                _ if !more && self.under_way() == 0 => {
                    self.layers.finish(self.clock);
                    return Ok(partial);
                }
                (_, Some(event)) => {
                    self.clock = self.clock.max(event);
                    self.layers.advance(event);
                    self.settle(event)?;
                    self.retry(event)?;
                }
                (_, None) => return Err(SimError::VolumeStuck),
            }
            partial |= watch.ends(self.issued);
        }
    }

    fn under_way(&self) -> usize {
        self.active.len() - self.free.len()
    }

    /// The next request of the load, when it gets to the layers, and whether there are more.
    fn next_arrival(&mut self) -> Result<(Option<(Arrival, u64)>, bool), SimError> {
        let (arrival, more) = next_arrival(&mut self.loads)?;
        let arrival = arrival.filter(|_| self.under_way() < self.layers.requests_max());
        let arrival = arrival.map(|arrival| {
            let Arrival { load, asked, issued } = &arrival;
            let offset = asked.offset + self.loads[*load].tenant.base;
            let busy = self.layers.busy_ns(asked.op, offset, asked.len.into());
            let now = (issued.max(&self.cpu_until) + busy).max(self.clock);
            (arrival, now)
        });
        Ok((arrival, more))
    }

    /// Takes a request to the layers.
    fn arrive(&mut self, arrival: &Arrival, now: u64) -> Result<(), SimError> {
        let Arrival { load, asked, issued } = arrival;
        self.cpu_until = now;
        let one = &mut self.loads[*load];
        let (offset, len) = (asked.offset + one.tenant.base, u64::from(asked.len));
        let steps = self.layers.steps(self.issued, asked.op, offset, len)?;
        one.began(*issued, now);
        let request = Request::new(*load, self.issued, *issued, asked, steps);
        self.count(*load, asked.op, offset, len);
        self.issued += 1;
        let tag = self.free.pop().unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() - 1
        });
        self.active[tag] = Some(request);
        let behind = request.is_change() && self.waiting.iter().any(|tag| self.is_change(*tag));
        if behind || !self.go_on(tag, now)? {
            self.refuse(tag, now);
        }
        self.layers.turn(now);
        self.settle(now)?;
        if self.issued == self.warmup {
            self.begin_measuring(now);
        } else if self.issued.saturating_sub(self.warmup) == self.series.next() {
            let metrics: Vec<_> = self.loads.iter().map(|load| &load.tenant.metrics).collect();
            self.series.take(now, self.layers.device(), &self.top.host, &metrics);
        }
        Ok(())
    }

    fn is_change(&self, tag: usize) -> bool {
        self.active[tag].as_ref().is_some_and(Request::is_change)
    }

    fn count(&mut self, load: usize, op: Op, offset: u64, len: u64) {
        if self.issued < self.warmup {
            return;
        }
        self.top.host.count(op, pages_of(offset, len));
        if self.loads.len() > 1 {
            self.loads[load].tenant.count(op, offset, len);
        }
    }

    fn refuse(&mut self, tag: usize, now: u64) {
        let Some(request) = &mut self.active[tag] else { return };
        request.refused.get_or_insert_with(|| (now, self.layers.short_ns(now)));
        self.waiting.push_back(tag);
    }

    /// Asks for what is left of a request. `false` if it was refused: try again later.
    fn go_on(&mut self, tag: usize, now: u64) -> Result<bool, SimError> {
        let Some(mut request) = self.active[tag] else { return Ok(true) };
        let mut taken = true;
        while let Some(work) = request.next(self.layers.blocks_max()) {
            match self.layers.submit(now, u64_from(tag), &request, work) {
                Ok(Taken { blocks, later }) => {
                    request.took(blocks);
                    request.outstanding += u32::from(later);
                }
                Err(Refused::Busy) => {
                    taken = false;
                    break;
                }
                Err(Refused::Never(error)) => return Err(error),
            }
        }
        if taken && let Some((since, short)) = request.refused.take() {
            request.delay = Delay::Background;
            let paced = now - since - (self.layers.short_ns(now) - short);
            self.count_stall(request.number, now - since, paced);
        }
        let over = request.is_over();
        self.active[tag] = Some(request);
        if over {
            self.end(tag, now);
        }
        Ok(taken)
    }

    /// A request waited for `ns`, of which `paced_ns` while the layers could have gone on.
    fn count_stall(&mut self, number: u64, ns: u64, paced_ns: u64) {
        if number >= self.warmup {
            let stalls = &mut self.top.stalls;
            stalls.requests += 1;
            stalls.ns += ns;
            stalls.max_ns = stalls.max_ns.max(ns);
            stalls.max_paced_ns = stalls.max_paced_ns.max(paced_ns);
        }
    }

    /// Notes what ended.
    fn settle(&mut self, now: u64) -> Result<(), SimError> {
        while let Some(Ended { tag, delay, result }) = self.layers.poll_ended() {
            let tag = index64(tag);
            let request = self.active.get_mut(tag).and_then(Option::as_mut);
            if let Err(failure) = result {
                let (number, what) =
                    request.map_or((0, "write"), |one| (one.number, one.op.name()));
                return Err(L::error(failure, number, what));
            }
            let Some(request) = request else { continue };
            request.outstanding -= 1;
            request.delay = request.delay.max(delay);
            if request.outstanding > 0 || request.refused.is_some() {
                continue;
            }
            if request.is_over() {
                self.end(tag, now);
            } else if !self.go_on(tag, now)? {
                self.refuse(tag, now);
            }
        }
        Ok(())
    }

    /// Tries again what was refused, in its order: behind a change that is refused again, no other
    /// one is taken.
    fn retry(&mut self, now: u64) -> Result<(), SimError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut refused = false;
        for _ in 0..self.waiting.len() {
            let Some(tag) = self.waiting.pop_front() else { break };
            let change = self.is_change(tag);
            if (change && refused) || !self.go_on(tag, now)? {
                refused |= change;
                self.waiting.push_back(tag);
            }
        }
        self.layers.turn(now);
        self.settle(now)
    }

    fn end(&mut self, tag: usize, now: u64) {
        let Some(request) = self.active[tag].take() else { return };
        self.free.push(tag);
        self.top.executed += 1;
        let load = &mut self.loads[request.tenant];
        load.ended(request.issued, now);
        if request.number >= self.warmup {
            load.tenant.metrics.record(request.op, request.delay, now - request.issued);
        }
    }

    fn begin_measuring(&mut self, now: u64) {
        (self.at, self.baseline) = (now, self.layers.counters());
        (self.top.host, self.top.stalls) = (HostStats::default(), Stalls::default());
        self.series.begin(now, self.layers.device(), &self.top.host);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use onefold_config::{Config, Sources};
    use onefold_trace::workload::Workload;
    use onefold_units::{CauseCounts, Rng};

    use super::*;
    use crate::request::whole_step_of;
    use crate::source::Source;
    use crate::tenant::Pace;

    /// Layers that refuse every third part at random, and end the others some time later.
    struct Moody {
        rng: Rng,
        now: u64,
        under_way: usize,
        most: usize,
        ends: BinaryHeap<std::cmp::Reverse<(u64, u64)>>,
        ended: VecDeque<u64>,
        /// Numbers of changes in the order in which they were taken.
        changes: Vec<u64>,
    }

    impl Windowed for Moody {
        fn programs(&self) -> CauseCounts {
            CauseCounts::default()
        }

        fn free(&self) -> u32 {
            0
        }
    }

    impl Layers for Moody {
        type Counters = ();
        type Failure = ();

        fn counters(&self) {}

        fn device(&self) -> &impl Windowed {
            self
        }

        fn requests_max(&self) -> usize {
            6
        }

        fn steps(&self, _: u64, op: Op, offset: u64, len: u64) -> Result<Steps, SimError> {
            Ok(whole_step_of(op, offset, len))
        }

        fn submit(
            &mut self,
            now: u64,
            tag: u64,
            request: &Request,
            work: Work,
        ) -> Result<Taken, Refused> {
            if self.rng.below(3) == 0 {
                return Err(Refused::Busy);
            }
            if request.is_change() {
                self.changes.push(request.number);
            }
            self.under_way += 1;
            self.most = self.most.max(self.under_way);
            self.ends.push(std::cmp::Reverse((now + 10 + self.rng.below(90), tag)));
            let blocks = match work {
                Work::Read(range) | Work::Write(range) | Work::Trim(range) => range.blocks,
                Work::Flush => 1,
            };
            Ok(Taken { blocks, later: true })
        }

        fn turn(&mut self, now: u64) {
            self.now = now;
        }

        /// What it refused is tried again every 7 ns.
        fn next_event(&self) -> Option<u64> {
            let end = self.ends.peek().map(|std::cmp::Reverse((at, _))| *at);
            Some(end.map_or(self.now + 7, |end| end.min(self.now + 7)))
        }

        fn advance(&mut self, now: u64) {
            self.now = now;
            while let Some(std::cmp::Reverse((at, tag))) = self.ends.peek().copied()
                && at <= now
            {
                self.ends.pop();
                self.under_way -= 1;
                self.ended.push_back(tag);
            }
        }

        fn poll_ended(&mut self) -> Option<Ended<()>> {
            let tag = self.ended.pop_front()?;
            Some(Ended { tag, delay: Delay::Host, result: Ok(()) })
        }

        fn error((): (), _: u64, _: &'static str) -> SimError {
            SimError::VolumeFailed
        }

        /// They never could.
        fn short_ns(&self, now: u64) -> u64 {
            now
        }
    }

    /// However often parts are refused, changes are taken in the order in which they came, every
    /// request ends, and no more are under way than may be.
    #[test]
    fn changes_keep_their_order_whatever_is_refused() -> Result<(), SimError> {
        let config = Config::load(&Sources { file: None, preset: Some("s1"), sets: &[] })?;
        for seed in 0..50 {
            let text = "mix,bs=4KiB,qd=16,requests=300,trim_share=0.1,flush_every=20";
            let workload = Workload::parse(text).and_then(|load| load.instantiate(1 << 24, seed));
            let source = workload.map(|load| Source::Generator(Box::new(load)));
            let source =
                source.map_err(|source| SimError::Workload { text: text.into(), source })?;
            let tenant = Tenant::new("a".to_owned(), source, Pace::closed(16, 0), 0);
            let mut layers = Moody {
                rng: Rng::new(seed),
                now: 0,
                under_way: 0,
                most: 0,
                ends: BinaryHeap::new(),
                ended: VecDeque::new(),
                changes: Vec::new(),
            };
            let (ran, top) = run(&mut layers, vec![tenant], &config.run(), &Control::default())?;
            assert!(layers.changes.is_sorted(), "{:?}", layers.changes);
            assert_eq!((top.executed, layers.most), (300, 6), "seed {seed}");
            assert!(top.stalls.requests > 0 && top.stalls.max_ns >= 7);
            assert_eq!(top.stalls.max_paced_ns, 0);
            assert_eq!(top.host.requests(), 300);
            // What was refused waited for background work, the others for what they were told.
            let writes = ran.tenants[0].metrics.write.summaries();
            assert!(writes.host.count > 0 && writes.background.count > 0);
            assert_eq!(writes.none.count, 0);
        }
        Ok(())
    }
}
