use std::cell::{Cell, RefCell};

use onefold_units::Rng;

use super::*;
use crate::header::FrameBytes;
use crate::wal::AlignedWal;

const BLOCKS: usize = 1024;

/// A disk in memory whose power fails: of the blocks written since the last sync some are kept.
struct Memory {
    now: RefCell<Vec<u8>>,
    durable: RefCell<Vec<u8>>,
    reads: Cell<u32>,
    writes: Cell<u32>,
    /// The control export is that of another disk, which takes remaps and does nothing here.
    is_foreign: bool,
}

impl Memory {
    fn new() -> Self {
        let bytes = vec![0xA5; BLOCKS * BLOCK];
        let (now, durable) = (RefCell::new(bytes.clone()), RefCell::new(bytes));
        let (reads, writes) = (Cell::new(0), Cell::new(0));
        Self { now, durable, reads, writes, is_foreign: false }
    }

    fn cut(&self, random: &mut Rng) {
        let (mut now, mut durable) = (self.now.borrow_mut(), self.durable.borrow_mut());
        for (new, old) in now.chunks_mut(BLOCK).zip(durable.chunks_mut(BLOCK)) {
            if random.below(2) == 0 {
                new.copy_from_slice(old);
            } else {
                old.copy_from_slice(new);
            }
        }
    }
}

impl Blocks for Memory {
    fn bytes(&self) -> u64 {
        u64_from(BLOCKS * BLOCK)
    }

    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        assert!(at.is_multiple_of(BLOCK_BYTES) && buffer.len().is_multiple_of(BLOCK));
        self.reads.set(self.reads.get() + 1);
        buffer.copy_from_slice(&self.now.borrow()[index64(at)..][..buffer.len()]);
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        assert!(at.is_multiple_of(BLOCK_BYTES) && bytes.len().is_multiple_of(BLOCK));
        self.writes.set(self.writes.get() + 1);
        self.now.borrow_mut()[index64(at)..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.durable.borrow_mut().copy_from_slice(&self.now.borrow());
        Ok(())
    }

    fn remap(&self, ranges: &[VectorRange]) -> io::Result<()> {
        if self.is_foreign {
            return Ok(());
        }
        for range in ranges {
            let [dst, src] = [range.dst, range.src].map(|block| index64(block) * BLOCK);
            let bytes = index64(u64::from(range.len)) * BLOCK;
            for disk in [&self.now, &self.durable] {
                // The source is durable with the remap, as the device promises.
                let from = self.now.borrow()[src..src + bytes].to_vec();
                disk.borrow_mut()[src..src + bytes].copy_from_slice(&from);
                disk.borrow_mut()[dst..dst + bytes].copy_from_slice(&from);
            }
        }
        Ok(())
    }

    fn is_equal(&self, range: VectorRange) -> io::Result<bool> {
        let now = self.now.borrow();
        let block = |at: u64| &now[index64(at) * BLOCK..][..BLOCK];
        Ok(!self.is_foreign && block(range.dst) == block(range.src))
    }
}

const WAL_BYTES: u64 = WAL_BYTES_MIN;

fn device() -> Device<Memory> {
    Device::format(Memory::new(), 77, WAL_BYTES).unwrap()
}

/// The database as it is after the disk was opened anew.
fn reopen(device: Device<Memory>) -> Device<Memory> {
    let Found::Label(label) = look(&device.blocks).unwrap() else { panic!("no label") };
    Device::with_label(device.blocks, label).unwrap().unwrap()
}

fn read(medium: &dyn Medium, at: u64, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    medium.read_at(&mut buffer, at).unwrap();
    buffer
}

/// A frame header, with the mark of a commit or without.
fn frame(fill: u8, is_commit: bool) -> FrameBytes {
    let mut frame = [fill; 24];
    frame[4..8].copy_from_slice(&u32::from(is_commit).to_be_bytes());
    frame
}

#[test]
fn it_reads_what_was_written() {
    let mut random = Rng::new(3);
    let device = device();
    let (mut database, mut wal) = (vec![0; 1 << 20], vec![0; index64(WAL_BYTES)]);
    device.wal().read_at(&mut wal, 0).unwrap();
    device.database().truncate(1 << 20).unwrap();
    device.database().read_at(&mut database, 0).unwrap();
    for step in 0..3000 {
        let bytes = index64([24, 512, 4096, 1 + random.below(9000)][index64(random.below(4))]);
        let at = random.below((1 << 20) - 9001);
        let at = if random.below(2) == 0 { at / BLOCK_BYTES * BLOCK_BYTES } else { at };
        let fill = random.next_u64().to_le_bytes()[0];
        let region = index64(at)..index64(at) + bytes;
        match random.below(4) {
            0 => {
                device.wal().write_at(&vec![fill; bytes], at).unwrap();
                wal[region].fill(fill);
            }
            1 => {
                device.database().write_at(&vec![fill; bytes], at).unwrap();
                database[region].fill(fill);
            }
            2 => assert!(read(&device.wal(), at, bytes) == wal[region], "step {step}"),
            _ => assert!(read(&device.database(), at, bytes) == database[region], "step {step}"),
        }
    }
    device.sync().unwrap();
    let device = reopen(device);
    assert!(read(&device.wal(), 0, wal.len()) == wal);
    assert!(read(&device.database(), 0, database.len()) == database);
}

/// What was synced is there after a power cut, and a block that was written since is old or new.
#[test]
fn a_power_cut_takes_nothing_that_was_synced() {
    for seed in 0..200 {
        let mut random = Rng::new(seed);
        let mut device = device();
        let (mut synced, mut written) = (vec![0_u8; 170], vec![0_u8; 170]);
        for _ in 0..6 {
            for _ in 0..random.below(9) {
                let n = index64(random.below(170));
                let fill = 1 + random.next_u64().to_le_bytes()[0] / 2;
                let header = frame(fill, random.below(4) == 0);
                device.wal().write_header(&header, BLOCK_BYTES + 24 * u64_from(n)).unwrap();
                written[n] = fill;
            }
            if random.below(2) == 0 {
                device.sync().unwrap();
                synced.clone_from(&written);
            }
            let is_cut = random.below(3) == 0;
            if is_cut {
                device.blocks.cut(&mut random);
                device = reopen(device);
            }
            for n in 0..170 {
                let found = read(&device.wal(), BLOCK_BYTES + 24 * u64_from(n), 24)[0];
                let is_old = synced[n] == 0 || found == synced[n];
                assert!(is_old || found == written[n], "seed {seed}, frame {n}: {found}");
                assert!(is_cut || written[n] == 0 || found == written[n], "seed {seed}: {found}");
                if written[n] != 0 && is_cut {
                    (synced[n], written[n]) = (found, found);
                }
            }
        }
    }
}

/// Without that each frame would program its block of headers, and each page would wait for the one before.
#[test]
fn a_transaction_is_two_writes() {
    let device = device();
    let before = device.blocks.writes.get();
    for n in 0..50_u8 {
        let at = BLOCK_BYTES + 24 * u64::from(n);
        device.wal().write_header(&frame(n, n == 49), at).unwrap();
        device.wal().write_at(&[n; BLOCK], 2 * BLOCK_BYTES + BLOCK_BYTES * u64::from(n)).unwrap();
    }
    // Its pages, and its headers.
    assert_eq!(device.blocks.writes.get() - before, 2);
    // A header of the commit that is written again has no page behind it.
    device.wal().write_header(&frame(49, true), BLOCK_BYTES + 24 * 49).unwrap();
    assert_eq!(device.blocks.writes.get() - before, 3);
    // A process that dies after the commit has it written: another one reads it.
    let other = reopen(device);
    assert_eq!(read(&other.wal(), BLOCK_BYTES + 24 * 49, 1), [49]);
    assert!((0..50).all(|n| read(&other.wal(), BLOCK_BYTES * (2 + n), 1) == [n.to_le_bytes()[0]]));
}

/// A commit of one page is one request, and nothing is read for it.
#[test]
fn a_pair_is_one_write() {
    let (device, layout) = (device(), Layout::new(4096).unwrap().paired());
    for n in 0..9 {
        let before = (device.blocks.writes.get(), device.blocks.reads.get());
        let mut block = [0; BLOCK];
        block[..24].copy_from_slice(&frame(n, true));
        device.wal().write_header(&block, layout.header_at(n.into())).unwrap();
        device.wal().write_at(&[n; BLOCK], layout.page_at(n.into())).unwrap();
        let after = (device.blocks.writes.get(), device.blocks.reads.get());
        assert_eq!(after, (before.0 + 1, before.1), "pair {n}");
    }
    let other = reopen(device);
    assert_eq!(read(&other.wal(), layout.header_at(8), 1), [8]);
    assert_eq!(read(&other.wal(), layout.page_at(8), BLOCK), [8; BLOCK]);
}

/// The WAL of a device has a fixed size, of which pairs take no large part.
#[test]
fn a_short_wal_is_not_paired() {
    let mib = |mib: u64| Device::format(Memory::new(), 77, mib << 20).unwrap();
    for (bytes, is_paired) in [(2, false), (31, false), (32, true), (256, true)] {
        assert_eq!(mib(bytes).wal().may_waste(4 << 20), is_paired, "{bytes} MiB");
    }
}

#[test]
fn the_size_is_durable_with_the_next_sync() {
    let mut random = Rng::new(1);
    let device = device();
    assert_eq!(device.database().bytes(), Ok(0));
    device.database().write_at(&[1; 2 * BLOCK], BLOCK_BYTES).unwrap();
    assert_eq!(device.database().bytes(), Ok(3 * BLOCK_BYTES));
    assert_eq!(device.database().read_at(&mut [0; BLOCK], 3 * BLOCK_BYTES), Ok(false));
    device.sync().unwrap();
    device.database().truncate(BLOCK_BYTES).unwrap();
    device.sync().unwrap();
    device.blocks.cut(&mut random);
    let device = reopen(device);
    assert_eq!(device.database().bytes(), Ok(BLOCK_BYTES));
    assert_eq!(device.database().read_at(&mut [0; 2 * BLOCK], 0), Ok(false));
    let max = device.database_bytes_max();
    assert_eq!(device.database().write_at(&[1; BLOCK], max), Err(Code::FULL));
    assert_eq!(device.wal().write_at(&[1; BLOCK], WAL_BYTES), Err(Code::FULL));
    assert_eq!(device.wal().read_at(&mut [1; BLOCK], WAL_BYTES), Ok(false));
}

const RUNS: [Run; 2] =
    [Run { page: 9, frame: 2, pages: 2 }, Run { page: 30, frame: 171, pages: 1 }];

fn write_frames(device: &Device<Memory>, layout: Layout) {
    for n in 0..200_u8 {
        device.wal().write_at(&[n; BLOCK], layout.page_at(n.into())).unwrap();
    }
    device.settle().unwrap();
}

#[test]
fn runs_become_pages_of_the_database() {
    let (device, layout) = (device(), Layout::new(4096).unwrap());
    write_frames(&device, layout);
    device.clone_runs(layout, &RUNS, &[2; BLOCK]).unwrap();
    assert_eq!(device.database().bytes(), Ok(30 * BLOCK_BYTES));
    device.blocks.cut(&mut Rng::new(2));
    for (page, fill) in [(9, 2), (10, 3), (30, 171)] {
        assert!(read(&device.database(), (page - 1) * BLOCK_BYTES, BLOCK) == [fill; BLOCK]);
    }
}

#[test]
fn a_control_export_of_another_disk_is_found() {
    let (mut device, layout) = (device(), Layout::new(4096).unwrap());
    write_frames(&device, layout);
    device.blocks.is_foreign = true;
    // The page was not there, so SQLite's write has to come.
    assert!(device.clone_runs(layout, &RUNS, &[2; BLOCK]).is_err());
    let Found::Label(label) = look(&device.blocks).unwrap() else { panic!("no label") };
    assert!(Device::with_label(device.blocks, label).unwrap().is_none());
}

#[test]
fn a_deleted_wal_is_empty() {
    let device = device();
    let (mut view, page) = (AlignedWal::default(), [5; BLOCK]);
    let mut header = header::empty();
    header[4..8].copy_from_slice(&3_007_000_u32.to_be_bytes());
    view.write(&device.wal(), &header, 0).unwrap();
    view.write(&device.wal(), &[frame(1, true).as_slice(), &page].concat(), 32).unwrap();
    assert!(AlignedWal::default().bytes(&device.wal()).unwrap() > 32);
    device.delete_wal().unwrap();
    device.blocks.cut(&mut Rng::new(4));
    let device = reopen(device);
    assert_eq!(AlignedWal::default().bytes(&device.wal()), Ok(0));
}

#[test]
fn a_label_that_does_not_fit_is_refused() {
    let (label, disk) = (Label { id: 1, wal_bytes: WAL_BYTES_MIN, database_bytes: 512 }, 4 << 20);
    assert!(is_sound(&label, disk));
    assert!(!is_sound(&Label { wal_bytes: WAL_BYTES_MIN - BLOCK_BYTES, ..label }, disk));
    assert!(!is_sound(&Label { wal_bytes: WAL_BYTES_MIN + 512, ..label }, disk));
    assert!(!is_sound(&Label { wal_bytes: u64::MAX - 4095, ..label }, disk));
    assert!(!is_sound(&Label { database_bytes: u64::MAX, ..label }, disk));
    assert!(is_sound(&Label { database_bytes: disk - WAL_AT - WAL_BYTES_MIN, ..label }, disk));
    assert!(!is_sound(&Label { database_bytes: disk - WAL_AT - WAL_BYTES_MIN + 1, ..label }, disk));
}
