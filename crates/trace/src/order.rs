//! Stable order by time: ties keep the order of the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onefold_units::convert::u64_from;

use crate::Record;

/// Records that are sorted in memory; a longer trace needs an external sort ([`Merge`]).
pub const WINDOW_RECORDS: usize = 1 << 20;

/// Sorts records by time; equal times keep their order.
pub fn sort(records: &mut [Record]) {
    if !records.is_sorted_by_key(|record| record.t_ns) {
        records.sort_by_key(|record| record.t_ns);
    }
}

/// Merges sorted runs, in which earlier runs hold earlier parts of the file.
#[derive(Debug)]
pub struct Merge<R> {
    runs: Vec<R>,
    /// Time and run of the next record of each run; the run breaks ties.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    next: Vec<Option<Record>>,
}

impl<R, E> Merge<R>
where
    R: Iterator<Item = Result<Record, E>>,
{
    /// Takes the first record of every run.
    pub fn new(runs: Vec<R>) -> Result<Self, E> {
        let mut merge = Self { heads: BinaryHeap::new(), next: vec![None; runs.len()], runs };
        for run in 0..merge.runs.len() {
            merge.refill(run)?;
        }
        Ok(merge)
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        u64_from(self.runs.len())
    }

    fn refill(&mut self, run: usize) -> Result<(), E> {
        let record = self.runs.get_mut(run).and_then(Iterator::next).transpose()?;
        if let Some(record) = &record {
            self.heads.push(Reverse((record.t_ns, run)));
        }
        if let Some(place) = self.next.get_mut(run) {
            *place = record;
        }
        Ok(())
    }

    /// The next record in time.
    pub fn next_record(&mut self) -> Result<Option<Record>, E> {
        let Some(Reverse((_, run))) = self.heads.pop() else { return Ok(None) };
        let record = self.next.get_mut(run).and_then(Option::take);
        self.refill(run)?;
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::Merge;
    use crate::{Record, TraceOp};

    #[test]
    fn merging_is_stable() {
        let run = |times: &[u64], mark: u64| {
            times
                .iter()
                .map(|t| Ok::<_, Infallible>(Record::new(*t, TraceOp::Read, mark, 1)))
                .collect::<Vec<_>>()
                .into_iter()
        };
        let mut merge = Merge::new(vec![run(&[1, 5, 5], 0), run(&[0, 5, 9], 1)]).unwrap();
        let mut seen = Vec::new();
        while let Some(record) = merge.next_record().unwrap() {
            seen.push((record.t_ns, record.offset));
        }
        assert_eq!(seen, [(0, 1), (1, 0), (5, 0), (5, 0), (5, 1), (9, 1)]);
    }
}
