//! Flushes of the backing: when they are asked for, and what they come to (`crate::log::flush`).

use onefold_units::Location;

use crate::frozen::Frozen;
use crate::io::{IoFailed, IoKind};
use crate::log::flush::Waiter;
use crate::pending::Purpose;
use crate::volume::Volume;

impl Volume {
    /// Reports `tag` when everything up to batch `seq` is durable; at once that it failed if nothing will be any more.
    pub(crate) fn flush_at(&mut self, tag: u64, seq: u64) {
        if self.frozen.is_some() {
            self.report(tag, Err(IoFailed::Error));
        } else {
            self.flushes.waiters.push(Waiter { tag, seq });
        }
    }

    /// Begins a flush of the backing if one is wanted and would help.
    pub(crate) fn step_flushes(&mut self) {
        self.report_flushed();
        if self.flushes.under_way || self.frozen.is_some() {
            return;
        }
        let (complete, durable) = (self.log.complete(), self.flushes.durable);
        let asked = self.flushes.root
            || self.flushes.waiters.iter().any(|waiter| waiter.seq <= complete)
            || (self.flushes.wanted > durable && self.flushes.wanted <= complete);
        let many = self.flushes.sent >= self.options.flush_blocks;
        let old = self.flushes.deadline(&self.options).is_some_and(|due| due <= self.now);
        if !asked && !many && !old {
            return;
        }
        self.flushes.under_way = true;
        self.flushes.root_under_way = std::mem::take(&mut self.flushes.root);
        self.flushes.sent = 0;
        self.flushes.since = None;
        self.stats.flushes_sent += 1;
        self.ask(IoKind::Flush, Purpose::Flush { covers: complete }, Location::new(0), 0);
    }

    fn report_flushed(&mut self) {
        let durable = self.flushes.durable;
        let mut at = 0;
        while let Some(waiter) = self.flushes.waiters.get(at).copied() {
            if waiter.seq <= durable {
                self.flushes.waiters.swap_remove(at);
                self.report(waiter.tag, Ok(()));
            } else {
                at += 1;
            }
        }
    }

    pub(crate) fn flush_over(&mut self, covers: u64, result: Result<(), IoFailed>) {
        self.flushes.under_way = false;
        if result.is_err() {
            self.freeze(Frozen::Flush);
            return;
        }
        self.flushes.durable = self.flushes.durable.max(covers);
        self.flushes.ended = self.now;
        self.report_flushed();
        if std::mem::take(&mut self.flushes.root_under_way) {
            self.commit();
        }
    }

    /// Flushes that wait for more than the batches up to `complete` fail.
    pub(crate) fn fail_flushes(&mut self, complete: u64, why: IoFailed) {
        let waiters = &mut self.flushes.waiters;
        let failed: Vec<Waiter> = waiters.extract_if(.., |waiter| waiter.seq > complete).collect();
        for waiter in failed {
            self.report(waiter.tag, Err(why));
        }
    }
}
