//! Metadata flushes (zoned.md, section 3).
//!
//! Dirty blocks go to the second metadata set, which is a log: its root record with the next generation makes them count. Then
//! they go to the first set. A power cut in between leaves the other set whole.

use onefold_format::DmzSums;
use onefold_units::{Nanos, ZoneId};

use crate::config::FLUSH_PERIOD;

/// The set that is written first.
const SECONDARY: u32 = 1;
/// The set in the first zone.
const PRIMARY: u32 = 0;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Writes of the host have to end first.
    Drain,
    /// Nothing was dirty: devices are flushed.
    Plain,
    /// Dirty blocks are written to a set.
    Blocks(u32),
    /// They are made durable.
    BlocksFlush(u32),
    /// The root record of the set is written.
    Root(u32),
    /// It is made durable.
    RootFlush(u32),
}

/// What is written to both sets.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Blocks, by their number in the set.
    pub(crate) blocks: Vec<(u32, Vec<u8>)>,
    /// Blocks of the journal block map in the sets.
    pub(crate) journal_blocks: u32,
    /// Checksums of the sets.
    pub(crate) sums: Option<DmzSums>,
}

/// What has to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To begin no more writes of the host.
    Drain,
    /// To choose what is written: [`Flush::begin`].
    Begin,
    /// To write the dirty blocks to a set.
    WriteBlocks(u32),
    /// To flush the device of the metadata, and with `all` every other one with something to make durable.
    FlushDevices { all: bool },
    /// To write the root record of a set.
    WriteRoot(u32),
    /// To take note of its end: [`Flush::end`].
    End,
}

/// What a flush that is over made durable.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Requests of the host that waited for it.
    pub(crate) covered: Vec<u64>,
    /// Zones that no stored metadata names any more.
    pub(crate) freed: Vec<ZoneId>,
    /// Whether there is a new generation of metadata.
    pub(crate) is_new: bool,
}

/// The flush under way, and who waits for one.
#[derive(Debug)]
pub(crate) struct Flush {
    phase: Phase,
    /// Requests to devices under way.
    ios: u32,
    content: Content,
    /// Requests of the host that wait for one that begins now or later.
    waiting: Vec<u64>,
    /// Those that the one under way covers.
    covered: Vec<u64>,
    /// Zones that are free when it is over.
    freed: Vec<ZoneId>,
    wanted: bool,
    /// When the next one begins by itself.
    due: Nanos,
    /// How many were begun (their blocks chosen) and ended.
    begun: u64,
    ended: u64,
}

impl Flush {
    pub(crate) const fn new(now: Nanos) -> Self {
        Self {
            phase: Phase::Idle,
            ios: 0,
            content: Content { blocks: Vec::new(), journal_blocks: 0, sums: None },
            waiting: Vec::new(),
            covered: Vec::new(),
            freed: Vec::new(),
            wanted: false,
            due: Nanos::new(now.get() + FLUSH_PERIOD.get()),
            begun: 0,
            ended: 0,
        }
    }

    pub(crate) fn due(&self) -> Option<Nanos> {
        (self.phase == Phase::Idle).then_some(self.due)
    }

    pub(crate) const fn want(&mut self, wanted: bool) {
        self.wanted |= wanted;
    }

    /// Whether parts have to wait for it.
    pub(crate) fn holds_host(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether metadata must not change because of reclaim.
    pub(crate) fn holds_reclaim(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Drain)
    }

    /// The flush that covers what changed until now; it is over when [`Self::is_over`] says so.
    pub(crate) const fn next(&self) -> u64 {
        self.begun + 1
    }

    pub(crate) const fn is_over(&self, flush: u64) -> bool {
        self.ended >= flush
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// A request of the host waits for the next flush that begins.
    pub(crate) fn wait(&mut self, request: u64) {
        self.waiting.push(request);
    }

    /// A request to a device was made for it.
    pub(crate) const fn io_begun(&mut self) {
        self.ios += 1;
    }

    /// One is done.
    pub(crate) const fn io_over(&mut self) {
        self.ios -= 1;
    }

    /// Takes the next step, if it can. `is_drained` says that no write of the host is under way.
    pub(crate) fn step(&mut self, now: Nanos, is_drained: bool) -> Option<Step> {
        if self.ios > 0 {
            return None;
        }
        Some(match self.phase {
            Phase::Idle if !self.wanted && self.waiting.is_empty() && self.due > now => {
                return None;
            }
            Phase::Idle => {
                self.phase = Phase::Drain;
                Step::Drain
            }
            Phase::Drain if !is_drained => return None,
            Phase::Drain => Step::Begin,
            Phase::Plain | Phase::RootFlush(PRIMARY) => Step::End,
            Phase::Blocks(set) => {
                self.phase = Phase::BlocksFlush(set);
                Step::FlushDevices { all: set == SECONDARY }
            }
            Phase::BlocksFlush(set) => {
                self.phase = Phase::Root(set);
                Step::WriteRoot(set)
            }
            Phase::Root(set) => {
                self.phase = Phase::RootFlush(set);
                Step::FlushDevices { all: false }
            }
            Phase::RootFlush(_) => {
                self.phase = Phase::Blocks(PRIMARY);
                Step::WriteBlocks(PRIMARY)
            }
        })
    }

    /// What changed until now is chosen: all that waits for a flush is covered, and these zones are free after it. Without any
    /// content only devices are flushed. Gives what has to be done first.
    pub(crate) fn begin(&mut self, freed: Vec<ZoneId>, content: Option<Content>) -> Step {
        self.begun += 1;
        self.wanted = false;
        self.covered = std::mem::take(&mut self.waiting);
        self.freed = freed;
        match content {
            None => {
                self.phase = Phase::Plain;
                Step::FlushDevices { all: true }
            }
            Some(content) => {
                self.content = content;
                self.phase = Phase::Blocks(SECONDARY);
                Step::WriteBlocks(SECONDARY)
            }
        }
    }

    /// What is written.
    pub(crate) const fn content(&self) -> &Content {
        &self.content
    }

    /// Everything is written. The next one begins by itself after a while.
    pub(crate) fn end(&mut self, now: Nanos) -> Ended {
        let is_new = self.phase != Phase::Plain;
        self.phase = Phase::Idle;
        self.ended += 1;
        self.content = Content::default();
        self.due = now + FLUSH_PERIOD;
        let covered = std::mem::take(&mut self.covered);
        Ended { covered, freed: std::mem::take(&mut self.freed), is_new }
    }

    /// Nobody waits for it any more. Gives those who did.
    pub(crate) fn take_waiting(&mut self) -> Vec<u64> {
        let mut requests = std::mem::take(&mut self.waiting);
        requests.append(&mut self.covered);
        requests
    }
}
