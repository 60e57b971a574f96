//! What a driver asks of the engine that it drives.

use std::time::Instant;

use onefold_journal::Range;
use onefold_units::{Nanos, Status};

/// The driver does nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over;

impl From<Over> for Status {
    fn from(Over: Over) -> Self {
        Self::Poisoned
    }
}

/// Why an engine does not take a request.
pub(crate) enum Refused<R> {
    /// Not now.
    Busy,
    /// For good.
    Never(R),
}

/// An engine, and what else its lock guards.
pub(crate) trait Driven: Send + Sized + 'static {
    /// What needs no lock: what it lies on, and the queues to that.
    type Shared: Send + Sync;
    /// A request to what lies below, with its bytes and how it ended.
    type Job: Send;
    /// How a request to the engine ends.
    type Outcome: Send;

    /// How requests end that are given up.
    fn fallen() -> Self::Outcome;

    /// Blocks that it exports.
    fn blocks(&self) -> u64;

    /// Goes on as far as it can, and puts what it asks for into the queues.
    fn turn(&mut self, shared: &Self::Shared, now: Nanos);

    /// The tag of a request that is over, and how it ended.
    fn poll_done(&mut self) -> Option<(u64, Self::Outcome)>;

    /// When it has to go on although nothing happens.
    fn due(&self) -> Option<Nanos>;

    /// Wakes whoever serves the queues if something is in them, or if it would sleep too long.
    fn wake(&mut self, shared: &Self::Shared, at: Option<Instant>);

    /// Says in the log what has to be said.
    fn notice(&mut self) {}

    /// A request to what lies below is over.
    fn completed(&mut self, now: Nanos, job: Self::Job);

    /// Nothing of what waits in the queues is done any more.
    fn fall(&mut self) {}

    /// Where journals lie, for a detector that says so because that `changed`, or because it has nothing to do.
    fn set_journal(&mut self, now: Nanos, ranges: &[Range], changed: bool);

    /// Carries out a request to what lies below. Without the lock.
    fn execute(shared: &Self::Shared, job: &mut Self::Job);

    /// When what lies below has something to do by itself.
    fn due_below(_shared: &Self::Shared) -> Option<Instant> {
        None
    }

    /// Lets what lies below do what is due. Without the lock.
    fn tidy_below(_shared: &Self::Shared) {}

    /// No more jobs are done.
    fn close(shared: &Self::Shared);

    /// Reads a block as the host does.
    fn read_block(driver: &super::Driver<Self>, lba: u64, block: &mut [u8]) -> Result<(), Status>;
}
