//! A reclaim under way: copying valid blocks, and the change of the map that ends it.
//!
//! Blocks keep their place in the zone, so every hole up to the last valid block of a copy to a sequential zone is written with
//! zeroes. Whether the host wants the zone back is looked at before each run of valid blocks and after the last one, unless that
//! reaches the end of what is copied; what was copied is lost then. (zoned.md, section 3, says that a single run is never given
//! up; in the source of the kernel target that holds only for one up to the end.) It is the source zone that the host marks, so
//! appending a buffer is never given up.

use onefold_units::ZoneId;
use onefold_units::convert::index;

use crate::device_io::Purpose;
use crate::io::{IoFailed, IoKind, bytes_of};
use crate::job::{Job, Stage, Written};
use crate::stats::{Action, Sent};
use crate::volume::Volume;
use crate::zones::Condition;

impl Volume {
    fn job(&mut self, worker: usize) -> &mut Job {
        self.workers[worker].job.as_mut().expect("a worker that copies has a job")
    }

    /// Lets the job of a worker go on. Gives whether it did anything.
    pub(crate) fn step_job(&mut self, worker: usize) -> bool {
        let now = self.now;
        let stage = self.job(worker).stage();
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
        if job.run().is_empty() {
            let range = job.ahead();
            let unwanted = self.zones.get(source).terminate && !forced;
            // What was appended to a data zone cannot be taken back.
            let closing = self.closing && action != Action::Buf;
            if !range.is_empty() && (unwanted || closing) {
                self.abort(worker);
                return;
            }
            let found = self.meta.first_valid(source, range);
            self.job(worker).found(found);
            if self.job(worker).stage() == Stage::Copied {
                return;
            }
        }
        let run = self.job(worker).run();
        let zone = self.zones.get(target);
        let (is_sequential, wp) = (zone.is_sequential(), zone.wp);
        if is_sequential && wp < run.start {
            let blocks = (run.start - wp).min(piece_max);
            let bytes = if self.options.bytes { vec![0; bytes_of(blocks)] } else { Vec::new() };
            self.copy_write(worker, (wp, blocks), Sent::ZeroFill, bytes);
            return;
        }
        let blocks = (run.end - run.start).min(piece_max);
        let now = self.now;
        self.job(worker).reads(blocks, now);
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
        let (at, blocks, cause) = self.job(worker).piece();
        self.copy_write(worker, (at, blocks), cause, bytes);
    }

    /// Writes blocks to the target, and counts them.
    fn copy_write(&mut self, worker: usize, (at, blocks): (u32, u32), cause: Sent, bytes: Vec<u8>) {
        let job = self.job(worker);
        let (data, target) = (job.data, job.target);
        let chunk = self.zones.get(data).chunk;
        let zone = self.zones.get_mut(target);
        if zone.is_sequential() {
            zone.wp += blocks;
        }
        let (device, place) = (zone.device, (zone.device, zone.start + u64::from(at), blocks));
        let journal =
            if cause == Sent::ZeroFill { 0 } else { self.journal_blocks(chunk, at, blocks) };
        self.stats.count(device, cause, u64::from(blocks) - journal);
        self.stats.count(device, Sent::JournalCopied, journal);
        self.job(worker).writes(blocks, cause, journal);
        self.ask(IoKind::Write, place, Purpose::CopyWrite(worker), bytes);
    }

    /// A piece is copied, or cannot be.
    pub(crate) fn copy_written(&mut self, worker: usize, result: Result<(), IoFailed>) {
        if self.frozen {
            return;
        }
        if let Err(why) = result {
            self.fail(worker, why);
            return;
        }
        let now = self.now;
        self.job(worker).piece_over(now);
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
        self.workers[worker].failed(why, self.now);
        self.throw_away(worker);
        self.job_over(worker, true);
    }

    fn throw_away(&mut self, worker: usize) {
        let job = self.job(worker);
        let (action, data, target, cause) = (job.action, job.data, job.target, job.cause());
        let Written { copied, journal, zeroes } = job.written();
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
        self.workers[worker].succeeded();
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
        let flush = self.flush.next();
        self.job(worker).committed(flush);
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
