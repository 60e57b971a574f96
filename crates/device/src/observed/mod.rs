//! A device as front ends see it: every request is counted, and recorded or logged with its data if asked.
//!
//! One [`Observed`] handle per client. Handles share the device and the recorder; each has its own
//! counters, which outlive it in the totals.

mod counters;
mod edge;
mod power;
mod recorder;
mod ring;
mod stats;

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use onefold_units::{Op, PAGE_BYTES, Status};

pub use counters::{BUCKETS, Frontend, FrontendCounts, ObservedCounts, OpCounts, bucket_limit_ns};
use counters::{Counters, Ended, Retired};
use edge::Edge;
pub use onefold_buffer::AreaStats;
use power::{Kind, Power};
use recorder::Finished;
pub use recorder::{RecordCounts, Recorded, Recorder};
pub use stats::{DeviceSnapshot, DeviceStats, ImageSnapshot, SavedPages, VolumeSnapshot};

use crate::block::{BlockDevice, Due, Extent, RemapWatcher, SizeWatcher};
use crate::write_log::WriteLog;

struct Shared<D> {
    device: D,
    recorder: Option<Recorder>,
    log: Option<Edge>,
    /// Only where it may be cut: it costs each request a lock.
    power: OnceLock<Power>,
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
pub struct Observed<D> {
    shared: Arc<Shared<D>>,
    counters: Arc<Counters>,
    client: u16,
    /// Power cuts that this client knows of.
    known_cuts: AtomicU64,
}

impl<D: BlockDevice> Observed<D> {
    /// Observes a device. The handle counts as [`Frontend::Local`].
    pub fn new(device: D) -> Self {
        Self::open(device, None, None)
    }

    /// The same, recording every request.
    pub fn with_recorder(device: D, recorder: Recorder) -> Self {
        Self::open(device, Some(recorder), None)
    }

    /// The same, keeping what is written in a log as well.
    pub fn with_log(device: D, recorder: Recorder, log: WriteLog) -> Self {
        Self::open(device, Some(recorder), Some(Edge(log)))
    }

    fn open(device: D, recorder: Option<Recorder>, log: Option<Edge>) -> Self {
        let shared = Arc::new(Shared {
            device,
            recorder,
            log,
            power: OnceLock::new(),
            clients: Mutex::default(),
            retired: Retired::default(),
            next_client: AtomicU16::new(0),
        });
        if let Some(recorder) = &shared.recorder {
            shared.device.watch_remaps(recorder.of_remaps());
        }
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
        let known_cuts = AtomicU64::new(shared.power.get().map_or(0, Power::cuts));
        Self { shared, counters, client, known_cuts }
    }

    /// Lets the power of the device be cut while clients use it ([`Observed::cut_power`]): once so many writes were carried out, if
    /// that is given, the power goes and `tell` is called, which must see to the cut. To be called before there are clients.
    pub fn allow_cuts(&self, after_writes: Option<u64>, tell: impl FnOnce() + Send + 'static) {
        let tell: Box<dyn FnOnce() + Send> = Box::new(tell);
        // The first call counts.
        let _ = self.shared.power.set(Power::new(after_writes.map(|writes| (writes, tell))));
    }

    /// Cuts the power. `disconnect` is called once no request begins any more, and has the connections of clients ended; `cut` when
    /// none is executed any more. It says whether writes are gone that were answered.
    ///
    /// Requests in flight fail. So does the next flush of each client that keeps its handle, if writes are gone. Without
    /// [`Observed::allow_cuts`] requests go on meanwhile.
    pub fn cut_power<T>(&self, disconnect: impl FnOnce(), cut: impl FnOnce(&D) -> (T, bool)) -> T {
        let power = self.shared.power.get();
        power.inspect(|power| power.off());
        disconnect();
        power.inspect(|power| power.wait_until_still());
        let (done, took_writes) = cut(&self.shared.device);
        if let Some(power) = power {
            power.on(took_writes);
            // Whoever cuts the power knows.
            self.known_cuts.store(power.cuts(), Relaxed);
        }
        done
    }

    /// Requests that wait for the power fail now: nobody brings it back.
    pub fn stop_waiting(&self) {
        self.shared.power.get().inspect(|power| power.on(false));
        self.shared.device.stop_waiting();
    }

    /// The device itself.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.shared.device
    }

    /// The recorder, if requests are recorded.
    #[must_use]
    pub fn recorder(&self) -> Option<&Recorder> {
        self.shared.recorder.as_ref()
    }

    /// The log, if what is written is kept in one.
    #[must_use]
    pub fn log(&self) -> Option<&WriteLog> {
        self.shared.log.as_ref().map(|edge| &edge.0)
    }

    /// Number of this client in recordings; wraps after 65,536 clients.
    #[must_use]
    pub fn client_id(&self) -> u16 {
        self.client
    }

    /// What all clients did, those that are gone included.
    #[must_use]
    pub fn counts(&self) -> ObservedCounts {
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

    /// Tells that a reply reported with [`Observed::delayed`] was sent.
    pub fn replied(&self, op: Op) {
        self.counters.over(op);
    }

    fn count(
        &self,
        what: What,
        run: impl FnOnce(&D) -> Result<Due, Status>,
    ) -> Result<Due, Status> {
        let What { op, offset, len, fua, no_unmap } = what;
        self.counters.begin(op);
        let start = Instant::now();
        let result = self.powered(op, run);
        let now = Instant::now();
        self.counters.over(op);
        let due = result.ok().flatten().filter(|due| *due > now);
        let took = nanos(due.unwrap_or(now).saturating_duration_since(start));
        let unaligned = (offset | len) % PAGE_BYTES != 0;
        let ended = Ended { op, bytes: len, nanos: took, failed: result.is_err(), unaligned };
        self.counters.end(&ended);
        if let Some(recorder) = &self.shared.recorder {
            let (status, client) = (result.err().unwrap_or(Status::Ok), self.client);
            let latency_ns = took;
            recorder.record(&Finished {
                op,
                offset,
                len,
                fua,
                no_unmap,
                status,
                start,
                latency_ns,
                client,
            });
        }
        result.map(|_| due)
    }

    fn powered(&self, op: Op, run: impl FnOnce(&D) -> Result<Due, Status>) -> Result<Due, Status> {
        let device = &self.shared.device;
        let Some(power) = self.shared.power.get() else { return run(device) };
        let kind = match op {
            Op::Write => Kind::Write,
            Op::Flush => Kind::Flush,
            Op::Read | Op::Trim | Op::WriteZeroes => Kind::Other,
        };
        power.carry_out(kind, &self.known_cuts, || run(device))
    }

    /// Counts a request after which its range reads as zeroes.
    fn zeroed(
        &self,
        what: What,
        run: impl FnOnce(&D) -> Result<Due, Status>,
    ) -> Result<Due, Status> {
        let due = self.count(what, run)?;
        if let Some(log) = &self.shared.log {
            log.zeroed(&self.shared.device, what.offset, what.len, what.fua);
        }
        Ok(due)
    }
}

/// A request as it enters.
#[derive(Clone, Copy)]
struct What {
    op: Op,
    offset: u64,
    len: u64,
    fua: bool,
    no_unmap: bool,
}

impl What {
    fn new(op: Op, offset: u64, len: u64) -> Self {
        Self { op, offset, len, fua: false, no_unmap: false }
    }
}

impl<D> Drop for Observed<D> {
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
impl<D: BlockDevice> BlockDevice for Observed<D> {
    fn size(&self) -> u64 {
        self.shared.device.size()
    }

    fn unit_bytes(&self) -> u64 {
        self.shared.device.unit_bytes()
    }

    fn watch_size(&self, watcher: SizeWatcher) {
        self.shared.device.watch_size(watcher);
    }

    fn watch_remaps(&self, watcher: RemapWatcher) {
        self.shared.device.watch_remaps(watcher);
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        let len = u64::try_from(buf.len()).map_err(|_| Status::InvalidField)?;
        self.count(What::new(Op::Read, offset, len), |device| device.read(offset, buf))
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        let len = u64::try_from(data.len()).map_err(|_| Status::InvalidField)?;
        let what = What { fua, ..What::new(Op::Write, offset, len) };
        let written = self.count(what, |device| device.write(offset, data, fua))?;
        if let Some(log) = &self.shared.log {
            log.wrote(&self.shared.device, offset, data, fua);
        }
        Ok(written)
    }

    fn flush(&self) -> Result<Due, Status> {
        let covered = self.shared.log.as_ref().map(|log| (log, log.covered()));
        let flushed = self.count(What::new(Op::Flush, 0, 0), BlockDevice::flush);
        if let Some((log, covered)) = covered {
            log.flushed(covered, flushed.is_ok());
        }
        flushed
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        let what = What::new(Op::Trim, offset, len);
        self.zeroed(what, |device| device.trim(offset, len))
    }

    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        may_unmap: bool,
        fua: bool,
    ) -> Result<Due, Status> {
        let what = What { fua, no_unmap: !may_unmap, ..What::new(Op::WriteZeroes, offset, len) };
        self.zeroed(what, |device| device.write_zeroes(offset, len, may_unmap, fua))
    }

    /// Counted as a trim: that is what most of them are.
    fn punch(&self, offset: u64, len: u64) -> Result<Due, Status> {
        let what = What::new(Op::Trim, offset, len);
        self.zeroed(what, |device| device.punch(offset, len))
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.shared.device.extent(offset, len)
    }

    fn waits(&self, op: Op) -> bool {
        self.shared.device.waits(op)
    }

    fn control(&self) -> Option<Box<dyn BlockDevice>> {
        self.shared.device.control()
    }
}

#[cfg(test)]
mod tests;
