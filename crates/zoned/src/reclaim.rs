//! Reclaim: when it runs and which zone it takes (zoned.md, section 3, "Reclaim").

use onefold_units::{Nanos, ZoneId};

use crate::config::{IDLE, LOW_PERCENT, WAIT};
use crate::copy::{Job, Stage};
use crate::retries::Failing;
use crate::stats::Action;
use crate::volume::Volume;
use crate::zones::{Condition, Role};

/// The reclaim worker of a zoned device.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) device: usize,
    /// Last request of the host whose data zone lies on the device.
    last_access: Nanos,
    /// When it looks again whether there is something to do. As in the kernel target only one that looked and found nothing does
    /// so by itself; after a reclaim it is an allocation that makes it look.
    check_at: Option<Nanos>,
    /// [`Volume::changes`] when it found nothing it could do.
    starved: Option<u64>,
    pub(crate) job: Option<Job>,
    /// Until when it does nothing, because a device failed.
    paused: Nanos,
    /// No reclaim succeeded since one failed.
    pub(crate) failing: Option<Failing>,
}

impl Worker {
    pub(crate) const fn new(device: usize, now: Nanos) -> Self {
        Self {
            device,
            last_access: now,
            check_at: Some(now),
            starved: None,
            job: None,
            paused: Nanos::ZERO,
            failing: None,
        }
    }

    fn is_due(&self, now: Nanos) -> bool {
        self.check_at.is_some_and(|at| at <= now)
    }

    /// When it wants to go on.
    pub(crate) fn due(&self) -> Option<Nanos> {
        match &self.job {
            None => self.check_at.map(|at| at.max(self.paused)),
            Some(job) => job.resumes_at(),
        }
    }
}

/// A reclaim that copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// What it does.
    pub action: Action,
    /// For which chunk.
    pub chunk: u32,
    /// From which zone.
    pub source: ZoneId,
    /// To which one.
    pub target: ZoneId,
}

impl Volume {
    pub(crate) fn note_access(&mut self, device: usize) {
        let now = self.now;
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.device == device) {
            worker.last_access = now;
        }
    }

    fn is_idle(&self, worker: usize) -> bool {
        self.workers[worker].last_access + IDLE <= self.now
    }

    /// Free zones in percent: the fewer, the more urgent.
    fn free_percent(&self, worker: usize) -> u32 {
        let (free, all) = self.zones.room(self.workers[worker].device);
        if free <= 1 { 0 } else { free * 100 / all }
    }

    fn should_reclaim(&self, worker: usize) -> bool {
        let percent = self.free_percent(worker);
        self.is_idle(worker) || percent <= LOW_PERCENT
    }

    /// A zone is asked for: every worker without a job looks whether it has to run.
    pub(crate) fn schedule_reclaim(&mut self) {
        for worker in 0..self.workers.len() {
            if self.should_reclaim(worker) {
                self.workers[worker].check_at = Some(self.now);
            }
        }
    }

    /// Lets a worker go on. Gives whether it did anything.
    pub(crate) fn step_worker(&mut self, worker: usize) -> bool {
        if self.frozen {
            return false;
        }
        if self.workers[worker].job.is_some() {
            return self.step_job(worker);
        }
        if self.closing {
            return false;
        }
        if self.workers[worker].paused > self.now {
            return false;
        }
        if let Some(job) = self.job_for_displaced(worker) {
            return self.start(worker, job);
        }
        let this = &self.workers[worker];
        // The kernel target tries again and again at full speed; here it is tried again when something changed.
        let waits = this.starved.is_none() && !this.is_due(self.now);
        if waits || this.starved == Some(self.changes) {
            return self.postpone(worker);
        }
        if !self.should_reclaim(worker) {
            self.workers[worker].starved = None;
            self.workers[worker].check_at = Some(self.now + IDLE);
            return false;
        }
        if let Some(job) = self.choose(worker) {
            return self.start(worker, job);
        }
        self.workers[worker].starved = Some(self.changes);
        self.flush.want(!self.held.is_empty());
        self.postpone(worker)
    }

    /// A worker that can do nothing now looks again in ten seconds.
    fn postpone(&mut self, worker: usize) -> bool {
        let now = self.now;
        let this = &mut self.workers[worker];
        if this.is_due(now) {
            this.check_at = Some(now + IDLE);
        }
        false
    }

    /// A reclaim is over: the next one begins at once if it has to, or after a second if a device failed.
    pub(crate) fn job_over(&mut self, worker: usize, failed: bool) {
        let again = self.should_reclaim(worker).then_some(self.now);
        let next = if failed { Some(self.now + WAIT) } else { again };
        let this = &mut self.workers[worker];
        this.job = None;
        this.starved = None;
        this.check_at = next;
        this.paused = if failed { self.now + WAIT } else { Nanos::ZERO };
        self.changes += 1;
    }

    fn start(&mut self, worker: usize, mut job: Job) -> bool {
        let percent = self.free_percent(worker);
        let urgent = self.is_idle(worker) || percent < LOW_PERCENT / 2;
        job.throttle = if urgent { 100 } else { 75.min(100 - percent / 2) };
        let reclaims = self.stats.reclaims_mut(job.action);
        reclaims.started += 1;
        reclaims.started_weight += u64::from(self.zones.get(job.source).weight);
        self.workers[worker].starved = None;
        self.workers[worker].job = Some(job);
        true
    }

    /// The victim and what is done with it; its data zone is locked.
    fn choose(&mut self, worker: usize) -> Option<Job> {
        let data = self.victim(worker)?;
        let job = self.job_on(worker, data);
        if job.is_none() {
            self.zones.get_mut(data).locked = false;
        }
        job
    }

    fn victim(&mut self, worker: usize) -> Option<ZoneId> {
        let (device, idle) = (self.workers[worker].device, self.is_idle(worker));
        if self.zones.reserved() == 0 {
            let buffered = |zone: &ZoneId| self.zones.get(*zone).partner.is_some();
            let zones: Vec<ZoneId> = self.zones.sequential(device).filter(buffered).collect();
            if let Some(zone) = self.lock_first(zones) {
                return Some(zone);
            }
        }
        let zones: Vec<ZoneId> = self.zones.victims(device, idle).collect();
        let is_data = |zone: &ZoneId| self.zones.get(*zone).role == Role::Data;
        let data: Vec<ZoneId> = zones.iter().copied().filter(is_data).collect();
        if let Some(zone) = self.lock_first(data) {
            return Some(zone);
        }
        // None of these is a data zone that can be locked: what is left is the data zones of the buffers among them.
        let owners: Vec<ZoneId> =
            zones.iter().filter_map(|zone| self.zones.get(*zone).partner).collect();
        let heaviest = owners.iter().copied().reduce(|best, zone| {
            if self.zones.get(zone).weight > self.zones.get(best).weight { zone } else { best }
        });
        self.lock_first(heaviest.into_iter().chain(owners).collect())
    }

    fn lock_first(&mut self, zones: Vec<ZoneId>) -> Option<ZoneId> {
        let may_be = |zone: &ZoneId| {
            let is_damaged = self.damaged.contains(&self.zones.get(*zone).chunk);
            !self.is_pinned(*zone) && !self.quarantine.is_barred(*zone) && !is_damaged
        };
        let zones: Vec<ZoneId> = zones.into_iter().filter(may_be).collect();
        zones.into_iter().find(|zone| self.zones.lock(*zone))
    }

    /// What is done with a locked data zone; `None` if that needs a zone and none is free.
    fn job_on(&mut self, worker: usize, data: ZoneId) -> Option<Job> {
        let zone = self.zones.get(data).clone();
        let zone_blocks = self.geometry.zone_blocks();
        let job = |action, source, target, end| Some(Job::new(action, data, source, target, end));
        if !zone.is_sequential() {
            if zone.weight == 0 {
                return Some(Job::empty(data));
            }
            let target = self.zones.take_for_reclaim(self.workers[worker].device)?;
            self.zones.get_mut(target).role = Role::Held;
            return job(Action::RndData, data, target, zone_blocks);
        }
        let buffer = zone.partner?;
        let first = self.meta.first_valid(buffer, 0..zone_blocks);
        let good = zone.condition == Condition::Good;
        if good && first.is_none_or(|run| run.start >= zone.wp) {
            job(Action::Buf, buffer, data, zone_blocks)
        } else {
            job(Action::SeqData, data, buffer, zone.wp)
        }
    }

    /// The journal's chunk lies in a sequential zone, or the zone of a chunk is out of service: it moves to its buffer, whoever
    /// waits (zoned.md, sections 4 and 6).
    fn job_for_displaced(&mut self, worker: usize) -> Option<Job> {
        let data = self.displaced(self.workers[worker].device)?;
        let zone = self.zones.get(data);
        let (wp, partner) = (zone.wp, zone.partner);
        if !self.zones.lock(data) {
            return None;
        }
        let buffer = partner.or_else(|| {
            let buffer = self.take_zone()?;
            self.map_buffer(data, buffer);
            Some(buffer)
        });
        let Some(buffer) = buffer else {
            self.zones.get_mut(data).locked = false;
            return None;
        };
        let mut job = Job::new(Action::SeqData, data, data, buffer, wp);
        job.forced = true;
        Some(job)
    }

    /// Nothing is under way that could free a zone, and every worker knows that it can do nothing.
    pub(crate) fn is_stuck(&self) -> bool {
        self.ios.is_quiet()
            && self.held.is_empty()
            && !self.flush.holds_host()
            && self.workers.iter().all(|worker| self.is_starved(worker))
    }

    /// Whether a worker knows that it can do nothing.
    pub(crate) fn is_starved(&self, worker: &Worker) -> bool {
        worker.job.is_none() && worker.starved == Some(self.changes)
    }

    /// What is being copied now, one entry per zoned device that reclaims.
    pub fn moves(&self) -> impl Iterator<Item = Move> {
        let jobs = self.workers.iter().filter_map(|worker| worker.job.as_ref());
        let copying = jobs.filter(|job| matches!(job.stage, Stage::Busy | Stage::Resting(_)));
        copying.map(|job| Move {
            action: job.action,
            chunk: self.zones.get(job.data).chunk,
            source: job.source,
            target: job.target,
        })
    }

    /// Whether a reclaim is under way.
    #[must_use]
    pub fn is_reclaiming(&self) -> bool {
        self.workers.iter().any(|worker| {
            worker.job.as_ref().is_some_and(|job| !matches!(job.stage, Stage::Flushing(_)))
        })
    }
}
