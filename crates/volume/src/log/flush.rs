//! Flushes: of the host, of checkpoints, and in the background.
//!
//! 1. A flush of the backing that begins when all batches up to n are complete makes those durable.
//! 2. After a flush that failed nothing may be called durable any more, so the volume freezes (volume.md, section 6).

use onefold_units::Nanos;

use crate::config::Options;

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

    /// `tag` is to be reported when everything up to batch `seq` is durable.
    pub(crate) fn wait(&mut self, tag: u64, seq: u64) {
        self.waiters.push(Waiter { tag, seq });
    }

    /// Begins a flush of the backing, after all batches up to `complete`, if one is wanted and would help. Whether it did.
    pub(crate) fn begin(&mut self, complete: u64, options: &Options, now: Nanos) -> bool {
        if self.under_way {
            return false;
        }
        let asked = self.root
            || self.waiters.iter().any(|waiter| waiter.seq <= complete)
            || (self.wanted > self.durable && self.wanted <= complete);
        let many = self.sent >= options.flush_blocks;
        let old = self.deadline(options).is_some_and(|due| due <= now);
        if !asked && !many && !old {
            return false;
        }
        self.under_way = true;
        self.root_under_way = std::mem::take(&mut self.root);
        (self.sent, self.since) = (0, None);
        true
    }

    /// The flush under way is over; unless it failed, everything up to batch `covers` is durable.
    pub(crate) fn end(&mut self, covers: Option<u64>, now: Nanos) {
        self.under_way = false;
        if let Some(covers) = covers {
            self.durable = self.durable.max(covers);
            self.ended = now;
        }
    }

    /// Whether the flush that ended last made a root durable; said once.
    pub(crate) const fn take_root(&mut self) -> bool {
        std::mem::replace(&mut self.root_under_way, false)
    }

    /// The next one who waited for what is durable by now.
    pub(crate) fn next_flushed(&mut self) -> Option<u64> {
        let durable = self.durable;
        let at = self.waiters.iter().position(|waiter| waiter.seq <= durable)?;
        Some(self.waiters.swap_remove(at).tag)
    }

    /// Those who wait for more than the batches up to `complete`; they wait no more.
    pub(crate) fn give_up(&mut self, complete: u64) -> Vec<u64> {
        let failed = self.waiters.extract_if(.., |waiter| waiter.seq > complete);
        failed.map(|waiter| waiter.tag).collect()
    }
}
