//! Which parts of an entry a request touches.
//!
//! An entry has up to 16 parts of 1/16 entry, but at least 512 B: 512 B in entries of 4 KiB, 1 KiB
//! in 16 KiB, 4 KiB in 64 KiB. Devices with 4 KiB blocks never cut a part; a write that does (512 B
//! into an entry of 16 KiB, say) loads the rest of the entry first.

use std::ops::Range;

use onefold_units::convert::index;

use crate::{Req, Shape};

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

/// How a request covers one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    /// Parts of which at least one sector is covered.
    pub(crate) touched: u16,
    /// Touched parts that are not covered completely.
    pub(crate) torn: u16,
    /// Sectors of 512 B covered.
    pub(crate) sectors: u32,
}

impl Cover {
    /// All of an entry.
    #[inline]
    pub(crate) const fn whole(shape: &Shape) -> Self {
        Self { touched: shape.full(), torn: 0, sectors: shape.entry_sectors() }
    }
}

/// The cover of the entry number `at` of a request.
#[cold]
pub(crate) fn cover_of(r: &Req, at: u32, shape: &Shape) -> Cover {
    let head = if at == 0 { u32::from(r.head) } else { 0 };
    let tail = if at + 1 == r.n { u32::from(r.tail) } else { 0 };
    cover(head..shape.entry_sectors().saturating_sub(tail), shape)
}

fn cover(sectors: Range<u32>, shape: &Shape) -> Cover {
    assert!(
        sectors.start < sectors.end && sectors.end <= shape.entry_sectors(),
        "a request has to touch every entry it names, but one of them is cut to {sectors:?}"
    );
    let part = shape.part_sectors();
    let touched = bits(sectors.start / part, sectors.end.div_ceil(part));
    let inside = (sectors.start.div_ceil(part), sectors.end / part);
    let whole = if inside.0 < inside.1 { bits(inside.0, inside.1) } else { 0 };
    Cover { touched, torn: touched & !whole, sectors: sectors.end - sectors.start }
}

/// Ones at `from..to`, at most 16.
pub(crate) fn bits(from: u32, to: u32) -> u16 {
    let below = |n: u32| if n >= 16 { u16::MAX } else { (1 << n) - 1 };
    below(to) & !below(from)
}

#[cfg(test)]
mod tests {
    use super::{Cover, PartMask, cover_of};
    use crate::testing::lru_config;
    use crate::{Req, Shape};
    use onefold_units::{Lpn, Op};

    fn covers(entry: u32, n: u32, head: u8, tail: u8) -> Vec<Cover> {
        let shape = Shape::new(&lru_config(1 << 20), entry, entry).unwrap();
        let req = Req { head, tail, ..Req::new(Op::Write, Lpn::new(0), n) };
        (0..n).map(|at| cover_of(&req, at, &shape)).collect()
    }

    #[test]
    fn sectors_of_4_kib_entries_are_parts() {
        let whole = Cover { touched: 0xFF, torn: 0, sectors: 8 };
        assert_eq!(covers(4096, 2, 0, 0), [whole, whole]);
        let shape = Shape::new(&lru_config(1 << 20), 4096, 4096).unwrap();
        assert_eq!(Cover::whole(&shape), whole);
        assert_eq!(covers(4096, 1, 1, 2), [Cover { touched: 0x3E, torn: 0, sectors: 5 }]);
        let first = Cover { touched: 0xE0, torn: 0, sectors: 3 };
        let last = Cover { touched: 0x01, torn: 0, sectors: 1 };
        assert_eq!(covers(4096, 3, 5, 7), [first, whole, last]);
    }

    #[test]
    fn larger_entries_can_have_torn_parts() {
        // 16 KiB: 32 sectors, parts of 2. Sectors 3..=6 touch parts 1, 2, 3 and cut 1 and 3.
        assert_eq!(covers(16_384, 1, 3, 25), [Cover { touched: 0xE, torn: 0xA, sectors: 4 }]);
        // One sector inside one part.
        assert_eq!(covers(65_536, 1, 9, 118), [Cover { touched: 0x2, torn: 0x2, sectors: 1 }]);
        assert_eq!(covers(65_536, 1, 8, 112), [Cover { touched: 0x2, torn: 0, sectors: 8 }]);
        assert_eq!(covers(65_536, 1, 0, 0), [Cover { touched: 0xFFFF, torn: 0, sectors: 128 }]);
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
