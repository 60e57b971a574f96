//! The three parts of the model, merged in order of time.

use onefold_units::convert::{float, floor_u64, index64, u64_from};
use onefold_units::{Nanos, Op, Rng};

use super::super::address::threshold;
use super::super::math::{ln, pow};
use super::super::{Request, WorkloadError, Zipf};
use super::layout::{Layout, natural_bytes};
use super::preset::{Knobs, Preset};
use super::shape::{Objects, Shaper, size_mixes};

const SECOND_NS: f64 = 1e9;
/// Time between two requests of a burst, unless the burst would fill half its period.
const BURST_GAP_NS: u64 = 1_000_000;
/// A burst may write each hot object that often. Short runs have few hot objects, and get shorter
/// periods instead of longer bursts.
const SWEEPS_MAX: f64 = 2.0;
/// Hot objects beyond the core are written more often the earlier they come: rank = n u^2.
const WANDER: f64 = 2.0;

/// The streams of one seed.
mod stream {
    pub(super) const CLOCK: u64 = 1;
    pub(super) const CHOICES: u64 = 2;
    pub(super) const SHAPES: u64 = 3;
    pub(super) const SCATTER: u64 = 4;
}

/// Produces the requests of a [`LikeWorkload`](super::LikeWorkload), in constant memory.
#[derive(Clone, Debug)]
pub struct LikeGenerator {
    left: u64,
    layout: Layout,
    shaper: Shaper,
    ticks: Ticks,
    rest: Rest,
}

impl LikeGenerator {
    pub(super) fn new(
        preset: &Preset,
        requests: u64,
        range: (u64, u64),
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let (volume, knobs) = (&preset.volume, &preset.knobs);
        let (reads, writes) = size_mixes(volume);
        let scale = float(requests) / volume.requests;
        let count = Counts::new(preset, requests);
        let objects = Objects::new(&writes);
        let layout = Layout::new(
            objects,
            count.hot + count.body + count.cold,
            floor_u64((volume.touched - volume.written) * scale).max(1),
            natural_bytes(preset, requests),
            range,
            Rng::fork(seed, stream::SCATTER).next_u64(),
        )?;
        let read_blocks = reads.mean() * float(requests) * (1.0 - volume.write_share);
        let scan = (float(layout.unwritten_pages) / read_blocks.max(1.0)).min(1.0);
        let mut clock = Rng::fork(seed, stream::CLOCK);
        let per_second = volume.requests / volume.seconds;
        Ok(Self {
            left: requests,
            shaper: Shaper::new(&reads, volume.unaligned_share, Rng::fork(seed, stream::SHAPES)),
            ticks: Ticks::new(preset, count.hot, &mut clock),
            rest: Rest {
                clock: Arrivals::new(clock, per_second * (1.0 - knobs.hot * volume.write_share)),
                choices: Rng::fork(seed, stream::CHOICES),
                shares: Shares::new(preset, scan),
                body: Body::new(knobs, &count)?,
                cold: Cycle { first: count.hot + count.body, count: count.cold, next: 0 },
                scanned: 0,
            },
            layout,
        })
    }

    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end of the workload.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        let most = usize::try_from(self.left).map_or(out.len(), |left| out.len().min(left));
        for request in &mut out[..most] {
            *request = self.step();
        }
        self.left -= u64_from(most);
        most
    }

    fn step(&mut self) -> Request {
        let (op, at, (first, pages)) = if self.ticks.next_ns() <= self.rest.clock.next_ns() {
            let (at, object) = self.ticks.next();
            (Op::Write, at, self.layout.object(object))
        } else {
            let at = self.rest.clock.advance();
            let (op, pages) = self.rest.next(&self.layout, &mut self.shaper);
            (op, at, pages)
        };
        let (offset, len) = self.shaper.bytes(first, pages);
        Request {
            op,
            fua: false,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            offset: self.layout.start() + offset,
            at: Some(Nanos::new(at)),
            remap: None,
            depth: None,
        }
    }
}

/// Objects of each part.
struct Counts {
    hot: u64,
    body: u64,
    cold: u64,
    /// Written in all, as the rewrite share wants it.
    written: f64,
}

impl Counts {
    fn new(preset: &Preset, requests: u64) -> Self {
        let (volume, knobs) = (&preset.volume, &preset.knobs);
        let once = volume.written / volume.write_blocks;
        let written = float(requests) * volume.write_share * once;
        let count = |share: f64| floor_u64(written * share + 0.5).max(1);
        Self { hot: count(0.01), body: count(knobs.body), cold: count(knobs.cold), written }
    }
}

/// Bursts of writes to the hot objects.
#[derive(Clone, Debug)]
struct Ticks {
    rng: Rng,
    hot: u64,
    core: u64,
    core_share: f64,
    period_ns: u64,
    per_tick: f64,
    /// Requests owed since the last whole one.
    carry: f64,
    at_ns: u64,
    gap_ns: u64,
    /// Requests of this burst, and how many are done.
    count: u64,
    done: u64,
    phase: f64,
}

impl Ticks {
    fn new(preset: &Preset, hot: u64, rng: &mut Rng) -> Self {
        let (volume, knobs) = (&preset.volume, &preset.knobs);
        let per_second = knobs.hot * volume.write_share * volume.requests / volume.seconds;
        let most = SWEEPS_MAX * float(hot) / per_second.max(1e-9);
        // A burst has at least one request.
        let period = volume.gap_p50_s.min(most).max(1.0 / per_second.max(1e-9));
        let per_tick = per_second * period;
        let core = floor_u64(knobs.core * per_tick + 0.5).clamp(1, hot);
        let period_ns = floor_u64(period * SECOND_NS).max(1);
        let mut ticks = Self {
            hot,
            core,
            core_share: if core == hot { 1.0 } else { knobs.core },
            period_ns,
            per_tick,
            carry: 0.0,
            at_ns: floor_u64(rng.unit() * float(period_ns)),
            gap_ns: 0,
            count: 0,
            done: 0,
            phase: 0.0,
            rng: Rng::new(rng.next_u64()),
        };
        ticks.begin();
        ticks
    }

    /// Prepares the burst at `at_ns`.
    fn begin(&mut self) {
        let owed = self.carry + self.per_tick;
        self.count = floor_u64(owed).max(1);
        self.carry = (owed - float(self.count)).max(0.0);
        self.done = 0;
        self.phase = self.rng.unit();
        self.gap_ns = BURST_GAP_NS.min(self.period_ns / (2 * self.count));
    }

    /// Time of the next write.
    const fn next_ns(&self) -> u64 {
        self.at_ns + self.done * self.gap_ns
    }

    /// The next write: its time and its object.
    fn next(&mut self) -> (u64, u64) {
        let at = self.next_ns();
        // Evenly spaced draws: what has a share of one draw per burst is written at every tick.
        let u = (float(self.done) + self.phase) / float(self.count);
        let object = if u < self.core_share {
            floor_u64(u / self.core_share * float(self.core)).min(self.core - 1)
        } else {
            let wandering = self.hot - self.core;
            let u = (u - self.core_share) / (1.0 - self.core_share);
            self.core + floor_u64(pow(u.max(1e-9), WANDER) * float(wandering)).min(wandering - 1)
        };
        self.done += 1;
        if self.done >= self.count {
            self.at_ns += self.period_ns;
            self.begin();
        }
        (at, object)
    }
}

/// Exponential distances.
#[derive(Clone, Debug)]
struct Arrivals {
    rng: Rng,
    mean_ns: f64,
    at: f64,
}

impl Arrivals {
    fn new(rng: Rng, per_second: f64) -> Self {
        let mut arrivals = Self { rng, mean_ns: SECOND_NS / per_second, at: 0.0 };
        arrivals.advance();
        arrivals
    }

    fn next_ns(&self) -> u64 {
        floor_u64(self.at)
    }

    /// Goes on to the next arrival and returns the time of this one.
    fn advance(&mut self) -> u64 {
        let at = self.next_ns();
        self.at -= ln(1.0 - self.rng.unit()) * self.mean_ns;
        at
    }
}

/// Everything but the ticks.
#[derive(Clone, Debug)]
struct Rest {
    clock: Arrivals,
    choices: Rng,
    shares: Shares,
    body: Body,
    cold: Cycle,
    /// Pages never written that were read in order.
    scanned: u64,
}

/// Of 2^64 draws, those up to each kind of request.
#[derive(Clone, Copy, Debug)]
struct Shares {
    scan: u64,
    read_unwritten: u64,
    read_written: u64,
    cold: u64,
}

impl Shares {
    /// `scan`: of the reads, those that go through the pages never written in order.
    fn new(preset: &Preset, scan: f64) -> Self {
        let (volume, knobs) = (&preset.volume, &preset.knobs);
        let requests = 1.0 - knobs.hot * volume.write_share;
        let reads = (1.0 - volume.write_share) / requests;
        let cold = knobs.cold * volume.written / volume.write_blocks * volume.write_share;
        Self {
            scan: threshold(reads * scan),
            read_unwritten: threshold(reads * (scan + (1.0 - scan) * 0.5)),
            read_written: threshold(reads),
            cold: threshold(reads + cold / requests),
        }
    }
}

impl Rest {
    /// Operation, first page and pages of the next request.
    fn next(&mut self, layout: &Layout, shaper: &mut Shaper) -> (Op, (u64, u64)) {
        let draw = self.choices.next_u64();
        if draw >= self.shares.cold {
            let object = self.body.write(&mut self.choices);
            return (Op::Write, layout.object(object));
        }
        if draw >= self.shares.read_written {
            return (Op::Write, layout.object(self.cold.next()));
        }
        let pages = shaper.read_pages();
        let first = if draw < self.shares.scan {
            let (first, next) = layout.unwritten(self.scanned % layout.unwritten_pages, pages);
            self.scanned = next;
            first
        } else if draw < self.shares.read_unwritten {
            layout.unwritten(self.choices.below(layout.unwritten_pages), pages).0
        } else {
            layout.at_object(self.body.read(&mut self.choices), pages)
        };
        (Op::Read, (first, pages))
    }
}

/// Objects by popularity, with repeats.
#[derive(Clone, Debug)]
struct Body {
    first: u64,
    ranks: Zipf,
    reuse_below: u64,
    /// Least distance of a repeat.
    near: u64,
    /// The last writes; a write that was repeated is gone. `at` counts all of them.
    recent: Vec<Option<u64>>,
    at: u64,
}

/// Draws for a write that can be repeated, before another is taken by rank.
const REUSE_TRIES: u32 = 4;

impl Body {
    fn new(knobs: &Knobs, count: &Counts) -> Result<Self, WorkloadError> {
        let too_many = WorkloadError::TooManyUnits { found: count.body, limit: 1 << 52 };
        // Where a short run has fewer objects than that, the distance covers all of them.
        let distance = knobs.distance.min(count.written).max(1.0);
        Ok(Self {
            first: count.hot,
            ranks: Zipf::new(count.body, knobs.theta).ok_or(too_many)?,
            reuse_below: threshold(knobs.reuse),
            near: floor_u64(distance * knobs.near.min(0.999)),
            recent: vec![None; index64(floor_u64(distance))],
            at: 0,
        })
    }

    fn read(&self, rng: &mut Rng) -> u64 {
        self.first + self.ranks.rank(rng)
    }

    fn write(&mut self, rng: &mut Rng) -> u64 {
        let repeat = if rng.next_u64() < self.reuse_below { self.repeat(rng) } else { None };
        let object = repeat.unwrap_or_else(|| self.read(rng));
        let size = u64_from(self.recent.len());
        self.recent[index64(self.at % size)] = Some(object);
        self.at += 1;
        object
    }

    /// A write `near` to `distance` ago that was not repeated yet.
    fn repeat(&mut self, rng: &mut Rng) -> Option<u64> {
        let size = u64_from(self.recent.len());
        (0..REUSE_TRIES).find_map(|_| {
            let back = 1 + self.near + rng.below(size - self.near);
            let at = self.at.checked_sub(back)?;
            self.recent[index64(at % size)].take()
        })
    }
}

/// Numbers one after another, from the start again at the end.
#[derive(Clone, Debug)]
struct Cycle {
    first: u64,
    count: u64,
    next: u64,
}

impl Cycle {
    fn next(&mut self) -> u64 {
        let number = self.first + self.next;
        self.next = (self.next + 1) % self.count;
        number
    }
}
