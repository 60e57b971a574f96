//! A trace on a device smaller than its addresses.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::{Layout, Record};

/// Size of the regions that `compact` renumbers.
pub const TOUCH_REGION_BYTES: u64 = 1 << 20;

/// The trace does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FitError {
    /// Too large.
    #[error(
        "the trace needs {needed} bytes, the device has {device}; use a larger device, {}--fit wrap",
        compacting(*compact, *device)
    )]
    TooLarge {
        /// Bytes the trace needs.
        needed: u64,
        /// Bytes of the device.
        device: u64,
        /// Bytes the trace needs with its regions renumbered.
        compact: u64,
    },
}

/// What renumbering would do, where that is enough.
fn compacting(compact: u64, device: u64) -> String {
    if compact > device {
        return "or ".to_owned();
    }
    format!("--fit compact (needs {compact} bytes) or ")
}

/// A set of 1 MiB regions as disjoint runs, so that one huge request costs one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionSet {
    /// First region of a run to one past its last. Runs neither overlap nor touch.
    runs: BTreeMap<u64, u64>,
    last: (u64, u64),
}

impl RegionSet {
    /// Adds the regions of a request.
    #[inline]
    pub fn touch(&mut self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let first = offset / TOUCH_REGION_BYTES;
        let end = (offset.saturating_add(len) - 1) / TOUCH_REGION_BYTES + 1;
        if self.last.0 > first || self.last.1 < end {
            self.insert(first, end);
        }
    }

    fn insert(&mut self, first: u64, end: u64) {
        let (mut first, mut end) = (first, end);
        // Swallow every run that overlaps or touches [first, end).
        while let Some((&start, &stop)) = self.runs.range(..=end).next_back() {
            if stop < first {
                break;
            }
            first = first.min(start);
            end = end.max(stop);
            self.runs.remove(&start);
        }
        self.runs.insert(first, end);
        self.last = (first, end);
    }

    /// Bytes of all regions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let regions: u64 = self.runs.iter().map(|(first, end)| end - first).sum();
        regions.saturating_mul(TOUCH_REGION_BYTES)
    }
}

/// A run of touched regions and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    from: u64,
    end: u64,
    to: u64,
}

/// Touched regions in address order, renumbered without gaps: `--fit compact`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    runs: Vec<Run>,
    total: u64,
}

impl Regions {
    /// The regions of all devices as laid out. Offsets are bytes of the laid-out space.
    #[must_use]
    pub fn new(sets: &[RegionSet], layout: &Layout) -> Self {
        let mut regions = Self::default();
        for (dev, set) in (0_u16..).zip(sets) {
            let base = layout.base(dev);
            for (first, end) in &set.runs {
                let from = base.saturating_add(first.saturating_mul(TOUCH_REGION_BYTES));
                let end = base.saturating_add(end.saturating_mul(TOUCH_REGION_BYTES));
                regions.runs.push(Run { from, end, to: regions.total });
                regions.total = regions.total.saturating_add(end - from);
            }
        }
        regions
    }

    /// Bytes of the renumbered space.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Moves a record to the renumbered space. Reads, writes and remaps stay whole, because all their
    /// regions are touched; a trim becomes one record per run it meets.
    pub fn map(&self, record: &Record, mut out: impl FnMut(Record)) {
        if record.len == 0 {
            out(record.clone());
            return;
        }
        let first = self.runs.partition_point(|run| run.end <= record.offset);
        for run in self.runs.get(first..).unwrap_or_default() {
            if run.from >= record.end() {
                break;
            }
            let from = record.offset.max(run.from);
            let end = record.end().min(run.end);
            let mut piece =
                record.piece(from - record.offset, end - from, run.to + (from - run.from));
            piece.place_source(|source| self.place(source));
            out(piece);
        }
    }
}

impl Regions {
    /// Where a byte of a touched region is.
    fn place(&self, byte: u64) -> u64 {
        let run = self.runs.get(self.runs.partition_point(|run| run.end <= byte));
        run.map_or(byte, |run| run.to + byte.saturating_sub(run.from))
    }
}

/// Takes offsets modulo the device: `--fit wrap`. A request over the end becomes two, a remap whose
/// source is over it as well three; one longer than the device is cut to it.
pub fn wrap(record: &Record, device_bytes: u64, mut out: impl FnMut(Record)) {
    if record.len == 0 || device_bytes == 0 {
        let mut moved = record.clone();
        moved.offset = record.offset.checked_rem(device_bytes).unwrap_or(0);
        out(moved);
        return;
    }
    let len = record.len.min(device_bytes);
    let mut from = 0;
    while from < len {
        let offset = record.offset.wrapping_add(from) % device_bytes;
        let source = record.source().map(|source| source.wrapping_add(from) % device_bytes);
        let room = device_bytes - offset.max(source.unwrap_or(0));
        let mut piece = record.piece(from, room.min(len - from), offset);
        piece.place_source(|_| source.unwrap_or(0));
        out(piece);
        from += room.min(len - from);
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::PAGE_BYTES;

    use super::{RegionSet, Regions, TOUCH_REGION_BYTES, wrap};
    use crate::{Layout, Record, TraceOp};

    const MIB: u64 = TOUCH_REGION_BYTES;

    fn pieces(regions: &Regions, offset: u64, len: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        regions
            .map(&Record::new(0, TraceOp::Trim, offset, len), |r| pieces.push((r.offset, r.len)));
        pieces
    }

    #[test]
    fn touched_regions_are_renumbered_in_order() {
        let mut set = RegionSet::default();
        for (offset, len) in [(9 * MIB, 5), (3 * MIB - 1, 2), (10 * MIB, MIB)] {
            set.touch(offset, len);
        }
        assert_eq!(set.bytes(), 4 * MIB);
        let regions = Regions::new(&[set], &Layout::new(&[11 * MIB]).unwrap());
        assert_eq!(pieces(&regions, 3 * MIB - 1, 2), [(MIB - 1, 2)]);
        assert_eq!(pieces(&regions, 10 * MIB, 7), [(3 * MIB, 7)]);
        assert_eq!(pieces(&regions, 0, 10 * MIB), [(0, 2 * MIB), (2 * MIB, MIB)]);
        assert_eq!(pieces(&regions, 5 * MIB, MIB), []);
    }

    /// A remap and where its pieces and their sources are.
    fn remapped(
        dst: u64,
        src: u64,
        len: u64,
        map: impl Fn(&Record, &mut dyn FnMut(Record)),
    ) -> Vec<[u64; 3]> {
        let mut record = Record::new(0, TraceOp::Remap, dst, len);
        record.aux = src;
        let mut pieces = Vec::new();
        map(&record, &mut |r| pieces.push([r.offset, r.aux, r.len]));
        pieces
    }

    #[test]
    fn the_source_of_a_remap_goes_along() {
        let mut set = RegionSet::default();
        for offset in [9 * MIB, 3 * MIB - 1] {
            set.touch(offset, 2);
        }
        let regions = Regions::new(&[set], &Layout::new(&[11 * MIB]).unwrap());
        let compact = |record: &Record, out: &mut dyn FnMut(Record)| regions.map(record, out);
        assert_eq!(remapped(9 * MIB, 3 * MIB - 1, 2, compact), [[2 * MIB, MIB - 1, 2]]);
        let wrapped = |record: &Record, out: &mut dyn FnMut(Record)| wrap(record, 100, out);
        assert_eq!(remapped(103, 95, 10, wrapped), [[3, 95, 5], [8, 0, 5]]);
        // Both ends of the device, the target's first.
        let both = [[97, 94, 3], [0, 97, 3], [3, 0, 4]];
        assert_eq!(remapped(97, 194, 10, wrapped), both);
    }

    #[test]
    fn contents_go_along() {
        let mut write = Record::new(0, TraceOp::Write, 6 * PAGE_BYTES, 3 * PAGE_BYTES);
        write.digests = Some([1_u128, 2, 3].iter().map(|id| id.to_le_bytes()).collect());
        let mut seen = Vec::new();
        let mut push = |record: Record| seen.extend(record.contents());
        wrap(&write, 8 * PAGE_BYTES, &mut push);
        let mut set = RegionSet::default();
        set.touch(write.offset, write.len);
        let regions = Regions::new(&[set], &Layout::new(&[MIB]).unwrap());
        regions.map(&write, &mut push);
        let wrapped = [(6, Some(1)), (7, Some(2)), (0, Some(3))];
        let mapped = [(6, Some(1)), (7, Some(2)), (8, Some(3))];
        assert_eq!(seen, [wrapped, mapped].concat());
    }

    #[test]
    fn wrapping_splits_at_the_end() {
        let mut pieces = Vec::new();
        wrap(&Record::new(0, TraceOp::Write, 95, 10), 100, |r| pieces.push((r.offset, r.len)));
        wrap(&Record::new(0, TraceOp::Write, 205, 10), 100, |r| pieces.push((r.offset, r.len)));
        assert_eq!(pieces, [(95, 5), (0, 5), (5, 10)]);
    }
}
