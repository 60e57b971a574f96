//! Reclaim: when it runs and which zone it takes (zoned.md, section 3, "Reclaim").

use onefold_units::ZoneId;

use crate::config::LOW_PERCENT;
use crate::job::Job;
use crate::stats::Action;
use crate::volume::Volume;
use crate::zones::{Condition, Role};

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
            worker.note_access(now);
        }
    }

    fn is_idle(&self, worker: usize) -> bool {
        self.workers[worker].is_idle(self.now)
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
                self.workers[worker].look_at(self.now);
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
        if self.workers[worker].is_paused(self.now) {
            return false;
        }
        if let Some(job) = self.job_for_displaced(worker) {
            return self.start(worker, job);
        }
        if !self.workers[worker].looks(self.changes, self.now) {
            self.workers[worker].postpone(self.now);
            return false;
        }
        if !self.should_reclaim(worker) {
            self.workers[worker].is_content(self.now);
            return false;
        }
        if let Some(job) = self.choose(worker) {
            return self.start(worker, job);
        }
        self.workers[worker].starves(self.changes);
        self.flush.want(!self.held.is_empty());
        self.workers[worker].postpone(self.now);
        false
    }

    /// A reclaim is over: the next one begins at once if it has to, or after a second if a device failed.
    pub(crate) fn job_over(&mut self, worker: usize, failed: bool) {
        if failed {
            self.workers[worker].job_failed(self.now);
        } else {
            let again = self.should_reclaim(worker);
            self.workers[worker].job_over(again, self.now);
        }
        self.changes += 1;
    }

    fn start(&mut self, worker: usize, mut job: Job) -> bool {
        let percent = self.free_percent(worker);
        let urgent = self.is_idle(worker) || percent < LOW_PERCENT / 2;
        job.throttle = if urgent { 100 } else { 75.min(100 - percent / 2) };
        let reclaims = self.stats.reclaims_mut(job.action);
        reclaims.started += 1;
        reclaims.started_weight += u64::from(self.zones.get(job.source).weight);
        self.workers[worker].begin(job);
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
            && self.workers.iter().all(|worker| worker.is_starved(self.changes))
    }

    /// What is being copied now, one entry per zoned device that reclaims.
    pub fn moves(&self) -> impl Iterator<Item = Move> {
        let jobs = self.workers.iter().filter_map(|worker| worker.job.as_ref());
        jobs.filter(|job| job.is_copying()).map(|job| Move {
            action: job.action,
            chunk: self.zones.get(job.data).chunk,
            source: job.source,
            target: job.target,
        })
    }

    /// Whether a reclaim is under way.
    #[must_use]
    pub fn is_reclaiming(&self) -> bool {
        self.workers.iter().any(|worker| worker.job.as_ref().is_some_and(|job| !job.is_committed()))
    }
}
