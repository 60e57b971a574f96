//! Recording of requests in the format OFT (traces.md, section 5).
//!
//! I/O threads put records into rings and never wait: a full ring drops them and counts. A writer
//! thread turns them into blocks, at the latest a second after the oldest record, so that a kill
//! loses no more than that.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onefold_trace::oft::{Encoder, FLAG_BEHIND_LOOP, Header};
use onefold_trace::{Flags, Record, TraceOp};
use onefold_units::{Op, Status};

use super::nanos;
use super::ring::{Entry, Ring};
use crate::block::{RemapWatcher, RemappedRange};

/// How often the writer empties the rings: far less than the time a ring lasts.
const PERIOD: Duration = Duration::from_millis(20);
/// Oldest record that may be lost by a kill.
const BLOCK_AGE: Duration = Duration::from_secs(1);

/// The client of remaps in a recording: they come through a control export or socket, which nothing
/// else does.
const REMAPS: u16 = u16::MAX;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The rings of this thread, by recorder. Few: a thread serves one device.
    static RINGS: RefCell<Vec<(u64, Arc<Ring>)>> = const { RefCell::new(Vec::new()) };
}

/// What a recording says about the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Size in bytes.
    pub device_bytes: u64,
    /// UUID of the device, zero if it has none.
    pub device_uuid: [u8; 16],
    /// Bytes of a logical block, 512 or 4096.
    pub lba_bytes: u32,
    /// Whether the requests come through a loop device, which splits them and turns FUA into
    /// flushes.
    pub behind_loop: bool,
}

/// How much was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Records written.
    pub records: u64,
    /// Records dropped because a ring was full or the file could not be written.
    pub dropped: u64,
}

struct Shared {
    id: u64,
    start: Instant,
    rings: Mutex<Vec<Arc<Ring>>>,
    stopping: AtomicBool,
    records: AtomicU64,
    dropped: AtomicU64,
}

impl Shared {
    fn rings(&self) -> MutexGuard<'_, Vec<Arc<Ring>>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) -> Arc<Ring> {
        let ring = Arc::new(Ring::new());
        self.rings().push(Arc::clone(&ring));
        ring
    }

    /// When something arrived, in nanoseconds of the recording.
    fn arrival_ns(&self, start: Instant) -> u64 {
        nanos(start.saturating_duration_since(self.start))
    }

    fn record(&self, entry: &Entry) {
        if self.stopping.load(Relaxed) {
            return;
        }
        RINGS.with_borrow_mut(|rings| {
            if let Some((_, ring)) = rings.iter().find(|(id, _)| *id == self.id) {
                return ring.push(entry);
            }
            let ring = self.ring();
            ring.push(entry);
            // Rings of recorders that are gone have no other owner.
            rings.retain(|(_, ring)| Arc::strong_count(ring) > 1);
            rings.push((self.id, ring));
        });
    }

    /// The record of a range that was remapped.
    fn record_remap(&self, remapped: &RemappedRange) {
        let RemappedRange { target, source, len, moves, start, due } = *remapped;
        let now = Instant::now();
        let end = due.filter(|due| *due > now).unwrap_or(now);
        self.record(&Entry {
            arrival_ns: self.arrival_ns(start),
            latency_ns: nanos(end.saturating_duration_since(start)),
            offset: target,
            len,
            aux: source,
            op: TraceOp::Remap.code(),
            flags: if moves { Flags::MOVE } else { Flags::NONE }.bits(),
            status: code(Status::Ok),
            client: REMAPS,
        });
    }
}

/// Records what passes an [`super::Observed`].
pub struct Recorder {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

/// A finished request, with what is recorded of it.
pub(super) struct Finished {
    pub op: Op,
    pub offset: u64,
    pub len: u64,
    pub fua: bool,
    pub no_unmap: bool,
    pub status: Status,
    pub start: Instant,
    pub latency_ns: u64,
    pub client: u16,
}

impl Recorder {
    /// Starts a recording into `sink`, which should be a file without a buffer of its own: what is
    /// written to it survives a kill of the process.
    pub fn start(mut sink: Box<dyn Write + Send>, device: &Recorded) -> io::Result<Self> {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = Header {
            flags: if device.behind_loop { FLAG_BEHIND_LOOP } else { 0 },
            epoch_unix_ns: nanos(epoch),
            device_bytes: device.device_bytes,
            device_uuid: device.device_uuid,
            lba_bytes: device.lba_bytes,
        };
        let encoder = Encoder::new(header);
        sink.write_all(&encoder.header())?;
        let shared = Arc::new(Shared {
            id: NEXT_ID.fetch_add(1, Relaxed),
            start: Instant::now(),
            rings: Mutex::default(),
            stopping: AtomicBool::new(false),
            records: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let writer = Writer { shared: Arc::clone(&shared), encoder, sink, block: Vec::new() };
        let thread =
            std::thread::Builder::new().name("recorder".into()).spawn(move || writer.run())?;
        Ok(Self { shared, writer: Mutex::new(Some(thread)) })
    }

    /// How much was recorded so far.
    #[must_use]
    pub fn counts(&self) -> RecordCounts {
        RecordCounts {
            records: self.shared.records.load(Relaxed),
            dropped: self.shared.dropped.load(Relaxed),
        }
    }

    /// Ends the recording with its end mark. Says what went wrong with the file; once only.
    pub fn finish(&self) -> io::Result<RecordCounts> {
        self.shared.stopping.store(true, Relaxed);
        let thread = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            thread.join().map_err(|_| io::Error::other("the recorder panicked"))??;
        }
        Ok(self.counts())
    }

    /// What records the remaps of a device.
    pub(super) fn of_remaps(&self) -> RemapWatcher {
        let shared = Arc::clone(&self.shared);
        Box::new(move |remapped| shared.record_remap(remapped))
    }

    pub(super) fn record(&self, finished: &Finished) {
        self.shared.record(&Entry {
            arrival_ns: self.shared.arrival_ns(finished.start),
            latency_ns: finished.latency_ns,
            offset: finished.offset,
            len: finished.len,
            aux: 0,
            op: trace_op(finished.op).code(),
            flags: flags(finished).bits(),
            status: code(finished.status),
            client: finished.client,
        });
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A caller that wants to know of errors calls `finish` itself.
        let _ = self.finish();
    }
}

const fn trace_op(op: Op) -> TraceOp {
    match op {
        Op::Read => TraceOp::Read,
        Op::Write => TraceOp::Write,
        Op::Flush => TraceOp::Flush,
        Op::Trim => TraceOp::Trim,
        Op::WriteZeroes => TraceOp::WriteZeroes,
    }
}

const fn flags(finished: &Finished) -> Flags {
    let mut flags = Flags::NONE;
    if finished.fua {
        flags = flags.with(Flags::FUA);
    }
    if finished.no_unmap {
        flags = flags.with(Flags::NO_UNMAP);
    }
    flags
}

/// The status of a record: 0 or the Linux error number that a block device would give.
const fn code(status: Status) -> u16 {
    match status {
        Status::Ok => 0,
        Status::InvalidField => 22,
        Status::NoSpace => 28,
        Status::MediaError | Status::Poisoned => 5,
    }
}

struct Writer {
    shared: Arc<Shared>,
    encoder: Encoder,
    sink: Box<dyn Write + Send>,
    block: Vec<u8>,
}

impl Writer {
    fn run(mut self) -> io::Result<()> {
        let result = self.write();
        if result.is_err() {
            // Nothing is recorded any more, but what is asked for still counts as dropped.
            while !self.shared.stopping.load(Relaxed) {
                self.discard();
                std::thread::park_timeout(PERIOD);
            }
            self.discard();
        }
        result
    }

    fn write(&mut self) -> io::Result<()> {
        let mut oldest = None;
        loop {
            // Read first: what was recorded before the recorder was stopped is still written.
            let stopping = self.shared.stopping.load(Relaxed);
            self.collect();
            if self.encoder.pending() == 0 {
                oldest = None;
            } else if oldest.get_or_insert_with(Instant::now).elapsed() >= BLOCK_AGE {
                self.encoder.flush(&mut self.block);
                oldest = None;
            }
            if stopping {
                self.encoder.finish(&mut self.block);
            }
            self.sink.write_all(&self.block)?;
            self.block.clear();
            if stopping {
                return self.sink.flush();
            }
            std::thread::park_timeout(PERIOD);
        }
    }

    /// Moves what is in the rings into blocks.
    fn collect(&mut self) {
        let (encoder, block) = (&mut self.encoder, &mut self.block);
        let mut records = 0;
        let mut dropped = 0;
        self.shared.rings().retain(|ring| {
            // Asked before the ring is emptied: a thread that is gone adds nothing after that.
            let orphan = Arc::strong_count(ring) == 1;
            // What that thread did before it let go of the ring is seen below.
            fence(Acquire);
            dropped += ring.take_dropped();
            ring.drain(|entry| {
                records += 1;
                encoder.push(&to_record(entry), block);
            });
            !orphan
        });
        encoder.add_dropped(dropped);
        self.shared.records.fetch_add(records, Relaxed);
        self.shared.dropped.fetch_add(dropped, Relaxed);
    }

    fn discard(&self) {
        let mut dropped = 0;
        for ring in self.shared.rings().iter() {
            dropped += ring.take_dropped();
            ring.drain(|_| dropped += 1);
        }
        self.shared.dropped.fetch_add(dropped, Relaxed);
    }
}

fn to_record(entry: &Entry) -> Record {
    let op = TraceOp::from_code(entry.op).unwrap_or(TraceOp::Read);
    Record {
        lat_ns: Some(entry.latency_ns),
        flags: Flags::from_bits(entry.flags),
        status: entry.status,
        client: entry.client,
        aux: entry.aux,
        ..Record::new(entry.arrival_ns, op, entry.offset, entry.len)
    }
}
