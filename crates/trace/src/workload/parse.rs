//! The specification language. Every value is checked here, before any device is known.

use onefold_units::PAGE_BYTES;
use onefold_units::convert::narrow;
use onefold_units::numbers::real;

use super::Pattern;
use super::WorkloadError;
use super::keys::Keys;
use super::spec::{Arrival, BlockSize, Distribution, Length, Pacing, PatternWorkload, RemapSpec};
use super::values::{Entry, nearest};

/// Every key, in the order of the module's table.
pub(super) const KEYS: [&str; 20] = [
    "bs",
    "align",
    "range",
    "dist",
    "scatter",
    "qd",
    "rate",
    "arrival",
    "requests",
    "bytes",
    "drive_writes",
    "read_share",
    "trim_share",
    "remap_share",
    "remap_run",
    "remap_move_share",
    "fua_share",
    "flush_every",
    "seed",
    "fresh",
];

const DISTRIBUTIONS: [&str; 5] = ["uniform", "zipf", "hotcold", "pareto", "gaussian"];
const DEFAULT_REQUESTS: u64 = 1_000_000;
const DEFAULT_BYTES: u32 = 4096;
const DEFAULT_PARETO: f64 = 0.2;
const DEFAULT_SIGMA: f64 = 0.1;
/// Limits of the values; the texts of the errors repeat them.
const MAX_REQUEST: u64 = 1 << 30;
const MAX_DEPTH: u64 = 65_536;
const MAX_RATE: u64 = 1_000_000_000;
const MAX_WEIGHT: u32 = 1_000_000;
const MAX_SIZES: usize = 64;
const MAX_DRIVE_WRITES: f64 = 1e6;

impl PatternWorkload {
    /// Reads the keys of a pattern.
    pub(super) fn parse<'a>(
        pattern: Pattern,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WorkloadError> {
        let keys = Keys::collect(words, &KEYS)?;
        keys.refuse_contradictions(pattern)?;
        let sizes = keys.sizes()?;
        let distribution = keys.distribution()?;
        let align = keys.align(&sizes)?;
        let workload = Self {
            pattern,
            align,
            sizes,
            range: keys.range()?,
            scatter: keys.scatter(distribution)?,
            distribution,
            pacing: keys.pacing()?,
            length: keys.length()?,
            read_share: keys.share("read_share", pattern.default_read_share())?,
            trim_share: keys.share("trim_share", pattern.default_trim_share())?,
            remap: keys.remap(align)?,
            fua_share: keys.share("fua_share", 0.0)?,
            flush_every: keys.find("flush_every").map(|entry| entry.positive()).transpose()?,
            seed: keys.find("seed").map(|entry| entry.count()).transpose()?,
            fresh: keys.find("fresh").map_or(Ok(false), |entry| entry.boolean())?,
        };
        workload.refuse_impossible_shares(&keys)
    }

    fn refuse_impossible_shares(mut self, keys: &Keys<'_>) -> Result<Self, WorkloadError> {
        let remap = self.remap.map_or(0.0, |remap| remap.share);
        // A default gives way to a share the user asked for.
        if keys.find("trim_share").is_none() {
            self.trim_share = self.trim_share.min((1.0 - remap - self.read_share).max(0.0));
        }
        if keys.find("read_share").is_none() && self.pattern.mixes_reads() {
            self.read_share = self.read_share.min((1.0 - remap - self.trim_share).max(0.0));
        }
        let (read, trim) = (self.read_share, self.trim_share);
        // Decimal shares that add up to 1 may exceed it by a rounding error.
        if read + trim + remap > 1.0 + 1e-9 {
            return Err(WorkloadError::SharesExceedOne { read, trim, remap });
        }
        if let (Some(entry), Length::Bytes(_)) = (keys.find("remap_share"), self.length)
            && remap >= 1.0
        {
            return Err(entry.out_of("a share below 1 beside `bytes`, since remaps move no bytes"));
        }
        // Neither remaps nor trims add bytes that are written.
        if matches!(self.length, Length::DriveWrites(_)) && self.read_share + remap >= 1.0 {
            return Err(WorkloadError::NeverWrites);
        }
        Ok(self)
    }
}

impl Keys<'_> {
    /// Keys that say the same thing in two ways.
    pub(super) fn refuse_exclusive(&self) -> Result<(), WorkloadError> {
        for (first, second) in [
            ("qd", "rate"),
            ("requests", "bytes"),
            ("requests", "drive_writes"),
            ("bytes", "drive_writes"),
        ] {
            if self.find(first).is_some() && self.find(second).is_some() {
                return Err(WorkloadError::Exclusive { first, second });
            }
        }
        Ok(())
    }

    fn refuse_contradictions(&self, pattern: Pattern) -> Result<(), WorkloadError> {
        self.refuse_exclusive()?;
        for (key, means_something) in [
            ("dist", !pattern.is_sequential()),
            ("scatter", !pattern.is_sequential()),
            ("read_share", pattern.mixes_reads()),
            ("trim_share", pattern.writes()),
            ("remap_share", pattern.writes()),
            ("remap_run", pattern.writes()),
            ("remap_move_share", pattern.writes()),
            ("fua_share", pattern.writes()),
            ("flush_every", pattern.writes()),
            ("fresh", pattern.writes()),
            ("drive_writes", pattern.writes()),
        ] {
            if !means_something && self.find(key).is_some() {
                return Err(WorkloadError::NotForPattern { key, pattern });
            }
        }
        if self.find("arrival").is_some() && self.find("rate").is_none() {
            return Err(WorkloadError::Needs { key: "arrival", needs: "rate" });
        }
        Ok(())
    }

    fn sizes(&self) -> Result<Vec<BlockSize>, WorkloadError> {
        let Some(entry) = self.find("bs") else {
            return Ok(vec![BlockSize { bytes: DEFAULT_BYTES, weight: 1 }]);
        };
        if !entry.value.contains([':', '/']) {
            return Ok(vec![BlockSize { bytes: request_bytes(entry, entry.value)?, weight: 1 }]);
        }
        let sizes: Result<Vec<_>, _> =
            entry.value.split('/').map(|part| weighted_size(entry, part)).collect();
        let sizes = sizes?;
        if sizes.len() > MAX_SIZES {
            return Err(entry.out_of("at most 64 sizes"));
        }
        // One size needs no weight, and the canonical form shows none.
        if let [only] = sizes.as_slice() {
            return Ok(vec![BlockSize { weight: 1, ..*only }]);
        }
        Ok(sizes)
    }

    fn align(&self, sizes: &[BlockSize]) -> Result<u32, WorkloadError> {
        match self.find("align") {
            Some(entry) => request_bytes(entry, entry.value),
            None => Ok(sizes.iter().map(|size| size.bytes).min().unwrap_or(DEFAULT_BYTES)),
        }
    }

    fn distribution(&self) -> Result<Distribution, WorkloadError> {
        let Some(entry) = self.find("dist") else { return Ok(Distribution::Uniform) };
        let (name, argument) = match entry.value.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (entry.value, None),
        };
        match (name, argument) {
            ("uniform", None) => Ok(Distribution::Uniform),
            ("zipf", Some(theta)) => zipf(entry, theta),
            ("hotcold", Some(shares)) => hot_cold(entry, shares),
            ("pareto", argument) => pareto(entry, argument),
            ("gaussian", argument) => gaussian(entry, argument),
            ("uniform", Some(_)) => Err(entry.malformed("`uniform` without a parameter")),
            ("zipf", None) => Err(entry.malformed("an exponent: `zipf:0.99`")),
            ("hotcold", None) => Err(entry.malformed("two shares: `hotcold:0.2/0.8`")),
            _ => Err(WorkloadError::UnknownChoice {
                key: entry.key,
                value: entry.value.to_owned(),
                nearest: nearest(name, &DISTRIBUTIONS),
                choices: "uniform, zipf:THETA, hotcold:F/R, pareto:H or gaussian:SIGMA",
            }),
        }
    }

    fn scatter(&self, distribution: Distribution) -> Result<bool, WorkloadError> {
        let Some(entry) = self.find("scatter") else { return Ok(distribution.scatters()) };
        if distribution == Distribution::Uniform {
            return Err(WorkloadError::Needs { key: "scatter", needs: "a skewed dist" });
        }
        entry.boolean()
    }

    pub(super) fn pacing(&self) -> Result<Pacing, WorkloadError> {
        if let Some(entry) = self.find("rate") {
            let rate = entry.count()?;
            if !(1..=MAX_RATE).contains(&rate) {
                return Err(entry.out_of("1 to 1G requests per second"));
            }
            return Ok(Pacing::Open { rate, arrival: self.arrival()? });
        }
        let Some(entry) = self.find("qd") else { return Ok(Pacing::Closed { depth: 1 }) };
        let depth = entry.count()?;
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(entry.out_of("1 to 65536 requests in flight"));
        }
        Ok(Pacing::Closed { depth: narrow(depth) })
    }

    fn arrival(&self) -> Result<Arrival, WorkloadError> {
        let Some(entry) = self.find("arrival") else { return Ok(Arrival::Poisson) };
        match entry.value {
            "poisson" => Ok(Arrival::Poisson),
            "fixed" => Ok(Arrival::Fixed),
            other => Err(WorkloadError::UnknownChoice {
                key: entry.key,
                value: other.to_owned(),
                nearest: nearest(other, &["poisson", "fixed"]),
                choices: "poisson or fixed",
            }),
        }
    }

    pub(super) fn length(&self) -> Result<Length, WorkloadError> {
        if let Some(entry) = self.find("requests") {
            return Ok(Length::Requests(entry.positive()?));
        }
        if let Some(entry) = self.find("bytes") {
            return Ok(Length::Bytes(entry.sectors(entry.value)?));
        }
        let Some(entry) = self.find("drive_writes") else {
            return Ok(Length::Requests(DEFAULT_REQUESTS));
        };
        let times = entry.real(entry.value)?;
        if times > 0.0 && times <= MAX_DRIVE_WRITES {
            Ok(Length::DriveWrites(times))
        } else {
            Err(entry.out_of("above 0, at most 1000000 drive writes"))
        }
    }

    fn remap(&self, align: u32) -> Result<Option<RemapSpec>, WorkloadError> {
        let share = self.share("remap_share", 0.0)?;
        if share <= 0.0 {
            for key in ["remap_run", "remap_move_share"] {
                if self.find(key).is_some() {
                    return Err(WorkloadError::Needs { key, needs: "remap_share" });
                }
            }
            return Ok(None);
        }
        if u64::from(align) % PAGE_BYTES != 0 {
            return Err(WorkloadError::RemapAlign { align });
        }
        let run = match self.find("remap_run") {
            None => align.max(DEFAULT_BYTES),
            Some(entry) => {
                let run = request_bytes(entry, entry.value)?;
                if !run.is_multiple_of(align) {
                    return Err(entry.out_of("a multiple of `align`"));
                }
                run
            }
        };
        Ok(Some(RemapSpec { share, run, move_share: self.share("remap_move_share", 0.0)? }))
    }

    fn share(&self, key: &str, default: f64) -> Result<f64, WorkloadError> {
        self.find(key).map_or(Ok(default), |entry| entry.share(entry.value))
    }
}

fn request_bytes(entry: Entry<'_>, text: &str) -> Result<u32, WorkloadError> {
    let bytes = entry.sectors(text)?;
    if bytes > MAX_REQUEST { Err(entry.out_of("at most 1GiB")) } else { Ok(narrow(bytes)) }
}

fn weighted_size(entry: Entry<'_>, part: &str) -> Result<BlockSize, WorkloadError> {
    let expected = "sizes with whole weights such as 4KiB:70/64KiB:30";
    let (size, weight) = part.split_once(':').ok_or_else(|| entry.malformed(expected))?;
    let weight: u32 = weight.trim().parse().map_err(|_| entry.malformed(expected))?;
    if !(1..=MAX_WEIGHT).contains(&weight) {
        return Err(entry.out_of("weights from 1 to 1000000"));
    }
    Ok(BlockSize { bytes: request_bytes(entry, size.trim())?, weight })
}

fn zipf(entry: Entry<'_>, theta: &str) -> Result<Distribution, WorkloadError> {
    let theta = entry.real(theta)?;
    if (0.0..=10.0).contains(&theta) {
        Ok(Distribution::Zipf { theta })
    } else {
        Err(entry.out_of("an exponent from 0 to 10"))
    }
}

fn hot_cold(entry: Entry<'_>, shares: &str) -> Result<Distribution, WorkloadError> {
    let (addresses, requests) =
        shares.split_once('/').ok_or_else(|| entry.malformed("two shares: `hotcold:0.2/0.8`"))?;
    let (addresses, requests) = match percentages(addresses, requests) {
        Some(both) => both,
        None => (entry.share(addresses)?, entry.share(requests)?),
    };
    if addresses <= 0.0 || addresses >= 1.0 {
        return Err(entry.out_of("a share of the addresses between 0 and 1, neither of them"));
    }
    Ok(Distribution::HotCold { addresses, requests })
}

/// `20/80` means percentages: both numbers are above 1, so neither can be a share. One such number
/// beside a share stays an error, since `0.2/80` and `1/99` leave open what was meant.
fn percentages(addresses: &str, requests: &str) -> Option<(f64, f64)> {
    let both = (real(addresses)?, real(requests)?);
    let is_percentage = |number: f64| number > 1.0 && number <= 100.0;
    (is_percentage(both.0) && is_percentage(both.1)).then_some((both.0 / 100.0, both.1 / 100.0))
}

fn pareto(entry: Entry<'_>, h: Option<&str>) -> Result<Distribution, WorkloadError> {
    let h = h.map_or(Ok(DEFAULT_PARETO), |text| entry.share(text))?;
    if (0.001..=0.5).contains(&h) {
        Ok(Distribution::Pareto { h })
    } else {
        Err(entry.out_of("a share from 0.001 to 0.5"))
    }
}

fn gaussian(entry: Entry<'_>, sigma: Option<&str>) -> Result<Distribution, WorkloadError> {
    let sigma = sigma.map_or(Ok(DEFAULT_SIGMA), |text| entry.share(text))?;
    if sigma >= 1e-6 {
        Ok(Distribution::Gaussian { sigma })
    } else {
        Err(entry.out_of("a share of the range from 0.000001 to 1"))
    }
}
