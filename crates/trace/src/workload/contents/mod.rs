//! Models of content, for writes of which only the address is known.
//!
//! Deduplication asks which writes carry equal contents. A model gives each written page a content
//! id; pages are equal where their ids are. The specification is a word and its keys:
//!
//! | specification | contents |
//! |---|---|
//! | `unique` | no two writes are alike |
//! | `iid_zipf:theta=0.2,share=0.9` | each write draws one of `share` x pages contents; the k-th most frequent has weight k^-`theta` |
//! | `exact_dup_ratio:ratio=0.1` | the share `ratio` of the pages in use repeats another one, at any time |
//! | `recent:ratio=0.9,theta=1,share=0.1` | each write repeats with probability `ratio` one of the newest `share` x pages contents, the k-th newest with weight k^-`theta`; other writes are new |
//!
//! Both readings of "10 % duplicates" in Wu 2022 (remap.md, section 11): the paper's formula is
//! `iid_zipf`, with 40.5 % of the pages in use repeating another and 67.7 % of the writes
//! repeating a page in use; `exact_dup_ratio` is what its text says. `recent` stands for mail, where a
//! message is delivered to many soon after it came: the paper says that up to 92 % of the writes of
//! its traces are duplicates.

mod exact;

#[cfg(test)]
mod tests;

use std::fmt;

use onefold_units::convert::floor_u64;
use onefold_units::{Keep, Keeper, Rng};

use super::keys::Keys;
use super::values::nearest;
use super::{WorkloadError, Zipf};
use exact::ExactRatio;

/// A checked specification of a content model, independent of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContentSpec {
    /// No two writes are alike.
    Unique,
    /// Independent draws from a fixed set of contents.
    IidZipf {
        /// Exponent of the popularity, 0 to 10.
        theta: f64,
        /// Contents per page of the device, above 0.
        share: f64,
    },
    /// A fixed share of the pages in use repeats another one.
    ExactDupRatio {
        /// That share, 0 to 1.
        ratio: f64,
    },
    /// A fixed share of the writes repeats a content that was new not long ago.
    Recent {
        /// That share, 0 to 1.
        ratio: f64,
        /// Exponent of the popularity by age, 0 to 10.
        theta: f64,
        /// Contents that may be repeated per page of the device, above 0.
        share: f64,
    },
}

/// More contents than that per page would hardly ever repeat.
const MAX_SHARE: f64 = 1000.0;

impl ContentSpec {
    /// The words a specification can begin with.
    pub const NAMES: [&str; 4] = ["unique", "iid_zipf", "exact_dup_ratio", "recent"];

    /// Reads a specification such as `iid_zipf:theta=0.2,share=0.9`; keys left out have the values
    /// of the table above.
    ///
    /// ```
    /// use onefold_trace::workload::ContentSpec;
    ///
    /// let spec = ContentSpec::parse("iid_zipf:theta=0.5").unwrap();
    /// assert_eq!(spec.to_string(), "iid_zipf:theta=0.5,share=0.9");
    /// let mut model = spec.model(1 << 20, 42);
    /// let content: u128 = model.of_write(17);
    /// assert!(content <= 943_718);
    /// ```
    pub fn parse(spec: &str) -> Result<Self, WorkloadError> {
        let (name, words) = spec.split_once(':').unwrap_or((spec, ""));
        let words = words.split(',').map(str::trim);
        match name.trim() {
            "unique" => Keys::collect(words, &[]).map(|_| Self::Unique),
            "iid_zipf" => {
                let (theta, share) = zipf(&Keys::collect(words, &["theta", "share"])?, 0.2, 0.9)?;
                Ok(Self::IidZipf { theta, share })
            }
            "exact_dup_ratio" => {
                let keys = Keys::collect(words, &["ratio"])?;
                Ok(Self::ExactDupRatio { ratio: ratio(&keys, 0.1)? })
            }
            "recent" => {
                let keys = Keys::collect(words, &["ratio", "theta", "share"])?;
                let (theta, share) = zipf(&keys, 1.0, 0.1)?;
                Ok(Self::Recent { ratio: ratio(&keys, 0.9)?, theta, share })
            }
            other => Err(WorkloadError::UnknownContents {
                found: other.to_owned(),
                nearest: nearest(other, &Self::NAMES),
            }),
        }
    }

    /// The model for a device of `units` pages.
    #[must_use]
    pub fn model(self, units: u32, seed: u64) -> ContentModel {
        let mut rng = Rng::fork(seed, super::choices::stream::CONTENTS);
        ContentModel(match self {
            Self::Unique => Model::Unique { writes: 0 },
            Self::IidZipf { theta, share } => {
                Model::IidZipf { zipf: sampler(units, theta, share), rng }
            }
            Self::Recent { ratio, theta, share } => {
                Model::Recent { ratio, zipf: sampler(units, theta, share), rng, newest: 0 }
            }
            Self::ExactDupRatio { ratio } => {
                Model::ExactRatio(Box::new(ExactRatio::new(ratio, units, rng.next_u64())))
            }
        })
    }
}

impl fmt::Display for ContentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unique => f.write_str("unique"),
            Self::IidZipf { theta, share } => write!(f, "iid_zipf:theta={theta},share={share}"),
            Self::ExactDupRatio { ratio } => write!(f, "exact_dup_ratio:ratio={ratio}"),
            Self::Recent { ratio, theta, share } => {
                write!(f, "recent:ratio={ratio},theta={theta},share={share}")
            }
        }
    }
}

/// The key `ratio`.
fn ratio(keys: &Keys<'_>, default: f64) -> Result<f64, WorkloadError> {
    keys.find("ratio").map_or(Ok(default), |entry| entry.share(entry.value))
}

/// The keys `theta` and `share`.
fn zipf(keys: &Keys<'_>, theta: f64, share: f64) -> Result<(f64, f64), WorkloadError> {
    let (mut theta, mut share) = (theta, share);
    if let Some(entry) = keys.find("theta") {
        theta = entry.real(entry.value)?;
        if !(0.0..=10.0).contains(&theta) {
            return Err(entry.out_of("an exponent from 0 to 10"));
        }
    }
    if let Some(entry) = keys.find("share") {
        share = entry.real(entry.value)?;
        if share <= 0.0 || share > MAX_SHARE {
            return Err(entry.out_of("above 0, at most 1000 contents per page"));
        }
    }
    Ok((theta, share))
}

/// Draws ranks among `share` contents for each of `units` pages.
fn sampler(units: u32, theta: f64, share: f64) -> Zipf {
    let contents = floor_u64(f64::from(units) * share).max(1);
    // Fewer than 2^42 contents and a checked exponent: the sampler has them.
    Zipf::new(contents, theta)
        .unwrap_or_else(|| unreachable!("{contents} contents with exponent {theta}"))
}

/// Gives every page written its content. The same specification, device, seed and writes give the
/// same contents on every machine.
#[derive(Clone, Debug)]
pub struct ContentModel(Model);

#[derive(Clone, Debug)]
enum Model {
    Unique { writes: u128 },
    IidZipf { zipf: Zipf, rng: Rng },
    ExactRatio(Box<ExactRatio>),
    Recent { ratio: f64, zipf: Zipf, rng: Rng, newest: u64 },
}

impl Keep for ContentModel {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        match &mut self.0 {
            Model::Unique { writes } => writes.keep(keeper),
            Model::IidZipf { zipf: _, rng } => rng.keep(keeper),
            Model::ExactRatio(model) => model.keep(keeper),
            Model::Recent { ratio: _, zipf: _, rng, newest } => {
                rng.keep(keeper);
                newest.keep(keeper);
            }
        }
    }
}

impl ContentModel {
    /// The content of the next write to page `lpn`: an id of at least 1, as 0 means unknown in
    /// traces.
    ///
    /// Panics if `lpn` is not below the units of the device, where the model knows pages.
    pub fn of_write(&mut self, lpn: u32) -> u128 {
        match &mut self.0 {
            Model::Unique { writes } => {
                *writes += 1;
                *writes
            }
            Model::IidZipf { zipf, rng } => u128::from(zipf.rank(rng)) + 1,
            Model::ExactRatio(model) => model.of_write(lpn),
            Model::Recent { ratio, zipf, rng, newest } => {
                let repeats = rng.unit() < *ratio;
                let age = if repeats { zipf.rank(rng) } else { *newest };
                if age >= *newest {
                    *newest += 1;
                    return u128::from(*newest);
                }
                u128::from(*newest - age)
            }
        }
    }

    /// Page `lpn` was trimmed: it repeats nothing any more. Panics as [`of_write`](Self::of_write).
    pub fn trim(&mut self, lpn: u32) {
        if let Model::ExactRatio(model) = &mut self.0 {
            model.trim(lpn);
        }
    }
}
