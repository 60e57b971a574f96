//! A volume that is open, and who waits for what of it. One lock guards it.

use std::time::Duration;

use onefold_journal::Setting;
use onefold_units::Nanos;
use onefold_volume::{Engine, IoFailed};

use super::faults::Told;
use super::fill::Fill;
use super::inbox::Inbox;
use super::journals::Watch;
use super::stalls::Stalls;
use crate::driver::{Fallible, Waiting};

pub(super) struct State {
    pub(super) volume: Box<dyn Engine>,
    pub(super) now: Nanos,
    pub(super) waiting: Waiting<Result<(), IoFailed>>,
    /// Calls that sleep until something completes.
    pub(super) busy: u32,
    pub(super) stalls: Stalls,
    pub(super) flush_time: Duration,
    pub(super) inbox: Inbox,
    /// A thread panicked with it (invariant 2).
    pub(super) fallen: bool,
    pub(super) fill: Fill,
    /// Findings of scrubs that were said.
    pub(super) damage_told: u64,
    /// What was said of errors of the backing.
    pub(super) faults_told: Told,
    /// Looks for journals.
    pub(super) watch: Option<Watch>,
}

impl State {
    pub(super) fn new(volume: Box<dyn Engine>, journals: Option<Setting>) -> Self {
        let watch = journals.map(|setting| Watch::new(volume.logical_blocks(), setting));
        Self {
            volume,
            now: Nanos::ZERO,
            waiting: Waiting::default(),
            busy: 0,
            stalls: Stalls::default(),
            flush_time: Duration::ZERO,
            inbox: Inbox::default(),
            fallen: false,
            fill: Fill::default(),
            damage_told: 0,
            faults_told: Told::default(),
            watch,
        }
    }
}

impl Fallible for State {
    fn fall(&mut self) {
        (self.fallen, self.inbox.closed) = (true, true);
        self.waiting.end_all(|| Err(IoFailed::Error));
        self.inbox.reads.drain(..).for_each(|read| read.answer(Err(IoFailed::Error)));
    }
}
