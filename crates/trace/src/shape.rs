//! From the trace's own clock to times a simulator can run: merged, without jumps, from 0.

use onefold_units::PAGE_BYTES;

use crate::{Record, TraceOp};

/// A gap longer than this is a broken clock: 30 days.
pub const MAX_GAP_NS: u64 = 30 * 86_400 * 1_000_000_000;

/// Records of one instant that are held to spread them; more than that share the last time.
const TIES_MAX: usize = 1 << 22;

/// What a [`Shaper`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeOptions {
    /// Lines of one client with adjacent addresses, at most this long apart, are one request.
    pub merge_ns: Option<u64>,
    /// A longer gap is cut to nothing and counted.
    pub max_gap_ns: u64,
    /// Spaces records of equal times evenly inside a tick of this length.
    pub spread_tick_ns: Option<u64>,
    /// Subtracted from every offset; offsets below it become 0.
    pub shift_bytes: u64,
}

impl Default for ShapeOptions {
    fn default() -> Self {
        Self { merge_ns: None, max_gap_ns: MAX_GAP_NS, spread_tick_ns: None, shift_bytes: 0 }
    }
}

/// Takes records in time order and gives them out in time order.
#[derive(Debug)]
pub struct Shaper {
    options: ShapeOptions,
    /// The request lines are merged into, and the time of its last line.
    open: Option<(Record, u64)>,
    /// Records of one instant, waiting to be spread.
    ties: Vec<Record>,
    clock: Option<Clock>,
    jumps: u64,
    cut_ns: u64,
    merged: u64,
}

/// Trace time to output time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    last_in: u64,
    last_out: u64,
    first_in: u64,
}

impl Shaper {
    /// A shaper of one trace.
    #[must_use]
    pub const fn new(options: ShapeOptions) -> Self {
        Self { options, open: None, ties: Vec::new(), clock: None, jumps: 0, cut_ns: 0, merged: 0 }
    }

    /// Gaps cut so far.
    #[must_use]
    pub const fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Time cut so far.
    #[must_use]
    pub const fn cut_ns(&self) -> u64 {
        self.cut_ns
    }

    /// Lines merged into an earlier one so far.
    #[must_use]
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    /// The first time in the trace's own clock.
    #[must_use]
    pub fn first_ns(&self) -> Option<u64> {
        self.clock.map(|clock| clock.first_in)
    }

    /// Takes the next record, not earlier than the one before; gives out what is ready.
    #[inline]
    pub fn push(&mut self, mut record: Record, out: &mut Vec<Record>) {
        if self.options.shift_bytes > 0 {
            record.offset = record.offset.saturating_sub(self.options.shift_bytes);
            record.place_source(|source| source.saturating_sub(self.options.shift_bytes));
        }
        let Some(window) = self.options.merge_ns else {
            self.timed(record, out);
            return;
        };
        if let Some((open, last)) = &mut self.open
            && mergeable(open, &record)
            && record.t_ns.saturating_sub(*last) <= window
        {
            *last = record.t_ns;
            merge(open, record);
            self.merged += 1;
            return;
        }
        let last = record.t_ns;
        if let Some((open, _)) = self.open.replace((record, last)) {
            self.timed(open, out);
        }
    }

    /// The trace has ended: gives out the rest.
    pub fn finish(&mut self, out: &mut Vec<Record>) {
        if let Some((open, _)) = self.open.take() {
            self.timed(open, out);
        }
        self.spread(out);
    }

    #[inline]
    fn timed(&mut self, mut record: Record, out: &mut Vec<Record>) {
        let clock = self.clock.get_or_insert(Clock {
            last_in: record.t_ns,
            last_out: 0,
            first_in: record.t_ns,
        });
        let mut gap = record.t_ns.saturating_sub(clock.last_in);
        clock.last_in = clock.last_in.max(record.t_ns);
        if gap > self.options.max_gap_ns {
            self.jumps += 1;
            self.cut_ns = self.cut_ns.saturating_add(gap);
            gap = 0;
        }
        clock.last_out += gap;
        record.t_ns = clock.last_out;
        if self.options.spread_tick_ns.is_none() {
            out.push(record);
            return;
        }
        let same = self.ties.first().is_none_or(|first| first.t_ns == record.t_ns);
        if !same || self.ties.len() >= TIES_MAX {
            self.spread(out);
        }
        self.ties.push(record);
    }

    /// Gives out the records of one instant, evenly over its tick.
    fn spread(&mut self, out: &mut Vec<Record>) {
        let tick = self.options.spread_tick_ns.unwrap_or(0);
        let count = onefold_units::convert::u64_from(self.ties.len());
        for (n, mut record) in (0_u64..).zip(self.ties.drain(..)) {
            // Up to 2^22 ties of a tick of up to some seconds: below 2^64.
            record.t_ns += tick.saturating_mul(n).checked_div(count).unwrap_or(0);
            out.push(record);
        }
    }
}

/// Whether `next` continues `open`.
fn mergeable(open: &Record, next: &Record) -> bool {
    open.op == next.op
        && open.op.is_data()
        && open.dev == next.dev
        && open.client == next.client
        && open.flags == next.flags
        && open.end() == next.offset
        // The same limit as for a single request.
        && open.len + next.len <= crate::lines::DATA_BYTES_MAX
}

fn merge(open: &mut Record, next: Record) {
    let on_page = open.end().is_multiple_of(PAGE_BYTES);
    let digests = match (open.digests.take(), next.digests) {
        (Some(head), Some(tail)) if on_page && open.op == TraceOp::Write => {
            let mut all = Vec::from(head);
            all.extend_from_slice(&tail);
            Some(all.into_boxed_slice())
        }
        _ => None,
    };
    open.len += next.len;
    open.lat_ns = open.lat_ns.max(next.lat_ns);
    open.digests = digests;
}

#[cfg(test)]
mod tests {
    use super::{ShapeOptions, Shaper};
    use crate::{Record, TraceOp};

    fn shape(options: ShapeOptions, records: &[(u64, u64, u64)]) -> (Vec<(u64, u64, u64)>, u64) {
        let mut shaper = Shaper::new(options);
        let mut out = Vec::new();
        for (t, offset, len) in records {
            shaper.push(Record::new(*t, TraceOp::Write, *offset, *len), &mut out);
        }
        shaper.finish(&mut out);
        (out.iter().map(|r| (r.t_ns, r.offset, r.len)).collect(), shaper.jumps())
    }

    #[test]
    fn adjacent_lines_of_one_instant_become_one_request() {
        let options = ShapeOptions { merge_ns: Some(0), ..Default::default() };
        let (out, _) = shape(options, &[(7, 0, 8), (7, 8, 8), (7, 24, 8), (8, 32, 8)]);
        assert_eq!(out, [(0, 0, 16), (0, 24, 8), (1, 32, 8)]);
        let options = ShapeOptions { merge_ns: Some(1), ..Default::default() };
        assert_eq!(shape(options, &[(7, 0, 8), (8, 8, 8), (9, 16, 8)]).0, [(0, 0, 24)]);
    }

    #[test]
    fn jumps_are_cut_to_nothing() {
        let options = ShapeOptions { max_gap_ns: 100, ..Default::default() };
        let (out, jumps) = shape(options, &[(5, 0, 1), (105, 1, 1), (900, 2, 1), (901, 3, 1)]);
        assert_eq!(out, [(0, 0, 1), (100, 1, 1), (100, 2, 1), (101, 3, 1)]);
        assert_eq!(jumps, 1);
    }

    #[test]
    fn ties_spread_evenly_inside_the_tick() {
        let options = ShapeOptions { spread_tick_ns: Some(1000), ..Default::default() };
        let (out, _) = shape(options, &[(0, 0, 1), (0, 1, 1), (1000, 2, 1), (1000, 3, 1)]);
        assert_eq!(out.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 500, 1000, 1500]);
    }
}
