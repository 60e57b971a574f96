//! The zoned volume in mode `dmz`: placement and reclaim as the Linux target dm-zoned does them (zoned.md, section 3).
//!
//! Calling order: [`Volume::submit`] takes requests of the host, [`Volume::poll_io`] gives requests to devices, each of which
//! ends with [`Volume::completed`], and [`Volume::poll_done`] tells which requests of the host are over. At the time that
//! [`Volume::poll_timeout`] names, [`Volume::handle_timeout`] has to be called. Times never go back.
//!
//! 1. Requests are cut at the ends of chunks; the parts of a chunk begin in order, and one that overlaps another under way,
//!    if either changes anything, waits for it.
//! 2. Nothing changes map or validity of a chunk while its data zone is locked by reclaim, except the reclaim's own commit, and
//!    blocks of the journal that were appended elsewhere: those are valid there no more, and the commit does not copy that.
//! 3. While metadata is flushed no part begins and no reclaim commits. The blocks that are written are those of one instant, at
//!    which, unless `kernel_flush`, no write of the host was under way: what is valid there is on a device, and each device is
//!    flushed before the first root record is written.
//! 4. Unless `kernel_flush`, a zone that was given back is neither reset nor used before metadata without it is durable.
//! 5. Nothing follows from a request that failed until it was sent again a few times (`crate::retries`), and metadata is sent
//!    until it is written (`crate::stall`). Only after a device failed to flush what was written nothing changes any more
//!    (`frozen`).
//! 6. A sequential zone that failed to be written or reset takes nothing any more: what was to be written goes to the buffer of
//!    its chunk, its data moves to the cache if it can be read, and then it is reset and used again (`crate::faults`).
//! 7. Validity changes when a write is there, not before: one that fails leaves everything as it was, but for the bytes of blocks
//!    that it was to replace in place.

use std::collections::{BTreeSet, VecDeque};

use onefold_units::convert::index;
use onefold_units::{Nanos, ZoneId};

use crate::block_map::BlockMap;
use crate::config::Options;
use crate::device_io::{DeviceIo, Pending, Purpose};
use crate::flush::Flush;
use crate::geometry::Geometry;
use crate::io::{Done, Failure, Io, IoFailed, IoId, IoKind, bytes_of};
use crate::journal_set::JournalSet;
use crate::layout::Layout;
use crate::meta::{Identity, Metadata};
use crate::quarantine::Quarantine;
use crate::queues::Queues;
use crate::rest::Rest;
use crate::retries::{Retries, TRIES_FEW};
use crate::stats::Stats;
use crate::sums::Sums;
use crate::worker::Worker;
use crate::zones::Zones;

/// A zoned volume that is open.
#[derive(Debug)]
pub struct Volume {
    pub(crate) geometry: Geometry,
    pub(crate) layout: Layout,
    pub(crate) options: Options,
    pub(crate) identity: Identity,
    pub(crate) meta: Metadata,
    pub(crate) sums: Sums,
    /// Of the stored metadata.
    pub(crate) generation: u64,
    /// Chunks whose metadata contradicts itself: nothing of them is read or changed.
    pub(crate) damaged: BTreeSet<u32>,
    pub(crate) zones: Zones,
    pub(crate) stats: Stats,
    pub(crate) now: Nanos,
    pub(crate) queues: Queues,
    pub(crate) flush: Flush,
    /// Zones given back that are not free yet (invariant 4).
    pub(crate) held: Vec<ZoneId>,
    /// Writes of the host under way.
    pub(crate) writes_under_way: u32,
    pub(crate) workers: Vec<Worker>,
    /// Counts what might let a reclaim begin that could not: zones freed, mapped or no longer used.
    pub(crate) changes: u64,
    /// The chunks of the journal that reclaim leaves alone.
    pub(crate) pinned: BTreeSet<u32>,
    pub(crate) set: JournalSet,
    pub(crate) rest: Rest,
    /// Invariant 5.
    pub(crate) frozen: bool,
    /// Mapped sequential zones out of service (invariant 6).
    pub(crate) ailing: Vec<ZoneId>,
    /// Requests that failed and are sent again.
    pub(crate) retries: Retries,
    /// Invariant 1 of [`crate::stall`].
    pub(crate) stalled: Option<IoFailed>,
    /// Zones that are left alone for a while.
    pub(crate) quarantine: Quarantine,
    /// No reclaim begins any more, and those under way are given up.
    pub(crate) closing: bool,
    pub(crate) ios: DeviceIo,
    pub(crate) done: VecDeque<Done>,
}

/// What a volume is made of when it is opened.
pub(crate) struct Opened {
    pub(crate) geometry: Geometry,
    pub(crate) layout: Layout,
    pub(crate) identity: Identity,
    pub(crate) meta: Metadata,
    pub(crate) sums: Sums,
    pub(crate) generation: u64,
    pub(crate) damaged: BTreeSet<u32>,
    pub(crate) zones: Zones,
    pub(crate) map: BlockMap,
}

impl Volume {
    pub(crate) fn new(opened: Opened, options: Options, now: Nanos) -> Self {
        let Opened { geometry, layout, identity, meta, sums, generation, damaged, zones, map } =
            opened;
        let stats = Stats::new(geometry.per_device());
        let ailing = geometry.ids().filter(|id| zones.get(*id).is_ailing()).collect();
        let workers = geometry.zoned_devices().map(|device| Worker::new(device, now)).collect();
        let mut volume = Self {
            layout,
            options,
            identity,
            meta,
            sums,
            generation,
            damaged,
            zones,
            stats,
            now,
            queues: Queues::new(geometry.zone_blocks()),
            flush: Flush::new(now),
            held: Vec::new(),
            writes_under_way: 0,
            workers,
            changes: 0,
            pinned: BTreeSet::new(),
            set: JournalSet::new(map, layout.journal_zones_max(&geometry)),
            rest: Rest::default(),
            frozen: false,
            ailing,
            retries: Retries::default(),
            stalled: None,
            quarantine: Quarantine::default(),
            closing: false,
            ios: DeviceIo::new(geometry.per_device()),
            done: VecDeque::new(),
            geometry,
        };
        volume.attach_journal();
        volume
    }

    /// Asks a device for something: (device, first block, blocks).
    pub(crate) fn ask(
        &mut self,
        kind: IoKind,
        place: (u32, u64, u32),
        purpose: Purpose,
        mut bytes: Vec<u8>,
    ) {
        let (device, _, blocks) = place;
        if kind == IoKind::Read && self.options.bytes {
            bytes = vec![0; bytes_of(blocks)];
        }
        if kind == IoKind::Flush {
            self.stats.devices[index(device)].flushes_sent += 1;
        }
        self.ios.ask(kind, place, purpose, bytes);
    }

    /// The next request to a device.
    pub fn poll_io(&mut self) -> Option<Io> {
        self.ios.poll()
    }

    /// The bytes of a request to a device; none if [`Options::bytes`] is off. Panics if the request is over.
    #[must_use]
    pub fn buffer(&self, id: IoId) -> &[u8] {
        &self.ios.get(id).bytes
    }

    /// The bytes of a request to a device, to be filled. Panics if the request is over.
    pub fn buffer_mut(&mut self, id: IoId) -> &mut [u8] {
        self.ios.bytes_mut(id)
    }

    /// A request to a device is over. Panics if it was over before.
    pub fn completed(&mut self, now: Nanos, id: IoId, result: Result<(), IoFailed>) {
        self.now = self.now.max(now);
        if let Err(why) = result
            && self.is_sent_again(id, why)
        {
            // Reads may pass a flush from now on.
            self.queues.ready_all();
            self.pump();
            return;
        }
        self.io_over(id, result);
        self.pump();
    }

    /// Whether a request that failed is sent again.
    fn is_sent_again(&mut self, id: IoId, why: IoFailed) -> bool {
        let Pending { io, purpose, covers, .. } = self.ios.get(id);
        let tries = match (purpose, io.kind) {
            _ if self.frozen => return false,
            (Purpose::Flush, IoKind::Flush) if *covers || self.ios.may_lose(io.device) => {
                return false;
            }
            (Purpose::Flush, _) => None,
            (Purpose::Reset(_), _) => return false,
            _ => Some(TRIES_FEW),
        };
        self.retries.again(id, tries, (self.now, why))
    }

    /// What follows from the end of a request.
    pub(crate) fn io_over(&mut self, id: IoId, result: Result<(), IoFailed>) {
        self.retries.over(id);
        let Pending { io, purpose, bytes, .. } = self.ios.over(id);
        if result.is_err() {
            self.io_failed(&io);
        }
        match purpose {
            Purpose::PartRead { part, at } => self.part_read(part, at, &bytes, result),
            Purpose::PartWrite { part } => {
                self.writes_under_way -= 1;
                self.part_written(part, result);
            }
            Purpose::CopyRead(worker) => self.copy_read(worker, bytes, result),
            Purpose::CopyWrite(worker) => self.copy_written(worker, result),
            Purpose::Flush => self.flush_io_over(result),
            Purpose::Reset(zone) if result.is_ok() => self.reset_over(zone),
            Purpose::Reset(zone) => self.reset_failed(zone),
        }
    }

    /// How a request of the host ended.
    pub fn poll_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// When [`Self::handle_timeout`] has to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        if self.frozen {
            return None;
        }
        let workers = self.workers.iter().filter_map(Worker::due);
        let quarantine = self.quarantine.due().filter(|_| !self.closing);
        let own = [
            self.queues.due(),
            self.flush.due(),
            self.set.sweep_due(self.now),
            self.retries.deadline(self.now),
            quarantine,
        ];
        workers.chain(own.into_iter().flatten()).min()
    }

    /// Time has come.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        self.wake_sleepers();
        self.pump();
    }

    /// Lets everything go on that can. Those woken from a reclaim go before the worker that was told to end it.
    pub(crate) fn pump(&mut self) {
        loop {
            let mut progress = false;
            self.step_retries();
            self.step_quarantine();
            while let Some(chunk) = self.queues.next_ready() {
                self.step_chunk(chunk);
                progress = true;
            }
            progress |= self.step_flush();
            for worker in 0..self.workers.len() {
                progress |= self.step_worker(worker);
            }
            progress |= self.step_rewrite();
            if !progress && !self.queues.has_ready() {
                return;
            }
        }
    }

    /// Nothing changes any more: what waits for a change fails.
    pub(crate) fn freeze(&mut self) {
        if !std::mem::replace(&mut self.frozen, true) {
            self.stalled = None;
            self.fail_flushes(Failure::ReadOnly);
            for chunk in self.queues.chunks() {
                self.wake(chunk);
            }
        }
    }

    pub(crate) fn report(&mut self, tag: u64, result: Result<(), Failure>, data: Vec<u8>) {
        self.done.push_back(Done { tag, result, data });
    }

    /// Ends in good order: reclaim stops and metadata is flushed. [`Self::is_closed`] says when that is done. Requests of the
    /// host have to be over.
    pub fn close(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        self.closing = true;
        self.flush.want(true);
        for chunk in self.queues.take_zone_waiters() {
            self.wake(chunk);
        }
        self.pump();
    }

    /// Whether nothing is under way any more, and everything is durable.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let is_over = self.ios.is_quiet() && !self.is_reclaiming() && !self.set.is_rewriting();
        self.closing && is_over && self.is_clean()
    }
}
