//! What becomes of callers when a thread panics that has the volume.

/// What is driven by several threads.
pub(crate) trait Falls {
    /// Nothing is done any more: whoever waits gets an error, and the threads end.
    fn fall(&self);
}

/// Held by whoever drives the volume: a panic answers all who wait.
pub(crate) struct Fuse<'a, T: Falls>(pub(crate) &'a T);

impl<T: Falls> Drop for Fuse<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fall();
        }
    }
}
