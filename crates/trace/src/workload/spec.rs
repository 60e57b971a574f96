//! A checked workload specification.

use std::fmt::{self, Write as _};

use onefold_units::convert::float;

use super::Pattern;
use super::values::show_size;

/// A request size with its weight among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Size in bytes.
    pub bytes: u32,
    /// Relative frequency.
    pub weight: u32,
}

/// One end of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A byte offset.
    Bytes(u64),
    /// Millionths of a percent of the device: an integer, so that 10 % of 10 GiB is exactly 1 GiB.
    Micropercent(u64),
}

/// The addresses a workload uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSpec {
    /// First byte.
    pub start: Bound,
    /// First byte after it.
    pub end: Bound,
}

impl RangeSpec {
    /// The whole device.
    pub const ALL: Self = Self { start: Bound::Bytes(0), end: Bound::Micropercent(100_000_000) };
}

/// Which addresses are popular. The shares are checked to make sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The k-th most popular has weight k^-theta.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// A share of the addresses gets a share of the requests.
    HotCold {
        /// Share of the addresses that is hot.
        addresses: f64,
        /// Share of the requests that goes there.
        requests: f64,
    },
    /// Self-similar: each first `h` of the ranks gets 1 - h of the requests.
    Pareto {
        /// The share of the ranks.
        h: f64,
    },
    /// Normal around the middle of the range.
    Gaussian {
        /// Standard deviation as a share of the range.
        sigma: f64,
    },
}

impl Distribution {
    /// Whether popular addresses are spread over the range unless the specification says otherwise.
    pub(super) const fn scatters(self) -> bool {
        matches!(self, Self::Zipf { .. } | Self::Pareto { .. })
    }
}

/// When an open loop issues requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Exponential distances.
    Poisson,
    /// Equal distances.
    Fixed,
}

/// What decides when the next request is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Closed loop: the next request follows a completion.
    Closed {
        /// Requests in flight.
        depth: u32,
    },
    /// Open loop: time alone.
    Open {
        /// Requests per second.
        rate: u64,
        /// How they are spaced.
        arrival: Arrival,
    },
    /// Open loop at the times the workload itself gives, bursts included.
    Timed,
}

/// When the workload ends: with the first request that reaches the number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Requests of any kind.
    Requests(u64),
    /// Bytes read and written.
    Bytes(u64),
    /// Bytes written, as a multiple of the range.
    DriveWrites(f64),
}

/// The remaps of a workload. The share is above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemapSpec {
    /// Share of remaps among the requests that are no flushes.
    pub share: f64,
    /// Bytes of a remap: a multiple of 4 KiB and of the alignment.
    pub run: u32,
    /// Share of the remaps that unmap their source.
    pub move_share: f64,
}

/// A checked specification of a pattern and its keys, independent of the device.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternWorkload {
    pub(super) pattern: Pattern,
    pub(super) sizes: Vec<BlockSize>,
    pub(super) align: u32,
    pub(super) range: RangeSpec,
    pub(super) distribution: Distribution,
    pub(super) scatter: bool,
    pub(super) pacing: Pacing,
    pub(super) length: Length,
    pub(super) read_share: f64,
    pub(super) trim_share: f64,
    pub(super) remap: Option<RemapSpec>,
    pub(super) fua_share: f64,
    pub(super) flush_every: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) fresh: bool,
}

impl PatternWorkload {
    /// The pattern.
    #[must_use]
    pub const fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Closed loop with its depth, or open loop with its rate.
    #[must_use]
    pub const fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// When it ends.
    #[must_use]
    pub const fn length(&self) -> Length {
        self.length
    }

    /// The request sizes, in the order given.
    #[must_use]
    pub fn sizes(&self) -> &[BlockSize] {
        &self.sizes
    }

    /// The distribution of addresses.
    #[must_use]
    pub const fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// Share of reads among the requests that are no flushes.
    #[must_use]
    pub const fn read_share(&self) -> f64 {
        self.read_share
    }

    /// Share of trims among the requests that are no flushes.
    #[must_use]
    pub const fn trim_share(&self) -> f64 {
        self.trim_share
    }

    /// The remaps, if there are any.
    #[must_use]
    pub const fn remap(&self) -> Option<RemapSpec> {
        self.remap
    }

    /// The seed the specification itself gives.
    #[must_use]
    pub const fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Whether trims assume an empty device at the start.
    #[must_use]
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }

    fn write_shares(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pattern.mixes_reads() {
            write!(f, ",read_share={}", self.read_share)?;
        }
        if !self.pattern.writes() {
            return Ok(());
        }
        write!(f, ",trim_share={}", self.trim_share)?;
        if let Some(RemapSpec { share, run, move_share }) = self.remap {
            let run = show_size(u64::from(run));
            write!(f, ",remap_share={share},remap_run={run},remap_move_share={move_share}")?;
        }
        write!(f, ",fua_share={}", self.fua_share)?;
        if let Some(writes) = self.flush_every {
            write!(f, ",flush_every={writes}")?;
        }
        write!(f, ",fresh={}", self.fresh)
    }
}

impl fmt::Display for PatternWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},bs=", self.pattern.name())?;
        if let [only] = self.sizes.as_slice() {
            f.write_str(&show_size(u64::from(only.bytes)))?;
        } else {
            for (at, size) in self.sizes.iter().enumerate() {
                let slash = if at == 0 { "" } else { "/" };
                write!(f, "{slash}{}:{}", show_size(u64::from(size.bytes)), size.weight)?;
            }
        }
        write!(f, ",align={},range={}", show_size(u64::from(self.align)), self.range)?;
        if !self.pattern.is_sequential() {
            write!(f, ",dist={}", self.distribution)?;
            if self.distribution != Distribution::Uniform {
                write!(f, ",scatter={}", self.scatter)?;
            }
        }
        match self.pacing {
            Pacing::Closed { depth } => write!(f, ",qd={depth}")?,
            Pacing::Open { rate, arrival: Arrival::Poisson } => {
                write!(f, ",rate={rate},arrival=poisson")?;
            }
            Pacing::Open { rate, arrival: Arrival::Fixed } => {
                write!(f, ",rate={rate},arrival=fixed")?;
            }
            Pacing::Timed => {}
        }
        write!(f, ",{}", self.length)?;
        self.write_shares(f)?;
        if let Some(seed) = self.seed {
            write!(f, ",seed={seed}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(count) => write!(f, "requests={count}"),
            Self::Bytes(bytes) => write!(f, "bytes={}", show_size(*bytes)),
            Self::DriveWrites(times) => write!(f, "drive_writes={times}"),
        }
    }
}

impl fmt::Display for RangeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.end)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&show_size(*bytes)),
            Self::Micropercent(millionths) => {
                write!(f, "{}", float(*millionths) / 1e6)?;
                f.write_char('%')
            }
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
            Self::HotCold { addresses, requests } => write!(f, "hotcold:{addresses}/{requests}"),
            Self::Pareto { h } => write!(f, "pareto:{h}"),
            Self::Gaussian { sigma } => write!(f, "gaussian:{sigma}"),
        }
    }
}
