//! A log on a log: what a volume does to the write amplification of the SSD below it. Prints the table of volume.md,
//! section 12, with the deviation from its targets.
//!
//! `cargo run --release -p onefold-sim --example log_on_log -- [PART OF A NAME]..`
//!
//! The device has mapping units of 4, 16 or 64 KiB, superblocks of 4 MiB (16 MiB in the column S / 4), 7 % of
//! over-provisioning, greedy collection, and a frontier each for the host and for collection. The volume has 512
//! log segments of 4 MiB, batches of 64 blocks with their header, and greedy cleaning. Every cell is filled once,
//! overwritten 8 times and measured over 4 times the mapped blocks.
//!
//! The targets come from a prototype without headers and checkpoints. So `u` is mapped blocks / blocks of log space
//! that are no headers, and what is compared is `data`: blocks of the host and of the cleaner only, times the
//! amplification of the device. `all` is everything. The volume keeps about 7 log segments more free than the prototype
//! did (reserve, checkpoints): the column that gives it those shows what they cost.
mod stack;

use std::io::{self, Write as _};

use onefold_ssd::{Command, Payload};
use onefold_units::convert::{float, floor_u64, narrow, u64_from};
use onefold_units::{Nanos, Op, Rng};
use onefold_volume::{Options, Sent, Stream, Victim};

use stack::{Outcome, Sizes, Stack, device};

/// Log segments that `u` counts, and their size: 512 of 4 MiB.
const SEGMENTS: u64 = 512;
const SEGMENT_BLOCKS: u64 = 1024;

/// Writes per mapped block before and during the measurement.
const WARM: u64 = 8;
const MEASURED: u64 = 4;

/// Blocks of a batch with its header: 256 KiB.
const BATCH: u32 = 64;

/// A volume on a device, as far as columns differ.
#[derive(Clone, Copy, Debug)]
struct Log {
    /// Blocks of a superblock of the device.
    superblock_blocks: u64,
    trim: bool,
    /// Blocks of the device before the volume.
    offset: u64,
    hot_cold: bool,
    victim: Victim,
    /// The device has a frontier for each stream of the volume.
    streams: bool,
    /// Log segments beyond those that `u` counts.
    more: u64,
}

const LOG: Log = Log {
    superblock_blocks: SEGMENT_BLOCKS,
    trim: true,
    offset: 0,
    hot_cold: false,
    victim: Victim::Greedy,
    streams: false,
    more: 0,
};
const NO_TRIM: Log = Log { trim: false, ..LOG };
const QUARTER: Log = Log { superblock_blocks: 4 * SEGMENT_BLOCKS, ..LOG };
const MISALIGNED: Log = Log { offset: SEGMENT_BLOCKS / 2, ..LOG };
const HOT_COLD: Log = Log { hot_cold: true, ..LOG };
const COST_BENEFIT: Log = Log { victim: Victim::CostBenefit, ..HOT_COLD };
const STREAMS: Log = Log { streams: true, ..LOG };
const ALL: Log = Log { streams: true, ..COST_BENEFIT };
const MORE: Log = Log { more: 7, ..LOG };

/// One cell of a table.
#[derive(Clone, Copy, Debug)]
struct Cell {
    unit_blocks: u32,
    /// 90 % of the writes go to 10 % of the blocks.
    skewed: bool,
    /// `None`: the writes go to the device.
    layer: Option<Log>,
    /// Mapped blocks / blocks of log space.
    u: f64,
    target: Option<f64>,
}

/// What a cell showed, over the measured writes.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// Pages programmed / blocks written, all causes.
    total: f64,
    /// The same without headers, padding, map and labels of the volume.
    data: f64,
    /// Blocks sent by the volume / blocks written, by cause.
    sent: [f64; 6],
    device: f64,
}

/// Writes of a load.
struct Load {
    rng: Rng,
    blocks: u64,
    skewed: bool,
}

impl Load {
    fn next(&mut self) -> u64 {
        let hot = (self.blocks / 10).max(1);
        if !self.skewed {
            self.rng.below(self.blocks)
        } else if self.rng.below(10) < 9 {
            self.rng.below(hot)
        } else {
            hot + self.rng.below(self.blocks - hot)
        }
    }
}

impl Cell {
    fn measure(&self) -> Outcome<Measured> {
        let space = SEGMENTS * SEGMENT_BLOCKS;
        let headers = if self.layer.is_some() { space / u64::from(BATCH) } else { 0 };
        let blocks = floor_u64(self.u * float(space - headers));
        let load = Load { rng: Rng::new(1), blocks, skewed: self.skewed };
        let Some(log) = self.layer else { return self.without(load, space) };
        let sizes = Sizes {
            log_segments: SEGMENTS + log.more,
            segment_blocks: narrow(SEGMENT_BLOCKS),
            superblock_blocks: log.superblock_blocks,
            unit_blocks: self.unit_blocks,
            logical_blocks: blocks,
            offset: log.offset,
            streams: if log.streams { narrow(u64_from(Stream::ALL.len())) } else { 1 },
        };
        let options = Options {
            batch_blocks: BATCH,
            bytes: false,
            verify: false,
            victim: log.victim,
            clean_below: Some(0),
            trim: log.trim,
            trim_pause: Nanos::ZERO,
            hot_cold: log.hot_cold,
            ..Options::default()
        };
        with_log(load, Stack::new(&sizes, options)?)
    }

    fn without(&self, mut load: Load, space: u64) -> Outcome<Measured> {
        let mut ssd = device(space, SEGMENT_BLOCKS, self.unit_blocks, 1)?;
        let mut write = |lba: u64| {
            let command = Command::new(Op::Write, lba * 4096, 4096);
            ssd.submit(Nanos::ZERO, &command, Payload::None).map(|_| ssd.ftl().programs().total())
        };
        let mut before = 0;
        for lba in 0..load.blocks {
            before = write(lba)?;
        }
        for _ in 0..WARM * load.blocks {
            before = write(load.next())?;
        }
        let mut after = before;
        for _ in 0..MEASURED * load.blocks {
            after = write(load.next())?;
        }
        let total = float(after - before) / float(MEASURED * load.blocks);
        Ok(Measured { total, data: total, device: total, ..Measured::default() })
    }
}

fn with_log(mut load: Load, mut stack: Stack) -> Outcome<Measured> {
    for lba in 0..load.blocks {
        stack.write(lba)?;
    }
    for _ in 0..WARM * load.blocks {
        stack.write(load.next())?;
    }
    let (volume, flash) = (*stack.volume.stats(), stack.below.ssd.ftl().programs().total());
    for _ in 0..MEASURED * load.blocks {
        stack.write(load.next())?;
    }
    let after = stack.volume.stats();
    let written = float(after.written - volume.written);
    let sent = Sent::ALL.map(|cause| float(after.sent(cause) - volume.sent(cause)) / written);
    let flash = float(stack.below.ssd.ftl().programs().total() - flash) / written;
    let host: f64 = sent.iter().sum();
    let data = sent[0] + sent[3];
    Ok(Measured { total: flash, data: data * flash / host, sent, device: flash / host })
}

/// Name, layer, and targets at three shares of mapped blocks.
type Column = (&'static str, Option<Log>, [Option<f64>; 3]);

/// A row of a table: what is written on which device.
struct Row {
    name: &'static str,
    unit_blocks: u32,
    skewed: bool,
    layers: &'static [Column],
}

const fn some(all: [f64; 3]) -> [Option<f64>; 3] {
    [Some(all[0]), Some(all[1]), Some(all[2])]
}

const SHARES: [f64; 3] = [0.5, 0.8, 0.9];

const ROWS: &[Row] = &[
    Row {
        name: "4K uniform",
        unit_blocks: 1,
        skewed: false,
        layers: &[
            ("no layer", None, some([1.20, 2.17, 3.28])),
            ("log", Some(LOG), some([1.26, 2.76, 5.49])),
            ("log, no TRIM", Some(NO_TRIM), some([1.26, 2.76, 5.49])),
            ("log, S / 4", Some(QUARTER), some([1.38, 3.32, 7.33])),
            ("log, misaligned", Some(MISALIGNED), some([1.26, 2.78, 5.59])),
            ("log, 7 segments more", Some(MORE), some([1.26, 2.76, 5.49])),
        ],
    },
    Row {
        name: "4K 90/10",
        unit_blocks: 1,
        skewed: true,
        layers: &[
            ("no layer", None, some([1.33, 2.61, 3.78])),
            ("log", Some(LOG), some([2.31, 3.75, 6.08])),
            ("log, no TRIM", Some(NO_TRIM), some([3.02, 4.29, 6.14])),
            ("log, S / 4", Some(QUARTER), some([5.30, 11.75, 21.33])),
            ("log, misaligned", Some(MISALIGNED), some([2.37, 3.75, 6.19])),
            ("log, hot/cold", Some(HOT_COLD), [None; 3]),
            ("log, hot/cold, cost-benefit", Some(COST_BENEFIT), [None; 3]),
            ("log, device streams", Some(STREAMS), [None; 3]),
            ("log, all three", Some(ALL), [None; 3]),
        ],
    },
    Row {
        name: "16K uniform",
        unit_blocks: 4,
        skewed: false,
        layers: &[
            ("no layer", None, some([4.79, 8.61, 13.0])),
            ("log", Some(LOG), some([1.27, 2.82, 5.63])),
        ],
    },
    Row {
        name: "16K 90/10",
        unit_blocks: 4,
        skewed: true,
        layers: &[
            ("no layer", None, some([5.46, 9.62, 14.2])),
            ("log", Some(LOG), some([2.40, 5.97, 10.3])),
            ("log, hot/cold", Some(HOT_COLD), [None; 3]),
            ("log, hot/cold, cost-benefit", Some(COST_BENEFIT), [None; 3]),
            ("log, device streams", Some(STREAMS), [None; 3]),
            ("log, all three", Some(ALL), [None; 3]),
        ],
    },
    Row {
        name: "64K uniform",
        unit_blocks: 16,
        skewed: false,
        layers: &[
            ("no layer", None, some([19.0, 33.7, 50.4])),
            ("log", Some(LOG), some([1.36, 6.70, 13.6])),
        ],
    },
];

/// `WAF_host` of the greedy log.
const HOST: [(f64, f64); 8] = [
    (0.1, 1.00),
    (0.2, 1.01),
    (0.25, 1.02),
    (0.35, 1.08),
    (0.5, 1.26),
    (0.65, 1.66),
    (0.8, 2.76),
    (0.9, 5.49),
];

fn main() -> Outcome<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    for row in ROWS {
        for (layer, log, targets) in row.layers {
            let name = format!("{}, {layer}", row.name);
            for (u, target) in SHARES.into_iter().zip(*targets).filter(|_| is_wanted(&name)) {
                let cell = Cell {
                    unit_blocks: row.unit_blocks,
                    skewed: row.skewed,
                    layer: *log,
                    u,
                    target,
                };
                let found = cell.measure()?;
                print(&name, &cell, &found, found.data)?;
            }
        }
    }
    for (u, target) in HOST.into_iter().filter(|_| is_wanted("WAF_host")) {
        let cell =
            Cell { unit_blocks: 1, skewed: false, layer: Some(LOG), u, target: Some(target) };
        let found = cell.measure()?;
        print("WAF_host", &cell, &found, found.sent[0] + found.sent[3])?;
    }
    Ok(())
}

/// One line: `data` is judged against the target.
fn print(name: &str, cell: &Cell, found: &Measured, data: f64) -> Outcome<()> {
    let mut out = io::stdout().lock();
    write!(out, "{name:38} u {:.2}: all {:6.2}, data {data:6.2}", cell.u, found.total)?;
    if let Some(target) = cell.target {
        write!(out, " | target {target:5.2}, {:+6.1} %", 100.0 * (data / target - 1.0))?;
    }
    write!(out, " | device {:.3}", found.device)?;
    for (cause, share) in Sent::ALL.iter().zip(found.sent).filter(|(_, share)| *share > 0.0) {
        write!(out, " {} {share:.4}", cause.name())?;
    }
    writeln!(out)?;
    Ok(())
}
