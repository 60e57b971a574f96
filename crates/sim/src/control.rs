//! Watching and ending a run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use onefold_tracefile::{Options, TraceFileError, TraceSource};

use crate::SimError;
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
}

impl<'a, 'b> Watch<'a, 'b> {
    pub(crate) const fn new(control: &'a Control<'b>) -> Self {
        Self { control, next: INTERRUPT_EVERY }
    }

    /// So many requests are through. Whether the run is to end.
    #[inline]
    pub(crate) fn ends(&mut self, requests: u64) -> bool {
        requests >= self.next && self.look(requests)
    }

    fn look(&mut self, requests: u64) -> bool {
        self.next += INTERRUPT_EVERY;
        if let Some(progress) = self.control.progress {
            progress(requests);
        }
        self.control.is_interrupted()
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
