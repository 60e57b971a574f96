//! The run of a load on what tells at once when each request is over: requests of all tenants in
//! order of time.

use onefold_config::Run;
use onefold_nand::Delay;
use onefold_ssd::{Command, Completion, HostStats};
use onefold_trace::workload::RemapFrom;
use onefold_units::convert::u64_from;
use onefold_units::{Keep, Keeper, Nanos, Op};

use crate::SimError;
use crate::checkpoint::Kept;
use crate::control::{Control, Pause, Watch};
use crate::cpu::thread_cpu_s;
use crate::log::{Logged, OnRequest};
use crate::passes::Written;
use crate::ran::{Ran, check_measured};
use crate::series::Windowed;
use crate::source::Source;
use crate::tenant::{Issued, Tenant};

/// What tells at once when a request is over.
pub(crate) trait AtOnce {
    /// What it counts.
    type Counters: Default;
    /// Why a request failed.
    type Error;

    fn device(&self) -> &impl Windowed;

    /// What the load asked for so far.
    fn host(&self) -> &HostStats;

    fn counters(&self) -> Self::Counters;

    /// Begins to load what a request at this byte will need.
    fn prefetch(&self, _offset: u64) {}

    /// Carries out a request of a load.
    fn submit(
        &mut self,
        now: Nanos,
        command: &Command,
        source: &mut Source,
    ) -> Result<Completion, Self::Error>;

    /// Carries out a remap of a load: the range of `command` is to hold what `from` holds, in bytes of
    /// the device. Only asked of a device whose sources have remaps (`Gathered::remap_unit`).
    fn remap(
        &mut self,
        _now: Nanos,
        command: &Command,
        from: RemapFrom,
    ) -> Result<Completion, Self::Error> {
        unreachable!("no source makes remaps for this device: {command:?} from {from:?}")
    }

    /// Whether the host writes the range of a remap instead of asking for it.
    fn writes_instead(&self, _from: RemapFrom) -> bool {
        false
    }

    /// Writes its state and that of counters it gave before, or takes them in place.
    fn keep(&mut self, _baseline: &mut Self::Counters, keeper: &mut Keeper<'_>) {
        keeper.unkept("this device");
    }

    /// Whether only this request failed, as flash could not be read or is not written any more: the load goes on.
    fn fails_alone(error: &Self::Error) -> bool;

    /// The error of a request that ends the run, by its number among all requests.
    fn error(error: Self::Error, number: u64, command: &Command) -> SimError;
}

/// Runs tenants on it, and gives it back. Goes on from the state in `checkpoint`, if there is one.
pub(crate) fn run<D: AtOnce>(
    device: D,
    tenants: Vec<Tenant>,
    run: &Run,
    checkpoint: Option<Kept<'_>>,
    control: &Control<'_>,
) -> Result<(D, Ran<D::Counters>), SimError> {
    let ran = Ran::new(tenants, run);
    let (warmup, began_cpu_s) = (run.warmup, thread_cpu_s());
    let mut runner = Runner { device, ran, warmup, done: 0, last_time: 0, began_cpu_s, checkpoint };
    runner.run(control)?;
    check_measured(runner.done, runner.warmup, runner.ran.partial)?;
    let cpu_s = runner.cpu_s();
    Ok((runner.device, Ran { cpu_s, ..runner.ran }))
}

struct Runner<'c, D: AtOnce> {
    device: D,
    ran: Ran<D::Counters>,
    warmup: u64,
    /// Requests done, warm-up included.
    done: u64,
    last_time: u64,
    /// When the run began, in CPU time; earlier by what it took before it was stopped.
    began_cpu_s: f64,
    /// Where the state is kept, and read from if there is one.
    checkpoint: Option<Kept<'c>>,
}

impl<D: AtOnce> Keep for Runner<'_, D> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let mut cpu_s = self.cpu_s();
        let Self { device, ran, warmup, done, last_time, began_cpu_s, checkpoint: _ } = self;
        cpu_s.keep(keeper);
        *began_cpu_s = thread_cpu_s() - cpu_s;
        warmup.keep(keeper);
        done.keep(keeper);
        last_time.keep(keeper);
        let Ran { tenants, series, at, baseline, partial: _, cpu_s: _, passes } = ran;
        keeper.each(tenants);
        series.keep(keeper);
        at.keep(keeper);
        passes.keep(keeper);
        device.keep(baseline, keeper);
    }
}

impl<D: AtOnce> Runner<'_, D> {
    fn run(&mut self, control: &Control<'_>) -> Result<(), SimError> {
        if !self.goes_on(control)? {
            self.ran.passes.begin(self.written());
            if self.warmup == 0 {
                self.begin_measuring();
            }
            // Early, so that what cannot be kept is told before anything took its time.
            self.save()?;
        }
        let mut watch = Watch::after(self.done, control);
        while !self.ran.partial {
            match self.turn()? {
                Some(tenant) => self.take_turn(tenant, &mut watch, control.on_request)?,
                None if self.begins_again()? => {}
                None => break,
            }
        }
        Ok(())
    }

    /// CPU seconds so far.
    fn cpu_s(&self) -> f64 {
        thread_cpu_s() - self.began_cpu_s
    }

    /// Takes the state that was kept. Whether there is one.
    fn goes_on(&mut self, control: &Control<'_>) -> Result<bool, SimError> {
        let Some(mut kept) = self.checkpoint.take() else { return Ok(false) };
        let goes_on = kept.load(self)?;
        if goes_on {
            if let Some(say) = control.say {
                say(&format!("goes on from {} after {} requests", kept.name(), self.done));
            }
            self.ran.tenants.iter_mut().try_for_each(|tenant| tenant.catch_up(control))?;
        }
        self.checkpoint = Some(kept);
        Ok(goes_on)
    }

    /// Keeps the state, if that is asked.
    fn save(&mut self) -> Result<(), SimError> {
        let Some(kept) = self.checkpoint.take() else { return Ok(()) };
        kept.save(self)?;
        self.checkpoint = Some(kept);
        Ok(())
    }

    fn written(&self) -> Written {
        Written::of(self.device.device(), self.device.host().write_pages)
    }

    /// All loads are over. Whether there is another pass over traces, which has begun then.
    fn begins_again(&mut self) -> Result<bool, SimError> {
        let written = self.written();
        if !self.ran.passes.again(written) || !self.ran.rewind()? {
            return Ok(false);
        }
        if self.ran.passes.measures_the_last() {
            self.warmup = self.done;
            self.begin_measuring();
        }
        Ok(true)
    }

    /// The tenant whose turn it is: earliest first, then the one that had least of its share.
    fn turn(&mut self) -> Result<Option<usize>, SimError> {
        let mut best: Option<(usize, u64, u64)> = None;
        let several = self.ran.tenants.len() > 1;
        for (at, tenant) in self.ran.tenants.iter_mut().enumerate() {
            let Some(request) = tenant.peek()? else { continue };
            if tenant.at_batch_start() {
                tenant.first().for_each(|offset| self.device.prefetch(offset));
            }
            if !several {
                return Ok(Some(at));
            }
            let time = tenant.next_time(&request);
            let share = tenant.issued / u64::from(tenant.weight);
            if best.is_none_or(|(_, first, least)| (time, share) < (first, least)) {
                best = Some((at, time, share));
            }
        }
        Ok(best.map(|(at, ..)| at))
    }

    /// Issues the next request of a tenant, or, if there is no other, all of its batch.
    fn take_turn(
        &mut self,
        tenant: usize,
        watch: &mut Watch<'_, '_>,
        on_request: Option<OnRequest<'_>>,
    ) -> Result<(), SimError> {
        let is_alone = self.ran.tenants.len() == 1;
        loop {
            let most = if is_alone { self.undisturbed(watch) } else { 1 };
            self.issue(tenant, most, on_request)?;
            self.note_done();
            if let Some(pause) = watch.pauses(self.done) {
                self.save()?;
                self.ran.partial = pause == Pause::End;
                if self.ran.partial {
                    return Ok(());
                }
            }
            if !is_alone || self.ran.tenants[tenant].is_batch_over() {
                return Ok(());
            }
        }
    }

    /// Requests until one after which something else is due: the warm-up ends, a window does, or the caller is asked.
    fn undisturbed(&self, watch: &Watch<'_, '_>) -> u64 {
        let window = self.warmup.saturating_add(self.ran.series.next());
        let mark = if self.done < self.warmup { self.warmup } else { window };
        mark.min(watch.next()).saturating_sub(self.done).max(1)
    }

    /// What is due after the requests done so far.
    fn note_done(&mut self) {
        if self.done == self.warmup {
            self.begin_measuring();
        } else if self.done.saturating_sub(self.warmup) == self.ran.series.next() {
            self.ran.take_window(self.last_time, self.device.device(), self.device.host());
        }
    }

    /// Issues the next requests of a tenant: at most so many, and one at least. Nothing else is due in between.
    #[inline]
    fn issue(
        &mut self,
        tenant: usize,
        most: u64,
        on_request: Option<OnRequest<'_>>,
    ) -> Result<(), SimError> {
        let Self { device, ran, warmup, done: done_before, last_time, .. } = self;
        let several = ran.tenants.len() > 1;
        let is_measured = *done_before >= *warmup;
        let load = &mut ran.tenants[tenant];
        load.begin(*last_time);
        let mut issued = Issued::after(*last_time);
        let places = load.upcoming_places(most);
        for place in places.clone() {
            // Times of a trace may lie before work already submitted by another tenant.
            let now = load.due_at().max(issued.last);
            load.after(place).iter().for_each(|later| device.prefetch(*later));
            let request = load.fetched(place);
            let command = Command {
                op: request.op,
                fua: request.fua,
                tenant: u8::try_from(tenant).unwrap_or(u8::MAX),
                stream: load.stream,
                offset: if request.op == Op::Flush { 0 } else { request.offset + load.base },
                len: u64::from(request.len),
            };
            let remap = request
                .remap
                .filter(|from| !device.writes_instead(*from))
                .map(|from| RemapFrom { offset: from.offset.saturating_add(load.base), ..from });
            let submitted = match remap {
                None => device.submit(Nanos::new(now), &command, &mut load.source),
                Some(from) => {
                    load.source.contents();
                    device.remap(Nanos::new(now), &command, from)
                }
            };
            let number = || *done_before + u64_from(place - places.start);
            let done = match submitted {
                Ok(done) => Some(done),
                Err(error) => failed::<D>(error, number(), &command)?,
            };
            // Nobody says how long one takes that fails.
            let at = done.map_or(now, |done| done.at.get());
            issued.add(now, at);
            load.take_place(now, at);
            if !is_measured {
                continue;
            }
            match done {
                Some(done) if remap.is_some() => load.metrics.record_remap(done.delay, at - now),
                Some(done) => load.metrics.record(command.op, done.delay, at - now),
                None => load.failed += 1,
            }
            if let Some(tell) = on_request {
                let pass = ran.passes.done + 1;
                let logged = logged((pass, number()), &load.name, &command, (now, done));
                tell(&Logged { source: remap.map(|from| from.offset), ..logged });
            }
            if several && remap.is_some() {
                load.count_remap(command.len);
            } else if several {
                load.count(command.op, command.offset, command.len);
            }
        }
        *last_time = issued.last;
        *done_before += u64_from(places.len());
        load.issued(places.len(), &issued);
        Ok(())
    }

    fn begin_measuring(&mut self) {
        let at = self.last_time;
        (self.ran.at, self.ran.baseline) = (at, self.device.counters());
        self.ran.series.begin(at, self.device.device(), self.device.host());
    }
}

/// There is no completion of a request that failed alone. Any other failure ends the run.
#[cold]
fn failed<D: AtOnce>(
    error: D::Error,
    number: u64,
    command: &Command,
) -> Result<Option<Completion>, SimError> {
    if D::fails_alone(&error) { Ok(None) } else { Err(D::error(error, number, command)) }
}

/// A request of some pass with its number, when it was issued and how it ended.
fn logged<'a>(
    (pass, number): (u32, u64),
    tenant: &'a str,
    command: &Command,
    (issued_ns, done): (u64, Option<Completion>),
) -> Logged<'a> {
    Logged {
        pass,
        number,
        tenant,
        op: command.op,
        source: None,
        fua: command.fua,
        offset: command.offset,
        bytes: command.len,
        issued_ns,
        latency_ns: done.map(|done| done.at.get() - issued_ns),
        delay: done.map_or(Delay::None, |done| done.delay),
    }
}

#[cfg(test)]
mod tests {
    use onefold_config::{Config, Sources};
    use onefold_trace::workload::Workload;
    use onefold_units::CauseCounts;

    use super::*;
    use crate::tenant::Pace;

    /// Carries out everything in no time, and notes whose it was.
    #[derive(Default)]
    struct Instant {
        host: HostStats,
        tenants: Vec<u8>,
    }

    impl Windowed for Instant {
        fn programs(&self) -> CauseCounts {
            CauseCounts::default()
        }

        fn erases(&self) -> u64 {
            0
        }

        fn free(&self) -> u32 {
            0
        }
    }

    impl AtOnce for Instant {
        type Counters = ();
        type Error = ();

        fn device(&self) -> &impl Windowed {
            self
        }

        fn host(&self) -> &HostStats {
            &self.host
        }

        fn counters(&self) {}

        fn submit(
            &mut self,
            now: Nanos,
            command: &Command,
            _: &mut Source,
        ) -> Result<Completion, ()> {
            self.tenants.push(command.tenant);
            Ok(Completion { at: now, delay: Delay::None })
        }

        fn fails_alone((): &()) -> bool {
            false
        }

        fn error((): (), _: u64, _: &Command) -> SimError {
            SimError::Interrupted
        }
    }

    /// Where several tenants are ready at the same time, turns go by their weights.
    #[test]
    fn turns_go_by_weight() -> Result<(), SimError> {
        let config = Config::load(&Sources { preset: Some("s1"), ..Sources::default() })?;
        let tenant = |weight| {
            let text = "randread,bs=4KiB,qd=4,requests=400";
            let load = Workload::parse(text).and_then(|load| load.instantiate(1 << 24, 1));
            let source = load.map(|load| Source::Generator(Box::new(load)));
            let source =
                source.map_err(|source| SimError::Workload { text: text.into(), source })?;
            let mut tenant = Tenant::new("a".to_owned(), source, Pace::closed(4, 0), 0);
            tenant.weight = weight;
            Ok::<_, SimError>(tenant)
        };
        let tenants = vec![tenant(1)?, tenant(3)?];
        let (device, _) =
            run(Instant::default(), tenants, &config.run(), None, &Control::default())?;
        let turns: u32 = device.tenants[..400].iter().map(|tenant| u32::from(*tenant)).sum();
        assert_eq!((device.tenants.len(), turns), (800, 300));
        Ok(())
    }
}
