//! Parts of the logical space, as tenants name them.

use std::fmt;
use std::ops::Range;

use onefold_units::{PAGE_BYTES, convert, numbers};

use crate::quantity::Measure;

/// One end of an [`Extent`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// Offset in bytes.
    Bytes(u64),
    /// Offset in percent of the logical capacity.
    Percent(f64),
}

/// A part of the logical space: `0..1GiB`, `25%..50%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    from: Bound,
    to: Bound,
}

impl Extent {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..")?;
        Some(Self { from: Bound::parse(from)?, to: Bound::parse(to)? })
    }

    /// All of a device of `logical_bytes`.
    #[must_use]
    pub const fn whole(logical_bytes: u64) -> Self {
        Self { from: Bound::Bytes(0), to: Bound::Bytes(logical_bytes) }
    }

    /// The bytes of this part on a device of `logical_bytes`, in whole 4 KiB pages. `None` if it is
    /// empty or ends beyond the device.
    #[must_use]
    pub fn resolve(&self, logical_bytes: u64) -> Option<Range<u64>> {
        let (start, end) = (self.from.resolve(logical_bytes), self.to.resolve(logical_bytes));
        (start < end && end <= logical_bytes).then_some(start..end)
    }
}

impl Bound {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(percent) = text.strip_suffix('%') {
            let percent = numbers::real(percent)?;
            return (0.0..=100.0).contains(&percent).then_some(Self::Percent(percent + 0.0));
        }
        Measure::Size.parse(text).ok().map(Self::Bytes)
    }

    fn resolve(self, logical_bytes: u64) -> u64 {
        let bytes = match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                convert::floor_u64(convert::float(logical_bytes) * (percent / 100.0))
                    .min(logical_bytes)
            }
        };
        bytes / PAGE_BYTES * PAGE_BYTES
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&Measure::Size.format(*bytes)),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::Extent;

    #[test]
    fn parts_resolve_to_whole_pages() {
        let part = |text| Extent::parse(text).unwrap().resolve(1 << 30);
        assert_eq!(part("0..100%"), Some(0..1 << 30));
        assert_eq!(part("25%..50%"), Some(1 << 28..1 << 29));
        assert_eq!(part("4KiB..10000B"), Some(4096..8192));
        assert_eq!(part("0..2GiB"), None);
        assert_eq!(part("50%..25%"), None);
        assert!(Extent::parse("0..101%").is_none());
        assert!(Extent::parse("0-1GiB").is_none());
        assert_eq!(Extent::parse("0 .. 12.5%").unwrap().to_string(), "0..12.5%");
    }
}
