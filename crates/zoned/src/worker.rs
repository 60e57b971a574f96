//! The reclaim worker of a zoned device: when it looks for something to do (zoned.md, section 3, "Reclaim").

use onefold_units::Nanos;

use crate::config::{IDLE, WAIT};
use crate::io::IoFailed;
use crate::job::Job;
use crate::retries::Failing;

/// The reclaim worker of a zoned device.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) device: usize,
    /// Last request of the host whose data zone lies on the device.
    last_access: Nanos,
    /// When it looks again whether there is something to do. As in the kernel target only one that looked and found nothing does
    /// so by itself; after a reclaim it is an allocation that makes it look.
    check_at: Option<Nanos>,
    /// Changes of the volume that it had seen when it found nothing it could do.
    starved: Option<u64>,
    pub(crate) job: Option<Job>,
    /// Until when it does nothing, because a device failed.
    paused: Nanos,
    /// No reclaim succeeded since one failed.
    failing: Option<Failing>,
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

    /// When it wants to go on.
    pub(crate) fn due(&self) -> Option<Nanos> {
        match &self.job {
            None => self.check_at.map(|at| at.max(self.paused)),
            Some(job) => job.resumes_at(),
        }
    }

    /// The host used a data zone on its device.
    pub(crate) const fn note_access(&mut self, now: Nanos) {
        self.last_access = now;
    }

    /// Whether the host left its device alone for a while.
    pub(crate) fn is_idle(&self, now: Nanos) -> bool {
        self.last_access + IDLE <= now
    }

    pub(crate) fn is_paused(&self, now: Nanos) -> bool {
        self.paused > now
    }

    /// It looks at this time.
    pub(crate) const fn look_at(&mut self, at: Nanos) {
        self.check_at = Some(at);
    }

    /// Whether it looks for something to do now. The kernel target tries again and again at full speed; here one that found nothing
    /// it could do tries again when something changed.
    pub(crate) fn looks(&self, changes: u64, now: Nanos) -> bool {
        self.starved.map_or_else(|| self.is_due(now), |seen| seen != changes)
    }

    /// One that can do nothing now looks again in ten seconds.
    pub(crate) fn postpone(&mut self, now: Nanos) {
        if self.is_due(now) {
            self.check_at = Some(now + IDLE);
        }
    }

    /// There is no need to reclaim.
    pub(crate) fn is_content(&mut self, now: Nanos) {
        self.starved = None;
        self.check_at = Some(now + IDLE);
    }

    /// It has to reclaim and found nothing that it could do.
    pub(crate) const fn starves(&mut self, changes: u64) {
        self.starved = Some(changes);
    }

    /// Whether it knows that it can do nothing.
    pub(crate) fn is_starved(&self, changes: u64) -> bool {
        self.job.is_none() && self.starved == Some(changes)
    }

    pub(crate) fn begin(&mut self, job: Job) {
        self.starved = None;
        self.job = Some(job);
    }

    /// Its job is over: the next one begins at once if it has to (`again`).
    pub(crate) fn job_over(&mut self, again: bool, now: Nanos) {
        self.end_job(again.then_some(now), Nanos::ZERO);
    }

    /// Its job failed: it looks again after a second.
    pub(crate) fn job_failed(&mut self, now: Nanos) {
        self.end_job(Some(now + WAIT), now + WAIT);
    }

    fn end_job(&mut self, check_at: Option<Nanos>, paused: Nanos) {
        self.job = None;
        self.starved = None;
        self.check_at = check_at;
        self.paused = paused;
    }

    /// A device did not do something for it.
    pub(crate) fn failed(&mut self, why: IoFailed, now: Nanos) {
        self.failing.get_or_insert(Failing { since: now, why }).why = why;
    }

    /// A reclaim succeeded.
    pub(crate) const fn succeeded(&mut self) {
        self.failing = None;
    }

    /// How its reclaims fail, if they do.
    pub(crate) const fn failing(&self) -> Option<Failing> {
        self.failing
    }

    fn is_due(&self, now: Nanos) -> bool {
        self.check_at.is_some_and(|at| at <= now)
    }
}
