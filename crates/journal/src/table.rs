//! Which class a block has: ranges without overlaps, looked up by binary search.

use onefold_units::Lba;

use crate::class::{Class, Range};

/// Blocks in a row of one class, or of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What is written there; `None` is data.
    pub class: Option<Class>,
    /// First block behind it.
    pub end: Lba,
}

/// Classes of all blocks of a device. Where ranges overlap, the surer one counts, then `jhot` before `jlog` before
/// `meta_hot`: a block of 4 KiB that holds a journal header of 1 KiB is rewritten as often as that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// In order, without overlaps; neighbours of one class are one.
    ranges: Vec<(u64, u64, Class)>,
}

impl Table {
    /// Of ranges that may overlap.
    #[must_use]
    pub fn new(ranges: &[Range]) -> Self {
        let mut by_rank: Vec<&Range> = ranges.iter().filter(|r| r.first < r.end).collect();
        by_rank.sort_by_key(|range| std::cmp::Reverse((range.confidence, range.class)));
        let mut borders: Vec<u64> =
            by_rank.iter().flat_map(|range| [range.first.raw(), range.end.raw()]).collect();
        borders.sort_unstable();
        borders.dedup();
        let mut table = Self::default();
        for pair in borders.windows(2) {
            let first = Lba::new(pair[0]);
            if let Some(range) = by_rank.iter().find(|range| range.contains(first)) {
                table.push(pair[0], pair[1], range.class);
            }
        }
        table
    }

    fn push(&mut self, first: u64, end: u64, class: Class) {
        match self.ranges.last_mut().filter(|last| last.1 == first && last.2 == class) {
            Some(last) => last.1 = end,
            None => self.ranges.push((first, end, class)),
        }
    }

    /// The class of a block, and how far it goes.
    #[must_use]
    #[inline]
    pub fn span(&self, lba: Lba) -> Span {
        let at = lba.raw();
        let next = self.ranges.partition_point(|range| range.1 <= at);
        match self.ranges.get(next) {
            Some((first, end, class)) if *first <= at => {
                Span { class: Some(*class), end: Lba::new(*end) }
            }
            Some((first, ..)) => Span { class: None, end: Lba::new(*first) },
            None => Span { class: None, end: Lba::new(u64::MAX) },
        }
    }

    /// The ranges that have a class, as first block, first block behind, class.
    pub fn iter(&self) -> impl Iterator<Item = (Lba, Lba, Class)> + '_ {
        self.ranges.iter().map(|(first, end, class)| (Lba::new(*first), Lba::new(*end), *class))
    }
}
