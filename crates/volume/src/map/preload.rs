//! How far the map was read in the background after an opening.

/// Pages that are asked for together, at least; their images have a size of 1 MiB.
pub(crate) const TOGETHER: usize = 128;

/// Pages that are asked for together, at most: 16 MiB. Each run has a block at least with records of them, which is read for all
/// of them at once.
pub(crate) const TOGETHER_MAX: usize = 2048;

/// Pages that are being read at a time for the live counts, those that the host waits for included.
pub(crate) const UNDER_WAY_MAX: usize = 4 * TOGETHER;

/// How far it is.
#[derive(Debug, Default)]
pub(crate) struct Preload {
    /// The key of the next page; `None`: nothing is preloaded.
    next: Option<usize>,
}

impl Preload {
    /// Begins with the first page, if it is to begin.
    pub(crate) fn begin(&mut self, wanted: bool) {
        self.next = wanted.then_some(0);
    }

    /// Whether there are pages to ask for.
    pub(crate) const fn is_on(&self) -> bool {
        self.next.is_some()
    }

    /// The key of the next page; nothing is preloaded until it goes on.
    pub(crate) const fn take(&mut self) -> Option<usize> {
        self.next.take()
    }

    /// It goes on with the page of this key.
    pub(crate) const fn go_on(&mut self, next: usize) {
        self.next = Some(next);
    }
}
