//! Hosts that fail and recover, under an emulated SSD: any access to its file may fail at any time, singly, in bursts and
//! for long, together with power cuts, kills and restarts.
//!
//! Safety: a read gives an error or the right bytes, and what a flush covered is there after every restart. Liveness: when
//! the host has recovered, every request succeeds without a restart, unless a synchronisation failed.

#[path = "../tests/device/common/mod.rs"]
mod common;
mod directed;

use std::sync::Arc;

use onefold_ssd::SsdConfig;
use onefold_testkit::{LIB, for_each_seed, small_policies};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Rng, Status};

use crate::backing::Backing;
use crate::backing::chaos::Faults;
use crate::{
    Access, BlockDevice, Held, Image, KeptLifetime, Latency, Lifetime, OpenOptions, SsdDevice,
};
use common::{Folder, buffered, plain, rich, shares};

const BLOCK: usize = 4096;

/// What one block may hold: versions in the order they were written, with whether that succeeded. Version 0 is zeroes.
type Versions = Vec<(u32, bool)>;

/// The versions that a read may show while the device runs: the last that succeeded, and those after it, which failed.
fn current(versions: &Versions) -> &[(u32, bool)] {
    let last = versions.iter().rposition(|(_, ok)| *ok).unwrap();
    &versions[last..]
}

fn content(block: usize, version: u32) -> Vec<u8> {
    if version == 0 {
        return vec![0; BLOCK];
    }
    let mut bytes = vec![version.to_le_bytes()[0]; BLOCK];
    bytes[..4].copy_from_slice(&version.to_le_bytes());
    bytes[4..12].copy_from_slice(&u64_from(block).to_le_bytes());
    bytes
}

struct World {
    folder: Folder,
    config: SsdConfig,
    rng: Rng,
    device: SsdDevice,
    backing: Arc<Backing>,
    faults: Faults,
    blocks: Vec<Versions>,
    version: u32,
    /// A synchronisation failed since the device was opened.
    stopped: bool,
    /// Lifetime counters that are durable.
    counted: Lifetime,
}

impl World {
    fn new(config: &SsdConfig, seed: u64) -> Self {
        let folder = Folder::new(config);
        let mut rng = Rng::fork(seed, 1);
        let (device, backing) = open(&folder, config, &mut rng, Faults::default()).unwrap();
        let blocks = index64(device.size()) / BLOCK;
        Self {
            folder,
            config: *config,
            rng,
            device,
            backing,
            faults: Faults::default(),
            blocks: vec![vec![(0, true)]; blocks],
            version: 0,
            stopped: false,
            counted: Lifetime::default(),
        }
    }

    fn range(&mut self) -> std::ops::Range<usize> {
        let size = u64_from(self.blocks.len());
        // Mostly a few blocks that are written again and again, so that collection has work.
        let within = if self.rng.below(3) == 0 { size } else { size / 4 };
        let first = self.rng.below(within);
        let end = (first + 1 + self.rng.below(8)).min(size);
        index64(first)..index64(end)
    }

    fn is_held_for_good(&self) -> bool {
        self.device.image().is_some_and(|image| matches!(image.held, Some(Held::Unsynced(_))))
    }

    /// Judges the status of a request that changes something.
    fn judge(&mut self, status: Status) {
        match status {
            Status::NoSpace => assert!(self.faults.full, "there is room"),
            Status::MediaError => {
                let fails = self.faults.writes + self.faults.syncs + self.faults.reads > 0;
                assert!(fails, "the host does not fail");
                self.stopped |= self.is_held_for_good();
            }
            Status::Poisoned => {
                assert!(self.is_held_for_good(), "no synchronisation failed");
                self.stopped = true;
            }
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self, fua: bool) {
        let range = self.range();
        self.version += 1;
        let version = self.version;
        let bytes: Vec<u8> = range.clone().flat_map(|block| content(block, version)).collect();
        let counted = self.device.lifetime();
        let done = self.device.write(u64_from(range.start * BLOCK), &bytes, fua);
        if fua && done.is_ok() {
            self.counted(counted);
        }
        self.changed(range, version, done.map(drop), fua);
    }

    fn trim(&mut self) {
        let range = self.range();
        let (at, len) = (u64_from(range.start * BLOCK), u64_from(range.len() * BLOCK));
        let done = self.device.trim(at, len);
        self.changed(range, 0, done.map(drop), false);
    }

    fn changed(
        &mut self,
        range: std::ops::Range<usize>,
        version: u32,
        done: Result<(), Status>,
        fua: bool,
    ) {
        for versions in &mut self.blocks[range] {
            if done.is_ok() && fua {
                versions.clear();
            }
            versions.push((version, done.is_ok()));
        }
        if let Err(status) = done {
            self.judge(status);
        }
    }

    fn flush(&mut self) {
        let counted = self.device.lifetime();
        match self.device.flush() {
            Ok(_) => {
                self.counted(counted);
                self.is_durable();
            }
            Err(status) => self.judge(status),
        }
    }

    fn is_durable(&mut self) {
        for versions in &mut self.blocks {
            *versions = current(versions).to_vec();
        }
    }

    fn read(&mut self) {
        let range = self.range();
        let mut bytes = vec![0; range.len() * BLOCK];
        if self.device.read(u64_from(range.start * BLOCK), &mut bytes).is_err() {
            assert!(self.faults.reads > 0 || self.stopped, "the host reads well");
            return;
        }
        for (block, bytes) in range.zip(bytes.chunks(BLOCK)) {
            let versions = current(&self.blocks[block]);
            let right = versions.iter().any(|(version, _)| content(block, *version) == bytes);
            assert!(right, "block {block} is {:?}, none of {versions:?}", &bytes[..12]);
        }
    }

    /// The host changes how it behaves.
    fn turn(&mut self) {
        let often = [5, 50, 300, 1000][index64(self.rng.below(4))];
        let whole = Faults::default();
        self.faults = match self.rng.below(8) {
            0..3 => whole,
            3 => Faults { writes: often, ..whole },
            4 => Faults { reads: often, ..whole },
            5 => Faults { full: true, ..whole },
            6 => Faults { reads: often, writes: often, ..whole },
            _ => Faults { writes: often, syncs: 20, ..whole },
        };
        self.backing.set_faults(self.faults);
        if self.rng.below(3) == 0 {
            self.heal();
        }
    }

    /// With a host that works, so does the device.
    fn heal(&mut self) {
        self.faults = Faults::default();
        self.backing.set_faults(self.faults);
        self.stopped |= self.is_held_for_good();
        if self.stopped {
            return;
        }
        self.write(false);
        self.flush();
        assert!(!self.stopped && self.blocks.iter().all(|versions| versions[0].1));
        let range = 0..self.blocks.len();
        let mut bytes = vec![0; range.len() * BLOCK];
        self.device.read(0, &mut bytes).unwrap();
    }

    /// The process ends, in good order or not, and the host with it or not; and begins again.
    fn restart(&mut self) {
        let counted = self.device.lifetime();
        let closes = self.rng.below(3) == 0;
        if closes && self.device.close().is_ok() {
            self.is_durable();
            self.counted(counted);
        }
        self.kill();
        self.count(counted, closes);
        let mut faults = if self.rng.below(2) == 0 { self.faults } else { Faults::default() };
        loop {
            match open(&self.folder, &self.config, &mut self.rng, faults) {
                Ok((device, backing)) => {
                    (self.device, self.backing) = (device, backing);
                    break;
                }
                Err(error) => {
                    let fails = faults.reads + faults.writes + faults.syncs > 0 || faults.full;
                    assert!(fails, "{error}");
                    faults = Faults::default();
                }
            }
        }
        self.faults = Faults::default();
        self.backing.set_faults(self.faults);
        self.stopped = self.is_held_for_good();
        self.find();
    }

    /// The power of the drive goes and comes back, in a process that lives, and not of its host.
    fn cut(&mut self) {
        self.faults = Faults::default();
        self.backing.set_faults(self.faults);
        match self.device.cut_power() {
            Ok(_) => self.find(),
            Err(error) => assert!(self.stopped || self.is_held_for_good(), "{error}"),
        }
    }

    /// Finds of each block one of the versions that it may have.
    fn find(&mut self) {
        for block in 0..self.blocks.len() {
            let mut bytes = vec![0; BLOCK];
            self.device.read(u64_from(block * BLOCK), &mut bytes).unwrap();
            let versions = &self.blocks[block];
            let found = versions.iter().find(|(version, _)| content(block, *version) == bytes);
            let Some((found, _)) = found else {
                panic!("block {block} is {:?}, none of {versions:?}", &bytes[..12])
            };
            self.blocks[block] = vec![(*found, true)];
        }
    }

    /// What was counted when something was made durable. A host that takes no record keeps an older one.
    fn counted(&mut self, counted: Option<Lifetime>) {
        if self.faults.writes == 0 && !self.faults.full {
            self.counted = counted.unwrap_or(self.counted);
        }
    }

    /// The image keeps no counter smaller than the durable ones, and none larger than what was done.
    fn count(&mut self, most: Option<Lifetime>, closes: bool) {
        let found = match Image::saved_lifetime(&self.folder.path()).unwrap() {
            KeptLifetime::Counters(found) => found,
            other => panic!("{other:?}"),
        };
        let host = |life: &Lifetime| {
            [life.host_read_bytes, life.host_written_bytes, life.host_discarded_bytes]
        };
        let rest = |life: &Lifetime| [life.power_cycles, life.erases, life.programs.total()];
        let is_sorted =
            |least: [u64; 3], most: [u64; 3]| least.iter().zip(most).all(|(a, b)| *a <= b);
        let least = self.counted;
        assert!(is_sorted(host(&least), host(&found)), "{found:?} after {least:?}");
        assert!(is_sorted(rest(&least), rest(&found)), "{found:?} after {least:?}");
        if let Some(most) = most {
            assert!(is_sorted(host(&found), host(&most)), "{found:?} of {most:?}");
            // A device that is closed writes a checkpoint.
            assert!(closes || is_sorted(rest(&found), rest(&most)), "{found:?} of {most:?}");
        }
        self.counted = found;
    }

    fn kill(&mut self) {
        if self.rng.below(2) == 0 {
            self.backing.cut();
        }
        // The lock of the file goes with its last owner.
        let spare = Folder::new(&self.config);
        let (device, backing) =
            open(&spare, &self.config, &mut self.rng, Faults::default()).unwrap();
        (self.device, self.backing) = (device, backing);
    }
}

fn open(
    folder: &Folder,
    config: &SsdConfig,
    rng: &mut Rng,
    faults: Faults,
) -> Result<(SsdDevice, Arc<Backing>), crate::DeviceError> {
    let image = Image::open(&folder.path(), Access::Exclusive)?;
    let backing = image.backing();
    backing.begin_chaos(rng.next_u64());
    backing.set_faults(faults);
    match SsdDevice::open(image, config, OpenOptions::new(Latency::None)) {
        Ok(opened) => Ok((opened.device, backing)),
        Err(error) => {
            backing.cut();
            Err(error)
        }
    }
}

fn run(config: &SsdConfig, seed: u64) {
    let mut world = World::new(config, seed);
    for _ in 0..400 {
        match world.rng.below(100) {
            0..45 => {
                let fua = world.rng.below(8) == 0;
                world.write(fua);
            }
            45..75 => world.read(),
            75..83 => world.flush(),
            83..90 => world.trim(),
            90..96 => world.turn(),
            96 => world.heal(),
            97 => world.cut(),
            _ => world.restart(),
        }
    }
    world.heal();
    world.restart();
}

/// Without a buffer.
fn bare(mut config: SsdConfig) -> SsdConfig {
    config.buffer.bytes = 0;
    config
}

fn campaign(case: &'static str, seeds: u64, config: &SsdConfig) {
    for_each_seed(("onefold-device", LIB, case), seeds, |seed| run(config, seed));
}

#[test]
fn a_plain_device_survives_a_host_that_fails() {
    campaign("a_plain_device", 40, &plain());
}

#[test]
fn a_rich_device_survives_a_host_that_fails() {
    campaign("a_rich_device", 40, &bare(rich()));
}

#[test]
fn a_buffered_device_survives_a_host_that_fails() {
    let policies = small_policies();
    for_each_seed(("onefold-device", LIB, "a_buffered_device"), 38, |seed| {
        let policy = index64(seed % u64_from(policies.len()));
        run(&buffered(policies[policy]), seed);
    });
}

#[test]
fn a_device_that_shares_survives_a_host_that_fails() {
    campaign("a_device_that_shares", 40, &bare(shares(rich())));
}
