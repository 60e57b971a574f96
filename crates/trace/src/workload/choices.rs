//! What a request is made of, besides its address: operation, size, time, and whether there is one.

use onefold_units::convert::{float, floor_u64};
use onefold_units::{Nanos, Op, Rng};

use super::address::{Fit, Size, threshold};
use super::math::ln;
use super::spec::{Arrival, Length, Pacing, PatternWorkload};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The streams of one seed, one per kind of decision.
pub(super) mod stream {
    pub(in crate::workload) const PLACES: u64 = 1;
    pub(in crate::workload) const OPS: u64 = 2;
    pub(in crate::workload) const SIZES: u64 = 3;
    pub(in crate::workload) const TRIMS: u64 = 4;
    pub(in crate::workload) const FUA: u64 = 5;
    pub(in crate::workload) const ARRIVALS: u64 = 6;
    pub(in crate::workload) const SCATTER: u64 = 7;
    pub(in crate::workload) const CONTENTS: u64 = 8;
    pub(in crate::workload) const REMAPS: u64 = 9;
}

/// What is left to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left {
    Requests(u64),
    /// Bytes read and written.
    Bytes(u64),
    /// Bytes written.
    Written(u64),
}

impl Left {
    pub(super) fn new(length: Length, range: u64, countable: Option<Size>) -> Self {
        let (bytes, left) = match length {
            Length::Requests(count) => return Self::Requests(count),
            Length::Bytes(bytes) => (bytes, Self::Bytes(bytes)),
            Length::DriveWrites(times) => {
                let bytes = floor_u64(float(range) * times).max(1);
                (bytes, Self::Written(bytes))
            }
        };
        countable.map_or(left, |size| Self::Requests(bytes.div_ceil(u64::from(size.bytes))))
    }

    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Requests(0) | Self::Bytes(0) | Self::Written(0))
    }

    /// A request that neither reads nor writes data.
    pub(super) const fn count_other(&mut self) {
        if let Self::Requests(left) = self {
            *left -= 1;
        }
    }

    pub(super) fn count(&mut self, op: Op, len: u32) {
        match self {
            Self::Requests(left) => *left -= 1,
            Self::Bytes(left) if matches!(op, Op::Read | Op::Write) => {
                *left = left.saturating_sub(u64::from(len));
            }
            Self::Written(left) if op == Op::Write => *left = left.saturating_sub(u64::from(len)),
            Self::Bytes(_) | Self::Written(_) => {}
        }
    }
}

/// Chooses operations.
#[derive(Clone, Debug)]
pub(super) enum Ops {
    Always(Op),
    Mixed { rng: Rng, read_below: u64, trim_below: u64 },
}

impl Ops {
    pub(super) fn new(workload: &PatternWorkload, seed: u64) -> Self {
        // Of the requests that are no remaps: whether one is was decided before.
        let rest = 1.0 - workload.remap.map_or(0.0, |remap| remap.share);
        let part = |share: f64| if rest > 0.0 { (share / rest).min(1.0) } else { 0.0 };
        let (read, trim) = (part(workload.read_share), part(workload.trim_share));
        if read >= 1.0 {
            return Self::Always(Op::Read);
        }
        if read <= 0.0 && trim <= 0.0 {
            return Self::Always(Op::Write);
        }
        Self::Mixed {
            rng: Rng::fork(seed, stream::OPS),
            read_below: threshold(read),
            trim_below: threshold(read + trim),
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Op {
        match self {
            Self::Always(op) => *op,
            Self::Mixed { rng, read_below, trim_below } => {
                let draw = rng.next_u64();
                if draw < *read_below {
                    Op::Read
                } else if draw < *trim_below {
                    Op::Trim
                } else {
                    Op::Write
                }
            }
        }
    }
}

/// Chooses request sizes.
#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Fixed(Size),
    /// Each with the sum of the weights up to and including it.
    Weighted {
        rng: Rng,
        total: u64,
        table: Vec<(u64, Size)>,
        last: Size,
    },
}

impl Sizes {
    pub(super) fn new(workload: &PatternWorkload, fit: &Fit, seed: u64) -> Self {
        let size = |bytes: u32| Size::new(bytes, fit);
        let mut total = 0;
        let mut table = Vec::with_capacity(workload.sizes.len());
        let mut last = size(workload.sizes[0].bytes);
        for entry in &workload.sizes {
            total += u64::from(entry.weight);
            last = size(entry.bytes);
            table.push((total, last));
        }
        if table.len() == 1 {
            return Self::Fixed(last);
        }
        Self::Weighted { rng: Rng::fork(seed, stream::SIZES), total, table, last }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Size {
        match self {
            Self::Fixed(size) => *size,
            Self::Weighted { rng, total, table, last } => {
                let draw = rng.below(*total);
                table.iter().find(|(upto, _)| draw < *upto).map_or(*last, |(_, size)| *size)
            }
        }
    }
}

/// Issues times of an open loop.
#[derive(Clone, Debug)]
pub(super) enum Arrivals {
    Closed,
    /// Request i at i / rate seconds, rounded down, without drift.
    Fixed {
        rate: u64,
        next: u64,
        /// What rounding dropped so far, in nanoseconds / rate.
        rest: u64,
    },
    /// Exponential distances.
    Poisson {
        rng: Rng,
        mean: f64,
        at: u64,
        /// The part of `at` below one nanosecond.
        rest: f64,
    },
}

impl Arrivals {
    pub(super) fn new(pacing: Pacing, seed: u64) -> Self {
        match pacing {
            Pacing::Closed { .. } | Pacing::Timed => Self::Closed,
            Pacing::Open { rate, arrival: Arrival::Fixed } => {
                Self::Fixed { rate, next: 0, rest: 0 }
            }
            Pacing::Open { rate, arrival: Arrival::Poisson } => Self::Poisson {
                rng: Rng::fork(seed, stream::ARRIVALS),
                mean: float(NANOS_PER_SECOND) / float(rate),
                at: 0,
                rest: 0.0,
            },
        }
    }

    pub(super) fn next(&mut self) -> Option<Nanos> {
        match self {
            Self::Closed => None,
            Self::Fixed { rate, next, rest } => {
                let at = *next;
                *rest += NANOS_PER_SECOND % *rate;
                *next += NANOS_PER_SECOND / *rate + *rest / *rate;
                *rest %= *rate;
                Some(Nanos::new(at))
            }
            Self::Poisson { rng, mean, at, rest } => {
                // 1 - unit lies in (0, 1], where the logarithm exists.
                let gap = *rest - ln(1.0 - rng.unit()) * *mean;
                let whole = floor_u64(gap);
                *rest = gap - float(whole);
                *at += whole;
                Some(Nanos::new(*at))
            }
        }
    }
}
