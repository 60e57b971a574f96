use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onefold_trace::{Flags, Format, FormatSpec, Record, TraceOp, read_all};
use onefold_units::{Op, Status};

use super::{Frontend, Observed, Recorded, Recorder};
use crate::block::{BlockDevice, Due, Extent};

const SIZE: u64 = 1 << 20;
const DELAY: Duration = Duration::from_secs(5);

/// Stores nothing, answers by the book; writes at the end of the device are slow.
struct Null;

impl Null {
    fn check(offset: u64, len: u64) -> Result<Due, Status> {
        match offset.checked_add(len) {
            Some(SIZE) => Ok(Some(Instant::now() + DELAY)),
            Some(end) if end < SIZE => Ok(None),
            _ => Err(Status::InvalidField),
        }
    }
}

impl BlockDevice for Null {
    fn size(&self) -> u64 {
        SIZE
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        Self::check(offset, buf.len() as u64)
    }
    fn write(&self, offset: u64, data: &[u8], _: bool) -> Result<Due, Status> {
        Self::check(offset, data.len() as u64)
    }
    fn flush(&self) -> Result<Due, Status> {
        Ok(Some(Instant::now()))
    }
    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        Self::check(offset, len)
    }
    fn write_zeroes(&self, offset: u64, len: u64, _: bool, _: bool) -> Result<Due, Status> {
        Self::check(offset, len)
    }
    fn extent(&self, _: u64, len: u64) -> Result<Extent, Status> {
        Ok(Extent { len, mapped: true })
    }
}

/// A file that the test can look into while it is written.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Vec<u8>>>);

impl Write for Shelf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shelf {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

const DEVICE: Recorded =
    Recorded { device_bytes: SIZE, device_uuid: [7; 16], lba_bytes: 4096, behind_loop: false };

fn records(file: &[u8]) -> Vec<Record> {
    read_all(FormatSpec::new(Format::Oft), file).unwrap().0
}

#[test]
fn requests_are_counted_by_front_end_and_outlive_their_client() {
    let observed = Observed::new(Null);
    let nbd = observed.client(Frontend::Nbd);
    assert_eq!(nbd.write(4096, &[0; 4096], false), Ok(None));
    assert_eq!(nbd.write(1, &[0; 512], true), Ok(None));
    assert_eq!(nbd.read(SIZE, &mut [0; 512]), Err(Status::InvalidField));
    nbd.delayed(Op::Write);
    let live = *observed.counts().frontend(Frontend::Nbd);
    assert_eq!((live.op(Op::Write).requests, live.op(Op::Write).bytes), (2, 4608));
    assert_eq!((live.op(Op::Read).errors, live.op(Op::Read).bytes), (1, 0));
    assert_eq!((live.unaligned, live.op(Op::Write).inflight), (2, 1));
    assert_eq!(live.op(Op::Write).buckets.iter().sum::<u64>(), 2);
    drop(nbd);
    let gone = *observed.counts().frontend(Frontend::Nbd);
    assert_eq!(gone.op(Op::Write).requests, 2);
    assert_eq!(gone.op(Op::Write).inflight, 0, "the reply died with its client");
    assert_eq!(observed.counts().frontend(Frontend::Fuse), &super::FrontendCounts::default());
}

#[test]
fn modelled_time_counts_as_latency_and_past_instants_are_dropped() {
    let observed = Observed::new(Null);
    assert_eq!(observed.flush(), Ok(None), "an instant in the past needs no waiting");
    let due = observed.write(SIZE - 512, &[0; 512], false).unwrap().unwrap();
    assert!(due > Instant::now());
    let counts = observed.counts();
    let writes = counts.frontend(Frontend::Local).op(Op::Write);
    assert!(u128::from(writes.nanos) >= DELAY.as_nanos());
}

#[test]
fn a_recording_holds_every_request_with_its_client_and_flags() {
    let shelf = Shelf::default();
    let recorder = Recorder::start(Box::new(shelf.clone()), &DEVICE).unwrap();
    let observed = Observed::with_recorder(Null, recorder);
    let client = observed.client(Frontend::Nbd);
    client.write(8192, &[0; 4096], true).unwrap();
    client.write_zeroes(0, 4096, false, false).unwrap();
    client.trim(4096, 4096).unwrap();
    client.read(SIZE, &mut [0; 512]).unwrap_err();
    // Another thread has a ring of its own.
    std::thread::scope(|scope| scope.spawn(|| observed.flush().unwrap()).join().unwrap());
    client.write(SIZE - 512, &[0; 512], false).unwrap();
    let counts = observed.recorder().unwrap().finish().unwrap();
    assert_eq!((counts.records, counts.dropped), (6, 0));
    assert_eq!(
        observed.recorder().unwrap().finish().unwrap(),
        counts,
        "finishing twice is harmless"
    );

    let mut found = records(&shelf.bytes());
    found.sort_by_key(|record| record.t_ns);
    let short: Vec<_> =
        found.iter().map(|r| (r.op, r.offset, r.len, r.flags, r.status, r.client)).collect();
    let id = client.client_id();
    assert_eq!(
        short,
        [
            (TraceOp::Write, 8192, 4096, Flags::FUA, 0, id),
            (TraceOp::WriteZeroes, 0, 4096, Flags::NO_UNMAP, 0, id),
            (TraceOp::Trim, 4096, 4096, Flags::NONE, 0, id),
            (TraceOp::Read, SIZE, 512, Flags::NONE, 22, id),
            (TraceOp::Flush, 0, 0, Flags::NONE, 0, observed.client_id()),
            (TraceOp::Write, SIZE - 512, 512, Flags::NONE, 0, id),
        ]
    );
    assert!(u128::from(found[5].lat_ns.unwrap()) >= DELAY.as_nanos());
}

/// A killed process leaves what was written: everything older than about a second.
#[test]
fn a_recording_without_its_end_can_be_read() {
    let shelf = Shelf::default();
    let recorder = Recorder::start(Box::new(shelf.clone()), &DEVICE).unwrap();
    let observed = Observed::with_recorder(Null, recorder);
    for page in 0..3000 {
        observed.write(page % 200 * 4096, &[0; 4096], false).unwrap();
    }
    // Two full blocks are written at once, the rest after a second.
    for expected in [2730, 3000] {
        let start = Instant::now();
        while records(&shelf.bytes()).len() < expected {
            assert!(start.elapsed() < Duration::from_secs(20), "not written");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let killed = shelf.bytes();
    // Cut anywhere, only the last block is lost.
    assert_eq!(records(&killed[..killed.len() - 1]).len(), 2730);
    observed.recorder().unwrap().finish().unwrap();
    assert_eq!(records(&shelf.bytes()).len(), 3000);
}

/// Accepts a header and no more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_drops_and_counts_but_serves() {
    let recorder = Recorder::start(Box::new(Full(64)), &DEVICE).unwrap();
    let observed = Observed::with_recorder(Null, recorder);
    let mut writes = 0;
    while observed.recorder().unwrap().counts().dropped == 0 {
        for _ in 0..1400 {
            observed.write(0, &[0; 4096], false).unwrap();
            writes += 1;
        }
        assert!(writes < 10_000_000, "nothing was counted as dropped");
    }
    let error = observed.recorder().unwrap().finish().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
