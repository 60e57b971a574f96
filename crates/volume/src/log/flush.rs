//! Flushes: of the host, of checkpoints, and in the background.
//!
//! 1. A flush of the backing that begins when all batches up to n are complete makes those durable.
//! 2. After a flush that failed nothing may be called durable any more, so the volume freezes (volume.md, section 6).

use onefold_units::Nanos;

use crate::config::Options;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) tag: u64,
    /// Everything up to this batch has to be durable.
    pub(crate) seq: u64,
}

/// What is durable, and who waits for more.
#[derive(Debug)]
pub(crate) struct Flushes {
    pub(crate) durable: u64,
    pub(crate) under_way: bool,
    pub(crate) waiters: Vec<Waiter>,
    /// The checkpoint wants everything up to this batch durable.
    pub(crate) wanted: u64,
    /// A root was written and has to become durable.
    pub(crate) root: bool,
    /// The flush under way covers it.
    pub(crate) root_under_way: bool,
    /// Blocks sent since the last flush, and since when.
    pub(crate) sent: u64,
    pub(crate) since: Option<Nanos>,
    /// The highest number that a header says to be durable, or that a root covers.
    pub(crate) said: u64,
    /// The last batch with something that the host wrote.
    pub(crate) host: u64,
    /// When a flush ended last.
    pub(crate) ended: Nanos,
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
