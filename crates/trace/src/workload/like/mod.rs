//! Look-alikes: requests with the statistics of volumes whose traces cannot be shipped.
//!
//! A model of three parts writes *objects*, each always by one request of one size:
//!
//! - **ticks**: every `gap p50` seconds of the volume a burst rewrites the hottest 1 % of the
//!   objects. A share `core` of it goes to the same objects at every tick, the rest wanders over the
//!   others, the first ones more often;
//! - **body**: objects by Zipf rank; a share `reuse` of these writes repeats one of the last
//!   `distance`;
//! - **cold**: objects written once, one after another.
//!
//! Reads scan the blocks that are never written once, in order; the others go there or to the body
//! in equal parts. `requests=N` scales addresses and time with N.

mod figures;
mod layout;
mod model;
mod preset;
mod presets;
mod shape;

use std::fmt;

pub use figures::Figures;
pub use model::LikeGenerator;
pub use preset::Knobs;

use preset::{Preset, Source};
use presets::PRESETS;

use super::WorkloadError;
use super::keys::Keys;
use super::spec::RangeSpec;

const KEYS: [&str; 3] = ["requests", "range", "seed"];
const DEFAULT_REQUESTS: u64 = 1_000_000;
/// Times of a volume stay below 2^64 ns.
const MAX_REQUESTS: u64 = 1_000_000_000;

/// A look-alike of a volume, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct LikeWorkload {
    preset: Preset,
    requests: u64,
    range: RangeSpec,
    seed: Option<u64>,
}

impl LikeWorkload {
    /// Every name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.name)
    }

    /// The look-alike of that name, with a million requests.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let preset = *PRESETS.iter().find(|preset| preset.name == name)?;
        Some(Self { preset, requests: DEFAULT_REQUESTS, range: RangeSpec::ALL, seed: None })
    }

    /// Reads the keys.
    pub(super) fn parse<'a>(
        mut self,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WorkloadError> {
        let keys = Keys::collect(words, &KEYS)?;
        if let Some(entry) = keys.find("requests") {
            self.requests = entry.positive()?;
            if self.requests > MAX_REQUESTS {
                return Err(entry.out_of("at most 1G requests"));
            }
        }
        self.range = keys.range()?;
        self.seed = keys.find("seed").map(|entry| entry.count()).transpose()?;
        Ok(self)
    }

    /// Fits the workload to a device of `device_bytes` bytes. `seed` is used unless the
    /// specification has its own.
    pub fn instantiate(
        &self,
        device_bytes: u64,
        seed: u64,
    ) -> Result<LikeGenerator, WorkloadError> {
        let (start, end) = self.range.resolve(device_bytes)?;
        LikeGenerator::new(&self.preset, self.requests, (start, end), self.seed.unwrap_or(seed))
    }

    /// The same with other parameters.
    #[must_use]
    pub const fn with_knobs(mut self, knobs: Knobs) -> Self {
        self.preset.knobs = knobs;
        self
    }

    /// The parameters.
    #[must_use]
    pub const fn knobs(&self) -> Knobs {
        self.preset.knobs
    }

    /// Bytes from the lowest to the highest address of the volume, scaled to the requests: the
    /// device it would choose.
    #[must_use]
    pub fn natural_bytes(&self) -> u64 {
        layout::natural_bytes(&self.preset, self.requests)
    }

    /// Whether all figures of the volume were counted in its trace. If not, only the share of
    /// writes among the requests and the mean request are known, and the rest is assumed.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.preset.source == Source::Counted
    }

    /// What the volume shows, or is assumed to.
    #[must_use]
    pub fn wanted(&self) -> Figures {
        self.preset.wanted()
    }

    /// What a million requests with seed 0 show.
    #[must_use]
    pub const fn reached(&self) -> Figures {
        self.preset.reached
    }

    /// How far figures are from those of the volume where the demand names a tolerance, in
    /// tolerances: at most 1 is near enough.
    #[must_use]
    pub fn misses(&self, figures: &Figures) -> Vec<(&'static str, f64)> {
        self.preset.misses(figures)
    }

    /// One line for a list of workloads, which tells what the look-alike does not reach.
    #[must_use]
    pub fn description(&self) -> String {
        let bytes = self.preset.volume.mean_bytes;
        let wanted = self.wanted();
        let mut text = match self.preset.source {
            Source::Counted => {
                let share = wanted.write_blocks * 100.0;
                format!(
                    "look-alike of an MSR volume: {share:.1} % of the blocks written, \
                     {bytes:.0} B a request"
                )
            }
            Source::Published => {
                let share = wanted.write_requests * 100.0;
                format!(
                    "look-alike of an FIU service: {share:.1} % writes, {bytes:.0} B a request, \
                     all else assumed, no digests"
                )
            }
        };
        let misses = self.misses(&self.preset.reached);
        let outside: Vec<_> =
            misses.iter().filter(|(_, miss)| *miss > 1.0).map(|(name, _)| *name).collect();
        if !outside.is_empty() {
            text += "; outside its tolerance: ";
            text += &outside.join(", ");
        }
        text
    }
}

impl fmt::Display for LikeWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},range={},requests={}", self.preset.name, self.range, self.requests)?;
        if let Some(seed) = self.seed {
            write!(f, ",seed={seed}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::LikeWorkload;

    #[test]
    fn the_description_names_what_is_outside() {
        let mut workload = LikeWorkload::named("like-hm_0").unwrap();
        assert!(!workload.description().contains("outside"));
        workload.preset.reached.gap_p50_s *= 1.6;
        workload.preset.reached.top1_share += 0.06;
        let description = workload.description();
        assert!(description.ends_with("; outside its tolerance: top 1 %, median rewrite gap"));
    }
}
