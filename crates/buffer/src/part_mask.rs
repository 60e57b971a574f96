//! The parts of an entry, which are valid or dirty each on its own.
//!
//! An entry has up to 16 parts of 1/16 entry, but at least 512 B: 512 B in entries of 4 KiB, 1 KiB
//! in 16 KiB, 4 KiB in 64 KiB.

use std::ops::Range;

use onefold_units::convert::index;

/// Some parts of an entry: bit i stands for bytes i x `part_bytes` and on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartMask(u16);

impl PartMask {
    /// The parts with a one bit.
    #[must_use]
    pub const fn new(bits: u16) -> Self {
        Self(bits)
    }

    /// One bit per part.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Pages of 4 KiB of which it has a part, for parts of `part_bytes`, a power of two.
    #[must_use]
    #[inline]
    pub const fn pages(self, part_bytes: u32) -> u32 {
        let parts = 4096 / part_bytes;
        if parts <= 1 {
            return self.0.count_ones() * (part_bytes / 4096);
        }
        // The first bit of each page becomes the union of the bits of its parts.
        let (mut union, mut by) = (self.0, 1);
        while by < parts {
            union |= union >> by;
            by *= 2;
        }
        (union & (u16::MAX / bits(0, parts))).count_ones()
    }

    /// The byte ranges inside the entry, ascending and not adjacent, for parts of `part_bytes`
    /// ([`crate::Policy::part_bytes`]).
    pub fn ranges(self, part_bytes: u32) -> impl Iterator<Item = Range<usize>> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let start = left.trailing_zeros();
            let run = (left >> start).trailing_ones();
            left &= !bits(start, start + run);
            Some(index(start * part_bytes)..index((start + run) * part_bytes))
        })
    }
}

/// Ones at `from..to`, at most 16.
pub(crate) const fn bits(from: u32, to: u32) -> u16 {
    below(to) & !below(from)
}

const fn below(n: u32) -> u16 {
    if n >= 16 { u16::MAX } else { (1 << n) - 1 }
}

#[cfg(test)]
mod tests {
    use super::PartMask;
    use onefold_units::convert::index;

    #[test]
    fn pages_are_those_with_a_part() {
        for (mask, part_bytes, pages) in [
            (0, 512, 0),
            (0b0000_0001, 512, 1),
            (0b1000_0001, 512, 1),
            (0b1000_0000_0001_1000, 1024, 3),
            (0b1000_0000_0000_0000, 1024, 1),
            (0b1000_0001_0000_0011, 2048, 3),
            (0b1000_0001_0000_0011, 4096, 4),
            (0b1000_0001, 8192, 4),
        ] {
            assert_eq!(PartMask::new(mask).pages(part_bytes), pages, "{mask:b} of {part_bytes}");
        }
        for part_bytes in [512, 1024, 2048, 4096, 8192] {
            for mask in 0..=u16::MAX {
                let touched = |page: u32| {
                    let inside = PartMask::new(mask).ranges(part_bytes);
                    inside
                        .map(|r| r.start / 4096..r.end.div_ceil(4096))
                        .any(|r| r.contains(&index(page)))
                };
                let pages = (0..32).filter(|page| touched(*page)).count();
                assert_eq!(index(PartMask::new(mask).pages(part_bytes)), pages);
            }
        }
    }

    #[test]
    fn masks_are_runs_of_bytes() {
        let ranges: Vec<_> = PartMask::new(0b1000_0110).ranges(512).collect();
        assert_eq!(ranges, [512..1536, 3584..4096]);
        let mut all = PartMask::new(0xFFFF).ranges(4096);
        assert_eq!((all.next(), all.next()), (Some(0..65_536), None));
        assert_eq!(PartMask::new(0).ranges(4096).count(), 0);
    }
}
