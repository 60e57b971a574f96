//! Numbers, units and words of a specification.

use onefold_units::SECTOR_BYTES;
use onefold_units::numbers::{self, real};

use super::WorkloadError;

/// A key with the value it was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) key: &'static str,
    pub(super) value: &'a str,
}

impl Entry<'_> {
    pub(super) fn malformed(&self, expected: &'static str) -> WorkloadError {
        WorkloadError::Malformed { key: self.key, value: self.value.to_owned(), expected }
    }

    pub(super) fn out_of(&self, limits: &'static str) -> WorkloadError {
        WorkloadError::OutOfLimits { key: self.key, value: self.value.to_owned(), limits }
    }

    /// A size in bytes.
    pub(super) fn size(&self, text: &str) -> Result<u64, WorkloadError> {
        numbers::size(text).map_err(|_| {
            self.malformed("a whole number of bytes such as 4096, 4KiB, 1.5MiB or 1GB")
        })
    }

    /// A size of whole sectors, not zero.
    pub(super) fn sectors(&self, text: &str) -> Result<u64, WorkloadError> {
        let bytes = self.size(text)?;
        if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(WorkloadError::NotSectors { key: self.key, bytes });
        }
        Ok(bytes)
    }

    /// A count.
    pub(super) fn count(&self) -> Result<u64, WorkloadError> {
        numbers::count(self.value)
            .map_err(|_| self.malformed("a whole number such as 500, 50k, 1.5M (= 1,500,000)"))
    }

    /// A count that is not zero.
    pub(super) fn positive(&self) -> Result<u64, WorkloadError> {
        let count = self.count()?;
        if count == 0 { Err(self.out_of("at least 1")) } else { Ok(count) }
    }

    /// A share from 0 to 1, also as a percentage.
    pub(super) fn share(&self, text: &str) -> Result<f64, WorkloadError> {
        let share = real(text).ok_or_else(|| self.malformed("a share such as 0.3 or 30%"))?;
        if (0.0..=1.0).contains(&share) {
            Ok(share)
        } else {
            Err(self.out_of("a share from 0 to 1, or a percentage such as 30%"))
        }
    }

    /// Any finite number.
    pub(super) fn real(&self, text: &str) -> Result<f64, WorkloadError> {
        real(text).ok_or_else(|| self.malformed("a number such as 0.99"))
    }

    /// One of the words true and false.
    pub(super) fn boolean(&self) -> Result<bool, WorkloadError> {
        match self.value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.malformed("true or false")),
        }
    }
}

/// A size in the largest binary unit that divides it. Specifications are part of digests, so small ones stand without a unit.
pub(super) fn show_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { numbers::size_text(bytes) } else { bytes.to_string() }
}

/// The word a misspelling is probably meant to be.
pub(super) fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let limit = (word.len() / 3).max(1);
    known
        .iter()
        .map(|candidate| (edits(&word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements between two words (Levenshtein distance); a swap of two
/// neighbours counts as two.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, a) in (1..).zip(from.chars()) {
        let mut diagonal = row[0];
        row[0] = at;
        for (column, b) in (1..).zip(&to) {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column];
            row[column] = replaced.min(diagonal + 1).min(row[column - 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{edits, nearest};

    #[test]
    fn words() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(nearest("randwrit", &["randwrite", "randread"]), Some("randwrite"));
        assert_eq!(nearest("zzz", &["bs", "qd"]), None);
    }
}
