//! What the hole-plugging cleaner of both papers costs: blocks sent to the backing per block of the
//! host, by cause, beside the targets of volume.md, section 12; with probes and memory of tables
//! (volume.md, section 3, V5 and V12), and the time of a probe on this machine.
//!
//! `cargo run --release -p onefold-modes --example hole_plugging -- [MIB OF DATA [SHARE MAPPED]..]`
//!
//! The backing keeps nothing and answers at once. The mapped blocks are written once in order,
//! overwritten 8 times uniformly at random, and measured over 4 times. `plug` is (user + cleaning)
//! / user: what the targets count.

#![expect(clippy::disallowed_types, reason = "it measures this machine, not the model")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant};

use onefold_format::volume::{DeviceRole, VolumeDevice, VolumeLabel, VolumeMode, VolumeName};
use onefold_modes::{Areas, PartitionedVolume, format, open};
use onefold_units::convert::{float, floor_u64, index64, narrow};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{Backing, Engine, IoFailed, Options, Range, Refusal, Sent};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BLOCK: usize = 4096;
const WARM: u64 = 8;
const MEASURED: u64 = 4;

/// Batches of blocks that are looked for to take the time of it.
const BATCHES: u64 = 1024;
const BATCH: u64 = 1024;

/// `WAF_host` of the hole-plugging cleaner, uniform (volume.md, section 12).
const TARGETS: [(f64, f64); 4] = [(0.2, 1.74), (0.25, 1.81), (0.5, 1.94), (0.8, 1.97)];

/// Keeps blocks as long as a volume is made and opened.
#[derive(Default)]
struct Memory(BTreeMap<u64, Vec<u8>>);

impl Backing for Memory {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        for (at, block) in (at..).zip(bytes.chunks_mut(BLOCK)) {
            match self.0.get(&at) {
                Some(kept) => block.copy_from_slice(kept),
                None => block.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.0.extend((at..).zip(bytes.chunks(BLOCK).map(<[u8]>::to_vec)));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        Ok(())
    }

    fn trim(&mut self, _at: u64, _blocks: u64) -> Result<(), IoFailed> {
        Ok(())
    }
}

struct Cell {
    volume: Box<dyn Engine>,
    rng: Rng,
    blocks: u64,
    now: Nanos,
}

impl Cell {
    /// A volume of which a share of the data space will be mapped.
    fn new(mode: VolumeMode, backing: u64, share: f64) -> Outcome<Self> {
        let partition = Areas::default_partition(mode, backing);
        let space = Areas::new(mode, backing, partition, 1)?.data_blocks();
        let blocks = floor_u64(share * float(space));
        let device =
            VolumeDevice { uuid: [2; 16], role: DeviceRole::Data, blocks: backing, zone_blocks: 0 };
        let label = VolumeLabel {
            uuid: [1; 16],
            generation: 1,
            name: VolumeName::default(),
            mode,
            compat: 0,
            ro_compat: 0,
            incompat: 0,
            unit_blocks: 1,
            segment_blocks: partition,
            logical_blocks: blocks,
            op_basis_points: 0,
            devices: vec![device],
        };
        let mut memory = Memory::default();
        format(&mut memory, &label)?;
        let options = Options { bytes: false, ..Options::default() };
        let (volume, _) = open(&mut memory, backing, options)?;
        Ok(Self { volume, rng: Rng::new(1), blocks, now: Nanos::ZERO })
    }

    fn write(&mut self, lba: u64) -> Outcome<()> {
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        for _ in 0..10_000 {
            match self.volume.write(0, range, None, false) {
                Ok(()) => return Ok(()),
                Err(Refusal::Busy) => self.step(),
                Err(refusal) => return Err(format!("refused: {refusal:?}").into()),
            }
        }
        Err("a write was refused as busy for ever".into())
    }

    /// Everything that was asked for is done, and nothing more.
    fn step(&mut self) {
        self.now += Nanos::new(1000);
        self.volume.pump(self.now);
        while let Some(io) = self.volume.poll_io() {
            self.volume.completed(self.now, io.id, Ok(()));
        }
        while self.volume.poll_done().is_some() {}
    }

    fn overwrite(&mut self, times: u64) -> Outcome<()> {
        for n in 0..times * self.blocks {
            let lba = self.rng.below(self.blocks);
            self.write(lba)?;
            if n % 32 == 0 {
                self.step();
            }
        }
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mib: u64 = arguments.first().map_or(Ok(512), |text| text.parse())?;
    let shares: Vec<f64> =
        arguments.iter().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    for mode in [VolumeMode::Sung, VolumeMode::Han] {
        for (share, target) in TARGETS {
            if !shares.is_empty() && !shares.contains(&share) {
                continue;
            }
            let mut cell = Cell::new(mode, mib * 256, share)?;
            for lba in 0..cell.blocks {
                cell.write(lba)?;
                if lba % 32 == 0 {
                    cell.step();
                }
            }
            cell.overwrite(WARM)?;
            let before = *cell.volume.stats();
            cell.overwrite(MEASURED)?;
            print(&mut cell, mode, share, target, &before)?;
        }
    }
    Ok(())
}

fn print(
    cell: &mut Cell,
    mode: VolumeMode,
    share: f64,
    target: f64,
    before: &onefold_volume::Stats,
) -> Outcome<()> {
    let (after, memory) = (*cell.volume.stats(), cell.volume.memory());
    let written = float(after.written - before.written);
    let sent: Vec<f64> = Sent::ALL
        .iter()
        .map(|cause| float(after.sent(*cause) - before.sent(*cause)) / written)
        .collect();
    let cleaning = after.sent(Sent::Cleaning) - before.sent(Sent::Cleaning);
    let plug = 1.0 + float(cleaning) / written;
    let mut out = std::io::stdout().lock();
    write!(out, "{mode:?} u {share:.2}: plug {plug:.3} | target {target:.2}, ")?;
    write!(out, "{:+.1} % | all {:.3}", 100.0 * (plug / target - 1.0), sent.iter().sum::<f64>())?;
    for (cause, share) in Sent::ALL.iter().zip(&sent).filter(|(_, share)| **share > 0.0) {
        write!(out, " {} {share:.4}", cause.name())?;
    }
    write!(out, " | probes {:.2}", float(after.map_probes - before.map_probes) / written)?;
    let mapped_gib = float(cell.blocks) / float(1 << 18);
    let per_gib = |bytes: u64| float(bytes) / float(1 << 20) / mapped_gib;
    write!(out, " | MiB per mapped GiB: paper {:.2}", per_gib(memory.peak_paper_bytes))?;
    write!(out, " real {:.2} at peak", per_gib(memory.peak_real_bytes))?;
    write!(out, " | stalls {}", after.clean_stalls - before.clean_stalls)?;
    let (searched, ns) = time_of_search(cell);
    writeln!(out, " | {searched:.2} tables for a block, {ns:.0} ns each")?;
    Ok(())
}

/// Looks for blocks at random: tables that are searched for one, and nanoseconds for each table. The median of short batches,
/// as other programs may take the CPU meanwhile.
fn time_of_search(cell: &mut Cell) -> (f64, f64) {
    let lbas: Vec<u64> = (0..BATCHES * BATCH).map(|_| cell.rng.below(cell.blocks)).collect();
    let one = |lba: &u64| Range { lba: Lba::new(*lba), blocks: 1 };
    let tables: u64 = lbas.iter().map(|lba| cell.volume.searches(one(lba))).sum();
    let per_block = float(tables) / float(BATCHES * BATCH);
    let Some(volume) = cell.volume.downcast_mut::<PartitionedVolume>() else { return (0.0, 0.0) };
    let mut times: Vec<Duration> = lbas
        .chunks(index64(BATCH))
        .map(|batch| {
            let begin = Instant::now();
            for lba in batch {
                std::hint::black_box(volume.look_up(narrow(*lba)));
            }
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1e9;
    (per_block, median / (per_block * float(BATCH)))
}
