//! Which parts of an entry a request touches.
//!
//! Devices with 4 KiB blocks never cut a part; a write that does (512 B into an entry of 16 KiB, say)
//! loads the rest of the entry first.

use std::ops::Range;

use crate::part_mask::bits;
use crate::{Req, Shape};

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

#[cfg(test)]
mod tests {
    use super::{Cover, cover_of};
    use crate::{Req, Shape, Sizes};
    use onefold_units::{Lpn, Op};

    fn shape(entry: u32) -> Shape {
        let sizes = Sizes::of_one_die(entry, 1 << 30);
        Shape::new(1 << 20, true, &sizes).unwrap()
    }

    fn covers(entry: u32, n: u32, head: u8, tail: u8) -> Vec<Cover> {
        let shape = shape(entry);
        let req = Req { head, tail, ..Req::new(Op::Write, Lpn::new(0), n) };
        (0..n).map(|at| cover_of(&req, at, &shape)).collect()
    }

    #[test]
    fn sectors_of_4_kib_entries_are_parts() {
        let whole = Cover { touched: 0xFF, torn: 0, sectors: 8 };
        assert_eq!(covers(4096, 2, 0, 0), [whole, whole]);
        assert_eq!(Cover::whole(&shape(4096)), whole);
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
}
