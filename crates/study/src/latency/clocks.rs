//! What the latency models of a study measure for one buffer.

use onefold_buffer::{Counts, Req, Stats};
use onefold_units::Op;

use super::Timer;
use crate::row::{LatencyRow, Row};

/// The models at work for one buffer.
#[derive(Clone, Debug)]
pub(crate) struct Clocks(Vec<Clock>);

/// A model and what it measured, per tenant.
#[derive(Clone, Debug)]
struct Clock {
    timer: Timer,
    rows: Vec<LatencyRow>,
}

impl Clocks {
    /// Models that begin, for so many tenants.
    pub(crate) fn new(timers: &[Timer], tenants: usize) -> Self {
        Self(timers.iter().map(|timer| Clock::new(timer, tenants)).collect())
    }

    /// Models that go on from where these are, with nothing measured.
    pub(crate) fn go_on(&self, tenants: usize) -> Self {
        Self(self.0.iter().map(|clock| Clock::new(&clock.timer, tenants)).collect())
    }

    /// Takes the time of a request. That of an unknown tenant is taken, but not noted.
    #[inline]
    pub(crate) fn add(&mut self, req: &Req, counts: Counts) {
        for clock in &mut self.0 {
            clock.add(req, counts);
        }
    }

    /// Fills in a row: what a buffer counted, and how long it took.
    pub(crate) fn fill(&mut self, row: &mut Row, stats: &Stats, entry_bytes: u32) {
        for clock in &mut self.0 {
            clock.settle(stats);
        }
        let latencies: Vec<&[LatencyRow]> =
            self.0.iter().map(|clock| clock.rows.as_slice()).collect();
        row.fill(stats, &latencies, entry_bytes);
    }
}

impl Clock {
    fn new(timer: &Timer, tenants: usize) -> Self {
        Self { timer: timer.clone(), rows: vec![LatencyRow::default(); tenants] }
    }

    #[inline]
    fn add(&mut self, req: &Req, counts: Counts) {
        // What trims and flushes program keeps dies busy, too.
        let time = self.timer.time(req, counts);
        let Some(tenant) = self.rows.get_mut(usize::from(req.tenant)) else { return };
        match req.op {
            Op::Read => tenant.read.add(time),
            Op::Write => tenant.write.add(time),
            Op::Trim | Op::WriteZeroes | Op::Flush => {}
        }
    }

    /// Adds to the writes of each tenant what it owes for programs.
    fn settle(&mut self, stats: &Stats) {
        for (tenant, row) in (0_u8..=u8::MAX).zip(&mut self.rows) {
            row.write.sum += self.timer.owed(stats.tenant(tenant).programs);
        }
    }
}
