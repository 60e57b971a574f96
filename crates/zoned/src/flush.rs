//! Metadata flushes (zoned.md, section 3).
//!
//! Dirty blocks go to the second metadata set, which is a log: its root record with the next generation makes them count. Then
//! they go to the first set. A power cut in between leaves the other set whole.

use onefold_format::DmzSums;
use onefold_units::convert::u64_from;
use onefold_units::{Nanos, ZoneId};

use crate::config::FLUSH_PERIOD;
use crate::device_io::Purpose;
use crate::geometry::Geometry;
use crate::io::{Failure, IoFailed, IoKind};
use crate::meta::Stored;
use crate::stats::Sent;
use crate::volume::Volume;

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

/// The flush under way, and who waits for one.
#[derive(Debug)]
pub(crate) struct Flush {
    phase: Phase,
    /// Requests to devices under way.
    ios: u32,
    /// What is written.
    blocks: Vec<(u32, Vec<u8>)>,
    /// Blocks of the journal block map in the sets that are written.
    journal_blocks: u32,
    /// Checksums of the sets that are written.
    sums: Option<DmzSums>,
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
            blocks: Vec::new(),
            journal_blocks: 0,
            sums: None,
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
}

impl Volume {
    /// Reports a request done when everything reported done until now is durable, map and validity included.
    pub(crate) fn flush_for_write(&mut self, request: u64) {
        if self.frozen {
            self.request_over(request, Err(Failure::ReadOnly));
        } else {
            self.flush.waiting.push(request);
        }
    }

    /// Takes the next step of a flush, if it can.
    pub(crate) fn step_flush(&mut self) -> bool {
        if self.flush.ios > 0 || self.frozen {
            return false;
        }
        match self.flush.phase {
            Phase::Idle => {
                let due = self.flush.due <= self.now;
                if !self.flush.wanted && self.flush.waiting.is_empty() && !due {
                    return false;
                }
                self.flush.phase = Phase::Drain;
            }
            Phase::Drain => {
                // The kernel target flushes while writes are under way, whose blocks are valid already.
                if self.writes_under_way > 0 && !self.options.kernel_flush {
                    return false;
                }
                self.begin_flush();
            }
            Phase::Plain | Phase::RootFlush(PRIMARY) => self.end_flush(),
            Phase::Blocks(set) => {
                self.flush.phase = Phase::BlocksFlush(set);
                self.flush_devices(set == SECONDARY);
            }
            Phase::BlocksFlush(set) => {
                self.flush.phase = Phase::Root(set);
                self.write_root(set);
            }
            Phase::Root(set) => {
                self.flush.phase = Phase::RootFlush(set);
                self.flush_devices(false);
            }
            Phase::RootFlush(_) => {
                self.flush.phase = Phase::Blocks(PRIMARY);
                self.write_blocks(PRIMARY);
            }
        }
        true
    }

    fn begin_flush(&mut self) {
        self.flush.begun += 1;
        self.flush.wanted = false;
        self.flush.covered = std::mem::take(&mut self.flush.waiting);
        self.flush.freed = std::mem::take(&mut self.held);
        self.flush.blocks = self.meta.take_dirty();
        let (journal, is_reshaped) = self.set.map.take_dirty();
        let behind = self.layout.metadata_blocks;
        self.flush.blocks.extend(journal.into_iter().map(|(block, bytes)| (behind + block, bytes)));
        self.flush.journal_blocks = self.set.map.blocks();
        let is_new = self.sums.is_new();
        self.flush.sums = None;
        if self.flush.blocks.is_empty() && !is_reshaped && !is_new {
            self.flush.phase = Phase::Plain;
            self.flush_devices(true);
        } else {
            self.stats.metadata_flushes += 1;
            let count = behind + self.flush.journal_blocks;
            let (tables, sums) = self.sums.update(&self.flush.blocks, count);
            self.flush.blocks.extend(tables);
            self.flush.sums = sums;
            self.flush.phase = Phase::Blocks(SECONDARY);
            self.write_blocks(SECONDARY);
        }
    }

    fn write_blocks(&mut self, set: u32) {
        let first = self.layout.set_block(&self.geometry, set);
        let blocks = std::mem::take(&mut self.flush.blocks);
        for (block, bytes) in &blocks {
            let place = (0, first + u64::from(*block), 1);
            let bytes = if self.options.bytes { bytes.clone() } else { Vec::new() };
            self.ask_for_flush(IoKind::Write, place, bytes);
        }
        self.stats.count(0, Sent::Map, u64_from(blocks.len()));
        self.flush.blocks = blocks;
    }

    fn write_root(&mut self, set: u32) {
        let (journal_blocks, sums) = (self.flush.journal_blocks, self.flush.sums.clone());
        let stored = Stored { generation: self.generation + 1, journal_blocks, sums };
        let root = self.identity.root(&self.geometry, &self.layout, set, stored);
        let bytes = if self.options.bytes { root.encode().to_vec() } else { Vec::new() };
        let first = self.layout.set_block(&self.geometry, set);
        self.stats.count(0, Sent::Label, 1);
        self.ask_for_flush(IoKind::Write, (0, first, 1), bytes);
    }

    /// Flushes the device of the metadata, and with `all` every other one with something to make durable. The kernel target
    /// never flushes those (zoned.md, section 3, "Durability").
    fn flush_devices(&mut self, all: bool) {
        self.ask_for_flush(IoKind::Flush, (0, 0, 0), Vec::new());
        for device in 1..self.geometry.devices() {
            if all && self.ios.is_unflushed(device) && !self.options.kernel_flush {
                self.ask_for_flush(IoKind::Flush, (Geometry::number(device), 0, 0), Vec::new());
            }
        }
    }

    fn ask_for_flush(&mut self, kind: IoKind, place: (u32, u64, u32), bytes: Vec<u8>) {
        self.flush.ios += 1;
        self.ask(kind, place, Purpose::Flush, bytes);
    }

    pub(crate) fn flush_io_over(&mut self, result: Result<(), IoFailed>) {
        // What failed froze the volume.
        self.flush.ios -= u32::from(result.is_ok());
    }

    fn end_flush(&mut self) {
        if self.flush.phase != Phase::Plain {
            self.generation += 1;
        }
        self.flush.phase = Phase::Idle;
        self.flush.ended += 1;
        self.flush.blocks.clear();
        self.flush.due = self.now + FLUSH_PERIOD;
        for request in std::mem::take(&mut self.flush.covered) {
            self.request_over(request, Ok(()));
        }
        for zone in std::mem::take(&mut self.flush.freed) {
            self.free_now(zone);
        }
        self.changes += 1;
        self.ready_all();
    }

    /// Those who wait for a flush are told why they wait in vain.
    pub(crate) fn fail_flushes(&mut self, failure: Failure) {
        let mut requests = std::mem::take(&mut self.flush.waiting);
        requests.append(&mut self.flush.covered);
        for request in requests {
            self.request_over(request, Err(failure));
        }
    }

    /// Whether nothing waits for being flushed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_dirty = self.meta.is_dirty() || self.set.map.is_dirty() || self.sums.is_new();
        self.flush.phase == Phase::Idle && !is_dirty && self.held.is_empty()
    }

    /// Generation of the metadata that is stored.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }
}
