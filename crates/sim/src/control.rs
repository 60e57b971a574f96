//! Watching and ending a run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use onefold_tracefile::{Options, TraceFileError, TraceSource};

use crate::SimError;
use crate::checkpoint::Checkpoint;
use crate::log::OnRequest;

/// Opens the trace at a path.
pub type OpenTrace<'a> = &'a dyn Fn(&Path, &Options) -> Result<TraceSource, TraceFileError>;

/// Requests between two looks at the interrupt flag: few, as each of a large volume may take a millisecond.
pub(crate) const INTERRUPT_EVERY: u64 = 256;

/// Lets the caller watch and stop a run.
#[derive(Default)]
pub struct Control<'a> {
    /// Set to end the run; the result then covers what was done and says so.
    pub interrupt: Option<&'a AtomicBool>,
    /// Called now and then with the number of requests done.
    pub progress: Option<&'a dyn Fn(u64)>,
    /// Called with what the user should read before the run: how traces are understood.
    pub say: Option<&'a dyn Fn(&str)>,
    /// Called with each measured request when it is over.
    pub on_request: Option<OnRequest<'a>>,
    /// Keeps the state of the run, and goes on from one that was kept: drives with a block namespace and without a volume.
    pub checkpoint: Option<Checkpoint<'a>>,
    /// How traces are opened, for runs that share them; [`TraceSource::open`] if nothing else is said.
    pub open_trace: Option<OpenTrace<'a>>,
}

impl Control<'_> {
    /// Whether the run is to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Ends what comes before anything is measured.
    pub(crate) fn go_on(&self) -> Result<(), SimError> {
        if self.is_interrupted() { Err(SimError::Interrupted) } else { Ok(()) }
    }
}

/// Tells how far a run is, and whether it is to end, each time that so many more requests are
/// through.
pub(crate) struct Watch<'a, 'b> {
    control: &'a Control<'b>,
    next: u64,
    /// Requests at which the state is kept next.
    next_checkpoint: u64,
}

/// Why a run pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// It is to end.
    End,
    /// Its state is to be kept.
    Checkpoint,
}

impl<'a, 'b> Watch<'a, 'b> {
    pub(crate) fn new(control: &'a Control<'b>) -> Self {
        Self::after(0, control)
    }

    /// Of a run that goes on after so many requests.
    pub(crate) fn after(requests: u64, control: &'a Control<'b>) -> Self {
        let mut watch = Self { control, next: requests + INTERRUPT_EVERY, next_checkpoint: 0 };
        watch.plan_checkpoint(requests);
        watch
    }

    fn plan_checkpoint(&mut self, requests: u64) {
        let every = self.control.checkpoint.as_ref().and_then(|checkpoint| checkpoint.every);
        let every = every.map_or(u64::MAX, |every| every.max(1));
        self.next_checkpoint = requests.saturating_add(every);
    }

    /// So many requests are through. Whether the run is to end.
    #[inline]
    pub(crate) fn ends(&mut self, requests: u64) -> bool {
        self.pauses(requests) == Some(Pause::End)
    }

    /// So many requests have to be through for the next look.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// So many requests are through. Whether the run pauses.
    #[inline]
    pub(crate) fn pauses(&mut self, requests: u64) -> Option<Pause> {
        if requests >= self.next { self.look(requests) } else { None }
    }

    fn look(&mut self, requests: u64) -> Option<Pause> {
        self.next += INTERRUPT_EVERY;
        if let Some(progress) = self.control.progress {
            progress(requests);
        }
        if self.control.is_interrupted() {
            return Some(Pause::End);
        }
        if requests < self.next_checkpoint {
            return None;
        }
        self.plan_checkpoint(requests);
        Some(Pause::Checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_noticed_now_and_then() {
        let flag = AtomicBool::new(false);
        let control = Control { interrupt: Some(&flag), ..Control::default() };
        let mut watch = Watch::new(&control);
        assert!(!watch.ends(INTERRUPT_EVERY));
        flag.store(true, Ordering::Relaxed);
        assert!(!watch.ends(2 * INTERRUPT_EVERY - 1));
        assert!(watch.ends(2 * INTERRUPT_EVERY));
    }
}
