//! What the hole-plugging cleaner of both papers costs: blocks sent to the backing per block of the
//! host, by cause, beside the targets of volume.md, section 12; with probes and memory of tables
//! (volume.md, section 3, V5 and V12).
//!
//! `cargo run --release -p onefold-modes --example hole_plugging -- [MIB OF DATA [SHARE MAPPED]..]`
//!
//! The backing keeps nothing and answers at once. The mapped blocks are written once in order,
//! overwritten 8 times uniformly at random, and measured over 4 times. `plug` is (user + cleaning)
//! / user: what the targets count.

use std::collections::BTreeMap;
use std::io::Write as _;

use onefold_format::volume::{DeviceRole, VolumeDevice, VolumeLabel, VolumeMode, VolumeName};
use onefold_modes::{Areas, format, open};
use onefold_units::convert::{float, floor_u64};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{Backing, Engine, IoFailed, Options, Range, Refusal, Sent};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BLOCK: usize = 4096;
const WARM: u64 = 8;
const MEASURED: u64 = 4;

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
            print(&cell, mode, share, target, &before)?;
        }
    }
    Ok(())
}

fn print(
    cell: &Cell,
    mode: VolumeMode,
    share: f64,
    target: f64,
    before: &onefold_volume::Stats,
) -> Outcome<()> {
    let (after, memory) = (cell.volume.stats(), cell.volume.memory());
    let written = float(after.written - before.written);
    let sent: Vec<f64> = Sent::ALL
        .iter()
        .map(|cause| float(after.sent(*cause) - before.sent(*cause)) / written)
        .collect();
    let plug = 1.0 + sent[3];
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
    writeln!(out, " | stalls {}", after.clean_stalls - before.clean_stalls)?;
    Ok(())
}
