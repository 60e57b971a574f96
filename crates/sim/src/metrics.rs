//! Latency of requests: by operation and by what they waited for.

use onefold_nand::Delay;
use onefold_units::Op;

use crate::histogram::Histogram;
use crate::result::{CCDF_POINTS_MAX, CcdfPoint, DelaySummaries, LatencySummary};

/// Latencies of one kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: Histogram,
    sum: u128,
    max: u64,
}

onefold_units::keep!(Latencies { histogram, sum, max });

impl Latencies {
    fn new() -> Self {
        Self { histogram: Histogram::new(), sum: 0, max: 0 }
    }

    #[inline]
    fn record(&mut self, ns: u64) {
        self.histogram.record(ns);
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
    }

    fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Count, mean and quantiles.
    pub(crate) fn summary(&self) -> LatencySummary {
        let count = self.histogram.total();
        let at = |share| self.histogram.quantile(share).min(self.max);
        #[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
        let mean = if count == 0 { 0.0 } else { self.sum as f64 / count as f64 };
        LatencySummary {
            count,
            mean,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: self.max,
        }
    }

    /// The share of requests slower than a latency, thinned to what a plot can show.
    pub(crate) fn ccdf(&self) -> Vec<CcdfPoint> {
        let total = self.histogram.total();
        let mut seen = 0;
        let mut points: Vec<CcdfPoint> = Vec::new();
        for (value, count) in self.histogram.recorded() {
            seen += count;
            #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
            let slower = (total - seen) as f64 / total as f64;
            points.push(CcdfPoint(value.min(self.max), slower));
        }
        let step = points.len().div_ceil(CCDF_POINTS_MAX - 1).max(1);
        let last = points.len().saturating_sub(1);
        let kept = points.into_iter().enumerate();
        kept.filter(|(at, _)| at % step == 0 || *at == last).map(|(_, point)| point).collect()
    }
}

/// Latencies of one operation, apart by what the requests waited for.
#[derive(Clone, Debug)]
pub(crate) struct ByDelay {
    parts: [Latencies; 3],
}

onefold_units::keep!(ByDelay { parts });

const fn slot(delay: Delay) -> usize {
    match delay {
        Delay::None => 0,
        Delay::Host => 1,
        Delay::Background => 2,
    }
}

impl ByDelay {
    fn new() -> Self {
        Self { parts: [Latencies::new(), Latencies::new(), Latencies::new()] }
    }

    /// All of them together.
    pub(crate) fn total(&self) -> Latencies {
        let mut total = self.parts[0].clone();
        total.add(&self.parts[1]);
        total.add(&self.parts[2]);
        total
    }

    /// One summary per cause of delay.
    pub(crate) fn summaries(&self) -> DelaySummaries {
        let [none, host, background] = &self.parts;
        DelaySummaries {
            none: none.summary(),
            host: host.summary(),
            background: background.summary(),
        }
    }
}

/// Latencies of all requests of a tenant, or of a run.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) read: ByDelay,
    pub(crate) write: ByDelay,
    pub(crate) trim: ByDelay,
    pub(crate) flush: ByDelay,
    pub(crate) remap: ByDelay,
}

onefold_units::keep!(Metrics { read, write, trim, flush, remap });

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            read: ByDelay::new(),
            write: ByDelay::new(),
            trim: ByDelay::new(),
            flush: ByDelay::new(),
            remap: ByDelay::new(),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, op: Op, delay: Delay, ns: u64) {
        let by_delay = match op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Trim | Op::WriteZeroes => &mut self.trim,
            Op::Flush => &mut self.flush,
        };
        by_delay.parts[slot(delay)].record(ns);
    }

    pub(crate) fn record_remap(&mut self, delay: Delay, ns: u64) {
        self.remap.parts[slot(delay)].record(ns);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.read, &other.read),
            (&mut self.write, &other.write),
            (&mut self.trim, &other.trim),
            (&mut self.flush, &other.flush),
            (&mut self.remap, &other.remap),
        ];
        for (mine, theirs) in pairs {
            for (part, add) in mine.parts.iter_mut().zip(&theirs.parts) {
                part.add(add);
            }
        }
    }

    /// Sums of read and write latencies and their counts, for the time series.
    pub(crate) fn sums(&self) -> [(u128, u64); 2] {
        [&self.read, &self.write].map(|by_delay| {
            let parts = by_delay.parts.iter();
            parts
                .fold((0, 0), |(sum, count), part| (sum + part.sum, count + part.histogram.total()))
        })
    }
}
