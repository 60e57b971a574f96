//! What people are told of a host that fails: once when it begins, once when it is over.

use std::path::PathBuf;
use std::time::Instant;

use onefold_ftl::FailedDie;
use onefold_units::PAGE_BYTES;

use crate::media::{Held, HostFailures};
use crate::quiet::Quiet;

/// A host that takes no writes.
#[derive(Debug)]
struct Holding {
    since: Instant,
    /// People know.
    told: bool,
    /// Until the device is opened again.
    for_good: bool,
    /// Requests that were refused.
    refused: u64,
}

/// What was seen and told.
#[derive(Debug)]
pub(crate) struct HostWatch {
    image: PathBuf,
    holding: Option<Holding>,
    /// A host may fail and recover many times a second.
    writes_told: Quiet,
    reads_told: Quiet,
    reads: u64,
    refused: u64,
    die_told: bool,
}

impl HostWatch {
    pub(crate) fn new(image: PathBuf) -> Self {
        let (writes_told, reads_told) = (Quiet::default(), Quiet::default());
        Self {
            image,
            holding: None,
            writes_told,
            reads_told,
            reads: 0,
            refused: 0,
            die_told: false,
        }
    }

    /// A die of the drive has failed; told once.
    pub(crate) fn tell_die(&mut self, died: impl FnOnce() -> Option<FailedDie>) {
        if std::mem::replace(&mut self.die_told, true) {
            return;
        }
        if let Some(FailedDie { die, lost_pages }) = died() {
            let (path, lost) = (self.image.display(), lost_pages * PAGE_BYTES);
            tracing::error!(
                "{path}: die {die} failed: {lost} B on it are lost, and the drive can only be read"
            );
        }
    }

    /// A request was refused, because the file takes no writes.
    pub(crate) const fn refused(&mut self) {
        self.refused += 1;
        if let Some(holding) = &mut self.holding {
            holding.refused += 1;
        }
    }

    /// Requests that were refused since the device was opened.
    pub(crate) const fn refused_ever(&self) -> u64 {
        self.refused
    }

    /// Compares how the file is now with how it was.
    pub(crate) fn look(&mut self, held: Option<Held>, failures: HostFailures) {
        match (held, self.holding.take()) {
            (Some(held), before) => self.holding = Some(self.holds(held, before)),
            (None, Some(before)) => self.ends(&before),
            (None, None) => {}
        }
        if failures.reads > self.reads {
            self.reads = failures.reads;
            self.tell_reads();
        }
    }

    fn holds(&self, held: Held, before: Option<Holding>) -> Holding {
        let for_good = matches!(held, Held::Unsynced(_));
        let is_new = before.is_none();
        let now = Instant::now();
        let before = before.unwrap_or(Holding { since: now, told: false, for_good, refused: 0 });
        let told = if for_good {
            is_new || !before.for_good
        } else {
            is_new && self.writes_told.happened().is_some()
        };
        if told {
            self.tell_held(held);
        }
        Holding { told: before.told || told, for_good, ..before }
    }

    fn tell_held(&self, held: Held) {
        let image = self.image.display();
        match held {
            Held::Unsynced(_) => tracing::error!(
                "{image}: {held}; reads go on, and nothing is changed until the device is opened again: what was not \
                 flushed before may be lost"
            ),
            Held::Full => tracing::error!(
                "{image}: {held}; reads go on, writes and flushes are refused or wait until there is room: make some"
            ),
            Held::Refused(_) => tracing::error!(
                "{image}: {held}; reads go on, each write and flush tries again and is refused while it fails"
            ),
        }
    }

    /// A warning like its beginning: who sees one has to see the other.
    fn ends(&self, before: &Holding) {
        if before.told {
            let (image, refused) = (self.image.display(), before.refused);
            let seconds = before.since.elapsed().as_secs_f64();
            tracing::warn!(
                "{image}: the host takes writes again, after {seconds:.1} s and {refused} refused requests"
            );
        }
    }

    fn tell_reads(&self) {
        if self.reads_told.happened().is_some() {
            let (image, reads) = (self.image.display(), self.reads);
            tracing::error!(
                "{image}: the host fails to read it, {reads} times since it was opened; the requests concerned are errors, \
                 and nothing is given up"
            );
        }
    }
}
