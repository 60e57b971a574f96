//! What a volume is measured by.

use onefold_units::Op;
use onefold_units::convert::{float, index, index64, u64_from};

use crate::workload::page_request::{PageRequest, PageSource};

const BATCH: usize = 1024;

/// How the page writes of a volume are spread over its pages and over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageFigures {
    /// Pages written, with multiplicity.
    pub page_writes: u64,
    /// 1 - distinct written pages / page writes.
    pub rewrite_share: f64,
    /// Share of the page writes that go to the most written hundredth of the written pages.
    pub top1_share: f64,
    /// Writes of the most written page.
    pub max_writes: u64,
    /// Page writes between two writes of the same page: half of the rewrites are nearer.
    pub median_gap: u64,
    /// Nine tenths of the rewrites are nearer.
    pub p90_gap: u64,
}

impl PageFigures {
    /// Measures `source` from where it stands until it has written `page_writes` pages or ends.
    /// Takes 8 B per page of the address space and 4 B per page write.
    pub fn measure(source: &mut dyn PageSource, page_writes: u64) -> Self {
        let mut tally = Tally::new(index(source.end_pages()));
        let mut batch = [PageRequest::EMPTY; BATCH];
        while tally.clock < page_writes {
            let got = source.fill_pages(&mut batch);
            for request in batch[..got].iter().filter(|request| request.op == Op::Write) {
                tally.write(request, page_writes);
            }
            if got < batch.len() {
                break;
            }
        }
        tally.figures()
    }
}

struct Tally {
    /// Page writes so far.
    clock: u64,
    writes: Vec<u32>,
    /// When each page was written last, counted from 1; low 32 bits.
    last: Vec<u32>,
    gaps: Vec<u32>,
}

impl Tally {
    fn new(pages: usize) -> Self {
        Self { clock: 0, writes: vec![0; pages], last: vec![0; pages], gaps: Vec::new() }
    }

    fn write(&mut self, request: &PageRequest, limit: u64) {
        for lpn in request.lpn..request.lpn + request.n {
            if self.clock == limit {
                return;
            }
            self.clock += 1;
            let now = onefold_units::convert::low32(self.clock);
            let (writes, last) = (&mut self.writes[index(lpn)], &mut self.last[index(lpn)]);
            if *writes > 0 {
                self.gaps.push(now.wrapping_sub(*last));
            }
            *writes += 1;
            *last = now;
        }
    }

    fn figures(mut self) -> PageFigures {
        self.writes.retain(|writes| *writes > 0);
        self.writes.sort_unstable_by(|a, b| b.cmp(a));
        let distinct = self.writes.len();
        let hottest = (distinct / 100).max(1).min(distinct);
        let top: u64 = self.writes[..hottest].iter().map(|writes| u64::from(*writes)).sum();
        let writes = float(self.clock.max(1));
        PageFigures {
            page_writes: self.clock,
            rewrite_share: 1.0 - float(u64_from(distinct)) / writes,
            top1_share: float(top) / writes,
            max_writes: self.writes.first().map_or(0, |writes| u64::from(*writes)),
            median_gap: quantile(&mut self.gaps, 5),
            p90_gap: quantile(&mut self.gaps, 9),
        }
    }
}

/// The value below which so many tenths lie; 0 without values.
fn quantile(values: &mut [u32], tenths: u64) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let at = index64(u64_from(values.len() - 1) * tenths / 10);
    u64::from(*values.select_nth_unstable(at).1)
}
