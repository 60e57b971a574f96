//! Knobs and values of a specification, for the generators with many knobs.

use std::ops::RangeInclusive;

use onefold_units::convert::floor_u64;

use super::WorkloadError;
use super::keys::Keys;
use super::page_request::PAGE_BYTES;
use super::values::{Entry, nearest};

/// Keys that set the knobs of a checked specification.
pub(super) struct Knobs<'a>(Keys<'a>);

impl<'a> Knobs<'a> {
    /// Sorts the words after the first one of `spec` by key.
    pub(super) fn collect(
        words: impl Iterator<Item = &'a str>,
        known: &'static [&'static str],
    ) -> Result<Self, WorkloadError> {
        Keys::collect(words, known).map(Self)
    }

    /// The value given for a key.
    pub(super) fn find(&self, key: &str) -> Option<Entry<'a>> {
        self.0.find(key)
    }

    /// Sets a size of whole pages within limits, which `text` spells out, in bytes.
    pub(super) fn size(
        &self,
        key: &str,
        value: &mut u64,
        limits: RangeInclusive<u64>,
        text: &'static str,
    ) -> Result<(), WorkloadError> {
        let Some(entry) = self.find(key) else { return Ok(()) };
        *value = entry.size(entry.value)?;
        if value.is_multiple_of(u64::from(PAGE_BYTES)) && limits.contains(value) {
            Ok(())
        } else {
            Err(entry.out_of(text))
        }
    }

    /// Sets a count within limits, which `text` spells out.
    pub(super) fn count(
        &self,
        key: &str,
        value: &mut u64,
        limits: RangeInclusive<u64>,
        text: &'static str,
    ) -> Result<(), WorkloadError> {
        let Some(entry) = self.find(key) else { return Ok(()) };
        *value = entry.count()?;
        if limits.contains(value) { Ok(()) } else { Err(entry.out_of(text)) }
    }

    /// Sets a share from 0 to 1.
    pub(super) fn share(&self, key: &str, value: &mut f64) -> Result<(), WorkloadError> {
        let Some(entry) = self.find(key) else { return Ok(()) };
        *value = entry.share(entry.value)?;
        Ok(())
    }

    /// Sets a number within limits, which `text` spells out.
    pub(super) fn real(
        &self,
        key: &str,
        value: &mut f64,
        limits: RangeInclusive<f64>,
        text: &'static str,
    ) -> Result<(), WorkloadError> {
        let Some(entry) = self.find(key) else { return Ok(()) };
        *value = entry.real(entry.value)?;
        if limits.contains(value) { Ok(()) } else { Err(entry.out_of(text)) }
    }

    /// Sets one of a list of words, each with its meaning; `choices` lists them.
    pub(super) fn choice<T: Copy, const N: usize>(
        &self,
        key: &str,
        value: &mut T,
        words: [(&'static str, T); N],
        choices: &'static str,
    ) -> Result<(), WorkloadError> {
        let Some(entry) = self.find(key) else { return Ok(()) };
        match words.iter().find(|(word, _)| *word == entry.value) {
            Some((_, meaning)) => {
                *value = *meaning;
                Ok(())
            }
            None => Err(WorkloadError::UnknownChoice {
                key: entry.key,
                value: entry.value.to_owned(),
                nearest: nearest(entry.value, &words.map(|(word, _)| word)),
                choices,
            }),
        }
    }

    /// The seed of this workload alone.
    pub(super) fn seed(&self) -> Result<Option<u64>, WorkloadError> {
        self.find("seed").map(|entry| entry.count()).transpose()
    }
}

/// A number of GiB as whole pages, in bytes.
pub(super) fn gib(count: f64) -> u64 {
    floor_u64(count * f64::from(1_u32 << 18)) * u64::from(PAGE_BYTES)
}
