//! Counters per window of requests.

use onefold_ftl::Held;
use onefold_nand::Media;
use onefold_ssd::zns::{Zns, ZoneState};
use onefold_ssd::{HostStats, Ssd};
use onefold_units::{Cause, CauseCounts, ZoneId};

use crate::metrics::Metrics;
use crate::result::{ByCause, Series, SeriesPoint};

/// Points kept. A longer run doubles its window and joins points in pairs: from 64 requests on there
/// are half as many at least.
const POINTS_MAX: usize = 200;

/// A device as far as its windows tell.
pub(crate) trait Windowed {
    /// Pages programmed so far.
    fn programs(&self) -> CauseCounts;
    /// Superblocks, or block sets, erased so far.
    fn erases(&self) -> u64;
    /// Superblocks, or zones, that hold nothing.
    fn free(&self) -> u32;
    /// What superblocks of data hold; `None` of anything but one drive with a block namespace.
    fn held(&self) -> Option<Held> {
        None
    }
}

impl<M: Media> Windowed for Ssd<M> {
    fn programs(&self) -> CauseCounts {
        self.ftl().stats().programs
    }

    fn erases(&self) -> u64 {
        self.ftl().stats().erases
    }

    fn free(&self) -> u32 {
        self.ftl().free_superblocks()
    }

    fn held(&self) -> Option<Held> {
        Some(self.ftl().held())
    }
}

impl<M: Media> Windowed for Zns<M> {
    fn programs(&self) -> CauseCounts {
        self.stats().programs
    }

    fn erases(&self) -> u64 {
        self.stats().erases
    }

    fn free(&self) -> u32 {
        let empty = self.report(ZoneId::new(0), Some(ZoneState::Empty), 0, false);
        empty.map_or(0, |report| report.matching)
    }
}

/// One window: counters at its end, and what happened in it.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    virtual_ns: u64,
    programs: CauseCounts,
    /// Pages that the host wrote, read and remapped.
    host_pages: [u64; 3],
    sums: [(u128, u64); 2],
    free: u32,
    held: Option<Held>,
}

onefold_units::keep!(Window { virtual_ns, programs, host_pages, sums, free, held });

/// Adds counts of pages.
pub(crate) fn add(sum: &mut CauseCounts, other: &CauseCounts) {
    for cause in Cause::ALL {
        sum.add(cause, other.of(cause));
    }
}

/// Collects windows.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    asked: u64,
    window: u64,
    next: u64,
    start: Option<Window>,
    windows: Vec<Window>,
}

onefold_units::keep!(Recorder { window, next, start, windows } but { asked });

impl Recorder {
    pub(crate) fn new(window: u64) -> Self {
        let window = window.max(1);
        Self { asked: window, window, next: window, start: None, windows: Vec::new() }
    }

    /// The same, with nothing seen yet.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.asked)
    }

    /// Measuring begins with these counters.
    pub(crate) fn begin(&mut self, now: u64, device: &impl Windowed, host: &HostStats) {
        self.start = Some(Window::take(now, device, host, &[(0, 0); 2]));
    }

    /// The number of measured requests at which [`Recorder::take`] is due.
    #[inline]
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn take(
        &mut self,
        now: u64,
        device: &impl Windowed,
        host: &HostStats,
        metrics: &[&Metrics],
    ) {
        let mut sums = [(0, 0); 2];
        for metrics in metrics {
            for (sum, add) in sums.iter_mut().zip(metrics.sums()) {
                *sum = (sum.0 + add.0, sum.1 + add.1);
            }
        }
        self.windows.push(Window::take(now, device, host, &sums));
        if self.windows.len() == POINTS_MAX {
            let mut at = 0;
            self.windows.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.window *= 2;
        }
        self.next += self.window;
    }

    /// The series, in differences.
    pub(crate) fn finish(&self) -> Series {
        let Some(mut before) = self.start else { return Series::default() };
        let start = before.virtual_ns;
        let mut points = Vec::with_capacity(self.windows.len());
        for window in &self.windows {
            points.push(window.since(&before, start));
            before = *window;
        }
        Series { window_requests: self.window, points }
    }
}

impl Window {
    fn take(now: u64, device: &impl Windowed, host: &HostStats, sums: &[(u128, u64); 2]) -> Self {
        Self {
            virtual_ns: now,
            programs: device.programs(),
            host_pages: [host.write_pages, host.read_pages, host.remap_pages],
            sums: *sums,
            free: device.free(),
            held: device.held(),
        }
    }

    fn since(&self, before: &Self, start: u64) -> SeriesPoint {
        let programs = self.programs.since(&before.programs);
        let [write, read, remap] = self.host_pages;
        let [write_before, read_before, remap_before] = before.host_pages;
        let host_write_pages = write - write_before;
        let mean = |at: usize| {
            let (sum, count) = self.sums[at];
            let (sum_before, count_before) = before.sums[at];
            ratio(sum - sum_before, u128::from(count - count_before))
        };
        SeriesPoint {
            virtual_ns: self.virtual_ns - start,
            host_write_pages,
            host_read_pages: read - read_before,
            host_remap_pages: remap - remap_before,
            waf: ratio(u128::from(programs.total()), u128::from(host_write_pages)),
            program_pages: ByCause::non_zero(&programs),
            read_mean_ns: mean(0),
            write_mean_ns: mean(1),
            free_superblocks: u64::from(self.free),
            valid_pages: self.held.map(|held| held.valid_pages),
            stale_pages: self.held.map(|held| held.stale_pages),
        }
    }
}

/// a / b; 0 where b is 0.
#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than 53 bits")]
pub(crate) fn ratio(a: u128, b: u128) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}
