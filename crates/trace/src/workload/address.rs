//! Where requests go: one type per way of choosing an address.
//!
//! A generator is compiled once per type, so that a request costs no dynamic dispatch.

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64};

use super::math::{ln, pow};
use super::spec::{Distribution, PatternWorkload};
use super::{Scatter, Zipf};

/// A request size with what depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u32,
    /// Number of multiples of `align` at which a request of this size fits the range; at least 1.
    pub(super) starts: u64,
    /// The size rounded up to `align`.
    pub(super) stride: u64,
}

impl Size {
    /// A size that the range is long enough for.
    pub(super) fn new(bytes: u32, fit: &Fit) -> Self {
        let stride = u64::from(bytes).div_ceil(fit.align) * fit.align;
        Self { bytes, starts: (fit.length - u64::from(bytes)) / fit.align + 1, stride }
    }
}

/// The range a workload was fitted to, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) length: u64,
    pub(super) align: u64,
    /// Positions for the smallest size: what distributions are spread over.
    pub(super) starts: u64,
}

/// Chooses byte offsets relative to the range.
pub(super) trait Place {
    fn offset(&mut self, rng: &mut Rng, size: &Size) -> u64;
}

/// Chooses among `0..count`, 0 being the most popular or the first.
pub(super) trait Ranks {
    fn rank(&mut self, rng: &mut Rng) -> u64;
}

/// Every start that fits, with the same probability.
#[derive(Clone, Debug)]
pub(super) struct Uniform {
    align: u64,
}

impl Place for Uniform {
    #[inline]
    fn offset(&mut self, rng: &mut Rng, size: &Size) -> u64 {
        rng.below(size.starts) * self.align
    }
}

/// One after the other, from the start again at the end.
#[derive(Clone, Debug)]
pub(super) struct Sequential {
    next: u64,
    length: u64,
}

impl Place for Sequential {
    #[inline]
    fn offset(&mut self, _rng: &mut Rng, size: &Size) -> u64 {
        let fits = self.next + u64::from(size.bytes) <= self.length;
        let offset = if fits { self.next } else { 0 };
        self.next = offset + size.stride;
        offset
    }
}

/// By popularity.
#[derive(Clone, Debug)]
pub(super) struct Ranked<R> {
    ranks: R,
    scatter: Option<Scatter>,
    align: u64,
}

impl<R: Ranks> Place for Ranked<R> {
    #[inline]
    fn offset(&mut self, rng: &mut Rng, size: &Size) -> u64 {
        let rank = self.ranks.rank(rng);
        let start = self.scatter.as_ref().map_or(rank, |scatter| scatter.apply(rank));
        // Only the last few starts, where the smallest size fits and this one does not.
        let start = if start < size.starts { start } else { start % size.starts };
        start * self.align
    }
}

impl Ranks for Zipf {
    #[inline]
    fn rank(&mut self, rng: &mut Rng) -> u64 {
        Self::rank(self, rng)
    }
}

/// A share of the addresses gets a share of the requests; within each group all are alike.
#[derive(Clone, Debug)]
pub(super) struct HotCold {
    hot: u64,
    cold: u64,
    /// Of 2^64 draws, those that go to the hot group.
    hot_below: u64,
}

impl HotCold {
    fn new(count: u64, addresses: f64, requests: f64) -> Self {
        // Each group keeps at least one address, unless there is only one.
        let hot = floor_u64(float(count) * addresses + 0.5).clamp(1, count.max(2) - 1);
        Self { hot, cold: count.saturating_sub(hot), hot_below: threshold(requests) }
    }
}

impl Ranks for HotCold {
    #[inline]
    fn rank(&mut self, rng: &mut Rng) -> u64 {
        if rng.next_u64() < self.hot_below || self.cold == 0 {
            rng.below(self.hot)
        } else {
            self.hot + rng.below(self.cold)
        }
    }
}

/// Any first `h` of the ranks gets 1 - h of the requests: rank = count u^(ln h / ln(1 - h)).
#[derive(Clone, Debug)]
pub(super) struct Pareto {
    count: u64,
    exponent: f64,
}

impl Ranks for Pareto {
    #[inline]
    fn rank(&mut self, rng: &mut Rng) -> u64 {
        let share = pow(rng.unit(), self.exponent);
        floor_u64(share * float(self.count)).min(self.count - 1)
    }
}

/// Normal around the middle.
#[derive(Clone, Debug)]
pub(super) struct Gaussian {
    count: u64,
    sigma: f64,
}

impl Ranks for Gaussian {
    /// Marsaglia's polar method, which needs no trigonometry; its second value is dropped.
    fn rank(&mut self, rng: &mut Rng) -> u64 {
        loop {
            let (x, y) = (2.0 * rng.unit() - 1.0, 2.0 * rng.unit() - 1.0);
            let s = x * x + y * y;
            if s >= 1.0 || s == 0.0 {
                continue;
            }
            let share = 0.5 + self.sigma * x * (-2.0 * ln(s) / s).sqrt();
            if (0.0..1.0).contains(&share) {
                return floor_u64(share * float(self.count)).min(self.count - 1);
            }
        }
    }
}

/// Every kind of address choice; matched once per batch.
#[derive(Clone, Debug)]
pub(super) enum Placement {
    Uniform(Uniform),
    Sequential(Sequential),
    Zipf(Ranked<Zipf>),
    HotCold(Ranked<HotCold>),
    Pareto(Ranked<Pareto>),
    Gaussian(Ranked<Gaussian>),
}

impl Placement {
    /// `None` if the distribution cannot number that many positions.
    pub(super) fn new(workload: &PatternWorkload, fit: &Fit, scatter_seed: u64) -> Option<Self> {
        let Fit { length, align, starts: count } = *fit;
        if workload.pattern.is_sequential() {
            return Some(Self::Sequential(Sequential { next: 0, length }));
        }
        let scatter = workload.scatter.then(|| Scatter::new(count, scatter_seed));
        Some(match workload.distribution {
            Distribution::Uniform => Self::Uniform(Uniform { align }),
            Distribution::Zipf { theta } => {
                Self::Zipf(Ranked { ranks: Zipf::new(count, theta)?, scatter, align })
            }
            Distribution::HotCold { addresses, requests } => {
                let ranks = HotCold::new(count, addresses, requests);
                Self::HotCold(Ranked { ranks, scatter, align })
            }
            Distribution::Pareto { h } => {
                let ranks = Pareto { count, exponent: ln(h) / ln(1.0 - h) };
                Self::Pareto(Ranked { ranks, scatter, align })
            }
            Distribution::Gaussian { sigma } => {
                Self::Gaussian(Ranked { ranks: Gaussian { count, sigma }, scatter, align })
            }
        })
    }
}

/// How many of the 2^64 draws make up a share; 1 misses one draw in 2^64.
pub(super) fn threshold(share: f64) -> u64 {
    floor_u64(share * 18_446_744_073_709_551_616.0)
}
