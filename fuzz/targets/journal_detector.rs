//! Whatever a device holds and the host writes, the journal detector ends, takes bounded reads and memory, and names only
//! blocks of the device. The input is a size, a choice, and pieces of the device: place in units of 16 B (4 bytes), length
//! in such units (1 byte), bytes.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use onefold_fuzz::memory::{Counting, live};
use onefold_fuzz::{choice, exactly};
use onefold_journal::{Detector, Output, READS_MAX, Setting, Survey, Table, Write};
use onefold_units::{Lba, Nanos};

#[global_allocator]
static MEMORY: Counting = Counting;

/// Blocks of a reading with what holds them together, and the ranges of a result.
const MEMORY_MAX: usize = 6 << 20;

const UNIT: usize = 16;

#[derive(Default)]
struct Disk(BTreeMap<u64, [u8; 4096]>);

impl Disk {
    fn write(&mut self, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            self.0.entry(at / 4096).or_insert([0; 4096])[(at % 4096) as usize] = *byte;
        }
    }

    fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        let byte =
            |at: u64| self.0.get(&(at / 4096)).map_or(0, |block| block[(at % 4096) as usize]);
        (at..).take(len).map(byte).collect()
    }

    /// Makes the checksums of a GPT right: nothing behind them would ever run.
    fn seal_gpt(&mut self) {
        let header = self.bytes(512, 92);
        let word = |at: usize| u32::from_le_bytes(exactly(&header[at..at + 4]));
        let (count, size) = (word(80) as usize, word(84) as usize);
        let entries = self.bytes(word(72) as u64 * 512, count.saturating_mul(size).min(65536));
        self.write(512 + 88, &crc32(&entries).to_le_bytes());
        self.write(512 + 12, &92_u32.to_le_bytes());
        self.write(512 + 16, &[0; 4]);
        let sum = crc32(&self.bytes(512, 92));
        self.write(512 + 16, &sum.to_le_bytes());
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |c: u32, _| if c & 1 == 1 { c >> 1 ^ 0xEDB8_8320 } else { c >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fuzz_target!(|data: &[u8]| {
    let Some((size, rest)) = choice(data) else { return };
    let Some((options, mut rest)) = choice(rest) else { return };
    // 4 KiB to 64 TiB, and not a power of two.
    let blocks = (1_u64 << (size % 35)) + u64::from(size / 35);
    let mut disk = Disk::default();
    let mut writes = Vec::new();
    while rest.len() >= 5 {
        let at = u64::from(u32::from_le_bytes(exactly(&rest[..4]))) * UNIT as u64;
        let len = (usize::from(rest[4]) * UNIT).min(rest.len() - 5);
        disk.write(at, &rest[5..5 + len]);
        writes.push((at, &rest[5..5 + len]));
        rest = &rest[5 + len..];
    }
    if options & 1 == 1 {
        disk.seal_gpt();
    }
    read(&disk, blocks);
    watch(&disk, blocks, &writes, options);
});

fn read(disk: &Disk, blocks: u64) {
    let before = live();
    let mut survey = Survey::new(blocks);
    let mut asked = 0;
    let mut last_in_use = 0;
    while let Some(lba) = survey.ask() {
        assert!(lba.raw() < blocks);
        asked += 1;
        let block = disk.0.get(&lba.raw()).unwrap_or(&[0; 4096]);
        survey.supply(lba, Some(block));
        last_in_use = live() - before;
        assert!(last_in_use <= MEMORY_MAX, "{last_in_use} bytes after {asked} reads");
    }
    assert!(asked <= READS_MAX, "{asked} reads");
    let found = survey.finish().expect("nothing is asked for");
    for range in &found.ranges {
        assert!(range.first < range.end && range.end.raw() <= blocks, "{range}");
    }
    for journal in &found.journals {
        for piece in journal.log() {
            assert!(piece.end() <= blocks * 4096, "{piece:?}, {last_in_use}");
        }
    }
    let _ = Table::new(&found.ranges);
}

fn watch(disk: &Disk, blocks: u64, writes: &[(u64, &[u8])], options: u8) {
    let mut now = Nanos::ZERO;
    let mut detector = Detector::new(blocks, Setting::Detect, now);
    let serve = |detector: &mut Detector, now| {
        while let Some(output) = detector.poll_output() {
            if let Output::Read(lba) = output {
                let block = disk.0.get(&lba.raw());
                // Some blocks cannot be read.
                let bad = options & 2 == 2 && lba.raw() % 7 == 3;
                let block = (!bad).then(|| block.unwrap_or(&[0; 4096]));
                detector.handle_read(now, lba, block);
            }
        }
    };
    serve(&mut detector, now);
    for (at, data) in writes.iter().chain(writes) {
        let data = (options & 4 == 0).then_some(*data);
        let bytes = data.map_or(4096, |data| data.len() as u64);
        let fua = options & 8 == 8;
        detector.handle_write(now, &Write { at: *at, bytes, data, fua });
        let _ = detector.is_behind_tail(Lba::new(at / 4096));
        if options & 32 == 32 {
            detector.handle_trim(now, *at, bytes);
        }
        if options & 16 == 16 {
            detector.handle_flush(now);
        }
        serve(&mut detector, now);
        now = now + Nanos::new(1_500_000_000);
        if detector.poll_timeout().is_some_and(|at| at <= now) {
            detector.handle_timeout(now);
        }
        serve(&mut detector, now);
    }
    for range in detector.ranges() {
        assert!(range.first < range.end && range.end.raw() <= blocks, "{range}");
    }
}
