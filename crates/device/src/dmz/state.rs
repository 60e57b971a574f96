//! A zoned volume that is open, as its driver has it.
//!
//! What the engine asks for goes to one of two queues: writes and resets of sequential zones to one with a single thread, because they
//! have to get there in order, everything else to one that a few threads serve.

use std::ops::Range;
use std::time::{Duration, Instant};

use onefold_journal::{Class, Confidence};
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Nanos, PAGE_BYTES, Status};
use onefold_zoned::{
    Done, Failure, Io, IoFailed, IoKind, REQUESTS_MAX, Recovery, Refusal, Request, Volume, ZoneKind,
};

use super::{DmzCache, DmzDevices};
use crate::driver::{Driven, Driver, Jobs, Refused, WholeBlocks};

/// How a request ends: with the bytes of a read.
pub(super) type Outcome = Result<Vec<u8>, Status>;

/// The engine.
pub(super) struct Served {
    pub(super) volume: Volume,
}

/// What needs no lock.
pub(super) struct Shared {
    /// Writes and resets of sequential zones, in order.
    pub(super) changes: Jobs<Job>,
    /// Everything else.
    pub(super) others: Jobs<Job>,
    pub(super) devices: DmzDevices,
    pub(super) recovery: Recovery,
    pub(super) took: Duration,
    pub(super) uuid: [u8; 16],
    pub(super) size: u64,
    pub(super) zone_blocks: u32,
}

/// A request to a device with its bytes.
pub(super) struct Job {
    io: Io,
    bytes: Vec<u8>,
    result: Result<(), IoFailed>,
}

impl Job {
    /// Copies what is to be written, so that nobody waits for the engine meanwhile.
    fn new(io: Io, volume: &Volume) -> Self {
        let bytes = match io.kind {
            IoKind::Write => volume.buffer(io.id).to_vec(),
            IoKind::Read => vec![0; index(io.blocks) * index64(PAGE_BYTES)],
            IoKind::Flush | IoKind::Reset => Vec::new(),
        };
        Self { io, bytes, result: Ok(()) }
    }
}

impl Served {
    /// Gives a request to the volume, if it takes more.
    pub(super) fn submit(
        &mut self,
        now: Nanos,
        tag: u64,
        request: impl FnOnce() -> Request,
    ) -> Result<(), Refused<Status>> {
        if self.volume.requests_under_way() >= u64_from(REQUESTS_MAX) {
            return Err(Refused::Busy);
        }
        self.volume.submit(now, tag, request()).map_err(|refusal| match refusal {
            Refusal::Busy => Refused::Busy,
            Refusal::InvalidField => Refused::Never(Status::InvalidField),
        })
    }

    /// Whether a request changes a sequential zone, so that it has to get there in order.
    fn is_sequential(&self, io: &Io) -> bool {
        let geometry = self.volume.geometry();
        let zone = geometry.zone_at(index(io.device), io.at);
        let changes = matches!(io.kind, IoKind::Write | IoKind::Reset);
        changes && zone.is_some_and(|zone| geometry.kind(zone) == ZoneKind::Sequential)
    }
}

impl Driven for Served {
    type Shared = Shared;
    type Job = Job;
    type Outcome = Outcome;

    fn fallen() -> Outcome {
        Err(Status::MediaError)
    }

    fn blocks(&self) -> u64 {
        self.volume.blocks()
    }

    fn turn(&mut self, shared: &Shared, now: Nanos) {
        if self.due().is_some_and(|due| due <= now) {
            self.volume.handle_timeout(now);
        }
        while let Some(io) = self.volume.poll_io() {
            let job = Job::new(io, &self.volume);
            if self.is_sequential(&io) { shared.changes.push(job) } else { shared.others.push(job) }
        }
    }

    fn poll_done(&mut self) -> Option<(u64, Outcome)> {
        let Done { tag, result, data } = self.volume.poll_done()?;
        Some((tag, result.map(|()| data).map_err(status)))
    }

    fn due(&self) -> Option<Nanos> {
        self.volume.poll_timeout()
    }

    fn wake(&mut self, shared: &Shared, at: Option<Instant>) {
        shared.others.wake_at(at);
    }

    fn completed(&mut self, now: Nanos, Job { io, bytes, result }: Job) {
        if io.kind == IoKind::Read {
            self.volume.buffer_mut(io.id).copy_from_slice(&bytes);
        }
        self.volume.completed(now, io.id, result);
    }

    fn set_journal(&mut self, now: Nanos, ranges: &[onefold_journal::Range], changed: bool) {
        if changed {
            let (journal, hot) = journal(ranges);
            self.volume.set_journal(now, journal, hot);
        }
    }

    fn execute(shared: &Shared, job: &mut Job) {
        let Job { io, bytes, result } = job;
        *result = shared.devices.execute(io, shared.zone_blocks, bytes);
    }

    fn due_below(shared: &Shared) -> Option<Instant> {
        shared.devices.cache.as_ref().and_then(DmzCache::due)
    }

    fn tidy_below(shared: &Shared) {
        if let Some(cache) = &shared.devices.cache {
            cache.tidy();
        }
    }

    fn close(shared: &Shared) {
        shared.changes.close();
        shared.others.close();
    }

    fn read_block(driver: &Driver<Self>, lba: u64, block: &mut [u8]) -> Result<(), Status> {
        driver.read_blocks(lba, block)
    }
}

/// The blocks that a detector calls a journal, and those of them that are rewritten at any time; each in order and apart.
fn journal(found: &[onefold_journal::Range]) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let blocks = |range: &onefold_journal::Range| range.first.raw()..range.end.raw();
    let of = |class: Class| found.iter().filter(move |range| range.class == class);
    let mut hot: Vec<Range<u64>> = of(Class::JournalHot).map(blocks).collect();
    let log: Vec<Range<u64>> = of(Class::JournalLog).map(blocks).collect();
    let all = log.iter().chain(&hot).cloned().collect();
    // What a user gives is a whole journal, and that of ext4 begins with its header.
    let given = of(Class::JournalLog).filter(|range| range.confidence == Confidence::User);
    hot.extend(given.map(|range| range.first.raw()..range.first.raw() + 1));
    (apart(all), apart(hot))
}

/// Ranges in order, those that touch made one.
fn apart(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

pub(super) fn status(failure: Failure) -> Status {
    match failure {
        Failure::NoSpace => Status::NoSpace,
        Failure::ReadOnly => Status::Poisoned,
        Failure::Device(why) => Status::from(why),
        Failure::Damaged => Status::MediaError,
    }
}
