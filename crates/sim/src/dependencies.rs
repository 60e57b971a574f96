//! Replay by dependencies: a request of a trace is sent when what it waited for has ended.
//!
//! A trace that tells how long requests took tells what a request can have waited for: all of its
//! client that had ended before it began. A flush waits for what it covers: all that had ended, of
//! any client. So does a remap, since others may have written what it maps. From the last of these on a request is sent after the pause that was recorded. So a
//! host that waited for its flushes waits for those of another device too, and batches that never
//! filled while the trace was recorded do not fill in the replay.
//!
//! A trace without ends tells less: what a flush covers had ended before it, and what follows a
//! flush or a durable write came after its end. All else keeps its distances.
//!
//! [`Recorded`] reads the trace, [`Dependencies`] follows the run. Requests are sent in the order
//! of the trace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::num::NonZeroU32;

use onefold_trace::{Flags, Record, TraceOp};
use onefold_units::convert::{index, index64, narrow, u64_from};
use onefold_units::{Keep, Keeper};

/// What a trace tells of what its requests waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// When they ended.
    Ends,
    /// That flushes and durable writes end before what follows them.
    Flushes,
}

/// Records without ends since the last flush. The oldest of more have ended, so that a trace without
/// flushes is replayed in constant memory.
const UNTOLD_MAX: usize = 1 << 16;

/// What a request waits for, and when it is sent then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Wait {
    /// Of which client; `None`: of all.
    client: Option<u16>,
    when: When,
    /// So many more of [`Recorded::over`] had ended.
    news: u32,
}

onefold_units::keep!(Wait { client, when, news });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// At this time of the trace, later by as much as the replay is late.
    At(u64),
    /// So long after the last end of what it waits for.
    After(u64),
}

impl Default for When {
    fn default() -> Self {
        Self::After(0)
    }
}

onefold_units::keep_enum!(When { At(at), After(pause) });

/// A record that was begun: its requests in the replay, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Begun {
    /// When it ended in the trace.
    end: u64,
    first: u64,
    requests: u64,
    client: u16,
}

onefold_units::keep!(Begun { end, first, requests, client });

/// The last end of requests, of each client and of all.
#[derive(Default)]
struct Scopes<T> {
    all: Option<T>,
    clients: BTreeMap<u16, T>,
}

impl<T: Keep + Default> Keep for Scopes<T> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let Self { all, clients } = self;
        all.keep(keeper);
        clients.keep(keeper);
    }
}

impl<T: Default> Scopes<T> {
    /// Both that a request of this client counts in.
    fn of(&mut self, client: u16) -> [&mut T; 2] {
        [self.all.get_or_insert_default(), self.clients.entry(client).or_default()]
    }

    fn get(&self, client: Option<u16>) -> Option<&T> {
        match client {
            None => self.all.as_ref(),
            Some(client) => self.clients.get(&client),
        }
    }
}

/// What a trace tells, record by record.
pub(crate) struct Recorded {
    known: Known,
    /// Requests that records became so far.
    made: u64,
    /// Records that have not ended yet, the earliest first.
    under_way: BinaryHeap<Reverse<Begun>>,
    /// Those of which only a flush tells that they ended, the oldest first.
    untold: VecDeque<Begun>,
    last_end: Scopes<u64>,
    /// One for each request that was not sent yet.
    waits: VecDeque<Wait>,
    /// What ended, in the order in which it is waited for.
    over: VecDeque<Begun>,
}

onefold_units::keep!(Recorded { made, under_way, untold, last_end, waits, over } but { known });

impl Recorded {
    pub(crate) fn new(known: Known) -> Self {
        Self {
            known,
            made: 0,
            under_way: BinaryHeap::new(),
            untold: VecDeque::new(),
            last_end: Scopes::default(),
            waits: VecDeque::new(),
            over: VecDeque::new(),
        }
    }

    /// The same, before the first record.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.known)
    }

    /// The requests of all records so far were sent in a run that goes on: nothing is to be said of them.
    pub(crate) fn passes_by(&mut self) {
        self.waits.clear();
        self.over.clear();
    }

    /// A record begins, which becomes so many requests. Gives how many records are under way, this
    /// one included.
    pub(crate) fn begin(&mut self, record: &Record, requests: usize) -> NonZeroU32 {
        if requests == 0 {
            return NonZeroU32::MIN;
        }
        let covers = record.op == TraceOp::Flush;
        let before = self.over.len();
        if covers {
            for begun in std::mem::take(&mut self.untold) {
                self.over(begun);
            }
        } else if self.untold.len() >= UNTOLD_MAX
            && let Some(begun) = self.untold.pop_front()
        {
            self.over(begun);
        }
        self.end_until(record.t_ns);
        let depth = NonZeroU32::MIN.saturating_add(narrow(u64_from(self.under_way.len())));
        let of_all = covers || record.op == TraceOp::Remap;
        let own = Some(record.client).filter(|_| !of_all && self.known == Known::Ends);
        let client = own.filter(|own| self.last_end.clients.contains_key(own));
        let when = match self.last_end.get(client) {
            Some(end) if self.known == Known::Ends => When::After(record.t_ns.saturating_sub(*end)),
            _ => When::At(record.t_ns),
        };
        let news = narrow(u64_from(self.over.len() - before));
        self.waits.push_back(Wait { client, when, news });
        // The others of one record are sent with its first.
        self.waits.extend(std::iter::repeat_n(Wait { client, when, news: 0 }, requests - 1));
        let (first, requests) = (self.made, u64_from(requests));
        let end = record.t_ns.saturating_add(record.lat_ns.unwrap_or(0));
        let begun = Begun { end, first, requests, client: record.client };
        if record.lat_ns.is_some() || covers || record.flags.has(Flags::FUA) {
            self.under_way.push(Reverse(begun));
        } else {
            self.untold.push_back(begun);
        }
        self.made += requests;
        depth
    }

    /// What ended until then is waited for from now on.
    fn end_until(&mut self, until: u64) {
        while let Some(Reverse(begun)) = self.under_way.peek().copied()
            && begun.end <= until
        {
            self.under_way.pop();
            self.over(begun);
        }
    }

    fn over(&mut self, begun: Begun) {
        for last in self.last_end.of(begun.client) {
            *last = (*last).max(begun.end);
        }
        self.over.push_back(begun);
    }
}

/// The last end of requests in the run, and how many of them have not ended.
#[derive(Default)]
struct Scope {
    last_end: u64,
    missing: u64,
}

onefold_units::keep!(Scope { last_end, missing });

impl Scope {
    fn ended(&mut self, at: u64) {
        self.last_end = self.last_end.max(at);
    }
}

/// A request that was sent.
#[derive(Clone, Copy, Debug, Default)]
enum Sent {
    #[default]
    UnderWay,
    Ended(u64),
    /// Under way, and waited for.
    Missed {
        client: u16,
    },
    /// Ended, and waited for: of no more interest.
    Over,
}

onefold_units::keep_enum!(Sent { UnderWay, Ended(at), Missed { client }, Over });

/// What requests of a run wait for.
#[derive(Default)]
pub(crate) struct Dependencies {
    /// From the number `first` on.
    sent: VecDeque<Sent>,
    first: u64,
    /// By the number that the run gave them.
    numbers: BTreeMap<u64, u64>,
    scopes: Scopes<Scope>,
    next: Option<Wait>,
    /// How late requests were that kept their times.
    late: u64,
}

onefold_units::keep!(Dependencies { sent, first, numbers, scopes, next, late });

impl Dependencies {
    /// When the next request is sent, in a replay that began at `start` and is `speed` times as
    /// fast; `None` while what it waits for has not ended.
    pub(crate) fn time(
        &mut self,
        recorded: &mut Recorded,
        (start, speed): (u64, f64),
    ) -> Option<u64> {
        let wait = match self.next {
            Some(wait) => wait,
            None => self.learn(recorded),
        };
        let scope = self.scopes.get(wait.client);
        if scope.is_some_and(|scope| scope.missing > 0) {
            return None;
        }
        let last_end = scope.map_or(0, |scope| scope.last_end);
        Some(match wait.when {
            When::At(at) => last_end.max(start + self.late + scaled(at, speed)),
            When::After(pause) => last_end + scaled(pause, speed),
        })
    }

    /// What the next request waits for.
    fn learn(&mut self, recorded: &mut Recorded) -> Wait {
        let wait = recorded.waits.pop_front().unwrap_or(Wait {
            client: None,
            when: When::After(0),
            news: 0,
        });
        for begun in recorded.over.drain(..index(wait.news)) {
            for number in begun.first..begun.first + begun.requests {
                self.wait_for(number, begun.client);
            }
        }
        self.next = Some(wait);
        wait
    }

    /// From now on a request is waited for.
    fn wait_for(&mut self, number: u64, client: u16) {
        let Some(sent) = self.sent.get_mut(index64(number - self.first)) else { return };
        match *sent {
            Sent::UnderWay => {
                *sent = Sent::Missed { client };
                for scope in self.scopes.of(client) {
                    scope.missing += 1;
                }
            }
            Sent::Ended(at) => {
                *sent = Sent::Over;
                for scope in self.scopes.of(client) {
                    scope.ended(at);
                }
            }
            Sent::Missed { .. } | Sent::Over => {}
        }
        self.forget();
    }

    fn forget(&mut self) {
        while let Some(Sent::Over) = self.sent.front() {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// The next request is sent; the run calls it `number` when it ends, unless it ends at once.
    pub(crate) fn send(&mut self, number: Option<u64>, now: u64, (start, speed): (u64, f64)) {
        if let Some(Wait { when: When::At(at), .. }) = self.next.take() {
            self.late = now.saturating_sub(start + scaled(at, speed));
        }
        let own = self.first + u64_from(self.sent.len());
        self.numbers.extend(number.map(|number| (number, own)));
        self.sent.push_back(Sent::UnderWay);
    }

    /// What was sent last ended.
    pub(crate) fn ended(&mut self, at: u64) {
        if let Some(sent) = self.sent.back_mut() {
            *sent = Sent::Ended(at);
        }
    }

    /// A request ended that the run calls so.
    pub(crate) fn end(&mut self, number: u64, at: u64) {
        let Some(number) = self.numbers.remove(&number) else { return };
        let Some(sent) = self.sent.get_mut(index64(number - self.first)) else { return };
        if let Sent::Missed { client } = *sent {
            *sent = Sent::Over;
            for scope in self.scopes.of(client) {
                scope.missing -= 1;
                scope.ended(at);
            }
            self.forget();
        } else {
            *sent = Sent::Ended(at);
        }
    }
}

/// A time of the trace at another pace. Speed 1 keeps every nanosecond.
#[expect(clippy::float_cmp, reason = "exactly 1 means untouched")]
pub(crate) fn scaled(ns: u64, speed: f64) -> u64 {
    if speed == 1.0 {
        ns
    } else {
        onefold_units::convert::floor_u64(onefold_units::convert::float(ns) / speed)
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Rng;

    use super::*;

    /// Writes, flushes and durable writes of three clients, many at once.
    fn trace(rng: &mut Rng, known: Known) -> Vec<Record> {
        let mut t_ns = 5;
        let record = |_| {
            t_ns += rng.below(25);
            let op = match rng.below(12) {
                0 | 1 => TraceOp::Flush,
                2 => TraceOp::Remap,
                _ => TraceOp::Write,
            };
            let mut record = Record::new(t_ns, op, 0, 4096);
            record.client = u16::try_from(rng.below(3)).unwrap_or(0);
            record.lat_ns = (known == Known::Ends).then(|| rng.below(120));
            if rng.below(8) == 0 {
                record.flags = Flags::FUA;
            }
            record
        };
        (0..200).map(record).collect()
    }

    /// When requests are sent, and how long each of them takes in the run.
    struct Run {
        sent: Vec<u64>,
        took: Vec<u64>,
    }

    impl Run {
        fn end(&self, number: usize) -> u64 {
            self.sent[number] + self.took[number]
        }

        /// By the words of the module, each request compared with all before it.
        fn expected(&self, records: &[Record], at: usize, late: u64) -> u64 {
            let record = &records[at];
            let flush = record.op == TraceOp::Flush;
            let last_flush = records[..at].iter().rposition(|record| record.op == TraceOp::Flush);
            let ended = |&number: &usize| {
                let before = &records[number];
                match before.lat_ns {
                    Some(lat) => before.t_ns + lat <= record.t_ns,
                    None if before.op == TraceOp::Flush || before.flags.has(Flags::FUA) => true,
                    None => flush || last_flush.is_some_and(|flush| number < flush),
                }
            };
            let all: Vec<usize> = (0..at).filter(ended).collect();
            let own = |number: &&usize| records[**number].client == record.client;
            let mut waits: Vec<usize> = all.iter().filter(own).copied().collect();
            let of_all = flush || record.op == TraceOp::Remap;
            if of_all || waits.is_empty() || record.lat_ns.is_none() {
                waits = all;
            }
            let last = waits.iter().map(|number| self.end(*number)).max();
            let recorded =
                |number: &usize| records[*number].t_ns + records[*number].lat_ns.unwrap_or(0);
            match (last, waits.iter().map(recorded).max()) {
                (Some(last), Some(recorded)) if record.lat_ns.is_some() => {
                    last + record.t_ns - recorded
                }
                (last, _) => last.unwrap_or(0).max(record.t_ns + late),
            }
        }
    }

    /// Requests of a run that tells ends when they come, or when requests are sent.
    fn replayed(records: &[Record], known: Known, rng: &mut Rng, at_once: bool) -> Run {
        let (mut recorded, mut dependencies) = (Recorded::new(known), Dependencies::default());
        for record in records {
            recorded.begin(record, 1);
        }
        let mut run = Run { sent: Vec::new(), took: Vec::new() };
        let mut ends = BinaryHeap::new();
        let mut late = 0;
        while let Some(record) = records.get(run.sent.len()) {
            let pace = (0, 1.0);
            let next_end = ends.peek().map(|Reverse((end, _))| *end);
            match dependencies.time(&mut recorded, pace) {
                Some(at) if next_end.is_none_or(|end| at <= end) => {
                    let number = run.sent.len();
                    assert_eq!(at, run.expected(records, number, late), "request {number}");
                    late = at.saturating_sub(record.t_ns);
                    // In the order of the trace.
                    let now = at.max(run.sent.last().copied().unwrap_or(0));
                    let took = rng.below(400);
                    run.sent.push(now);
                    run.took.push(took);
                    let known = u64_from(number);
                    dependencies.send((!at_once).then_some(known), at, pace);
                    if at_once {
                        dependencies.ended(now + took);
                    } else {
                        ends.push(Reverse((now + took, known)));
                    }
                }
                _ => {
                    let Reverse((end, number)) = ends.pop().expect("something is under way");
                    dependencies.end(number, end);
                }
            }
        }
        run
    }

    #[test]
    fn requests_wait_for_what_had_ended() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            for known in [Known::Ends, Known::Flushes] {
                let records = trace(&mut rng, known);
                for at_once in [false, true] {
                    let run = replayed(&records, known, &mut rng, at_once);
                    assert_eq!(run.sent.len(), records.len());
                }
            }
        }
    }

    /// Of what is over nothing is kept.
    #[test]
    fn memory_follows_what_is_under_way() {
        let (mut recorded, mut dependencies) =
            (Recorded::new(Known::Ends), Dependencies::default());
        for number in 0..10_000 {
            let mut record = Record::new(number * 100, TraceOp::Write, 0, 4096);
            record.lat_ns = Some(250);
            recorded.begin(&record, 1);
            let at = dependencies.time(&mut recorded, (0, 1.0)).expect("ends are known");
            dependencies.send(None, at, (0, 1.0));
            dependencies.ended(at + 40);
            assert!(dependencies.sent.len() <= 4 && recorded.over.is_empty());
        }
    }

    /// Nor is more kept than so many of a trace that tells nothing.
    #[test]
    fn memory_is_bounded_without_ends_and_flushes() {
        let (mut recorded, mut dependencies) =
            (Recorded::new(Known::Flushes), Dependencies::default());
        for number in 0..200_000 {
            recorded.begin(&Record::new(number * 100, TraceOp::Write, 0, 4096), 1);
            let at = dependencies.time(&mut recorded, (0, 1.0)).expect("ends are known");
            assert_eq!(at, number * 100);
            dependencies.send(None, at, (0, 1.0));
            dependencies.ended(at + 40);
            assert!(dependencies.sent.len() <= UNTOLD_MAX + 1 && recorded.over.is_empty());
        }
    }
}
