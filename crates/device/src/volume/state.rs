//! A volume that is open, as its driver has it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onefold_journal::Range;
use onefold_units::{Nanos, Status};
use onefold_volume::{Engine, IoFailed, IoKind, MemberId, Recovery};

use super::VolumeBacking;
use super::bell::Bell;
use super::block_device::Blocks;
use super::faults::Told;
use super::fill::Fill;
use super::inbox::Inbox;
use super::io_mode::IoMode;
use super::jobs::{self, Job};
use super::size::Size;
use crate::driver::{Driven, Driver, Jobs, WholeBlocks};

/// An engine, and what belongs to it under its lock.
pub(super) struct Served {
    pub(super) volume: Box<dyn Engine>,
    pub(super) flush_time: Duration,
    pub(super) inbox: Inbox,
    pub(super) fill: Fill,
    /// Findings of scrubs that were said.
    pub(super) damage_told: u64,
    /// What was said of errors of the backing.
    pub(super) faults_told: Told,
}

/// What is known since the volume was opened.
pub(super) struct Opening {
    pub(super) uuid: [u8; 16],
    pub(super) io: IoMode,
    pub(super) remaps: bool,
    pub(super) recovery: Recovery,
    pub(super) took: Duration,
}

/// What needs no lock.
pub(super) struct Shared {
    pub(super) jobs: Jobs<Job>,
    /// Wakes the owner of the ring; `None` where threads do the I/O.
    pub(super) bell: Option<Arc<Bell>>,
    /// Trims, and resets and finishes of zones, take a thread although there is a ring, which knows trims of files only.
    pub(super) thread_manages: bool,
    pub(super) opening: Opening,
    pub(super) backing: VolumeBacking,
    /// Those of members that somebody has a handle of.
    pub(super) sizes: Mutex<BTreeMap<MemberId, Arc<Size>>>,
    pub(super) writes_wait: bool,
    /// Blocks that the volume takes at once.
    pub(super) write_blocks_max: u32,
}

impl Served {
    pub(super) fn new(volume: Box<dyn Engine>) -> Self {
        Self {
            volume,
            flush_time: Duration::ZERO,
            inbox: Inbox::default(),
            fill: Fill::default(),
            damage_told: 0,
            faults_told: Told::default(),
        }
    }
}

impl Driven for Served {
    type Shared = Shared;
    type Job = Job;
    type Outcome = Result<(), IoFailed>;

    fn fallen() -> Self::Outcome {
        Err(IoFailed::Error)
    }

    fn blocks(&self) -> u64 {
        self.volume.logical_blocks()
    }

    fn turn(&mut self, shared: &Shared, now: Nanos) {
        self.volume.pump(now);
        while let Some(io) = self.volume.poll_io() {
            let manages = !matches!(io.kind, IoKind::Read | IoKind::Write | IoKind::Flush);
            if shared.bell.is_none() || (shared.thread_manages && manages) {
                shared.jobs.push(Job::new(io, &*self.volume));
            } else {
                self.inbox.requests.push_back(io);
            }
        }
    }

    fn poll_done(&mut self) -> Option<(u64, Self::Outcome)> {
        self.volume.poll_done().map(|done| (done.tag, done.result))
    }

    fn due(&self) -> Option<Nanos> {
        self.volume.poll_timeout()
    }

    fn wake(&mut self, shared: &Shared, at: Option<Instant>) {
        match &shared.bell {
            Some(bell) if self.inbox.has_to_wake(at) => bell.ring(),
            Some(_) => {}
            None => shared.jobs.wake_at(at),
        }
    }

    fn notice(&mut self) {
        self.fill.look(&*self.volume);
        self.tell_damage();
        self.faults_told.tell(&*self.volume);
    }

    fn completed(&mut self, now: Nanos, job: Job) {
        job.give_back(&mut *self.volume);
        self.volume.completed(now, job.io.id, job.result);
    }

    fn fall(&mut self) {
        self.inbox.closed = true;
        self.inbox.reads.drain(..).for_each(|read| read.answer(Err(IoFailed::Error)));
    }

    /// Also if there is none, so that the volume knows.
    fn set_journal(&mut self, _now: Nanos, ranges: &[Range], _changed: bool) {
        if let Some(volume) = self.volume.as_log_mut() {
            volume.set_journal(ranges);
        }
    }

    fn execute(shared: &Shared, job: &mut Job) {
        job.result = jobs::execute(&shared.backing, job);
    }

    fn close(shared: &Shared) {
        shared.jobs.close();
    }

    fn read_block(driver: &Driver<Self>, lba: u64, block: &mut [u8]) -> Result<(), Status> {
        Blocks { driver, member: MemberId::DEVICE }.read_blocks(lba, block)
    }
}
