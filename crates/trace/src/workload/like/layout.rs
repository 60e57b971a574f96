//! Where the objects of a look-alike lie.

use onefold_units::PAGE_BYTES;
use onefold_units::convert::{float, floor_u64};

use super::super::{Scatter, WorkloadError};
use super::preset::Preset;
use super::shape::Objects;

/// Size of the volume, scaled to the requests, in bytes.
pub(super) fn natural_bytes(preset: &Preset, requests: u64) -> u64 {
    let scale = float(requests) / preset.volume.requests;
    let span = floor_u64(preset.volume.span * scale).max(1);
    span.saturating_mul(PAGE_BYTES).max(SMALLEST_BYTES)
}

/// Enough for the few cycles of objects of the shortest runs.
const SMALLEST_BYTES: u64 = 64 << 20;

/// Cycles of objects, and as many pages never written in pieces of the same size, scattered over
/// the range.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// First byte.
    start: u64,
    objects: Objects,
    scatter: Scatter,
    /// Cycles of objects; pieces of pages never written have the numbers after them.
    cycles: u64,
    pub(super) unwritten_pages: u64,
}

impl Layout {
    /// For so many objects and pages never written, within the bytes of `range` and up to `span`
    /// bytes if they fit in there.
    pub(super) fn new(
        objects: Objects,
        count: u64,
        unwritten_pages: u64,
        span: u64,
        range: (u64, u64),
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let start = range.0.next_multiple_of(PAGE_BYTES);
        let piece = objects.cycle_pages() * PAGE_BYTES;
        let cycles = count.div_ceil(Objects::CYCLE);
        let pieces = cycles + unwritten_pages.div_ceil(objects.cycle_pages());
        let room = range.1.saturating_sub(start);
        let needed = pieces.saturating_mul(piece);
        if needed > room {
            return Err(WorkloadError::FootprintTooLarge { range: room, needed });
        }
        let places = room.min(span.max(needed)) / piece;
        Ok(Self { start, objects, scatter: Scatter::new(places, seed), cycles, unwritten_pages })
    }

    /// First page and pages of an object.
    pub(super) fn object(&self, object: u64) -> (u64, u64) {
        let (cycle, first, pages) = self.objects.place(object);
        (self.page(cycle, first), pages)
    }

    /// First page of `pages` pages at an object; they stay within its cycle.
    pub(super) fn at_object(&self, object: u64, pages: u64) -> u64 {
        let (cycle, first, _) = self.objects.place(object);
        self.page(cycle, first.min(self.objects.cycle_pages().saturating_sub(pages)))
    }

    /// First page of `pages` pages at the `n`-th page never written, and the number of the page
    /// after them.
    pub(super) fn unwritten(&self, n: u64, pages: u64) -> (u64, u64) {
        let piece = self.objects.cycle_pages();
        let first = (n % piece).min(piece.saturating_sub(pages));
        (self.page(self.cycles + n / piece, first), n - n % piece + first + pages)
    }

    /// First byte of a page.
    pub(super) const fn start(&self) -> u64 {
        self.start
    }

    fn page(&self, piece: u64, first: u64) -> u64 {
        self.scatter.apply(piece) * self.objects.cycle_pages() + first
    }
}
