//! Cutting a byte range into mapping units.

use onefold_units::Lpn;
use onefold_units::convert::{index64, narrow};

/// The part of a request that lies in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) lpn: Lpn,
    /// First byte inside the unit.
    pub(crate) begin: u32,
    /// End inside the unit.
    pub(crate) end: u32,
    /// Where the part begins in the payload.
    pub(crate) at: usize,
}

impl Part {
    pub(crate) const fn len(&self) -> u32 {
        self.end - self.begin
    }

    /// 4 KiB pages touched.
    pub(crate) fn pages(&self) -> u64 {
        u64::from(self.end.div_ceil(4096) - self.begin / 4096)
    }

    /// Sectors of 512 B touched.
    pub(crate) fn sectors(&self) -> u32 {
        self.end.div_ceil(512) - self.begin / 512
    }
}

/// A byte range of a device with units of 2^`shift` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) shift: u32,
}

impl Span {
    /// 4 KiB pages touched.
    #[inline]
    pub(crate) const fn pages(&self) -> u64 {
        if self.len == 0 {
            return 0;
        }
        (self.offset + self.len).div_ceil(4096) - self.offset / 4096
    }

    /// Bytes of a unit.
    #[inline]
    pub(crate) const fn unit(&self) -> u64 {
        1 << self.shift
    }

    /// Whether the range covers each of its sectors of 512 B completely.
    pub(crate) const fn has_whole_sectors(&self) -> bool {
        (self.offset | self.len).is_multiple_of(512)
    }

    /// Units touched: first and count.
    #[inline]
    pub(crate) const fn units(&self) -> (u64, u64) {
        let first = self.offset >> self.shift;
        let end = (self.offset + self.len + (self.unit() - 1)) >> self.shift;
        (first, end - first)
    }

    /// Units covered completely: first and count.
    pub(crate) const fn whole_units(&self) -> (u64, u64) {
        let first = (self.offset + (self.unit() - 1)) >> self.shift;
        let end = (self.offset + self.len) >> self.shift;
        (first, end.saturating_sub(first))
    }

    /// The part in one unit that the range touches.
    #[inline]
    pub(crate) fn part(&self, unit: u64) -> Part {
        let start = unit << self.shift;
        let begin = self.offset.max(start) - start;
        let end = (self.offset + self.len).min(start + self.unit()) - start;
        Part {
            lpn: Lpn::new(narrow(unit)),
            begin: narrow(begin),
            end: narrow(end),
            at: index64((start + begin) - self.offset),
        }
    }

    /// Of values for each 4 KiB page touched, those of a whole unit; none if there are too few.
    pub(crate) fn pages_of<T>(self, part: Part, pages: &[T]) -> &[T] {
        let unit = u64::from(part.lpn.raw()) << self.shift;
        let first = index64(unit / 4096 - self.offset / 4096);
        pages.get(first..first + index64(self.unit() / 4096)).unwrap_or_default()
    }

    /// The parts in ascending order.
    #[inline]
    pub(crate) fn parts(self) -> impl Iterator<Item = Part> {
        let (first, count) = self.units();
        (first..first + count).map(move |unit| self.part(unit))
    }

    /// The parts of the range that cover a unit incompletely: at most two byte ranges.
    pub(crate) fn edges(&self) -> [Option<(u64, u64)>; 2] {
        let end = self.offset + self.len;
        let (first, count) = self.whole_units();
        if count == 0 {
            return [Some((self.offset, self.len)), None];
        }
        let (head, tail) =
            ((first << self.shift) - self.offset, end - ((first + count) << self.shift));
        [(head > 0).then_some((self.offset, head)), (tail > 0).then_some((end - tail, tail))]
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    fn span(offset: u64, len: u64) -> Span {
        Span { offset, len, shift: 14 }
    }

    #[test]
    fn a_range_over_three_units() {
        let parts: Vec<_> = span(12_288, 24_576).parts().collect();
        let shape: Vec<_> =
            parts.iter().map(|p| (p.lpn.raw(), p.begin, p.end, p.at, p.pages())).collect();
        assert_eq!(
            shape,
            [(0, 12_288, 16_384, 0, 1), (1, 0, 16_384, 4096, 4), (2, 0, 4096, 20_480, 1)]
        );
        assert_eq!(span(12_288, 24_576).whole_units(), (1, 1));
        assert_eq!(span(12_288, 24_576).edges(), [Some((12_288, 4096)), Some((32_768, 4096))]);
    }

    #[test]
    fn unaligned_bytes_touch_whole_pages() {
        assert_eq!(span(512, 4096).pages(), 2);
        assert_eq!(span(16_384 - 512, 1024).units(), (0, 2));
        assert_eq!(span(512, 1024).edges(), [Some((512, 1024)), None]);
        assert_eq!(span(16_384, 16_384).edges(), [None, None]);
        assert_eq!(span(0, 0).pages(), 0);
    }
}
