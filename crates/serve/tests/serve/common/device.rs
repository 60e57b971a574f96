//! A memory device that tests can slow down, block and break.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use onefold_device::observed::{
    AreaStats, DeviceSnapshot, DeviceStats, SavedPages, VolumeSnapshot,
};
use onefold_device::{BlockDevice, Due, Extent, SizeWatcher};
use onefold_units::{Cause, CauseCounts, Op, Status};

use super::memory::MemoryDevice;

/// How a [`TestDevice`] behaves.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// Delay of the reply to a write at this offset or above.
    pub(crate) slow_from: AtomicU64,
    pub(crate) delay_us: AtomicU64,
    /// Every data operation fails with a media error.
    pub(crate) broken: AtomicBool,
    /// Calls wait for a drive, as the device says.
    pub(crate) waits: AtomicBool,
    /// Every data operation panics.
    pub(crate) panics: AtomicBool,
    pub(crate) calls: AtomicU64,
    pub(crate) flushes: AtomicU64,
    /// Bytes that are cut off.
    pub(crate) short_by: AtomicU64,
    watchers: Mutex<Vec<SizeWatcher>>,
    gate: Mutex<bool>,
    opened: Condvar,
    pub(crate) waiting: AtomicU64,
}

impl Behaviour {
    /// Makes writes wait inside the device, or lets them go on.
    pub(crate) fn block_writes(&self, block: bool) {
        *self.gate.lock().unwrap() = block;
        self.opened.notify_all();
    }

    /// Cuts off so many bytes, and tells.
    pub(crate) fn shorten(&self, by: u64, left: u64) {
        self.short_by.store(by, Ordering::SeqCst);
        self.watchers.lock().unwrap().iter().for_each(|watcher| watcher(left));
    }

    fn pass(&self) {
        let mut blocked = self.gate.lock().unwrap();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while *blocked {
            blocked = self.opened.wait(blocked).unwrap();
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics.load(Ordering::SeqCst), "the device panics, as the test wants it to");
        if self.broken.load(Ordering::SeqCst) { Err(Status::MediaError) } else { Ok(()) }
    }

    fn due(&self, offset: u64) -> Due {
        let delay = self.delay_us.load(Ordering::SeqCst);
        (delay > 0 && offset >= self.slow_from.load(Ordering::SeqCst))
            .then(|| Instant::now() + Duration::from_micros(delay))
    }
}

/// Memory with a [`Behaviour`].
pub(crate) struct TestDevice {
    memory: MemoryDevice,
    behaviour: Arc<Behaviour>,
}

impl TestDevice {
    pub(crate) fn new(size: u64) -> (Self, Arc<Behaviour>) {
        let behaviour = Arc::new(Behaviour::default());
        (Self { memory: MemoryDevice::new(size), behaviour: Arc::clone(&behaviour) }, behaviour)
    }
}

impl DeviceStats for TestDevice {
    fn snapshot(&self) -> Option<DeviceSnapshot> {
        let mut pages = CauseCounts::default();
        pages.add(Cause::User, 3);
        pages.add(Cause::Gc, 1);
        Some(DeviceSnapshot {
            flash: true,
            volume: Some(VolumeSnapshot {
                sent_bytes: vec![("user", 12_288), ("header", 4096)],
                free_log_segments: 7,
                events: vec![("checkpoints", 2)],
                ..VolumeSnapshot::default()
            }),
            host_written_bytes: 12_288,
            remap_pages: [4, 5, 6],
            saved_pages: SavedPages { copy_read: 7, copy_write: 8, zero: 9 },
            nand_written_pages: pages,
            write_amplification: Some(4.0 / 3.0),
            buffer_policy: Some("pt-lru:p=1/2".to_owned()),
            buffer_areas: vec![AreaStats {
                name: "dirty",
                dirty_evictions: 5,
                flushed: 2,
                ..AreaStats::default()
            }],
            ..DeviceSnapshot::default()
        })
    }
}

impl BlockDevice for TestDevice {
    fn size(&self) -> u64 {
        self.memory.size() - self.behaviour.short_by.load(Ordering::SeqCst)
    }

    fn unit_bytes(&self) -> u64 {
        16_384
    }

    fn watch_size(&self, watcher: SizeWatcher) {
        self.behaviour.watchers.lock().unwrap().push(watcher);
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.behaviour.check()?;
        self.memory.read(offset, buf)?;
        Ok(self.behaviour.due(offset))
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<Due, Status> {
        self.behaviour.check()?;
        self.behaviour.pass();
        self.memory.write(offset, data, fua)?;
        Ok(self.behaviour.due(offset))
    }

    fn flush(&self) -> Result<Due, Status> {
        self.behaviour.flushes.fetch_add(1, Ordering::SeqCst);
        self.memory.flush()
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.behaviour.check()?;
        self.memory.trim(offset, len)
    }

    fn write_zeroes(&self, offset: u64, len: u64, unmap: bool, fua: bool) -> Result<Due, Status> {
        self.behaviour.check()?;
        self.memory.write_zeroes(offset, len, unmap, fua)
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        self.memory.extent(offset, len)
    }

    fn waits(&self, _: Op) -> bool {
        self.behaviour.waits.load(Ordering::SeqCst)
    }
}
