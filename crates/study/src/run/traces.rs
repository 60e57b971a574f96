//! Traces that the points of a study share: each is decoded once, not once for every point.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use onefold_tracefile::{Checked, Options, TraceFileError, TraceSource};

/// Traces kept at once, the last that were asked for: points are run workload by workload. Each takes 72 B per
/// request if it has up to 1,048,576 of them, and next to nothing if it has more, because it is read from
/// its file then.
const KEPT: usize = 4;

/// A trace, once somebody has read it.
type Slot = Arc<Mutex<Option<Checked>>>;

/// The traces of a study.
#[derive(Debug, Default)]
pub(super) struct Traces {
    slots: Mutex<VecDeque<(PathBuf, Options, Slot)>>,
}

impl Traces {
    /// The requests of a trace. The first who asks reads it, and others wait for that.
    pub(super) fn open(
        &self,
        path: &Path,
        options: &Options,
    ) -> Result<TraceSource, TraceFileError> {
        let slot = self.slot(path, options);
        let mut checked = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(checked) = &*checked {
            return checked.source();
        }
        checked.insert(Checked::new(path, options)?).source()
    }

    fn slot(&self, path: &Path, options: &Options) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(own, how, _): &&(PathBuf, Options, Slot)| own == path && how == options;
        if let Some((.., slot)) = slots.iter().find(is_it) {
            return Arc::clone(slot);
        }
        slots.truncate(KEPT - 1);
        let slot = Slot::default();
        slots.push_front((path.to_path_buf(), options.clone(), Arc::clone(&slot)));
        slot
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use onefold_tracefile::{Options, TraceSource};

    use super::{KEPT, Traces};

    fn requests(mut source: TraceSource) -> usize {
        let (mut batch, mut all) = (Vec::new(), 0);
        while source.next_batch(&mut batch).unwrap() {
            all += batch.len();
        }
        all
    }

    #[test]
    fn a_trace_is_read_once_until_others_are_needed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |n: usize| folder.path().join(format!("{n}.csv"));
        for n in 0..=KEPT {
            let lines = "0,W,0,8,,60000\n".repeat(5 + n);
            fs::write(path(n), format!("t_ns,op,sector512,nsect,flags,lat_ns\n{lines}")).unwrap();
        }
        let (traces, options) = (Traces::default(), Options::default());
        for n in 0..KEPT {
            assert_eq!(requests(traces.open(&path(n), &options).unwrap()), 5 + n);
        }
        // Nobody reads a file once more.
        for n in 0..KEPT {
            fs::remove_file(path(n)).unwrap();
        }
        for n in 0..KEPT {
            assert_eq!(requests(traces.open(&path(n), &options).unwrap()), 5 + n);
        }
        // Other options are another trace.
        assert!(
            traces.open(&path(0), &Options { flat: !options.flat, ..options.clone() }).is_err()
        );
        // The first makes room for more.
        assert_eq!(requests(traces.open(&path(KEPT), &options).unwrap()), 5 + KEPT);
        assert!(traces.open(&path(0), &options).is_err());
    }
}
