//! What has been planned and not yet requested.

use std::collections::VecDeque;

use onefold_units::Op;

use super::space::Extent;
use crate::workload::page_request::PageRequest;

/// Consecutive pages of one operation.
#[derive(Clone, Copy, Debug)]
struct Run {
    op: Op,
    extent: Extent,
}

/// Runs of pages in order; requests are cut from the front.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    runs: VecDeque<Run>,
    /// Pages of the largest read or write, and of the largest trim.
    max_req: u32,
    max_trim: u32,
    /// Pages to read and write of all runs so far: the clock of the host's cache.
    traffic: u64,
}

impl Queue {
    pub(super) const fn new(max_req: u32, max_trim: u32) -> Self {
        Self { runs: VecDeque::new(), max_req, max_trim, traffic: 0 }
    }

    pub(super) const fn traffic(&self) -> u64 {
        self.traffic
    }

    pub(super) fn push(&mut self, op: Op, extent: Extent) {
        if op != Op::Trim {
            self.traffic += u64::from(extent.pages);
        }
        self.runs.push_back(Run { op, extent });
    }

    /// Moves up to `pages` pages of the first of `extents` here and returns how many.
    pub(super) fn push_part(&mut self, op: Op, extents: &mut VecDeque<Extent>, pages: u32) -> u64 {
        let Some(first) = extents.front_mut() else { return 0 };
        let part = first.take(pages);
        if first.pages == 0 {
            extents.pop_front();
        }
        self.push(op, part);
        u64::from(part.pages)
    }

    pub(super) fn pop(&mut self) -> Option<PageRequest> {
        let run = self.runs.front_mut()?;
        let most = if run.op == Op::Trim { self.max_trim } else { self.max_req };
        let part = run.extent.take(most);
        let request = PageRequest { lpn: part.start, n: part.pages, op: run.op, tenant: 0 };
        if run.extent.pages == 0 {
            self.runs.pop_front();
        }
        Some(request)
    }
}
