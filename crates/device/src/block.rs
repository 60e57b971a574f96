//! What every front end serves: one block device, shared by all connections.

use std::time::Instant;

use onefold_units::{IoFailed, Op, PAGE_BYTES, Status};

/// When the answer to a request may be sent: at once, or not before an instant that the latency
/// model computed. The work itself is done when the call returns.
pub type Due = Option<Instant>;

/// A run of bytes that are all mapped, or all unmapped (and so read as zeroes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length of the run in bytes, at least 1.
    pub len: u64,
    /// Whether the device stores data for it.
    pub mapped: bool,
}

/// What is called with a size when it has changed. It must not own a handle of the device, which would keep itself then.
pub type SizeWatcher = Box<dyn Fn(u64) + Send + Sync>;

/// A range of a remap that was carried out, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemappedRange {
    /// First byte of the target.
    pub target: u64,
    /// First byte of the source.
    pub source: u64,
    /// Bytes of each.
    pub len: u64,
    /// Whether the source is unmapped, at once or at the next flush.
    pub moves: bool,
    /// When the command arrived.
    pub start: Instant,
    /// When its answer may be sent.
    pub due: Due,
}

/// What is called with each range of a remap when it was carried out. It must not own a handle of the device, which would keep
/// itself then.
pub type RemapWatcher = Box<dyn Fn(&RemappedRange) + Send + Sync>;

/// A block device that several connections use at once.
///
/// Offsets and lengths are bytes at any alignment; the device reads and rewrites pages that a
/// request covers in part. A range that leaves the device is [`Status::InvalidField`], checked
/// before anything is done. A call returns when the data has moved; it never waits for modelled
/// time, which is what the returned [`Due`] is for. Errors are never [`Status::Ok`].
///
/// `flush` makes everything durable that any earlier call, on any thread, has returned from
/// (frontends.md, E1).
pub trait BlockDevice: Send + Sync {
    /// Size in bytes. Most keep it; others tell [`BlockDevice::watch_size`].
    fn size(&self) -> u64;

    /// Bytes of the smallest write that leaves nothing unused: smaller ones take as much room, or more.
    fn unit_bytes(&self) -> u64 {
        PAGE_BYTES
    }

    /// Has `watcher` called whenever the size has changed, as long as the device is open. It is called by who changes it,
    /// who waits until it returns.
    fn watch_size(&self, watcher: SizeWatcher) {
        drop(watcher);
    }

    /// Has `watcher` called with each range that was remapped, as long as the device is open. Devices without remaps never do.
    fn watch_remaps(&self, watcher: RemapWatcher) {
        drop(watcher);
    }

    /// Fills `buf` from `offset`.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status>;

    /// Stores `data` at `offset`; with `fua` durable on return.
    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status>;

    /// Makes every completed write durable. After a failure nothing may be assumed durable that was not before.
    fn flush(&self) -> Result<Due, Status>;

    /// Discards the range: it reads as zeroes afterwards.
    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status>;

    /// Makes the range read as zeroes; durable at the next flush, or on return with `fua`.
    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        may_unmap: bool,
        fua: bool,
    ) -> Result<Due, Status>;

    /// Makes the range read as zeroes and gives its space back, as a hole that is punched into a file. It may stand for
    /// zeroes that a file system wrote, so it is as durable as those.
    fn punch(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.write_zeroes(offset, len, true, false)
    }

    /// The run of equal allocation state that starts at `offset`, at most `len` long.
    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status>;

    /// Whether calls of this kind may wait for a drive. A front end then lets other requests of the same
    /// client go on meanwhile.
    fn waits(&self, op: Op) -> bool {
        let _ = op;
        false
    }

    /// Nobody serves the device any more: requests that wait for something beside it, such as space, fail from now on.
    fn stop_waiting(&self) {}

    /// The control export that belongs to the device, if it has one: commands that no block protocol
    /// carries are written there, 4 KiB each, and their replies read.
    fn control(&self) -> Option<Box<dyn BlockDevice>> {
        None
    }
}

/// What the status of a device means to a layer above it in the same process.
pub(crate) const fn to_layer_above(status: Status) -> IoFailed {
    match status {
        Status::NoSpace => IoFailed::NoSpace,
        _ => IoFailed::Error,
    }
}
