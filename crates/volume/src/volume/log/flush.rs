//! Flushes of the backing: when they are asked for, and what they come to (`crate::log::flush`).

use onefold_units::Location;

use crate::frozen::Frozen;
use crate::io::{IoFailed, IoKind};
use crate::pending::Purpose;
use crate::volume::Volume;

impl Volume {
    /// Reports `tag` when everything up to batch `seq` is durable; at once that it failed if nothing will be any more.
    pub(crate) fn flush_at(&mut self, tag: u64, seq: u64) {
        if self.frozen.is_some() {
            self.report(tag, Err(IoFailed::Error));
        } else {
            self.flushes.wait(tag, seq);
        }
    }

    /// Begins a flush of the backing if one is wanted and would help.
    pub(crate) fn step_flushes(&mut self) {
        self.report_flushed();
        let complete = self.log.complete();
        if self.frozen.is_some() || !self.flushes.begin(complete, &self.options, self.now) {
            return;
        }
        self.stats.flushes_sent += 1;
        self.ask(IoKind::Flush, Purpose::Flush { covers: complete }, Location::new(0), 0);
    }

    fn report_flushed(&mut self) {
        while let Some(tag) = self.flushes.next_flushed() {
            self.report(tag, Ok(()));
        }
    }

    pub(crate) fn flush_over(&mut self, covers: u64, result: Result<(), IoFailed>) {
        self.flushes.end(result.is_ok().then_some(covers), self.now);
        if result.is_err() {
            self.freeze(Frozen::Flush);
            return;
        }
        self.report_flushed();
        if self.flushes.take_root() {
            self.commit();
        }
    }

    /// Flushes that wait for more than the batches up to `complete` fail.
    pub(crate) fn fail_flushes(&mut self, complete: u64, why: IoFailed) {
        for tag in self.flushes.give_up(complete) {
            self.report(tag, Err(why));
        }
    }
}
