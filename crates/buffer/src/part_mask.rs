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
pub(crate) fn bits(from: u32, to: u32) -> u16 {
    let below = |n: u32| if n >= 16 { u16::MAX } else { (1 << n) - 1 };
    below(to) & !below(from)
}

#[cfg(test)]
mod tests {
    use super::PartMask;

    #[test]
    fn masks_are_runs_of_bytes() {
        let ranges: Vec<_> = PartMask::new(0b1000_0110).ranges(512).collect();
        assert_eq!(ranges, [512..1536, 3584..4096]);
        let mut all = PartMask::new(0xFFFF).ranges(4096);
        assert_eq!((all.next(), all.next()), (Some(0..65_536), None));
        assert_eq!(PartMask::new(0).ranges(4096).count(), 0);
    }
}
