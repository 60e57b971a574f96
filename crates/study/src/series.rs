//! A run over time: what the windows of its series come to, for figures and for checks.

use onefold_sim::result::{RunResult, SeriesPoint};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;

use crate::file::Metric;

/// Numbers of a window in a kept table.
const CELLS: usize = 7;

/// One window of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Its end, since the start of the measured part, in nanoseconds.
    end_ns: u64,
    /// Pages that the host read, wrote and asked to remap.
    host_pages: u64,
    /// Pages programmed for any cause, by collection, and instead of remaps.
    programs: u64,
    gc: u64,
    fallback: u64,
    /// Pages with current content at its end, and pages of full superblocks without.
    valid: u64,
    stale: u64,
}

/// The windows of a run, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Windows(Vec<Window>);

impl From<&SeriesPoint> for Window {
    fn from(point: &SeriesPoint) -> Self {
        let host = [point.host_read_pages, point.host_write_pages, point.host_remap_pages];
        Self {
            end_ns: point.virtual_ns,
            // Counts of a damaged file can be of any size.
            host_pages: host.into_iter().fold(0, u64::saturating_add),
            programs: point.program_pages.total(),
            gc: point.program_pages.of("gc"),
            fallback: point.program_pages.of("fallback"),
            valid: point.valid_pages.unwrap_or(0),
            stale: point.stale_pages.unwrap_or(0),
        }
    }
}

impl Windows {
    /// Those of a result; `None` if it has no series.
    pub(crate) fn of(run: &RunResult) -> Option<Self> {
        let points = &run.series.points;
        (!points.is_empty()).then(|| Self(points.iter().map(Window::from).collect()))
    }

    /// A number of a whole run; `None` if it never came to that.
    pub(crate) fn whole(&self, metric: Metric) -> Option<f64> {
        let gc = self.0.iter().position(|window| window.gc > 0);
        let end = |window: &Window| float(window.end_ns);
        match metric {
            Metric::GcBegins => self.0.get(gc?).map(end),
            Metric::CopiesBegin => self.0.iter().find(|window| window.fallback > 0).map(end),
            Metric::BandwidthBeforeGc => self.bandwidth(0, gc.unwrap_or(self.0.len())),
            Metric::BandwidthAfterGc => self.bandwidth(gc?, self.0.len()),
            Metric::LowestBandwidth => {
                let all = (0..self.0.len()).filter_map(|at| self.bandwidth(at, at + 1));
                all.reduce(f64::min)
            }
            Metric::ValidPages => self.0.last().map(|window| float(window.valid)),
            Metric::StalePages => self.0.last().map(|window| float(window.stale)),
            _ => None,
        }
    }

    /// A line over time: the end of each window in nanoseconds, and the number of the window.
    pub(crate) fn line(&self, metric: Metric) -> Vec<(f64, Option<f64>)> {
        let value = |(at, window): (usize, &Window)| match metric {
            Metric::Bandwidth => self.bandwidth(at, at + 1),
            Metric::FlashPages => Some(float(window.programs)),
            Metric::ValidPages => Some(float(window.valid)),
            Metric::StalePages => Some(float(window.stale)),
            _ => None,
        };
        let all = self.0.iter().enumerate();
        all.map(|(at, window)| (float(window.end_ns), value((at, window)))).collect()
    }

    /// MB per second that the host read, wrote and remapped in windows `first..end`; `None` if they take no time.
    fn bandwidth(&self, first: usize, end: usize) -> Option<f64> {
        let windows = self.0.get(first..end)?;
        let begin = first.checked_sub(1).map_or(0, |before| self.0[before].end_ns);
        let ns = windows.last()?.end_ns.checked_sub(begin).filter(|ns| *ns > 0)?;
        let pages: f64 = windows.iter().map(|window| float(window.host_pages)).sum();
        Some(pages * float(PAGE_BYTES) * 1e3 / float(ns))
    }

    /// Windows with a blank between them, their numbers with colons.
    pub(crate) fn text(&self) -> String {
        let window = |window: &Window| {
            let Window { end_ns, host_pages, programs, gc, fallback, valid, stale } = window;
            format!("{end_ns}:{host_pages}:{programs}:{gc}:{fallback}:{valid}:{stale}")
        };
        self.0.iter().map(window).collect::<Vec<String>>().join(" ")
    }

    /// What [`Self::text`] made; `None` of anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let window = |word: &str| {
            let numbers: Vec<u64> =
                word.split(':').map(|cell| cell.parse().ok()).collect::<Option<_>>()?;
            let [end_ns, host_pages, programs, gc, fallback, valid, stale]: [u64; CELLS] =
                numbers.try_into().ok()?;
            Some(Window { end_ns, host_pages, programs, gc, fallback, valid, stale })
        };
        text.split(' ').map(window).collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Metric, Window, Windows};

    /// Two windows before collection and two of it; the last one takes no time.
    fn windows() -> Windows {
        let window = |end_ms: u64, host_pages, gc, fallback| Window {
            end_ns: end_ms * 1_000_000,
            host_pages,
            programs: host_pages + gc,
            gc,
            fallback,
            valid: end_ms,
            stale: 2 * end_ms,
        };
        Windows(vec![
            window(1000, 1000, 0, 0),
            window(2000, 3000, 0, 7),
            window(4000, 2000, 5, 0),
            window(4000, 100, 0, 9),
        ])
    }

    #[test]
    fn numbers_of_a_run_come_from_its_windows() {
        let whole = |metric| windows().whole(metric);
        assert_eq!(whole(Metric::GcBegins), Some(4e9));
        assert_eq!(whole(Metric::CopiesBegin), Some(2e9));
        assert_eq!(whole(Metric::BandwidthBeforeGc), Some(4000.0 * 4096.0 / 2e6));
        assert_eq!(whole(Metric::BandwidthAfterGc), Some(2100.0 * 4096.0 / 2e6));
        assert_eq!(whole(Metric::LowestBandwidth), Some(1000.0 * 4096.0 / 1e6));
        assert_eq!(
            (whole(Metric::ValidPages), whole(Metric::StalePages)),
            (Some(4000.0), Some(8000.0))
        );
        assert_eq!(whole(Metric::Waf), None);
        let before = Windows(windows().0[..2].to_vec());
        assert_eq!(before.whole(Metric::GcBegins), None);
        assert_eq!(before.whole(Metric::BandwidthAfterGc), None);
        assert_eq!(before.whole(Metric::BandwidthBeforeGc), Some(4000.0 * 4096.0 / 2e6));
    }

    #[test]
    fn a_line_has_a_gap_where_a_window_takes_no_time() {
        let bandwidth = |pages: f64, s: f64| Some(pages * 4096.0 / 1e6 / s);
        let expected = vec![
            (1e9, bandwidth(1000.0, 1.0)),
            (2e9, bandwidth(3000.0, 1.0)),
            (4e9, bandwidth(2000.0, 2.0)),
            (4e9, None),
        ];
        assert_eq!(windows().line(Metric::Bandwidth), expected);
        assert_eq!(windows().line(Metric::FlashPages)[2], (4e9, Some(2005.0)));
        assert_eq!(windows().line(Metric::StalePages)[0], (1e9, Some(2000.0)));
    }

    #[test]
    fn windows_are_read_back() {
        assert_eq!(Windows::parse(&windows().text()), Some(windows()));
        for bad in
            ["", "1:2:3:4:5:6", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:x", "1:2:3:4:5:6:7  1:2:3:4:5:6:7"]
        {
            assert_eq!(Windows::parse(bad), None, "{bad}");
        }
    }
}
