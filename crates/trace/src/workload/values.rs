//! Numbers, units and words of a specification.

use onefold_units::SECTOR_BYTES;

use super::WorkloadError;

/// Size suffixes, in lower case. A bare letter is binary, as in fio.
const SIZES: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

/// Count suffixes, in lower case: always decimal.
const COUNTS: [(&str, u64); 5] =
    [("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];

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
        scaled(text, &SIZES).ok_or_else(|| {
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
        scaled(self.value, &COUNTS)
            .ok_or_else(|| self.malformed("a whole number such as 500, 50k, 1.5M (= 1,500,000)"))
    }

    /// A count that is not zero.
    pub(super) fn positive(&self) -> Result<u64, WorkloadError> {
        let count = self.count()?;
        if count == 0 { Err(self.out_of("at least 1")) } else { Ok(count) }
    }

    /// A share from 0 to 1, also as a percentage.
    pub(super) fn share(&self, text: &str) -> Result<f64, WorkloadError> {
        let share = match text.strip_suffix('%') {
            Some(percent) => real(percent).map(|number| number / 100.0),
            None => real(text),
        };
        let share = share.ok_or_else(|| self.malformed("a share such as 0.3 or 30%"))?;
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

/// A finite number without exponent tricks: what a person would type.
pub(super) fn real(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".-+eE".contains(&byte));
    let number: f64 = text.parse().ok()?;
    (plain && number.is_finite()).then_some(number)
}

/// A decimal number with a suffix, exactly; `None` if the result is no whole number.
fn scaled(text: &str, suffixes: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let suffix = suffix.trim_start().to_ascii_lowercase();
    let unit = suffixes.iter().find(|(name, _)| *name == suffix)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 12 || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let places = u32::try_from(fraction.len()).ok()?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(u128::from(unit))?;
    let divisor = 10_u128.pow(places);
    if product % divisor != 0 {
        return None;
    }
    u64::try_from(product / divisor).ok()
}

/// A size in the largest binary unit that divides it.
pub(super) fn show_size(bytes: u64) -> String {
    for (name, unit) in [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
    {
        if bytes != 0 && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
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
    use super::{COUNTS, SIZES, edits, nearest, real, scaled, show_size};

    #[test]
    fn suffixes() {
        let size = |text| scaled(text, &SIZES);
        assert_eq!(size("4096"), Some(4096));
        assert_eq!(size("4k"), Some(4096));
        assert_eq!(size("4KiB"), Some(4096));
        assert_eq!(size("4 KiB"), Some(4096));
        assert_eq!(size("4KB"), Some(4000));
        assert_eq!(size("1.5MiB"), Some(1_572_864));
        assert_eq!(size("1GB"), Some(1_000_000_000));
        assert_eq!(size("2T"), Some(2 << 40));
        for wrong in ["", "KiB", "4ms", "4Ki", "-4k", ".5k", "1.k", "0.3", "1e3", "1.2.3k"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        assert_eq!(size("17000000T"), None, "above 2^64");
        assert_eq!(size("99999999999999999999999999999999999999999"), None);
        assert_eq!(scaled("10M", &COUNTS), Some(10_000_000));
        assert_eq!(scaled("2.5k", &COUNTS), Some(2_500));
        assert_eq!(scaled("10MiB", &COUNTS), None);
    }

    #[test]
    fn words() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(nearest("randwrit", &["randwrite", "randread"]), Some("randwrite"));
        assert_eq!(nearest("zzz", &["bs", "qd"]), None);
        assert_eq!(real("inf"), None);
        assert_eq!(real("0.99"), Some(0.99));
    }

    #[test]
    fn sizes_are_shown_so_that_they_parse_back() {
        for bytes in [0, 512, 4096, 6144, 1 << 20, 3 << 40, 1_000_000_000] {
            assert_eq!(scaled(&show_size(bytes), &SIZES), Some(bytes));
        }
    }
}
