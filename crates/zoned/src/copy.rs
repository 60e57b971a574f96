//! A reclaim under way: copying valid blocks, and the change of the map that ends it.
//!
//! Blocks keep their place in the zone, so every hole up to the last valid block of a copy to a sequential zone is written with
//! zeroes. Whether the host wants the zone back is looked at before each run of valid blocks and after the last one, unless that
//! reaches the end of what is copied; what was copied is lost then. (zoned.md, section 3, says that a single run is never given
//! up; in the source of the kernel target that holds only for one up to the end.) It is the source zone that the host marks, so
//! appending a buffer is never given up.

use std::ops::Range;

use onefold_units::convert::index;
use onefold_units::{Nanos, ZoneId};

use crate::device_io::Purpose;
use crate::io::{IoFailed, IoKind, bytes_of};
use crate::retries::Failing;
use crate::stats::{Action, Sent};
use crate::volume::Volume;
use crate::zones::Condition;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The next piece can be copied.
    Ready,
    /// A request to a device is under way.
    Busy,
    /// It rests so that the host gets its share.
    Resting(Nanos),
    /// Everything is copied.
    Copied,
    /// The map was changed; this flush has to end.
    Flushing(u64),
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) action: Action,
    /// The locked data zone of the chunk.
    pub(crate) data: ZoneId,
    pub(crate) source: ZoneId,
    pub(crate) target: ZoneId,
    /// Where to look for valid blocks next, and where to end.
    at: u32,
    end: u32,
    /// What is left of the run being copied.
    run: Range<u32>,
    /// Blocks of the piece under way, of what cause.
    piece: (u32, Sent),
    copied: u64,
    journal: u64,
    zeroes: u64,
    /// Percentage of time that may be spent copying.
    pub(crate) throttle: u32,
    since: Nanos,
    /// Nobody ends it.
    pub(crate) forced: bool,
    pub(crate) stage: Stage,
}

impl Job {
    pub(crate) const fn new(
        action: Action,
        data: ZoneId,
        source: ZoneId,
        target: ZoneId,
        end: u32,
    ) -> Self {
        Self {
            action,
            data,
            source,
            target,
            at: 0,
            end,
            run: 0..0,
            piece: (0, Sent::ZeroFill),
            copied: 0,
            journal: 0,
            zeroes: 0,
            throttle: 100,
            since: Nanos::ZERO,
            forced: false,
            stage: Stage::Ready,
        }
    }

    /// A data zone without valid blocks.
    pub(crate) const fn empty(data: ZoneId) -> Self {
        let mut job = Self::new(Action::Empty, data, data, data, 0);
        job.stage = Stage::Copied;
        job
    }

    pub(crate) const fn resumes_at(&self) -> Option<Nanos> {
        match self.stage {
            Stage::Resting(until) => Some(until),
            _ => None,
        }
    }

    const fn cause(&self) -> Sent {
        match self.action {
            Action::Buf => Sent::Buf,
            Action::SeqData => Sent::SeqData,
            Action::Empty | Action::RndData => Sent::RndData,
        }
    }
}

impl Volume {
    fn job(&mut self, worker: usize) -> &mut Job {
        self.workers[worker].job.as_mut().expect("a worker that copies has a job")
    }

    /// Lets the job of a worker go on. Gives whether it did anything.
    pub(crate) fn step_job(&mut self, worker: usize) -> bool {
        let now = self.now;
        let stage = self.job(worker).stage;
        match stage {
            Stage::Busy => return false,
            Stage::Resting(until) if until > now => return false,
            Stage::Ready | Stage::Resting(_) => self.copy_next(worker),
            Stage::Copied if self.flush.holds_reclaim() => return self.abort_for_host(worker),
            Stage::Copied => self.commit(worker),
            Stage::Flushing(flush) if !self.flush.is_over(flush) => return false,
            Stage::Flushing(_) => {
                let action = self.job(worker).action;
                self.stats.reclaims_mut(action).completed += 1;
                self.job_over(worker, false);
            }
        }
        true
    }

    /// Copies the next piece: zeroes up to a run, or blocks of it.
    fn copy_next(&mut self, worker: usize) {
        let piece_max = self.options.copy_blocks.max(1);
        let job = self.job(worker);
        let (source, target, forced) = (job.source, job.target, job.forced);
        let action = job.action;
        if job.run.is_empty() {
            let range = job.at..job.end;
            let unwanted = self.zones.get(source).terminate && !forced;
            // What was appended to a data zone cannot be taken back.
            let closing = self.closing && action != Action::Buf;
            if !range.is_empty() && (unwanted || closing) {
                self.abort(worker);
                return;
            }
            let found = self.meta.first_valid(source, range);
            let job = self.job(worker);
            match found {
                None => {
                    job.stage = Stage::Copied;
                    return;
                }
                Some(run) => {
                    job.at = run.end;
                    job.run = run;
                }
            }
        }
        let run = self.job(worker).run.clone();
        let zone = self.zones.get(target);
        let (is_sequential, wp) = (zone.is_sequential(), zone.wp);
        self.job(worker).since = self.now;
        if is_sequential && wp < run.start {
            let blocks = (run.start - wp).min(piece_max);
            let bytes = if self.options.bytes { vec![0; bytes_of(blocks)] } else { Vec::new() };
            self.copy_write(worker, (wp, blocks), Sent::ZeroFill, bytes);
            return;
        }
        let blocks = (run.end - run.start).min(piece_max);
        let cause = self.job(worker).cause();
        let job = self.job(worker);
        job.piece = (blocks, cause);
        job.stage = Stage::Busy;
        let zone = self.zones.get(source);
        let place = (zone.device, zone.start + u64::from(run.start), blocks);
        self.stats.devices[index(zone.device)].read_for_copying += u64::from(blocks);
        self.ask(IoKind::Read, place, Purpose::CopyRead(worker), Vec::new());
    }

    pub(crate) fn copy_read(
        &mut self,
        worker: usize,
        bytes: Vec<u8>,
        result: Result<(), IoFailed>,
    ) {
        if self.frozen {
            return;
        }
        if let Err(why) = result {
            self.fail(worker, why);
            return;
        }
        let job = self.job(worker);
        let (blocks, cause) = job.piece;
        let at = job.run.start;
        self.copy_write(worker, (at, blocks), cause, bytes);
    }

    /// Writes blocks to the target, and counts them.
    fn copy_write(&mut self, worker: usize, (at, blocks): (u32, u32), cause: Sent, bytes: Vec<u8>) {
        let job = self.job(worker);
        job.piece = (blocks, cause);
        job.stage = Stage::Busy;
        let (data, target) = (job.data, job.target);
        let chunk = self.zones.get(data).chunk;
        let zone = self.zones.get_mut(target);
        if zone.is_sequential() {
            zone.wp += blocks;
        }
        let (device, place) = (zone.device, (zone.device, zone.start + u64::from(at), blocks));
        let journal =
            if cause == Sent::ZeroFill { 0 } else { self.journal_blocks(chunk, at, blocks) };
        let others = u64::from(blocks) - journal;
        self.stats.count(device, cause, others);
        self.stats.count(device, Sent::JournalCopied, journal);
        let job = self.job(worker);
        job.journal += journal;
        *(if cause == Sent::ZeroFill { &mut job.zeroes } else { &mut job.copied }) += others;
        self.ask(IoKind::Write, place, Purpose::CopyWrite(worker), bytes);
    }

    /// A piece is copied. dm-kcopyd bounds the share of time that it copies in; the block layer writes zeroes without it.
    pub(crate) fn copy_written(&mut self, worker: usize, result: Result<(), IoFailed>) {
        if self.frozen {
            return;
        }
        if let Err(why) = result {
            self.fail(worker, why);
            return;
        }
        let now = self.now;
        let job = self.job(worker);
        let (blocks, cause) = job.piece;
        if cause == Sent::ZeroFill {
            job.stage = Stage::Ready;
            return;
        }
        job.run.start += blocks;
        let busy = now.saturating_sub(job.since).get();
        let rest = busy * u64::from(100 - job.throttle) / u64::from(job.throttle.max(1));
        job.stage = if rest == 0 { Stage::Ready } else { Stage::Resting(now + Nanos::new(rest)) };
    }

    /// The host does not wait for a reclaim that waits for metadata which cannot be written.
    fn abort_for_host(&mut self, worker: usize) -> bool {
        let data = self.job(worker).data;
        let is_wanted = self.zones.get(data).terminate && !self.retries.is_empty();
        if is_wanted {
            self.abort(worker);
        }
        is_wanted
    }

    /// The host wants the zone: everything copied so far is thrown away.
    fn abort(&mut self, worker: usize) {
        let action = self.job(worker).action;
        self.stats.reclaims_mut(action).aborted += 1;
        self.throw_away(worker);
        self.job_over(worker, false);
    }

    /// What is to be copied cannot be read, or a zone did not take it.
    fn fail(&mut self, worker: usize, why: IoFailed) {
        let job = self.job(worker);
        let (action, data, target) = (job.action, job.data, job.target);
        self.stats.reclaims_mut(action).failed += 1;
        // With a zone that is suspect now it is not tried again.
        if self.zones.get(target).condition == Condition::Good {
            self.quarantine.bar(data, self.now);
        }
        let since = self.now;
        let failing = &mut self.workers[worker].failing;
        failing.get_or_insert(Failing { since, why }).why = why;
        self.throw_away(worker);
        self.job_over(worker, true);
    }

    fn throw_away(&mut self, worker: usize) {
        let job = self.job(worker);
        let (action, data, target, cause) = (job.action, job.data, job.target, job.cause());
        let (copied, journal, zeroes) = (job.copied, job.journal, job.zeroes);
        let device = self.zones.get(target).device;
        self.stats.recount(device, (cause, Sent::AbortedValid), copied);
        self.stats.recount(device, (Sent::JournalCopied, Sent::AbortedValid), journal);
        self.stats.journal_aborted += journal;
        self.stats.recount(device, (Sent::ZeroFill, Sent::AbortedZero), zeroes);
        self.unlock(data);
        if action == Action::RndData {
            // No map that is stored names it.
            self.free_now(target);
        }
    }

    /// The chunk lies where its blocks were copied to.
    fn commit(&mut self, worker: usize) {
        let job = self.job(worker);
        let (action, data, source, target) = (job.action, job.data, job.source, job.target);
        let forced = job.forced;
        self.workers[worker].failing = None;
        self.zones.get_mut(target).strikes = 0;
        let chunk = self.zones.get(data).chunk;
        self.stats.journal_merges += u64::from(forced && self.pinned.contains(&chunk));
        self.unlock(data);
        if action != Action::Empty {
            self.merge_validity(source, target);
        }
        match action {
            Action::Empty => self.unmap(data),
            Action::RndData => {
                self.unmap(data);
                self.map_data(target, chunk);
            }
            Action::Buf => self.unmap(source),
            Action::SeqData => {
                self.unmap(target);
                self.unmap(data);
                self.map_data(target, chunk);
            }
        }
        self.release(source);
        self.job(worker).stage = Stage::Flushing(self.flush.next());
        self.flush.want(true);
    }

    fn merge_validity(&mut self, from: ZoneId, to: ZoneId) {
        let end = self.geometry.zone_blocks();
        let mut at = 0;
        while let Some(run) = self.meta.first_valid(from, at..end) {
            at = run.end;
            self.validate(to, run);
        }
    }

    /// A reclaim is over: who waits for the zone goes on.
    fn unlock(&mut self, data: ZoneId) {
        let zone = self.zones.get_mut(data);
        zone.locked = false;
        zone.terminate = false;
        let chunk = zone.chunk;
        self.wake(chunk);
    }
}
