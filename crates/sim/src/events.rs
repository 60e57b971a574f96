//! The event loop for stacks of layers, which issue requests of their own to devices. It handles
//! arrivals, completions and deadlines in order of time.
//!
//! What tells the end of a request at once is run by `crate::at_once`.

use onefold_config::Run;
use onefold_ssd::HostStats;
use onefold_units::{Lba, Op};
use onefold_volume::Range;

use crate::SimError;
use crate::control::{Control, Watch};
use crate::cpu::thread_cpu_s;
use crate::load::{Arrival, Load, next_arrival};
use crate::log::{Logged, OnRequest, UnderWay};
use crate::passes::{Passes, Written};
use crate::ran::{Ran, check_measured, rewind};
use crate::request::{Owner, Request};
use crate::series::Recorder;
use crate::stack::{Counted, Ended, Stack};
use crate::tenant::{Tenant, pages_of};
use crate::top::{Stalls, Top};

/// Runs tenants through a stack.
pub(crate) fn run(
    stack: &mut Stack,
    tenants: Vec<Tenant>,
    run: &Run,
    control: &Control<'_>,
) -> Result<(Ran<Counted>, Top), SimError> {
    let mut runner = Runner {
        stack,
        loads: tenants.into_iter().map(Load::new).collect(),
        series: Recorder::new(run.window),
        passes: Passes::new(run),
        under_way: 0,
        cpu_until: 0,
        clock: 0,
        issued: 0,
        warmup: run.warmup,
        at: 0,
        baseline: Counted::default(),
        top: Top::default(),
        on_request: control.on_request,
        details: UnderWay::default(),
    };
    let begin = thread_cpu_s();
    let partial = runner.run(control)?;
    let cpu_s = thread_cpu_s() - begin;
    check_measured(runner.issued, runner.warmup, partial)?;
    let Runner { loads, series, passes, at, baseline, top, .. } = runner;
    let tenants = loads.into_iter().map(Load::finish).collect();
    Ok((Ran { tenants, series, at, baseline, partial, cpu_s, passes }, top))
}

struct Runner<'a> {
    stack: &'a mut Stack,
    loads: Vec<Load>,
    series: Recorder,
    passes: Passes,
    /// Requests of the loads.
    under_way: usize,
    /// Until when the host's CPU works for requests before.
    cpu_until: u64,
    /// Time of the last event: what had to wait for a request to end arrives then.
    clock: u64,
    issued: u64,
    warmup: u64,
    /// When measuring began, and what counters said then.
    at: u64,
    baseline: Counted,
    top: Top,
    /// Who wants to know of each request, and what only they want to know.
    on_request: Option<OnRequest<'a>>,
    details: UnderWay,
}

impl Runner<'_> {
    /// Whether it was interrupted.
    fn run(&mut self, control: &Control<'_>) -> Result<bool, SimError> {
        self.passes.begin(Written::of(self.stack, 0));
        if self.warmup == 0 {
            self.begin_measuring(0);
        }
        let mut watch = Watch::new(control);
        let mut partial = false;
        loop {
            // After an interrupt only what is under way ends.
            let (arrival, more) = if partial { (None, false) } else { self.next_arrival()? };
            let event = self.stack.next_event();
            match (arrival, event) {
                (Some((arrival, now)), event) if event.is_none_or(|event| now <= event) => {
                    self.arrive(&arrival, now)?;
                }
                _ if !more && self.under_way == 0 && !partial && self.begins_again()? => {}
                _ if !more && self.under_way == 0 => {
                    self.stack.finish(self.clock)?;
                    return Ok(partial);
                }
                (_, Some(event)) => {
                    self.clock = self.clock.max(event);
                    self.stack.advance(event)?;
                    self.note(event);
                }
                (_, None) => return Err(SimError::VolumeStuck),
            }
            partial |= watch.ends(self.issued);
        }
    }

    /// All loads are over. Whether there is another pass over traces, which has begun then.
    fn begins_again(&mut self) -> Result<bool, SimError> {
        let written = Written::of(self.stack, self.top.host.write_pages);
        let tenants = self.loads.iter_mut().map(|load| &mut load.tenant);
        if !self.passes.again(written) || !rewind(tenants, &self.passes)? {
            return Ok(false);
        }
        if self.passes.measures_the_last() {
            self.series = self.series.anew();
            self.warmup = self.issued;
            self.begin_measuring(self.clock);
            self.passes.begin(Written::of(self.stack, 0));
        }
        Ok(true)
    }

    /// The next request of the load, when it gets to the stack, and whether there are more.
    fn next_arrival(&mut self) -> Result<(Option<(Arrival, u64)>, bool), SimError> {
        let (arrival, more) = next_arrival(&mut self.loads)?;
        let arrival = arrival.filter(|_| self.under_way < self.stack.caps().requests_max);
        let arrival = arrival.map(|arrival| {
            let Arrival { load, asked, issued } = &arrival;
            let offset = asked.offset + self.loads[*load].tenant.base;
            let busy = self.stack.busy_ns(blocks_of(asked.op, offset, asked.len.into()));
            let now = (issued.max(&self.cpu_until) + busy).max(self.clock);
            (arrival, now)
        });
        Ok((arrival, more))
    }

    /// Takes a request to the top of the stack.
    fn arrive(&mut self, arrival: &Arrival, now: u64) -> Result<(), SimError> {
        let Arrival { load, asked, issued } = arrival;
        self.cpu_until = now;
        let one = &mut self.loads[*load];
        let (offset, len) = (asked.offset + one.tenant.base, u64::from(asked.len));
        let steps = self.stack.steps(self.issued, asked.op, offset, len)?;
        one.began(self.issued, *issued, now);
        let owner = Owner::Load { tenant: *load, number: self.issued };
        let request = Request::new(owner, *issued, (asked.op, asked.fua), steps);
        if self.on_request.is_some() {
            self.details.begins(self.issued, asked.fua, (offset, len));
        }
        self.count(*load, asked.op, offset, len);
        self.issued += 1;
        self.under_way += 1;
        self.stack.enter(self.stack.top_layer(), request, now)?;
        self.note(now);
        if self.issued == self.warmup {
            self.begin_measuring(now);
        } else if self.issued.saturating_sub(self.warmup) == self.series.next() {
            let metrics: Vec<_> = self.loads.iter().map(|load| &load.tenant.metrics).collect();
            self.series.take(now, self.stack, &self.top.host, &metrics);
        }
        Ok(())
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

    /// Notes what ended, and what had to wait.
    fn note(&mut self, now: u64) {
        while let Some((number, stall)) = self.stack.stalls.pop_front() {
            if number >= self.warmup {
                self.top.stalls.add(stall.ns, stall.paced_ns);
            }
        }
        while let Some(ended) = self.stack.ended.pop_front() {
            let Ended { tenant, number, op, issued, delay, failed } = ended;
            self.under_way -= 1;
            self.top.executed += 1;
            self.tell(&ended, now);
            let load = &mut self.loads[tenant];
            load.ended(number, issued, now);
            if number >= self.warmup {
                if failed {
                    load.tenant.failed += 1;
                } else {
                    load.tenant.metrics.record(op, delay, now - issued);
                }
            }
        }
    }

    /// Tells who wants to know of each request.
    fn tell(&mut self, ended: &Ended, now: u64) {
        let Some(tell) = self.on_request else { return };
        let (fua, offset, bytes) = self.details.ends(ended.number);
        if ended.number >= self.warmup {
            tell(&Logged {
                source: None,
                pass: self.passes.done + 1,
                number: ended.number,
                tenant: &self.loads[ended.tenant].tenant.name,
                op: ended.op,
                fua,
                offset,
                bytes,
                issued_ns: ended.issued,
                latency_ns: (!ended.failed).then(|| now - ended.issued),
                delay: ended.delay,
            });
        }
    }

    fn begin_measuring(&mut self, now: u64) {
        (self.at, self.baseline) = (now, self.stack.counted());
        (self.top.host, self.top.stalls) = (HostStats::default(), Stalls::default());
        self.series.begin(now, self.stack, &self.top.host);
    }
}

/// The blocks of a read or a write.
fn blocks_of(op: Op, offset: u64, len: u64) -> Option<Range> {
    let range = Range { lba: Lba::new(offset / 4096), blocks: pages_of(offset, len) };
    matches!(op, Op::Read | Op::Write).then_some(range)
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::{BinaryHeap, VecDeque};

    use onefold_config::{Config, Sources};
    use onefold_nand::Delay;
    use onefold_trace::workload::Workload;
    use onefold_units::{Nanos, Rng};

    use super::*;
    use crate::request::Work;
    use crate::source::Source;
    use crate::stack::Port;
    use crate::stack::layer::{
        Asked, Caps, Done, Layer, Lower, LowerId, Output, Refused, Taken, Why,
    };
    use crate::tenant::Pace;

    /// A layer that refuses every third part at random, and ends the others some time later. What
    /// it refused is tried again every 7 ns.
    struct Moody {
        rng: Rng,
        /// Blocks of a request at most.
        longest: u32,
        /// One of so many parts fails, if any.
        failing: Option<u64>,
        now: u64,
        most: usize,
        ends: BinaryHeap<Reverse<(u64, u64)>>,
        done: VecDeque<u64>,
        /// Changes in the order in which they were taken.
        changes: Vec<Work>,
    }

    impl Moody {
        fn new(seed: u64) -> Self {
            Self {
                rng: Rng::new(seed),
                longest: u32::MAX,
                failing: None,
                now: 0,
                most: 0,
                ends: BinaryHeap::new(),
                done: VecDeque::new(),
                changes: Vec::new(),
            }
        }
    }

    impl Layer for Moody {
        fn caps(&self) -> Caps {
            let (read_max, write_max) = (self.longest, self.longest);
            Caps { read_max, write_max, requests_max: 6, ..Caps::of_blocks(4096) }
        }

        fn submit(&mut self, now: Nanos, tag: u64, work: Work, _: bool) -> Result<Taken, Refused> {
            if self.rng.below(3) == 0 {
                return Err(Refused::Busy);
            }
            let blocks = match work {
                Work::Read(range) => range.blocks,
                Work::Write(range) | Work::Trim(range) => {
                    self.changes.push(work);
                    range.blocks
                }
                Work::Flush => 1,
            };
            self.ends.push(Reverse((now.get() + 10 + self.rng.below(90), tag)));
            self.most = self.most.max(self.ends.len());
            Ok(Taken { blocks, later: true })
        }

        fn turn(&mut self, now: Nanos) {
            self.now = now.get();
        }

        fn due(&self) -> Option<Nanos> {
            let end = self.ends.peek().map(|Reverse((at, _))| *at);
            Some(Nanos::new(end.map_or(self.now + 7, |end| end.min(self.now + 7))))
        }

        fn expire(&mut self, now: Nanos) {
            self.now = now.get();
            while let Some(Reverse((at, tag))) = self.ends.peek().copied()
                && at <= self.now
            {
                self.ends.pop();
                self.done.push_back(tag);
            }
        }

        fn poll(&mut self) -> Option<Output> {
            let tag = self.done.pop_front()?;
            let fails = self.failing.is_some_and(|one| self.rng.below(one) == 0);
            let result = if fails { Err(Why::VolumeFailed) } else { Ok(()) };
            Some(Output::Done(Done { tag, delay: Delay::Host, result }))
        }

        fn completed(&mut self, _: Nanos, _: LowerId, _: Delay, _: bool) {}

        /// It never could go on.
        fn short_ns(&self, now: Nanos) -> u64 {
            now.get()
        }
    }

    /// A layer that passes everything on, as it is, and takes failures for no harm.
    #[derive(Default)]
    struct Passing {
        lower: VecDeque<Lower>,
        tags: Vec<u64>,
        done: VecDeque<Done>,
        failed: u64,
    }

    impl Layer for Passing {
        fn caps(&self) -> Caps {
            Caps::of_blocks(4096)
        }

        fn submit(&mut self, _: Nanos, tag: u64, work: Work, _: bool) -> Result<Taken, Refused> {
            let (what, blocks) = match work {
                Work::Read(range) => (Asked::Read(range), range.blocks),
                Work::Write(range) => (Asked::Write(range, 0), range.blocks),
                Work::Trim(range) => (Asked::Trim(range), range.blocks),
                Work::Flush => (Asked::Flush, 1),
            };
            let id = LowerId(onefold_units::convert::u64_from(self.tags.len()));
            self.tags.push(tag);
            self.lower.push_back(Lower { id, port: 0, what });
            Ok(Taken { blocks, later: true })
        }

        fn turn(&mut self, _: Nanos) {}

        fn due(&self) -> Option<Nanos> {
            None
        }

        fn expire(&mut self, _: Nanos) {}

        fn poll(&mut self) -> Option<Output> {
            let lower = self.lower.pop_front().map(Output::Lower);
            lower.or_else(|| self.done.pop_front().map(Output::Done))
        }

        fn completed(&mut self, _: Nanos, LowerId(id): LowerId, delay: Delay, failed: bool) {
            self.failed += u64::from(failed);
            let tag = self.tags[onefold_units::convert::index64(id)];
            self.done.push_back(Done { tag, delay, result: Ok(()) });
        }
    }

    /// However often parts are refused, changes are taken in the order in which they came, every
    /// request ends, and no more are under way than may be; at the top, and below a layer that
    /// passes everything on.
    #[test]
    fn changes_keep_their_order_whatever_is_refused() -> Result<(), SimError> {
        let config = Config::load(&Sources { preset: Some("s1"), ..Sources::default() })?;
        for (seed, passing) in (0..50).map(|seed| (seed, seed % 2 > 0)) {
            let text = "mix,bs=4KiB,qd=16,requests=300,trim_share=0.1,flush_every=20";
            let load = || {
                let workload =
                    Workload::parse(text).and_then(|load| load.instantiate(1 << 24, seed));
                let source = workload.map(|load| Source::Generator(Box::new(load)));
                source.map_err(|source| SimError::Workload { text: text.into(), source })
            };
            let tenant =
                || load().map(|load| Tenant::new("a".to_owned(), load, Pace::closed(16, 0), 0));
            let moody = Moody::new(seed);
            let mut stack = Stack::default();
            let below = stack.add_layer("moody", Box::new(moody), Vec::new());
            if passing {
                let ports = vec![Port::new(stack.at(below), 0)];
                stack.add_layer("passing", Box::new(Passing::default()), ports);
            }
            let (ran, top) = run(&mut stack, vec![tenant()?], &config.run(), &Control::default())?;
            let moody = stack.layer_at::<Moody>(0).expect("the layer of this test");
            assert_eq!(moody.changes, changes_of(tenant()?)?, "seed {seed}");
            assert_eq!((top.executed, moody.most), (300, 6), "seed {seed}");
            assert_eq!(top.host.requests(), 300);
            if passing {
                continue;
            }
            assert!(top.stalls.requests > 0 && top.stalls.max_ns >= 7);
            assert_eq!(top.stalls.max_paced_ns, 0);
            // What was refused waited for background work, the others for what they were told.
            let writes = ran.tenants[0].metrics.write.summaries();
            assert!(writes.host.count > 0 && writes.background.count > 0);
            assert_eq!(writes.none.count, 0);
        }
        Ok(())
    }

    /// A request to a lower layer of which a part fails ends once, and when its other parts are
    /// over, which are of nobody else then.
    #[test]
    fn requests_below_end_once_whatever_fails() -> Result<(), SimError> {
        let config = Config::load(&Sources { preset: Some("s1"), ..Sources::default() })?;
        let mut failed = 0;
        for seed in 0..50 {
            let text = "mix,bs=32KiB,align=4KiB,qd=16,requests=300,trim_share=0.1";
            let workload = Workload::parse(text).and_then(|load| load.instantiate(1 << 24, seed));
            let source = workload.map(|load| Source::Generator(Box::new(load)));
            let source =
                source.map_err(|source| SimError::Workload { text: text.into(), source })?;
            let tenant = Tenant::new("a".to_owned(), source, Pace::closed(16, 0), 0);
            let mut stack = Stack::default();
            let moody = Moody { longest: 2, failing: Some(10), ..Moody::new(seed) };
            let below = stack.add_layer("moody", Box::new(moody), Vec::new());
            let ports = vec![Port::new(stack.at(below), 0)];
            let top = stack.add_layer("passing", Box::new(Passing::default()), ports);
            let (_, counted) = run(&mut stack, vec![tenant], &config.run(), &Control::default())?;
            assert_eq!(counted.executed, 300, "seed {seed}");
            let passing = stack.layer_at::<Passing>(top).expect("the layer of this test");
            failed += passing.failed;
            let moody = stack.layer_at::<Moody>(below).expect("the layer of this test");
            assert!(moody.ends.is_empty() && moody.done.is_empty(), "seed {seed}");
        }
        assert!(failed > 1_000, "{failed}");
        Ok(())
    }

    /// The changes of a load, in their order.
    fn changes_of(mut tenant: Tenant) -> Result<Vec<Work>, SimError> {
        let mut changes = Vec::new();
        while let Some(asked) = tenant.peek()? {
            let range =
                Range { lba: Lba::new(asked.offset / 4096), blocks: u64::from(asked.len) / 4096 };
            match asked.op {
                Op::Write => changes.push(Work::Write(range)),
                Op::Trim | Op::WriteZeroes => changes.push(Work::Trim(range)),
                Op::Read | Op::Flush => {}
            }
            tenant.next_time(&asked);
            tenant.began(0);
            tenant.take_place(0, 0);
        }
        Ok(changes)
    }
}
