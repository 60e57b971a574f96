//! Look-alikes of the benchmarks of Wu 2022, Fig. 5, Sung 2022, Fig. 11 and 12, and Han 2021, Fig. 7 and 8: what they ask of
//! the device, page by page.
//!
//! - `like-fileserver`: filebench, personality `fileserver` (version 3.0). Files of 128 KiB on
//!   average, gamma-distributed with shape 1.5, fill the range. In turn a random file is written
//!   whole, another gets an append of up to 16 KiB, a third is read whole, in requests of up to
//!   1 MiB. A new file takes the place of a deleted one.
//! - `like-oltp`: filebench, personality `oltp` (version 3.0). Per 1,000 random reads in the data
//!   files a burst of 100 random writes, per 3,200 reads one write of 256 KiB in a log file of
//!   10 MiB, all writes forced (`dsync`). Its 2 KiB are a page, as the page cache makes them.
//! - `like-fio-randw`: fio, random writes of 4 KiB.
//! - `like-ffsb-write`, `like-ffsb-mixed`: FFSB with 100 files that fill the range (Sung 2022, sec. IV-C; Han 2021, sec.
//!   IV-B2). An operation is an overwrite of a random page or an append of one to a random file, half of each; `mixed` reads a
//!   random page for each. Appends wait in the page cache until 1 MiB of a file, or a quarter of a small one, is
//!   together: our choice, as the papers say nothing. A file is half as long as its share of the range at first, and again
//!   when an append has filled that.
//! - `like-postmark`: PostMark with 20 files and 20 transactions, biases of 10 (Han 2021, sec. IV-B2): 20 files are written,
//!   then 20 times one is read and another written; all are deleted, and it begins anew. A file is a fortieth of the range
//!   (there 900 MB). Writes leave the page cache in 1 MiB, reads are as long as read-ahead, 128 KiB.
//!
//! The reads are those of the benchmark: no page cache answers any, unless `cache` says so (`like-fileserver` and
//! `like-oltp`). It is warm, replaced by CLOCK, and written through: a read asks the device for pages that are not in
//! it, and every write reaches the device at once. File-system metadata and journal
//! are left out, and deleted files are not trimmed, as without mount option `discard`. The range is
//! the 90 % of the device that remap.md, section 13, fills first; the number of requests in flight is
//! that section's, too, and not of the paper.
//!
//! # Keys
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `requests`, `bytes`, `drive_writes` | `requests=1M` | length, as for patterns |
//! | `range` | `0-90%` | addresses |
//! | `cache` | `0` | page cache of the host, of `like-fileserver` and `like-oltp`: a size, or a share of the range in percent |
//! | `qd` | `32` | requests kept in flight |
//! | `seed` | from the caller | seed of this workload alone |

mod cache;
mod generate;

#[cfg(test)]
mod tests;

use std::fmt;

use super::WorkloadError;
use super::keys::Keys;
use super::spec::{Bound, Length, Pacing, RangeSpec};

pub use generate::BenchGenerator;

const KEYS: [&str; 6] = ["requests", "bytes", "drive_writes", "range", "qd", "seed"];
const KEYS_OF_FILEBENCH: [&str; 7] =
    ["requests", "bytes", "drive_writes", "range", "cache", "qd", "seed"];
const DEFAULT_PACING: Pacing = Pacing::Closed { depth: 32 };
const DEFAULT_RANGE: RangeSpec =
    RangeSpec { start: Bound::Bytes(0), end: Bound::Micropercent(90_000_000) };

const NO_CACHE: Bound = Bound::Bytes(0);

/// Which benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bench {
    /// filebench, personality fileserver.
    Fileserver,
    /// filebench, personality oltp.
    Oltp,
    /// fio, random writes.
    FioRandw,
    /// FFSB, overwrites and appends.
    FfsbWrite,
    /// FFSB, reads, overwrites and appends.
    FfsbMixed,
    /// `PostMark`.
    Postmark,
}

impl Bench {
    /// Every benchmark.
    pub const ALL: [Self; 6] = [
        Self::Fileserver,
        Self::Oltp,
        Self::FioRandw,
        Self::FfsbWrite,
        Self::FfsbMixed,
        Self::Postmark,
    ];

    /// The word of the specification language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fileserver => "like-fileserver",
            Self::Oltp => "like-oltp",
            Self::FioRandw => "like-fio-randw",
            Self::FfsbWrite => "like-ffsb-write",
            Self::FfsbMixed => "like-ffsb-mixed",
            Self::Postmark => "like-postmark",
        }
    }

    /// The benchmark of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bench| bench.name() == name)
    }

    /// The keys it takes.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Fileserver | Self::Oltp => &KEYS_OF_FILEBENCH,
            Self::FioRandw | Self::FfsbWrite | Self::FfsbMixed | Self::Postmark => &KEYS,
        }
    }

    /// What it does, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Fileserver => {
                "look-alike of filebench fileserver: whole files written and read, appends"
            }
            Self::Oltp => "look-alike of filebench oltp: random reads, bursts of writes, a log",
            Self::FioRandw => "look-alike of fio randwrite: random pages",
            Self::FfsbWrite => "look-alike of FFSB: overwrites and appends in 100 files",
            Self::FfsbMixed => "look-alike of FFSB: reads, overwrites and appends in 100 files",
            Self::Postmark => "look-alike of PostMark: files are written and read whole",
        }
    }
}

/// A look-alike of a benchmark, independent of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchWorkload {
    bench: Bench,
    length: Length,
    range: RangeSpec,
    /// Page cache of the host; 0 = none.
    cache: Bound,
    pacing: Pacing,
    seed: Option<u64>,
}

impl BenchWorkload {
    /// Reads the keys.
    pub(super) fn parse<'a>(
        bench: Bench,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WorkloadError> {
        let keys = Keys::collect(words, bench.keys())?;
        keys.refuse_exclusive()?;
        let given = |key| keys.find(key).is_some();
        Ok(Self {
            bench,
            length: keys.length()?,
            range: if given("range") { keys.range()? } else { DEFAULT_RANGE },
            cache: keys.cache()?,
            pacing: if given("qd") { keys.pacing()? } else { DEFAULT_PACING },
            seed: keys.find("seed").map(|entry| entry.count()).transpose()?,
        })
    }

    /// Fits the workload to a device of `device_bytes` bytes. `seed` is used unless the
    /// specification has its own.
    pub fn instantiate(
        &self,
        device_bytes: u64,
        seed: u64,
    ) -> Result<BenchGenerator, WorkloadError> {
        let range = self.range.resolve(device_bytes)?;
        let seed = self.seed.unwrap_or(seed);
        BenchGenerator::new(self.bench, self.length, range, self.cache, seed)
    }

    /// Closed loop with its depth.
    #[must_use]
    pub const fn pacing(&self) -> Pacing {
        self.pacing
    }
}

impl fmt::Display for BenchWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},range={},{}", self.bench.name(), self.range, self.length)?;
        if self.cache != NO_CACHE {
            write!(f, ",cache={}", self.cache)?;
        }
        if let Pacing::Closed { depth } = self.pacing {
            write!(f, ",qd={depth}")?;
        }
        if let Some(seed) = self.seed {
            write!(f, ",seed={seed}")?;
        }
        Ok(())
    }
}
