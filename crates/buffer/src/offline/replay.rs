//! Buffers that know the future.

use onefold_units::convert::{index64, u32_from};

use super::extents::{Extent, Kept};
use super::next::{Future, Horizon, NEVER, NextUse, NextWrite, Run};
use super::{Request, Use};
use crate::{Counts, Stats};

/// Hits of MIN (Belady 1966): a page that misses is always admitted, and the page leaves whose next
/// read or write is farthest. Of pages that are not used again the lowest leaves first.
///
/// The statistics are those of a policy with `slots` entries, each programmed on its own, except that
/// bytes and areas are not counted.
#[must_use]
pub fn min(next: &NextUse<'_>, slots: u32) -> Stats {
    min_by_request(next, slots, |_, _| {})
}

/// The same. `each` is told every read and write, and the flash pages it read and programmed.
pub fn min_by_request(next: &NextUse<'_>, slots: u32, each: impl FnMut(&Request, Counts)) -> Stats {
    Replay::new(&next.0, slots, true).run(each)
}

/// Hits of MIN if it may refuse a page: it buffers those with the nearest next uses. Refused writes
/// are programmed at once.
#[must_use]
pub fn min_bypass(next: &NextUse<'_>, slots: u32) -> Stats {
    min_bypass_by_request(next, slots, |_, _| {})
}

/// The same. `each` is told every read and write, and the flash pages it read and programmed.
pub fn min_bypass_by_request(
    next: &NextUse<'_>,
    slots: u32,
    each: impl FnMut(&Request, Counts),
) -> Stats {
    Replay::new(&next.0, slots, false).run(each)
}

/// The fewest pages that a buffer of `slots` entries programs, reads being free.
///
/// A write opens an interval that ends with the next write or TRIM of its page. While `slots` pages
/// or fewer have open intervals, all of them can wait; otherwise the page whose interval ends last is
/// programmed, which is optimal as in MIN. Of the statistics only what concerns writes and TRIMs is
/// counted; a hit is a page that had waited.
#[must_use]
pub fn min_w(next: &NextWrite<'_>, slots: u32) -> Stats {
    Replay::new(&next.0, slots, false).run(|_, _| {})
}

/// Pages that enter: neighbours with the same next use.
#[derive(Clone, Copy, Debug)]
struct Newcomers {
    next: u32,
    lpn: u32,
    extent: Extent,
}

struct Replay<'a, 'b> {
    future: &'b Future<'a>,
    slots: u32,
    /// Whether every page that misses has to be admitted.
    always: bool,
    kept: Kept,
}

impl<'a, 'b> Replay<'a, 'b> {
    fn new(future: &'b Future<'a>, slots: u32, always: bool) -> Self {
        Self { future, slots, always, kept: Kept::new(slots) }
    }

    fn run(mut self, mut each: impl FnMut(&Request, Counts)) -> Stats {
        let requests = self.future.requests;
        let mut runs = self.future.runs();
        for (number, r) in (0..u32_from(requests.len())).zip(requests) {
            match r.kind() {
                None => {}
                Some(Use::Trim) => self.trim(number, r),
                Some(Use::Read) if self.future.horizon == Horizon::Overwrite => {}
                Some(kind) => each(r, self.access(number, r, kind, &mut runs)),
            }
        }
        self.kept.stats
    }

    fn trim(&mut self, number: u32, r: &Request) {
        let tenant = self.kept.stats.tenant_mut(r.tenant);
        tenant.trim_requests += 1;
        tenant.trim_pages += u64::from(r.pages());
        while let Some(extent) = self.kept.take_due(number, u32::MAX) {
            self.kept.discarded(extent);
        }
        while let Some(extent) = self.kept.take_dead(r.lpn, r.lpn + (r.pages() - 1)) {
            self.kept.discarded(extent);
        }
    }

    fn access(
        &mut self,
        number: u32,
        r: &Request,
        kind: Use,
        runs: &mut impl Iterator<Item = Run>,
    ) -> Counts {
        let pages = r.pages();
        let programs = self.kept.programs;
        let writer = (kind == Use::Write).then_some(r.tenant);
        let (mut done, mut hits) = (0, 0);
        while done < pages
            && let Some(run) = runs.next()
        {
            hits += self.access_run(number, r.lpn + done, run, writer);
            done += run.n;
        }
        let programs = u32_from(index64(self.kept.programs - programs));
        let reads = if kind == Use::Read { pages - hits } else { 0 };
        let (pages, hits) = (u64::from(pages), u64::from(hits));
        let tenant = self.kept.stats.tenant_mut(r.tenant);
        if kind == Use::Write {
            tenant.writes.add(pages, hits, 0);
        } else {
            tenant.reads.add(pages, hits, 0);
            tenant.flash_reads += u64::from(reads);
        }
        Counts { reads, programs, lookups: 0 }
    }

    /// Accesses pages from `first` on that have the same next use; returns how many of them hit.
    fn access_run(&mut self, number: u32, first: u32, run: Run, writer: Option<u8>) -> u32 {
        let (mut done, mut hits) = (0, 0);
        while done < run.n {
            let lpn = first + done;
            let left = run.n - done;
            let gap = self.kept.due(number).map_or(left, |due| left.min(due - lpn));
            if gap > 0 {
                self.miss(Newcomers {
                    next: run.next,
                    lpn,
                    extent: Extent { n: gap, owner: writer },
                });
                done += gap;
            } else if let Some(found) = self.kept.take_due(number, left) {
                self.hit(run.next, lpn, found, writer);
                done += found.n;
                hits += found.n;
            }
        }
        hits
    }

    fn hit(&mut self, next: u32, lpn: u32, found: Extent, writer: Option<u8>) {
        if let Some(tenant) = writer {
            self.kept.overwritten(found);
            self.kept.written(tenant, found.n);
        }
        self.kept.insert(next, lpn, Extent { owner: writer.or(found.owner), ..found });
    }

    fn miss(&mut self, new: Newcomers) {
        if let Some(tenant) = new.extent.owner {
            self.kept.written(tenant, new.extent.n);
        }
        let excess = new.extent.n.saturating_sub(self.kept.free());
        if excess == 0 {
            self.kept.insert(new.next, new.lpn, new.extent);
        } else if new.next == NEVER {
            self.miss_dead(new, excess);
        } else {
            self.miss_live(new, excess);
        }
    }

    /// Pages that are used again. `excess` of them find no room: they take the place of dead pages,
    /// then of pages used later, then, one after the other, of one another.
    fn miss_live(&mut self, new: Newcomers, excess: u32) {
        let mut excess = excess - self.kept.evict_dead(excess, None);
        excess -= self.kept.evict_farther(excess, (new.next, new.lpn));
        if self.always {
            excess -= self.first_of(new, excess);
        }
        let Newcomers { next, lpn, extent } = new;
        let admitted = extent.n - excess;
        // If all have to be admitted, each page that finds no room replaces the one before it.
        let last = u32::from(self.always && excess > 0 && admitted > 0);
        let before = admitted - last;
        self.kept.programmed(Extent { n: excess, ..extent });
        self.kept.insert(next, lpn, Extent { n: before, ..extent });
        if last > 0 {
            self.kept.insert(next, lpn + before + excess, Extent { n: 1, ..extent });
        }
    }

    /// Pages that are not used again: dead ones leave from the lowest on, they themselves included.
    fn miss_dead(&mut self, new: Newcomers, excess: u32) {
        let mut excess = excess;
        if self.always {
            excess -= self.kept.evict_dead(excess, Some(new.lpn));
            excess -= self.first_of(new, excess);
        }
        let Newcomers { next, lpn, extent } = new;
        let admitted = extent.n - excess;
        self.kept.programmed(Extent { n: excess, ..extent });
        let first = if self.always { lpn + excess } else { lpn };
        self.kept.insert(next, first, Extent { n: admitted, ..extent });
    }

    /// Makes room for the first newcomer if none has any, whatever has to leave.
    fn first_of(&mut self, new: Newcomers, excess: u32) -> u32 {
        if excess < new.extent.n || self.slots == 0 {
            return 0;
        }
        let gone = self.kept.evict_dead(1, None);
        gone + self.kept.evict_farther(1 - gone, (0, 0))
    }
}
