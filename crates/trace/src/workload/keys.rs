//! The `key=value` words of a specification, whatever its kind.

use onefold_units::convert::floor_u64;
use onefold_units::numbers::real;

use super::WorkloadError;
use super::spec::{Bound, RangeSpec};
use super::values::{Entry, nearest};

/// The words of a specification after its first.
pub(super) struct Keys<'a>(Vec<Entry<'a>>);

impl<'a> Keys<'a> {
    /// Keys out of `known`, each at most once and with a value.
    pub(super) fn collect(
        words: impl Iterator<Item = &'a str>,
        known: &'static [&'static str],
    ) -> Result<Self, WorkloadError> {
        let mut keys = Self(Vec::new());
        for word in words.filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let name = name.trim();
            let Some(key) = known.iter().copied().find(|key| *key == name) else {
                return Err(WorkloadError::UnknownKey {
                    key: name.to_owned(),
                    nearest: nearest(name, known),
                    known,
                });
            };
            if keys.find(key).is_some() {
                return Err(WorkloadError::DuplicateKey { key });
            }
            // `fresh` alone is a flag.
            let value = if word == "fresh" { "true" } else { value.trim() };
            if value.is_empty() {
                return Err(WorkloadError::MissingValue { key });
            }
            keys.0.push(Entry { key, value });
        }
        Ok(keys)
    }

    pub(super) fn find(&self, key: &str) -> Option<Entry<'a>> {
        self.0.iter().find(|entry| entry.key == key).copied()
    }

    /// The addresses: the whole device unless given.
    pub(super) fn range(&self) -> Result<RangeSpec, WorkloadError> {
        let Some(entry) = self.find("range") else { return Ok(RangeSpec::ALL) };
        let (start, end) = entry.value.split_once('-').unwrap_or(("0", entry.value));
        let range = RangeSpec { start: bound(entry, start)?, end: bound(entry, end)? };
        let forward = match (range.start, range.end) {
            (Bound::Bytes(start), Bound::Bytes(end))
            | (Bound::Micropercent(start), Bound::Micropercent(end)) => start < end,
            // Comparable only once the device is known.
            _ => true,
        };
        if forward { Ok(range) } else { Err(entry.out_of("an end that lies behind the start")) }
    }

    /// The page cache of the host: none unless given.
    pub(super) fn cache(&self) -> Result<Bound, WorkloadError> {
        self.find("cache").map_or(Ok(Bound::Bytes(0)), |entry| bound(entry, entry.value))
    }
}

fn bound(entry: Entry<'_>, text: &str) -> Result<Bound, WorkloadError> {
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        let expected = match entry.key {
            "cache" => "a size such as 1GiB, or a share of the range such as 50%",
            _ => "two ends such as 0-50% or 1GiB-2GiB, or a length",
        };
        let percent = real(percent).ok_or_else(|| entry.malformed(expected))?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(entry.out_of("percentages from 0 to 100"));
        }
        return Ok(Bound::Micropercent(floor_u64(percent * 1e6 + 0.5)));
    }
    // Zero needs no unit, also in `0-50%`.
    if text == "0" { Ok(Bound::Bytes(0)) } else { entry.sectors(text).map(Bound::Bytes) }
}
