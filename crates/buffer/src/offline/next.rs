//! When every page of every request is used next.

use onefold_units::convert::{index64, u32_from, u64_from};

use super::{Request, Use};

/// Not used again: later than every request.
pub(super) const NEVER: u32 = u32::MAX;

/// Neighbouring pages of one request that the same later request uses next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of that request, or [`NEVER`].
    pub(super) next: u32,
    /// Pages.
    pub(super) n: u32,
}

/// Which uses count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Horizon {
    /// Reads and writes; a TRIM that comes first means never.
    Access,
    /// Writes and TRIMs. Reads have no runs.
    Overwrite,
}

/// A request stream with the next uses of the pages it touches.
///
/// A request leaves one value behind for all of its pages, so it adds two ends of runs at most:
/// memory is 8 B for each of at most three runs per request, and while they are computed 4 B for
/// every page up to the highest one touched.
#[derive(Clone, Debug)]
pub(super) struct Future<'a> {
    pub(super) requests: &'a [Request],
    pub(super) horizon: Horizon,
    /// Runs of all requests, the very last one first.
    runs: Vec<Run>,
}

impl<'a> Future<'a> {
    fn new(requests: &'a [Request], horizon: Horizon) -> Self {
        assert!(u64_from(requests.len()) < u64::from(NEVER), "requests are numbered by 32 bits");
        let pages = requests.iter().filter(|r| r.kind().is_some()).map(|r| r.end()).max();
        let mut next = vec![NEVER; index64(pages.unwrap_or(0))];
        let mut runs = Vec::new();
        for (number, r) in (0..u32_from(requests.len())).zip(requests).rev() {
            let pages = index64(u64::from(r.lpn))..index64(r.end());
            match (r.kind(), horizon) {
                (None, _) | (Some(Use::Read), Horizon::Overwrite) => {}
                (Some(Use::Trim), Horizon::Access) => next[pages].fill(NEVER),
                (Some(Use::Trim), Horizon::Overwrite) => next[pages].fill(number),
                (Some(Use::Read | Use::Write), _) => {
                    push_runs(&next[pages.clone()], &mut runs);
                    next[pages].fill(number);
                }
            }
        }
        Self { requests, horizon, runs }
    }

    /// The runs of all requests in order, each request's from its first page to its last.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        self.runs.iter().rev().copied()
    }
}

/// Appends the runs of one request, the last one first.
fn push_runs(mut pages: &[u32], runs: &mut Vec<Run>) {
    while let Some(next) = pages.last() {
        let n = pages.iter().rev().take_while(|page| *page == next).count();
        runs.push(Run { next: *next, n: u32_from(n) });
        pages = &pages[..pages.len() - n];
    }
}

/// A request stream with the next read or write of every page accessed, for [`super::min`] and
/// [`super::min_bypass`]. A page that is trimmed before is not used again.
#[derive(Clone, Debug)]
pub struct NextUse<'a>(pub(super) Future<'a>);

impl<'a> NextUse<'a> {
    /// Looks at every page of every request once. Memory is 24 B per request at most, and meanwhile
    /// 4 B per page up to the highest one touched.
    ///
    /// # Panics
    /// There are 2^32 - 1 requests or more.
    #[must_use]
    pub fn new(requests: &'a [Request]) -> Self {
        Self(Future::new(requests, Horizon::Access))
    }
}

/// A request stream with the next write or TRIM of every page written, for [`super::min_w`].
#[derive(Clone, Debug)]
pub struct NextWrite<'a>(pub(super) Future<'a>);

impl<'a> NextWrite<'a> {
    /// As [`NextUse::new`].
    ///
    /// # Panics
    /// There are 2^32 - 1 requests or more.
    #[must_use]
    pub fn new(requests: &'a [Request]) -> Self {
        Self(Future::new(requests, Horizon::Overwrite))
    }
}

#[cfg(test)]
mod tests {
    use super::{NEVER, NextUse, NextWrite, Run};
    use crate::offline::Request;
    use onefold_units::Op;

    #[test]
    fn runs_end_where_the_next_use_changes() {
        let r = |op, lpn, n| Request { op, tenant: 0, lpn, n };
        let requests = [
            r(Op::Write, 0, 8),
            r(Op::Read, 2, 2),
            r(Op::Trim, 6, 4),
            r(Op::Flush, 0, 9),
            r(Op::Write, 3, 4),
        ];
        let run = |next, n| Run { next, n };
        let uses: Vec<Run> = NextUse::new(&requests).0.runs().collect();
        let first = [run(NEVER, 2), run(1, 2), run(4, 2), run(NEVER, 2)];
        let second = [run(NEVER, 1), run(4, 1)];
        assert_eq!(uses, [&first[..], &second, &[run(NEVER, 4)]].concat());
        let writes: Vec<Run> = NextWrite::new(&requests).0.runs().collect();
        assert_eq!(writes, [run(NEVER, 3), run(4, 3), run(2, 2), run(NEVER, 4)]);
        assert_eq!(NextUse::new(&[]).0.runs().count(), 0);
    }
}
