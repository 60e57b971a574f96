//! The file of an array, and what it did not take.
//!
//! 1. Nothing that is written fails: while something keeps writes from the file, they wait in memory (`backlog`).
//! 2. After a failed synchronisation that is for ever.

use std::io;
use std::sync::Arc;

use onefold_nand::MediaError;
use onefold_units::convert::u64_from;

use super::backlog::{Backlog, Step};
use super::held::Held;
use crate::backing::Backing;

/// How often an access is tried in a row: a host that fails now and then is not worth a failed request.
const ATTEMPTS: u32 = 3;

/// Accesses to the file that failed, each after [`ATTEMPTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostFailures {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) syncs: u64,
}

impl HostFailures {
    /// Those of two parts of a file.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            syncs: self.syncs + other.syncs,
        }
    }
}

/// A file, or a part of one.
#[derive(Debug)]
pub(crate) struct Store {
    backing: Arc<Backing>,
    /// What the file did not take. Empty unless something holds it.
    backlog: Backlog,
    held: Option<Held>,
    failures: HostFailures,
}

impl Store {
    pub(super) fn new(backing: Arc<Backing>) -> Self {
        let (backlog, failures) = (Backlog::default(), HostFailures::default());
        Self { backing, backlog, held: None, failures }
    }

    /// What keeps writes from the file, if something does.
    pub(crate) const fn held(&self) -> Option<Held> {
        self.held
    }

    /// Bytes in memory that the file did not take.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.backlog.bytes()
    }

    /// Accesses that failed.
    pub(crate) const fn failures(&self) -> HostFailures {
        self.failures
    }

    /// Brings to the file what it did not take before.
    pub(super) fn drain(&mut self) -> Result<(), Held> {
        if let Some(held @ Held::Unsynced(_)) = self.held {
            return Err(held);
        }
        while let Some(step) = self.backlog.first() {
            let taken = carry_out(&self.backing, step);
            self.note(taken)?;
            self.backlog.took_first();
        }
        self.held = None;
        Ok(())
    }

    /// Brings something to the file, or lets it wait.
    pub(super) fn put(&mut self, step: Step<'_>) {
        if self.held.is_none() {
            let taken = carry_out(&self.backing, &step);
            if self.note(taken).is_ok() {
                return;
            }
        }
        self.backlog.push(step);
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        self.put(Step::Write { at, bytes: bytes.into() });
    }

    pub(super) fn load(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        if !self.backlog.covers(offset, u64_from(bytes.len())) {
            let read = attempt(|| self.backing.read_at(offset, bytes));
            read.map_err(|error| {
                self.failures.reads += 1;
                MediaError::Backing { errno: error.raw_os_error().unwrap_or(0) }
            })?;
        }
        self.backlog.lay_over(offset, bytes);
        Ok(())
    }

    /// A synchronisation by somebody else failed.
    pub(super) fn sync_failed(&mut self, error: &io::Error) -> Held {
        let held = Held::unsynced(error);
        let _ = self.note(Err(held));
        held
    }

    /// Counts a failure, and remembers what holds the file.
    fn note(&mut self, taken: Result<(), Held>) -> Result<(), Held> {
        if let Err(held) = taken {
            match held {
                Held::Full | Held::Refused(_) => self.failures.writes += 1,
                Held::Unsynced(_) => self.failures.syncs += 1,
            }
            self.held = Some(held);
        }
        taken
    }
}

fn carry_out(backing: &Backing, step: &Step<'_>) -> Result<(), Held> {
    let written = match step {
        Step::Write { at, bytes } => attempt(|| backing.write_at(*at, bytes)),
        Step::Zero { at, len } => attempt(|| backing.zero(*at, *len)),
        Step::Sync => return backing.sync_for_good().map_err(|error| Held::unsynced(&error)),
    };
    written.map_err(|error| Held::new(&error))
}

fn attempt(mut access: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match access() {
            Err(_) if left > 0 => {}
            done => return done,
        }
    }
}
