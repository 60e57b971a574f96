//! Contiguous free space, in order of use: data is placed in order of transformed blocks (Sung
//! 2022, sec. III-C), and from the end goes on at the start.

use std::ops::Range;

use onefold_format::volume::Extent;
use onefold_units::Location;

use super::area::Areas;

#[derive(Clone, Debug, Default)]
pub(super) struct Regions {
    /// Where data goes next; may be used up.
    current: Range<u32>,
    /// The others, ascending.
    rest: Vec<Range<u32>>,
}

impl Regions {
    pub(super) fn new(areas: &Areas) -> Self {
        let mut regions = Self::default();
        areas.data().into_iter().for_each(|piece| regions.add(piece));
        regions
    }

    /// Those that a checkpoint lists.
    pub(super) fn of(extents: &[Extent]) -> Self {
        let range = |extent: &Extent| {
            let start = extent.location.raw();
            start..start.saturating_add(extent.blocks)
        };
        let mut all: Vec<_> = extents.iter().map(range).collect();
        let current = if all.is_empty() { 0..0 } else { all.remove(0) };
        let mut regions = Self { current, rest: Vec::new() };
        for piece in all {
            regions.add(piece);
        }
        regions
    }

    /// For a checkpoint, in order of use, with those that come free with it.
    pub(super) fn extents(&self, held: &[Range<u32>]) -> Vec<Extent> {
        let mut all = self.clone();
        for piece in held {
            all.add(piece.clone());
        }
        let mut list = Vec::new();
        while let Some(piece) = all.next_piece() {
            list.push(Extent {
                location: Location::new(piece.start),
                blocks: piece.end - piece.start,
            });
            all.current.start = piece.end;
        }
        list.truncate(super::area::REGIONS_MAX);
        list
    }

    /// A range is free.
    pub(super) fn add(&mut self, piece: Range<u32>) {
        if piece.is_empty() {
            return;
        }
        if self.current.end == piece.start && !self.current.is_empty() {
            self.current.end = piece.end;
            return;
        }
        let at = self.rest.partition_point(|other| other.start < piece.start);
        self.rest.insert(at, piece);
        self.rest.dedup_by(|next, before| {
            let beside = before.end == next.start;
            if beside {
                before.end = next.end;
            }
            beside
        });
    }

    /// Takes out what lies in a range, so that nothing is placed there.
    pub(super) fn withdraw(&mut self, range: &Range<u32>) -> Vec<Range<u32>> {
        let cut = |piece: &Range<u32>| piece.start.max(range.start)..piece.end.min(range.end);
        let all: Vec<_> = self.pieces().cloned().collect();
        let taken = all.iter().map(cut).filter(|piece| !piece.is_empty()).collect();
        let position = self.position();
        *self = Self { current: position..position, rest: Vec::new() };
        for piece in all {
            self.add(piece.start..piece.end.min(range.start).max(piece.start));
            self.add(piece.start.max(range.end).min(piece.end)..piece.end);
        }
        taken
    }

    pub(super) fn blocks(&self) -> u64 {
        self.pieces().map(|piece| u64::from(piece.end - piece.start)).sum()
    }

    /// All of it.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &Range<u32>> + '_ {
        std::iter::once(&self.current).chain(&self.rest)
    }

    /// Where data was placed last.
    pub(super) const fn position(&self) -> u32 {
        self.current.start
    }

    /// Makes sure that there is a current region, if there is any: the next one behind the last.
    fn next_piece(&mut self) -> Option<Range<u32>> {
        if self.current.is_empty() && !self.rest.is_empty() {
            let at = self.rest.partition_point(|other| other.start < self.current.start);
            self.current = self.rest.remove(at % self.rest.len());
        }
        (!self.current.is_empty()).then(|| self.current.clone())
    }

    /// Takes up to so many blocks that lie side by side in one partition (volume.md, section 3,
    /// V13).
    pub(super) fn take(&mut self, areas: &Areas, blocks: u32) -> Option<Range<u32>> {
        let piece = self.next_piece()?;
        let end = areas.partition(areas.partition_of(piece.start)).end.min(piece.end);
        let end = end.min(piece.start.saturating_add(blocks));
        self.current.start = end;
        Some(piece.start..end)
    }

    /// At recovery: a transaction placed a block here, so what comes before in order of use is
    /// used.
    pub(super) fn used(&mut self, at: u32) {
        if !self.pieces().any(|piece| piece.contains(&at)) {
            return;
        }
        if self.current.contains(&at) {
            self.current.start = at + 1;
            return;
        }
        let mut all = self.clone();
        while let Some(piece) = all.next_piece() {
            if piece.contains(&at) {
                all.current.start = at + 1;
                *self = all;
                return;
            }
            all.current.start = piece.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Regions;

    #[test]
    fn regions_are_used_in_a_circle() {
        let mut regions = Regions { current: 50..60, rest: vec![10..20, 70..80] };
        regions.add(60..65);
        assert_eq!(regions.blocks(), 35);
        let extents = regions.extents(&[30..40, 90..95]);
        let starts: Vec<_> = extents.iter().map(|extent| extent.location.raw()).collect();
        assert_eq!(starts, [50, 70, 90, 10, 30]);
        let mut again = Regions::of(&extents);
        again.used(75);
        assert_eq!((again.position(), again.blocks()), (76, 4 + 5 + 10 + 10));
        again.used(99);
        assert_eq!(again.position(), 76, "what is no free region changes nothing");
        again.used(12);
        assert_eq!((again.position(), again.blocks()), (13, 7 + 10));
        let mut regions = Regions { current: 50..60, rest: vec![10..20, 70..80] };
        assert_eq!(regions.withdraw(&(55..75)), [55..60, 70..75]);
        assert_eq!(regions.pieces().cloned().collect::<Vec<_>>(), [50..50, 10..20, 50..55, 75..80]);
    }
}
