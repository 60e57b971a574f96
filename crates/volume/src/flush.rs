//! Flushes: of the host, of checkpoints, and in the background.
//!
//! 1. A flush of the backing that begins when all batches up to n are complete makes those durable.
//! 2. After a flush that failed nothing may be called durable any more, so the volume freezes (volume.md, section 6).

use onefold_units::{Location, Nanos};

use crate::config::Options;
use crate::io::{IoFailed, IoKind};
use crate::pending::Purpose;
use crate::volume::{Frozen, Volume};

#[derive(Clone, Copy, Debug)]
struct Waiter {
    tag: u64,
    /// Everything up to this batch has to be durable.
    seq: u64,
}

/// What is durable, and who waits for more.
#[derive(Debug)]
pub(crate) struct Flushes {
    durable: u64,
    under_way: bool,
    waiters: Vec<Waiter>,
    /// The checkpoint wants everything up to this batch durable.
    wanted: u64,
    /// A root was written and has to become durable.
    root: bool,
    /// The flush under way covers it.
    root_under_way: bool,
    /// Blocks sent since the last flush, and since when.
    sent: u64,
    since: Option<Nanos>,
    /// The highest number that a header says to be durable, or that a root covers.
    said: u64,
    /// The last batch with something that the host wrote.
    host: u64,
    /// When a flush ended last.
    ended: Nanos,
}

impl Flushes {
    pub(crate) const fn new(durable: u64) -> Self {
        Self {
            durable,
            under_way: false,
            waiters: Vec::new(),
            wanted: 0,
            root: false,
            root_under_way: false,
            sent: 0,
            since: None,
            said: durable,
            host: durable,
            ended: Nanos::ZERO,
        }
    }

    /// All batches up to this number are durable.
    pub(crate) const fn durable(&self) -> u64 {
        self.durable
    }

    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn note_sent(&mut self, blocks: u32, now: Nanos) {
        self.sent += u64::from(blocks);
        self.since = self.since.or(Some(now));
    }

    /// A header or a root says that everything up to this batch is durable.
    pub(crate) fn note_said(&mut self, seq: u64) {
        self.said = self.said.max(seq);
    }

    /// A batch was sent with something that the host wrote.
    pub(crate) const fn note_host(&mut self, seq: u64) {
        self.host = seq;
    }

    /// Since when all that the host wrote is durable, if nothing says so.
    pub(crate) fn unsaid_since(&self) -> Option<Nanos> {
        (self.host > self.said && self.durable >= self.host).then_some(self.ended)
    }

    pub(crate) const fn want(&mut self, seq: u64) {
        self.wanted = seq;
    }

    pub(crate) const fn want_root(&mut self) {
        self.root = true;
    }

    pub(crate) fn deadline(&self, options: &Options) -> Option<Nanos> {
        if self.under_way { None } else { self.since.map(|since| since + options.flush_age) }
    }
}

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
