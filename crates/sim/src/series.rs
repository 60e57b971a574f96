//! Counters per window of requests.

use onefold_ftl::FtlStats;
use onefold_nand::Media;
use onefold_ssd::{HostStats, Ssd};

use crate::metrics::Metrics;
use crate::result::{ByCause, Series, SeriesPoint};

/// Points kept. A longer run doubles its window and joins points in pairs.
const POINTS_MAX: usize = 1000;

/// One window: counters at its end, and what happened in it.
#[derive(Clone, Copy, Debug)]
struct Window {
    virtual_ns: u64,
    ftl: FtlStats,
    host_write_pages: u64,
    sums: [(u128, u64); 2],
    free: u32,
}

/// Collects windows.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    window: u64,
    next: u64,
    start: Option<Window>,
    windows: Vec<Window>,
}

impl Recorder {
    pub(crate) fn new(window: u64) -> Self {
        let window = window.max(1);
        Self { window, next: window, start: None, windows: Vec::new() }
    }

    /// Measuring begins with these counters.
    pub(crate) fn begin<M: Media>(&mut self, now: u64, ssd: &Ssd<M>, host: &HostStats) {
        self.start = Some(Window::take(now, ssd, host, &[(0, 0); 2]));
    }

    /// The number of measured requests at which [`Recorder::take`] is due.
    #[inline]
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn take<M: Media>(
        &mut self,
        now: u64,
        ssd: &Ssd<M>,
        host: &HostStats,
        metrics: &[&Metrics],
    ) {
        let mut sums = [(0, 0); 2];
        for metrics in metrics {
            for (sum, add) in sums.iter_mut().zip(metrics.sums()) {
                *sum = (sum.0 + add.0, sum.1 + add.1);
            }
        }
        self.windows.push(Window::take(now, ssd, host, &sums));
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
    fn take<M: Media>(now: u64, ssd: &Ssd<M>, host: &HostStats, sums: &[(u128, u64); 2]) -> Self {
        Self {
            virtual_ns: now,
            ftl: ssd.ftl().stats(),
            host_write_pages: host.write_pages,
            sums: *sums,
            free: ssd.ftl().free_superblocks(),
        }
    }

    fn since(&self, before: &Self, start: u64) -> SeriesPoint {
        let ftl = self.ftl.since(&before.ftl);
        let host_write_pages = self.host_write_pages - before.host_write_pages;
        let mean = |at: usize| {
            let (sum, count) = self.sums[at];
            let (sum_before, count_before) = before.sums[at];
            ratio(sum - sum_before, u128::from(count - count_before))
        };
        SeriesPoint {
            virtual_ns: self.virtual_ns - start,
            host_write_pages,
            waf: ratio(u128::from(ftl.programs.total()), u128::from(host_write_pages)),
            program_pages: ByCause::non_zero(&ftl.programs),
            read_mean_ns: mean(0),
            write_mean_ns: mean(1),
            free_superblocks: u64::from(self.free),
        }
    }
}

/// a / b; 0 where b is 0.
#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than 53 bits")]
pub(crate) fn ratio(a: u128, b: u128) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}
