//! Places that are rewritten from start to end again and again by writes of which some are forced: by FUA, or because nothing
//! else is written between two flushes. The latter is how jbd2 commits where there is no FUA: blocks, flush, commit block,
//! flush.

use crate::class::{Class, Confidence};
use crate::ring::Extent;
use crate::write::Write;

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

const WHY: &str = "it is rewritten in a ring by writes that FUA or flushes force";

#[derive(Clone, Copy, Debug)]
struct Circle {
    low: u64,
    high: u64,
    next: u64,
    /// A write near the start, which begins a lap if the next one follows it: a journal header is written there by itself.
    restart: Option<(u64, u64)>,
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

    /// A lap ends, and one has begun at byte `at`. It counts if it wrote most of the ring, in order.
    fn lap(&mut self, at: u64) {
        let is_whole = self.bytes / 3 * 4 >= self.high - self.low;
        self.laps = if is_whole { self.laps.saturating_add(1) } else { 0 };
        (self.bytes, self.next) = (0, at);
    }

    /// Whether a write at `at` goes on with it or may begin it again.
    fn concerns(&self, at: u64) -> bool {
        self.goes_on(at) || self.restarts(at) || self.begins_again(at)
    }

    fn restarts(&self, at: u64) -> bool {
        self.restart.is_some_and(|(_, end)| end == at)
    }

    /// Takes a write that concerns it.
    fn take(&mut self, at: u64, end: u64) {
        match self.restart {
            _ if self.goes_on(at) => {}
            Some((first, last)) if last == at => self.lap(first),
            _ => {
                self.restart = Some((at, end));
                return;
            }
        }
        self.bytes = self.bytes.saturating_add(end.saturating_sub(self.next));
        (self.low, self.high) = (self.low.min(self.next), self.high.max(end));
        self.next = end;
    }
}

#[derive(Debug, Default)]
pub(super) struct Circles {
    found: Vec<Circle>,
    /// Writes since the last flush, and the last of them.
    since_flush: u64,
    last: (u64, u64),
}

impl Circles {
    /// Looks at a write. Says whether proposals have changed.
    pub(super) fn write(&mut self, seen: Seen, write: &Write<'_>) -> bool {
        let (at, end) = (write.at, write.at.saturating_add(write.bytes));
        (self.since_flush, self.last) = (self.since_flush.saturating_add(1), (at, end));
        let Some(found) = self.found.iter().position(|circle| circle.concerns(at)) else {
            if write.fua {
                self.begin(at, end, seen);
            }
            return false;
        };
        let circle = &mut self.found[found];
        let before = (circle.is_proposed(), circle.low, circle.high);
        circle.take(at, end);
        circle.forced = circle.forced.saturating_add(u32::from(write.fua));
        circle.seen = seen;
        let (low, high) = (circle.low, circle.high);
        if high - low > BYTES_MAX {
            self.found.remove(found);
            return before.0;
        }
        self.join(found);
        let circle = self.found.iter().find(|circle| circle.low <= low && high <= circle.high);
        circle.is_some_and(|c| c.is_proposed() && before != (true, c.low, c.high))
    }

    /// The host flushes: a write that is alone since the last flush was forced. Says whether proposals have changed.
    pub(super) fn flush(&mut self, seen: Seen) -> bool {
        let is_alone = std::mem::take(&mut self.since_flush) == 1;
        let (at, end) = self.last;
        if !is_alone {
            return false;
        }
        let Some(circle) = self.found.iter_mut().find(|circle| circle.next == end) else {
            self.begin(at, end, seen);
            return false;
        };
        let before = circle.is_proposed();
        circle.forced = circle.forced.saturating_add(1);
        circle.is_proposed() != before
    }

    fn begin(&mut self, at: u64, end: u64, seen: Seen) {
        if self.found.len() == CIRCLES_MAX {
            let oldest = (0..CIRCLES_MAX).min_by_key(|n| {
                let circle = &self.found[*n];
                (circle.is_proposed(), circle.seen)
            });
            self.found.remove(oldest.unwrap_or(0));
        }
        let circle = Circle {
            low: at,
            high: end,
            next: end,
            restart: None,
            bytes: end - at,
            forced: 1,
            laps: 0,
            seen,
        };
        self.found.push(circle);
    }

    /// A run that began at the start of a ring reaches one that began in its middle: they are one.
    fn join(&mut self, at: usize) {
        let circle = self.found[at];
        let other = self.found.iter().enumerate().position(|(n, other)| {
            n != at && circle.low < other.low && (other.low..=other.high).contains(&circle.next)
        });
        if let Some(other) = other {
            let high = self.found[other].high;
            self.found[at].high = self.found[at].high.max(high);
            self.found.remove(other);
        }
    }

    pub(super) fn forget(&mut self, now: Seen) -> bool {
        let mut changed = false;
        self.found.retain(|circle| {
            let stale = circle.seen.is_stale(now);
            changed |= stale && circle.is_proposed();
            !stale
        });
        changed
    }

    pub(super) fn proposals(&self) -> impl Iterator<Item = Proposal> + '_ {
        self.found.iter().filter(|circle| circle.is_proposed()).map(|circle| {
            let extent = Extent { at: circle.low, bytes: circle.high - circle.low };
            (Class::JournalLog, extent, Confidence::Low, WHY)
        })
    }
}
