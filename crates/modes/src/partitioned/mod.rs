//! The layers of Sung 2022 and Han 2021: what they share (volume.md, sections 3 and 4).
//!
//! Writes go one behind the other to free regions of the backing. An ordered table for each
//! partition of the backing says which block of the exported device lies where. Changes of the
//! tables are collected in transactions: data, FLUSH, log block, FLUSH, tables. The cleaner plugs
//! holes with the last valid blocks.
//!
//! Words: *original* is a block of the exported device, *transformed* a block of the backing. A
//! *hole* is a transformed block that was overwritten or trimmed. A *region* is contiguous space
//! for new data.
//!
//! 1. A power cut leaves exactly the transactions up to some number, at or behind the last one that
//!    was durable.
//! 2. A block is overwritten only if no durable or pending transaction maps it: new data goes to
//!    regions, the cleaner writes to holes of durable tables, and what it emptied becomes a region
//!    after its moves are durable (V7).

mod area;
mod checkpoint;
mod cleaner;
mod commit;
mod host;
mod inspect;
mod io;
mod journal;
mod open;
mod regions;
mod replay;
mod resident;
mod retries;
mod rules;
mod runs;
mod table;
mod tables;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use onefold_format::volume::VolumeMode;
use onefold_units::convert::narrow;
use onefold_units::{Location, Nanos};
use onefold_volume::parts::{Requests, Retries};
use onefold_volume::{
    Buffer, Done, Engine, Frozen, Io, IoFailed, IoId, IoKind, Memory, Options, REQUEST_BLOCKS_MAX,
    Range as HostRange, ReadPlan, Refusal, Stats,
};

use checkpoint::Checkpoint;
use cleaner::Job;
use commit::Stage;
use io::{Ios, Purpose};
use journal::Journal;
use regions::Regions;
use resident::Search;
use runs::{Piece, Runs};
use tables::{Step, Tables};

pub use area::Areas;
pub use inspect::PartitionInfo;
pub(crate) use inspect::inspect;
pub(crate) use open::{format, mount, mount_read_only};
pub(crate) use rules::{Rules, Scope, Situation};

/// A volume of mode `sung` or `han`. Called like [`onefold_volume::Volume`].
#[derive(Debug)]
pub struct PartitionedVolume {
    areas: Areas,
    options: Options,
    uuid: [u8; 16],
    incarnation: u32,
    tables: Tables,
    regions: Regions,
    /// Space that becomes free with the next checkpoint or trim.
    held: Vec<Range<u32>>,
    /// The partition of the last write.
    current: usize,
    /// Partitions that writes left, in order.
    left: VecDeque<usize>,
    journal: Journal,
    stage: Stage,
    /// What is left to do in the tables for the transaction that is durable, by partition.
    ops: BTreeMap<usize, Vec<Step>>,
    searches: Vec<Search>,
    checkpoint: Checkpoint,
    /// The next block of each log or map file.
    files: Vec<u32>,
    runs: Runs,
    ios: Ios,
    retries: Retries,
    /// Why the backing takes no writes now (`onefold_volume::parts::Failing::stalls`).
    failing: Option<IoFailed>,
    requests: Requests,
    done: VecDeque<Done>,
    job: Option<Job>,
    want_cleaning: bool,
    /// Since when a write waits for space.
    stalled: Option<Nanos>,
    free_after_cleaning: u64,
    stats: Stats,
    frozen: Option<Frozen>,
    now: Nanos,
}

impl PartitionedVolume {
    /// A volume in which nothing was ever written.
    fn blank(areas: Areas, options: Options, uuid: [u8; 16]) -> Self {
        let (tables, regions) = (Tables::new(&areas), Regions::new(&areas));
        Self {
            tables,
            free_after_cleaning: regions.blocks(),
            regions,
            held: Vec::new(),
            current: 0,
            left: VecDeque::new(),
            journal: Journal::new(0, options.transaction_pairs),
            stage: Stage::Idle,
            ops: BTreeMap::new(),
            searches: Vec::new(),
            checkpoint: Checkpoint::default(),
            files: vec![0; onefold_units::convert::index(areas.rules().files)],
            runs: Runs::default(),
            ios: Ios::default(),
            retries: Retries::default(),
            failing: None,
            requests: Requests::default(),
            done: VecDeque::new(),
            job: None,
            want_cleaning: false,
            stalled: None,
            stats: Stats::default(),
            frozen: None,
            incarnation: 1,
            now: Nanos::ZERO,
            areas,
            options,
            uuid,
        }
    }

    /// Where things lie.
    #[must_use]
    pub const fn areas(&self) -> &Areas {
        &self.areas
    }

    /// Where a block lies, for those who look closely.
    pub fn look_up(&mut self, lba: u32) -> Option<Location> {
        self.place_of(lba).map(Location::new)
    }

    /// Where a block lies now, changes included that are not committed.
    fn place_of(&mut self, lba: u32) -> Option<u32> {
        match self.journal.overlay.get(&lba) {
            Some(overlaid) => overlaid.now,
            None => self.tables.find(lba),
        }
    }

    /// Stops taking changes: nothing that is not durable will be.
    fn freeze(&mut self, why: Frozen) {
        self.frozen = self.frozen.or(Some(why));
        self.job = None;
        for (_, tag) in std::mem::take(&mut self.journal.waiters) {
            self.report(tag, Err(IoFailed::Error));
        }
        for piece in self.runs.give_up() {
            self.piece_over(piece, true);
        }
    }

    /// Tells the host that a request ended.
    fn report(&mut self, tag: u64, result: Result<(), IoFailed>) {
        self.done.push_back(Done { tag, result });
    }

    /// A piece of a request was written, or never will be.
    fn piece_over(&mut self, piece: Piece, failed: bool) {
        self.journal.data_over(piece.seq);
        let result = if failed { Err(IoFailed::Error) } else { Ok(()) };
        match self.requests.over(piece.request, result) {
            Some((tag, Ok(()), true)) => self.wait_until_durable(tag),
            Some((tag, result, _)) => self.report(tag, result),
            None => {}
        }
    }

    /// Reports a tag when everything so far is durable.
    fn wait_until_durable(&mut self, tag: u64) {
        let last = self.journal.last();
        if self.frozen.is_some() {
            self.report(tag, Err(IoFailed::Error));
        } else if last <= self.journal.durable {
            self.answer(tag);
        } else {
            self.journal.waiters.push((last, tag));
        }
    }

    fn ask_flush(&mut self) {
        self.stats.flushes_sent += 1;
        self.ios.ask((IoKind::Flush, Purpose::Flush), 0, 0, Buffer::default());
    }

    /// Looks how much memory is taken now.
    fn measure(&mut self) {
        let cleaner = self.job.as_ref().map_or(0, Job::bytes);
        self.measure_with(cleaner);
    }

    /// The same with so many bytes of the cleaner.
    fn measure_with(&mut self, cleaner: u64) {
        let (overlay, changes) = self.journal.bytes();
        self.tables.measure(overlay + changes + cleaner);
    }

    fn data_over(&mut self, at: u32, buffer: &Buffer, failed: bool) {
        if failed {
            self.freeze(Frozen::Writes);
        }
        for piece in self.runs.over(at, buffer, failed) {
            self.piece_over(piece, failed);
        }
    }
}

impl Engine for PartitionedVolume {
    fn mode(&self) -> VolumeMode {
        self.areas.rules().mode
    }

    fn logical_blocks(&self) -> u64 {
        self.areas.logical_blocks()
    }

    fn write_blocks_max(&self) -> u32 {
        REQUEST_BLOCKS_MAX
    }

    fn write(
        &mut self,
        tag: u64,
        range: HostRange,
        data: Option<&[u8]>,
        fua: bool,
    ) -> Result<(), Refusal> {
        self.take_write(tag, range, data, fua)
    }

    fn read(
        &mut self,
        range: HostRange,
        buffer: Option<&mut [u8]>,
        plan: &mut ReadPlan,
    ) -> Result<(), Refusal> {
        let taken = self.take_read(range, buffer, plan);
        taken.map_err(|refusal| self.refuse(refusal))
    }

    fn end_read(&mut self, plan: &ReadPlan) {
        for run in plan.runs() {
            self.ios.unpin(&(run.at.raw()..run.at.raw() + run.blocks));
        }
    }

    fn trim(&mut self, tag: u64, range: HostRange) -> Result<u64, Refusal> {
        self.take_trim(tag, range)
    }

    fn flush(&mut self, tag: u64) -> Result<(), Refusal> {
        self.check_change()?;
        self.stats.flushes += 1;
        self.wait_until_durable(tag);
        Ok(())
    }

    fn mapped(&mut self, range: HostRange) -> Result<(bool, u64), Refusal> {
        let found = self.find_mapped(range);
        found.map_err(|refusal| self.refuse(refusal))
    }

    fn count_crc_errors(&mut self, blocks: u64) {
        self.stats.crc_errors += blocks;
    }

    fn pump(&mut self, now: Nanos) {
        self.now = now;
        while let Some(id) = self.retries.next(now) {
            self.ios.again(id);
        }
        self.step_stall();
        self.step_writer();
        self.step_cleaner();
        self.step_writer();
        self.step_memory();
        self.stats.map_probes = self.tables.probes;
    }

    fn poll_io(&mut self) -> Option<Io> {
        self.ios.next().or_else(|| {
            let io = self.runs.next(&mut self.ios)?;
            self.stats.count(onefold_volume::Sent::User, io.blocks.into());
            Some(io)
        })
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let commit =
            self.journal.deadline(self.options.commit_age).filter(|_| self.frozen.is_none());
        commit.into_iter().chain(self.retries.deadline()).min()
    }

    fn buffer(&self, id: IoId) -> &[u8] {
        self.ios.buffer(id)
    }

    fn buffer_mut(&mut self, id: IoId) -> &mut [u8] {
        self.ios.buffer_mut(id)
    }

    fn completed(&mut self, now: Nanos, id: IoId, result: Result<(), IoFailed>) {
        self.now = now;
        match result {
            Err(why) if self.is_sent_again(id, why) => return,
            Ok(()) if !self.retries.is_empty() => self.retries.over(id),
            _ => {}
        }
        let (purpose, buffer) = self.ios.end(id);
        let failed = result.is_err();
        match purpose {
            Purpose::Data(at) => self.data_over(at, &buffer, failed),
            Purpose::Flush => self.flush_over(failed),
            Purpose::HostFlush(tag) => self.host_flush_over(tag, failed),
            Purpose::Log => self.log_over(failed),
            Purpose::Table => self.table_over(failed),
            Purpose::Root => self.root_over(failed),
            Purpose::Leave(number) => self.leave_over(number, failed),
            Purpose::Load { number, first } => self.load_over(number, first, &buffer, failed),
            Purpose::Trim => self.trim_over(),
            Purpose::MoveRead(number) => self.move_read_over(number, buffer, failed),
            Purpose::MoveWrite(number) => self.move_write_over(number, failed),
        }
    }

    fn is_idle(&self) -> bool {
        self.ios.is_empty() && self.runs.is_empty()
    }

    fn is_settling(&self) -> bool {
        self.checkpoint.wanted || self.checkpoint.work.is_some()
    }

    fn want_checkpoint(&mut self) {
        self.checkpoint.wanted = true;
    }

    fn want_cleaning(&mut self) {
        self.want_cleaning = true;
    }

    fn close(&mut self) {
        if self.frozen.is_none() {
            self.checkpoint.closing = true;
            self.checkpoint.wanted = true;
            self.job = None;
        }
    }

    fn frozen(&self) -> Option<Frozen> {
        self.frozen
    }

    fn stalled(&self) -> Option<IoFailed> {
        self.failing
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn memory(&self) -> Memory {
        self.tables.memory()
    }

    fn searches(&self, range: HostRange) -> u64 {
        let lbas = range.lba.raw()..range.lba.raw().saturating_add(range.blocks);
        let blocks = lbas.map(narrow).filter(|lba| !self.journal.overlay.contains_key(lba));
        blocks.map(|lba| self.tables.searches(lba)).sum()
    }

    fn free_blocks(&self) -> u64 {
        self.regions.blocks()
    }
}
