//! The edge between the front ends and a device: counts every request and records it if asked.
//!
//! One [`Edge`] handle per client. Handles share the device and the recorder; each has its own
//! counters, which outlive it in the totals.

mod counters;

use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onefold_units::{Op, PAGE_BYTES, Status};

pub use counters::{BUCKETS, EdgeCounts, Frontend, FrontendCounts, OpCounts, bucket_limit_ns};
use counters::{Counters, Ended, Retired};

use crate::block::{BlockDevice, Due, Extent};

struct Shared<D> {
    device: D,
    clients: Mutex<Vec<(Frontend, Arc<Counters>)>>,
    retired: Retired,
    next_client: AtomicU16,
}

impl<D> Shared<D> {
    fn clients(&self) -> std::sync::MutexGuard<'_, Vec<(Frontend, Arc<Counters>)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's handle of a served device.
pub struct Edge<D> {
    shared: Arc<Shared<D>>,
    counters: Arc<Counters>,
    client: u16,
}

impl<D: BlockDevice> Edge<D> {
    /// Puts the edge in front of a device. The handle counts as [`Frontend::Local`].
    pub fn new(device: D) -> Self {
        let shared = Arc::new(Shared {
            device,
            clients: Mutex::default(),
            retired: Retired::default(),
            next_client: AtomicU16::new(0),
        });
        Self::enter(shared, Frontend::Local)
    }

    /// A handle for one more client of the device.
    #[must_use]
    pub fn client(&self, frontend: Frontend) -> Self {
        Self::enter(Arc::clone(&self.shared), frontend)
    }

    fn enter(shared: Arc<Shared<D>>, frontend: Frontend) -> Self {
        let counters = Arc::new(Counters::default());
        shared.clients().push((frontend, Arc::clone(&counters)));
        let client = shared.next_client.fetch_add(1, Relaxed);
        Self { shared, counters, client }
    }

    /// The device behind the edge.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.shared.device
    }

    /// Number of this client in recordings; wraps after 65,536 clients.
    #[must_use]
    pub fn client_id(&self) -> u16 {
        self.client
    }

    /// What all clients did, those that are gone included.
    #[must_use]
    pub fn counts(&self) -> EdgeCounts {
        let clients = self.shared.clients();
        let mut counts = self.shared.retired.snapshot();
        for (frontend, live) in clients.iter() {
            counts.add(*frontend, &live.snapshot());
        }
        counts
    }

    /// Tells that a reply waits for its [`Due`]: the request counts as in flight.
    pub fn delayed(&self, op: Op) {
        self.counters.begin(op);
    }

    /// Tells that a reply reported with [`Edge::delayed`] was sent.
    pub fn replied(&self, op: Op) {
        self.counters.over(op);
    }

    fn count(
        &self,
        op: Op,
        range: (u64, u64),
        fua: bool,
        run: impl FnOnce(&D) -> Result<Due, Status>,
    ) -> Result<Due, Status> {
        let (offset, bytes) = range;
        self.counters.begin(op);
        let start = Instant::now();
        let result = run(&self.shared.device);
        let now = Instant::now();
        let due = result.ok().flatten().filter(|due| *due > now);
        let took = nanos(due.unwrap_or(now).saturating_duration_since(start));
        let unaligned = (offset | bytes) % PAGE_BYTES != 0;
        self.counters.end(&Ended { op, bytes, nanos: took, failed: result.is_err(), unaligned });
        self.counters.over(op);
        let _ = fua;
        result.map(|_| due)
    }
}

impl<D> Drop for Edge<D> {
    fn drop(&mut self) {
        let mut clients = self.shared.clients();
        if let Some(at) = clients.iter().position(|(_, live)| Arc::ptr_eq(live, &self.counters)) {
            let (frontend, live) = clients.swap_remove(at);
            // Under the lock, so that no report misses the counts or sees them twice.
            self.shared.retired.add(frontend, &live.snapshot());
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The returned [`Due`] is `Some` only if it lies in the future.
impl<D: BlockDevice> BlockDevice for Edge<D> {
    fn size(&self) -> u64 {
        self.shared.device.size()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        let len = u64::try_from(buf.len()).map_err(|_| Status::InvalidField)?;
        self.count(Op::Read, (offset, len), false, |device| device.read(offset, buf))
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        let len = u64::try_from(data.len()).map_err(|_| Status::InvalidField)?;
        self.count(Op::Write, (offset, len), fua, |device| device.write(offset, data, fua))
    }

    fn flush(&self) -> Result<Due, Status> {
        self.count(Op::Flush, (0, 0), false, BlockDevice::flush)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.count(Op::Trim, (offset, len), false, |device| device.trim(offset, len))
    }

    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        may_unmap: bool,
        fua: bool,
    ) -> Result<Due, Status> {
        let range = (offset, len);
        self.count(Op::WriteZeroes, range, fua, |d| d.write_zeroes(offset, len, may_unmap, fua))
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.shared.device.extent(offset, len)
    }
}
