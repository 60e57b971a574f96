//! What a write costs in the detector, in nanoseconds of CPU time of the thread.
//!
//! `cargo run --release -p onefold-journal --example speed`
use std::io::Write as _;

use onefold_journal::{Detector, Output, Setting, Write};
use onefold_units::convert::float;
use onefold_units::{Lba, Nanos, Rng};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BLOCKS: u64 = 1 << 20;
const JOURNAL: (u64, u64) = (100_000, 16_384);
const WRITES: u64 = 4_000_000;

/// CPU time of this thread, in nanoseconds.
fn cpu_time() -> Outcome<u64> {
    let text = String::from_utf8(std::fs::read("/proc/thread-self/schedstat")?)?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

/// A block of a device with an ext4 whose journal is at [`JOURNAL`], in `pieces`.
fn block(lba: Lba, pieces: u64) -> [u8; 4096] {
    let mut block = [0; 4096];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let each = JOURNAL.1 / pieces;
    let narrow = onefold_units::convert::narrow;
    if lba.raw() == 0 {
        put(1024 + 0x38, &[0x53, 0xEF]);
        put(1024 + 0x04, &narrow(BLOCKS).to_le_bytes());
        put(1024 + 0x18, &[2]);
        put(1024 + 0x5C, &[4]);
        put(1024 + 0xE0, &[8]);
        put(1024 + 0xFD, &[1]);
        // An extent tree of one leaf in block 50.
        put(1024 + 0x10C, &[0x0A, 0xF3, 1, 0, 4, 0, 1, 0]);
        put(1024 + 0x10C + 16, &[50]);
        put(1024 + 0x14C, &narrow(JOURNAL.1 * 4096).to_le_bytes());
    } else if lba.raw() == 50 {
        put(0, &[0x0A, 0xF3]);
        put(2, &narrow(pieces).to_le_bytes()[..2]);
        put(4, &340_u16.to_le_bytes());
        for n in 0..pieces {
            let at = onefold_units::convert::index64(12 + 12 * n);
            put(at, &narrow(n * each).to_le_bytes());
            put(at + 4, &narrow(each).to_le_bytes()[..2]);
            put(at + 8, &narrow(JOURNAL.0 + n * (each + u64::from(pieces > 1))).to_le_bytes());
        }
    } else if lba.raw() == JOURNAL.0 {
        let fields = [(0, 0xC03B_3998), (4, 4), (0xC, 4096), (0x10, narrow(JOURNAL.1)), (0x14, 1)];
        for (at, value) in fields {
            put(at, &value.to_be_bytes());
        }
    }
    block
}

fn attach(pieces: u64) -> Detector {
    let mut detector = Detector::new(BLOCKS, Setting::Detect, Nanos::ZERO);
    while let Some(output) = detector.poll_output() {
        if let Output::Read(lba) = output {
            detector.handle_read(Nanos::ZERO, lba, Some(&block(lba, pieces)));
        }
    }
    detector
}

fn measure(
    name: &str,
    detector: &mut Detector,
    blocks: std::ops::Range<u64>,
    data: Option<&[u8]>,
) -> Outcome<()> {
    let mut random = Rng::new(1);
    let before = cpu_time()?;
    let mut journal = 0_u64;
    for _ in 0..WRITES {
        let lba = Lba::new(blocks.start + random.below(blocks.end - blocks.start));
        let write = Write { at: lba.raw() * 4096, bytes: 4096, data, fua: false };
        detector.handle_write(Nanos::ZERO, &write);
        journal += u64::from(detector.span(lba).class.is_some());
    }
    let each = float(cpu_time()? - before) / float(WRITES);
    writeln!(std::io::stdout(), "{name:<44} {each:6.1} ns, {journal} of {WRITES} in the journal")?;
    Ok(())
}

fn main() -> Outcome<()> {
    let data = [7; 4096];
    for (pieces, words) in [(1, "journal in one piece"), (256, "journal in 256 pieces")] {
        let mut detector = attach(pieces);
        let mut case = |what: &str, blocks, data| {
            measure(&format!("{words}, {what}"), &mut detector, blocks, data)
        };
        case("data, unseen", 200_000..BLOCKS, None)?;
        case("data, seen", 200_000..BLOCKS, Some(&data[..]))?;
        case("journal", JOURNAL.0 + 1..JOURNAL.0 + 16_000, Some(&data[..]))?;
    }
    Ok(())
}
