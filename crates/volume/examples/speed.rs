//! Speed, memory and metadata of the engine alone: requests of 4 KiB into a backing that takes no time.
//!
//! Counts the CPU time of the thread, so other programs disturb little.
//!
//! `cargo run --release -p onefold-volume --example speed -- [GIB [bytes]]`
//!
//! Memory is that of the first run: without bytes of blocks that of the map and all tables, with `bytes` also that of
//! the batches. Metadata is all that is sent but data of the host and what the cleaner moves.
use std::collections::VecDeque;
use std::io::Write as _;

use onefold_format::volume::{DeviceRole, VolumeDevice, VolumeLabel, VolumeMode, VolumeName};
use onefold_units::convert::{float, index, index64, narrow};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    Backing, IoFailed, IoId, IoKind, Options, Range, ReadPlan, Refusal, Sent, Stats, Volume,
    format, mount,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BLOCK: usize = 4096;

/// Writes to the backing that are under way.
const IN_FLIGHT: usize = 4;

/// Bytes of a slab: so many that the allocator never puts it between what the volume has.
const SLAB: usize = 64 << 20;

/// Keeps what is read again; data goes nowhere.
struct Nowhere {
    /// The number of the block that is kept of a place, from 1 on; 0: none is.
    places: Vec<u32>,
    slabs: Vec<Vec<u8>>,
    kept: u32,
}

impl Nowhere {
    fn new(blocks: u64) -> Self {
        // Not zeroes: they would take no memory until they are written.
        let mut places = vec![1; index64(blocks)];
        places.fill(0);
        Self { places, slabs: Vec::new(), kept: 0 }
    }

    fn keep(&mut self, at: u64, bytes: &[u8]) {
        for (place, block) in self.places[index64(at)..].iter_mut().zip(bytes.chunks(BLOCK)) {
            if *place == 0 {
                self.kept += 1;
                *place = self.kept;
                if index(self.kept) * BLOCK > self.slabs.len() * SLAB {
                    self.slabs.push(vec![0; SLAB]);
                }
            }
            let at = index(*place - 1) * BLOCK;
            self.slabs[at / SLAB][at % SLAB..][..BLOCK].copy_from_slice(block);
        }
    }

    /// Memory of what is kept.
    fn resident_bytes(&self) -> f64 {
        f64::from(self.kept) * 4096.0
    }
}

impl Backing for Nowhere {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        for (place, block) in self.places[index64(at)..].iter().zip(bytes.chunks_mut(BLOCK)) {
            if let Some(kept) = place.checked_sub(1) {
                let at = index(kept) * BLOCK;
                block.copy_from_slice(&self.slabs[at / SLAB][at % SLAB..][..BLOCK]);
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.keep(at, bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        Ok(())
    }

    fn trim(&mut self, _at: u64, _blocks: u64) -> Result<(), IoFailed> {
        Ok(())
    }
}

struct Rig {
    volume: Volume,
    backing: Nowhere,
    in_flight: VecDeque<IoId>,
    blocks: u64,
    bytes: bool,
}

impl Rig {
    /// A volume whose exported device takes half of the log.
    fn new(gib: u64, bytes: bool) -> Outcome<Self> {
        let blocks = gib << 18;
        let backing_blocks = 2 * blocks;
        let mut backing = Nowhere::new(backing_blocks);
        format(&mut backing, &label(backing_blocks, blocks))?;
        // All of the map in memory: what is written of it is not kept.
        let options = Options { bytes, map_pages: usize::MAX, ..Options::default() };
        let (volume, _) = mount(&mut backing, backing_blocks, options)?;
        Ok(Self { volume, backing, in_flight: VecDeque::new(), blocks, bytes })
    }

    fn write(&mut self, lba: u64, data: &[u8]) -> Outcome<()> {
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        let data = self.bytes.then_some(data);
        while let Err(refusal) = self.volume.write(0, range, data, false) {
            if refusal != Refusal::Busy {
                return Err(std::format!("{refusal:?}").into());
            }
            self.volume.pump(Nanos::ZERO);
            if !self.go_on(IN_FLIGHT) && !self.go_on(0) {
                return Err("the volume waits for nothing".into());
            }
        }
        self.go_on(IN_FLIGHT);
        Ok(())
    }

    /// Carries out what the volume asks for, with at most `most` writes under way. Whether anything happened.
    fn go_on(&mut self, most: usize) -> bool {
        let mut any = false;
        loop {
            let mut some = false;
            while let Some(io) = self.volume.poll_io() {
                some = true;
                let at = u64::from(io.at.raw());
                let done = match io.kind {
                    IoKind::Read => self.backing.read(at, self.volume.buffer_mut(io.id)),
                    IoKind::Write => {
                        // The header: nothing else is read again while the map is in memory.
                        self.backing.keep(at, &self.volume.buffer(io.id)[..BLOCK]);
                        self.in_flight.push_back(io.id);
                        continue;
                    }
                    IoKind::Flush | IoKind::Trim => Ok(()),
                    IoKind::Remap | IoKind::Reset | IoKind::Finish | IoKind::Report => {
                        Err(IoFailed::Error)
                    }
                };
                self.volume.completed(Nanos::ZERO, io.id, done);
            }
            while self.in_flight.len() > most
                && let Some(id) = self.in_flight.pop_front()
            {
                some = true;
                self.volume.completed(Nanos::ZERO, id, Ok(()));
            }
            if !some {
                break;
            }
            any = true;
            self.volume.pump(Nanos::ZERO);
        }
        while self.volume.poll_done().is_some() {}
        any
    }

    /// Makes `count` writes of one block and prints their speed and what was sent for them.
    fn measure_writes(
        &mut self,
        name: &str,
        count: u64,
        mut lba: impl FnMut(u64) -> u64,
    ) -> Outcome<()> {
        let (before, data) = (*self.volume.stats(), vec![0x5A; BLOCK]);
        measure(name, count, |n| self.write(lba(n), &data))?;
        say_sent(&self.volume.stats().since(&before))
    }
}

/// Prints what was sent for each block that was written.
fn say_sent(stats: &Stats) -> Outcome<()> {
    let written = float(stats.written);
    let data = [Sent::User, Sent::Journal, Sent::Cleaning].map(|cause| stats.sent(cause));
    let metadata = float(stats.sent_total() - data.iter().sum::<u64>()) / written;
    let causes = Sent::ALL
        .into_iter()
        .filter(|&cause| stats.sent(cause) > 0)
        .map(|cause| std::format!("{} {:.4}", cause.name(), float(stats.sent(cause)) / written));
    say(format_args!(
        "    sent per block written: {}; metadata {:.2} %",
        causes.collect::<Vec<_>>().join(", "),
        100.0 * metadata
    ))
}

fn label(blocks: u64, logical_blocks: u64) -> VolumeLabel {
    VolumeLabel {
        uuid: [7; 16],
        generation: 1,
        name: VolumeName::default(),
        mode: VolumeMode::Log,
        compat: 0,
        ro_compat: 0,
        incompat: 0,
        unit_blocks: 1,
        // As `onefold volume create` has it: one of 512, 4 MiB to 1 GiB.
        segment_blocks: narrow((blocks / 512).next_power_of_two().clamp(1024, 1 << 18)),
        logical_blocks,
        op_basis_points: 0,
        devices: vec![VolumeDevice {
            uuid: [8; 16],
            role: DeviceRole::Data,
            blocks,
            zone_blocks: 0,
        }],
    }
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

fn resident_bytes() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = text.split_ascii_whitespace().nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096.0)
}

fn say(text: std::fmt::Arguments<'_>) -> Outcome<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// Prints how many of `count` calls a second of CPU time has room for.
fn measure(name: &str, count: u64, mut one: impl FnMut(u64) -> Outcome<()>) -> Outcome<()> {
    let start = cpu_ns()?;
    for n in 0..count {
        one(n)?;
    }
    let ns = (cpu_ns()? - start) / float(count);
    say(format_args!("{name:44} {:6.2} M/s, {ns:6.0} CPU ns", 1e3 / ns))
}

fn run(gib: u64, bytes: bool, is_first: bool) -> Outcome<()> {
    let mut rig = Rig::new(gib, bytes)?;
    let before = resident_bytes()?;
    let blocks = rig.blocks;
    let mut rng = Rng::new(1);
    let with = if bytes { "with bytes" } else { "without bytes" };
    rig.measure_writes(&std::format!("{with}: fill in order"), blocks, |n| n)?;
    let full = resident_bytes()? - rig.backing.resident_bytes() - before;
    // Once over, so that the cleaner is at work.
    let name = std::format!("{with}: random writes, log not full");
    rig.measure_writes(&name, blocks, |_| rng.below(blocks))?;
    let name = std::format!("{with}: random writes, with cleaning");
    rig.measure_writes(&name, 2 * blocks, |_| rng.below(blocks))?;
    let (mut plan, mut buffer) = (ReadPlan::default(), vec![0; BLOCK]);
    measure(&std::format!("{with}: random reads"), 4 * blocks, |_| {
        let range = Range { lba: Lba::new(rng.below(blocks)), blocks: 1 };
        let into = bytes.then_some(&mut buffer[..]);
        rig.volume.read(range, into, &mut plan).map_err(|refusal| std::format!("{refusal:?}"))?;
        if !plan.runs().is_empty() {
            rig.volume.end_read(&plan);
        }
        Ok(())
    })?;
    if !is_first {
        return Ok(()); // What the run before gave back to the allocator is in use again.
    }
    let end = resident_bytes()? - rig.backing.resident_bytes() - before;
    let (full, end) = (full / 1_048_576.0, end / 1_048_576.0);
    say(format_args!(
        "memory: {full:.1} MiB when full, {:.3} MiB per GiB; {end:.1} MiB at the end",
        full / float(gib)
    ))
}

fn main() -> Outcome<()> {
    let gib = std::env::args().nth(1).map_or(Ok(4), |text| text.parse())?;
    let only_bytes = std::env::args().nth(2).is_some_and(|word| word == "bytes");
    if !only_bytes {
        run(gib, false, true)?;
    }
    run(gib, true, only_bytes)
}
