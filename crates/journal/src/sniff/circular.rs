//! Places that are rewritten from start to end again and again by writes that end with FUA.

use crate::class::{Class, Confidence};
use crate::detector::Write;
use crate::ring::Extent;

use super::{Proposal, Seen};

const CIRCLES_MAX: usize = 8;
/// A circle is proposed after so many laps and forced writes, if it is that large.
const LAPS: u32 = 2;
const FORCED: u32 = 16;
const BYTES_MIN: u64 = 1 << 20;
/// Larger than any journal that file systems make by themselves.
const BYTES_MAX: u64 = 2 << 30;
/// A lap begins that near to where the last one did.
const NEAR: u64 = 1 << 20;

const WHY: &str = "it is rewritten in a ring by writes that end with FUA";

#[derive(Clone, Copy, Debug)]
struct Circle {
    low: u64,
    high: u64,
    next: u64,
    /// Bytes of this lap.
    bytes: u64,
    forced: u32,
    laps: u32,
    seen: Seen,
}

impl Circle {
    fn is_proposed(&self) -> bool {
        self.laps >= LAPS && self.forced >= FORCED && self.high - self.low >= BYTES_MIN
    }

    fn goes_on(&self, at: u64) -> bool {
        self.next == at
    }

    fn begins_again(&self, at: u64) -> bool {
        at < self.next && at.abs_diff(self.low) <= NEAR && self.next - self.low > NEAR
    }

    /// A lap ends. It counts if it wrote most of the ring, in order.
    fn lap(&mut self) {
        let is_whole = self.bytes / 3 * 4 >= self.high - self.low;
        self.laps = if is_whole { self.laps.saturating_add(1) } else { 0 };
        self.bytes = 0;
    }
}

#[derive(Debug, Default)]
pub(super) struct Circles {
    circles: Vec<Circle>,
}

impl Circles {
    /// Looks at a write. Says whether proposals have changed.
    pub(super) fn write(&mut self, seen: Seen, write: &Write<'_>) -> bool {
        let (at, end) = (write.at, write.at.saturating_add(write.bytes));
        let found = self.circles.iter().position(|circle| circle.goes_on(at));
        let found = found.or_else(|| self.circles.iter().position(|c| c.begins_again(at)));
        let Some(found) = found else {
            if write.fua {
                self.begin(at, end, seen);
            }
            return false;
        };
        let circle = &mut self.circles[found];
        let before = (circle.is_proposed(), circle.low, circle.high);
        if !circle.goes_on(at) {
            circle.lap();
        }
        circle.bytes = circle.bytes.saturating_add(write.bytes);
        (circle.low, circle.high, circle.next) = (circle.low.min(at), circle.high.max(end), end);
        circle.forced = circle.forced.saturating_add(u32::from(write.fua));
        circle.seen = seen;
        let (low, high) = (circle.low, circle.high);
        if high - low > BYTES_MAX {
            self.circles.remove(found);
            return before.0;
        }
        self.join(found);
        let circle = self.circles.iter().find(|circle| circle.low <= low && high <= circle.high);
        circle.is_some_and(|c| c.is_proposed() && before != (true, c.low, c.high))
    }

    fn begin(&mut self, at: u64, end: u64, seen: Seen) {
        if self.circles.len() == CIRCLES_MAX {
            let oldest = (0..CIRCLES_MAX).min_by_key(|n| {
                let circle = &self.circles[*n];
                (circle.is_proposed(), circle.seen)
            });
            self.circles.remove(oldest.unwrap_or(0));
        }
        let circle =
            Circle { low: at, high: end, next: end, bytes: end - at, forced: 1, laps: 0, seen };
        self.circles.push(circle);
    }

    /// A run that began at the start of a ring reaches one that began in its middle: they are one.
    fn join(&mut self, at: usize) {
        let circle = self.circles[at];
        let other = self.circles.iter().enumerate().position(|(n, other)| {
            n != at && circle.low < other.low && (other.low..=other.high).contains(&circle.next)
        });
        if let Some(other) = other {
            let high = self.circles[other].high;
            self.circles[at].high = self.circles[at].high.max(high);
            self.circles.remove(other);
        }
    }

    pub(super) fn forget(&mut self, now: Seen) -> bool {
        let mut changed = false;
        self.circles.retain(|circle| {
            let stale = circle.seen.is_stale(now);
            changed |= stale && circle.is_proposed();
            !stale
        });
        changed
    }

    pub(super) fn proposals(&self) -> impl Iterator<Item = Proposal> + '_ {
        self.circles.iter().filter(|circle| circle.is_proposed()).map(|circle| {
            let extent = Extent { at: circle.low, bytes: circle.high - circle.low };
            (Class::JournalLog, extent, Confidence::Low, WHY)
        })
    }
}
