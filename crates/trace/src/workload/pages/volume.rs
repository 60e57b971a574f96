//! A checked `like-NAME-pages` specification.

use std::fmt;

use super::PageFigures;
use super::preset::{FITS, Fit, PRESETS, Preset};
use crate::workload::WorkloadError;
use crate::workload::knobs::{Knobs, gib};
use crate::workload::page_request::PAGE_BYTES;
use crate::workload::values::{nearest, show_size};

/// Every key, in the order of the module's table.
pub(super) const KEYS: [&str; 14] = [
    "bytes",
    "fit",
    "read_share",
    "s",
    "q",
    "pages",
    "rho",
    "distance",
    "multi",
    "mean",
    "read_only",
    "loop",
    "loop_share",
    "seed",
];

/// Pages of a group: neighbours in rank that are neighbours on the volume.
pub(super) const GROUP: u64 = 8;

/// Pages of a volume that a 32-bit number can name, with room for others beside it.
pub(super) const MAX_PAGES: u64 = 1 << 30;
const PAGES: &str = "at most 1073741824 pages (4TiB)";

/// A look-alike of a volume, in pages.
#[derive(Clone, Debug, PartialEq)]
pub struct PageVolume {
    preset: &'static Preset,
    /// Which of the preset's.
    fit: usize,
    pub(in crate::workload) bytes: u64,
    pub(super) read_share: f64,
    pub(super) s: f64,
    pub(super) q: f64,
    pub(super) pages: u64,
    pub(super) rho: f64,
    pub(super) distance: u64,
    pub(super) multi: f64,
    pub(super) mean: f64,
    pub(super) read_only: u64,
    pub(super) loop_pages: u64,
    pub(super) loop_share: f64,
    pub(super) seed: Option<u64>,
}

impl PageVolume {
    /// Every name: `like-mds_0-pages` and so on.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.name)
    }

    /// The look-alike of that name, as long as the original.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let preset = PRESETS.iter().find(|preset| preset.name == name)?;
        let Fit { s, q, pages, rho, distance, reached: _ } = preset.fits[0];
        Some(Self {
            preset,
            fit: 0,
            bytes: gib(preset.gib),
            read_share: preset.read_share,
            s,
            q,
            pages,
            rho,
            distance,
            multi: preset.multi,
            mean: preset.mean,
            read_only: preset.read_only,
            loop_pages: preset.loop_pages,
            loop_share: preset.loop_share,
            seed: None,
        })
    }

    /// Reads a specification such as `like-hm_0-pages,bytes=1GiB`.
    ///
    /// ```
    /// use onefold_trace::workload::PageVolume;
    ///
    /// let volume = PageVolume::parse("like-hm_0-pages,bytes=1MiB").unwrap();
    /// assert_eq!(PageVolume::parse(&volume.canonical()).unwrap(), volume);
    /// assert!(volume.instantiate(8 << 30, 42).unwrap().count() > 50);
    /// ```
    pub fn parse(spec: &str) -> Result<Self, WorkloadError> {
        let mut words = spec.split(',').map(str::trim);
        let name = words.next().filter(|name| !name.is_empty()).ok_or(WorkloadError::Empty)?;
        let names: Vec<&'static str> = Self::names().collect();
        let mut volume = Self::named(name).ok_or_else(|| WorkloadError::UnknownGenerator {
            found: name.to_owned(),
            nearest: nearest(name, &names),
            known: names.join(", "),
        })?;
        let keys = Knobs::collect(words, &KEYS)?;
        volume.set(&keys)?;
        volume.seed = keys.seed()?;
        Ok(volume)
    }

    fn set(&mut self, keys: &Knobs<'_>) -> Result<(), WorkloadError> {
        let page = u64::from(PAGE_BYTES);
        keys.size("bytes", &mut self.bytes, page..=1 << 60, "whole pages of 4KiB up to 1EiB")?;
        keys.choice("fit", &mut self.fit, FITS, "pages or requests")?;
        let Fit { s, q, pages, rho, distance, reached: _ } = self.preset.fits[self.fit];
        (self.s, self.q, self.pages, self.rho, self.distance) = (s, q, pages, rho, distance);
        keys.share("read_share", &mut self.read_share)?;
        keys.real("s", &mut self.s, 0.0..=10.0, "an exponent from 0 to 10")?;
        keys.real("q", &mut self.q, 0.0..=1e6, "a shift from 0 to 1000000")?;
        keys.count("pages", &mut self.pages, 1..=MAX_PAGES, PAGES)?;
        keys.share("rho", &mut self.rho)?;
        keys.count("distance", &mut self.distance, 1..=1 << 20, "1 to 1048576 accesses")?;
        keys.share("multi", &mut self.multi)?;
        keys.real("mean", &mut self.mean, 2.0..=8192.0, "2 to 8192 pages")?;
        keys.count("read_only", &mut self.read_only, 0..=MAX_PAGES, PAGES)?;
        keys.count("loop", &mut self.loop_pages, 0..=MAX_PAGES, PAGES)?;
        keys.share("loop_share", &mut self.loop_share)?;
        if self.loop_pages > self.read_only {
            return Err(WorkloadError::LoopTooLong {
                pages: self.loop_pages,
                read_only: self.read_only,
            });
        }
        Ok(())
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.preset.name
    }

    /// What the original was measured to be.
    #[must_use]
    pub const fn wanted(&self) -> PageFigures {
        self.preset.wanted
    }

    /// What this look-alike reached when it was calibrated: with the parameters of its fit, seed 1,
    /// and as many page writes as were measured of the original.
    #[must_use]
    pub const fn reached(&self) -> PageFigures {
        self.preset.fits[self.fit].reached
    }

    /// The words for `fit`.
    pub fn fits() -> impl Iterator<Item = &'static str> {
        FITS.iter().map(|(word, _)| *word)
    }

    /// The size of device the volume needs, in bytes.
    #[must_use]
    pub const fn natural_bytes(&self) -> u64 {
        (self.written_pages() + self.read_only) * 4096
    }

    /// The specification with every default written out; it parses to an equal workload.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.to_string()
    }

    /// Pages of whole groups.
    pub(super) const fn written_pages(&self) -> u64 {
        self.pages.next_multiple_of(GROUP)
    }
}

impl fmt::Display for PageVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},bytes={}", self.preset.name, show_size(self.bytes))?;
        write!(f, ",fit={}", FITS[self.fit].0)?;
        write!(f, ",read_share={},s={},q={}", self.read_share, self.s, self.q)?;
        write!(f, ",pages={},rho={},distance={}", self.pages, self.rho, self.distance)?;
        write!(f, ",multi={},mean={},read_only={}", self.multi, self.mean, self.read_only)?;
        write!(f, ",loop={},loop_share={}", self.loop_pages, self.loop_share)?;
        match self.seed {
            Some(seed) => write!(f, ",seed={seed}"),
            None => Ok(()),
        }
    }
}
