//! Power cuts under a whole stack: a volume on a zoned volume on two devices with volatile caches.
//! Each layer promises what the one above relies on, so what the top promised has to hold.

#[expect(
    dead_code,
    reason = "some of it is for the zoned volume alone, whose tests have it as well"
)]
#[path = "../../../zoned/tests/zoned/disk.rs"]
mod disk;

use std::collections::BTreeMap;

use disk::Disks;
use onefold_format::volume::{VolumeLabel, VolumeMode};
use onefold_testkit::for_each_seed;
use onefold_units::convert::u32_from;
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{Engine, Geometry, IoFailed, Range, ReadPlan, Refusal};
use onefold_zoned::{Action, DeviceZones, Identity, Request, ZoneReport};

const BLOCK: usize = 4096;
const ZONE_BLOCKS: u32 = 256;
const SEGMENT_BLOCKS: u32 = 64;

/// Devices whose power fails after so many requests, the last of which may have happened.
struct Fused {
    disks: Disks,
    left: u64,
}

impl Fused {
    fn use_up(&mut self) -> Result<(), IoFailed> {
        self.left = self.left.checked_sub(1).ok_or(IoFailed::Error)?;
        Ok(())
    }

    fn is_dead(&self) -> bool {
        self.left == 0
    }
}

impl onefold_zoned::Backing for Fused {
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.use_up()?;
        self.disks.read(device, at, bytes)
    }

    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.use_up()?;
        self.disks.write(device, at, bytes)
    }

    fn flush(&mut self, device: usize) -> Result<(), IoFailed> {
        self.use_up()?;
        self.disks.flush(device)
    }

    fn reset(&mut self, device: usize, at: u64) -> Result<(), IoFailed> {
        self.use_up()?;
        self.disks.reset(device, at)
    }

    fn report(&mut self, device: usize, at: u64) -> Result<ZoneReport, IoFailed> {
        self.use_up()?;
        self.disks.report(device, at)
    }
}

/// The zoned volume, as the place below a volume.
struct Lower {
    zoned: onefold_zoned::Volume,
    devices: Fused,
    now: Nanos,
    tag: u64,
}

impl Lower {
    fn run(&mut self, request: Request) -> Result<Vec<u8>, IoFailed> {
        self.tag += 1;
        self.now += Nanos::new(1_000_000);
        self.zoned.submit(self.now, self.tag, request).map_err(|_| IoFailed::Error)?;
        loop {
            onefold_zoned::drive(&mut self.zoned, &mut self.devices, self.now);
            if self.devices.is_dead() {
                return Err(IoFailed::Error);
            }
            if let Some(done) = self.zoned.poll_done() {
                assert_eq!(done.tag, self.tag);
                return done.result.map(|()| done.data).map_err(|_| IoFailed::Error);
            }
            self.now = self.zoned.poll_timeout().expect("a request waits for time").max(self.now);
            self.zoned.handle_timeout(self.now);
        }
    }
}

impl onefold_volume::Backing for Lower {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        let blocks = u32_from(bytes.len() / BLOCK);
        bytes.copy_from_slice(&self.run(Request::Read { lba: at, blocks })?);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let blocks = u32_from(bytes.len() / BLOCK);
        let data = bytes.to_vec();
        self.run(Request::Write { lba: at, blocks, fua: false, data }).map(|_| ())
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        self.run(Request::Flush).map(|_| ())
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        let blocks = onefold_units::convert::narrow(blocks);
        self.run(Request::Discard { lba: at, blocks }).map(|_| ())
    }
}

/// Both layers.
struct Stack {
    volume: Box<dyn Engine>,
    lower: Lower,
}

/// A device for random writes, and one with zones.
const DEVICES: [DeviceZones; 2] = [
    DeviceZones { conventional: 10, sequential: 0 },
    DeviceZones { conventional: 0, sequential: 50 },
];

fn geometry() -> onefold_zoned::Geometry {
    onefold_zoned::Geometry::new(ZONE_BLOCKS, DEVICES.to_vec()).expect("a geometry of tests")
}

fn format() -> (Disks, u64) {
    let geometry = geometry();
    let mut disks = Disks::new(ZONE_BLOCKS, &DEVICES);
    let identity = Identity { label: [0; 32], uuid: [7; 16], device_uuids: vec![[8; 16]; 2] };
    onefold_zoned::format(&mut disks, &geometry, &identity).expect("fresh devices");
    let Ok(mut lower) = open_lower(disks, u64::MAX) else { panic!("fresh devices") };
    let blocks = lower.zoned.blocks();
    let label = label(blocks);
    onefold_modes::format(&mut lower, &label).expect("a fresh zoned volume");
    (lower.devices.disks, blocks)
}

/// Log segments on a half of what the zoned volume exports.
fn label(backing_blocks: u64) -> VolumeLabel {
    let geometry = Geometry {
        backing_blocks,
        segment_blocks: SEGMENT_BLOCKS,
        zone_blocks: 0,
        unit_blocks: 1,
        logical_blocks: backing_blocks / 2,
        compress: None,
    };
    geometry.label(VolumeMode::Log, [[7; 16], [8; 16]])
}

fn open_lower(disks: Disks, fuse: u64) -> Result<Lower, Disks> {
    let mut devices = Fused { disks, left: fuse };
    let options = onefold_zoned::Options::default();
    match onefold_zoned::mount(&mut devices, &geometry(), options, Nanos::ZERO) {
        Ok((zoned, _)) => Ok(Lower { zoned, devices, now: Nanos::ZERO, tag: 0 }),
        Err(error) => {
            assert!(devices.is_dead(), "the zoned volume: {error}");
            Err(devices.disks)
        }
    }
}

impl Stack {
    /// Opens both layers. Power may fail on the way.
    fn open(disks: Disks, fuse: u64, blocks: u64) -> Result<Self, Disks> {
        let mut lower = open_lower(disks, fuse)?;
        let options = onefold_volume::Options::default();
        match onefold_modes::open(&mut lower, blocks, options) {
            Ok((volume, _)) => Ok(Self { volume, lower }),
            Err(error) => {
                assert!(lower.devices.is_dead(), "the volume: {error}");
                Err(lower.devices.disks)
            }
        }
    }

    fn drive(&mut self) {
        let now = self.lower.now;
        onefold_volume::drive(&mut *self.volume, &mut self.lower, now);
        while self.volume.poll_done().is_some() {}
    }

    /// Whether power is still there.
    fn lives(&self) -> bool {
        !self.lower.devices.is_dead()
    }

    fn write(&mut self, range: Range, data: &[u8]) {
        while self.lives() {
            match self.volume.write(1, range, Some(data), false) {
                Ok(()) => break,
                Err(Refusal::Busy) => self.drive(),
                Err(refusal) => panic!("{refusal}"),
            }
        }
        self.drive();
    }

    /// Whether everything before is durable.
    fn flush(&mut self) -> bool {
        if self.volume.flush(2).is_err() {
            return false;
        }
        for _ in 0..100 {
            let now = self.lower.now;
            onefold_volume::drive(&mut *self.volume, &mut self.lower, now);
            while let Some(done) = self.volume.poll_done() {
                if done.tag == 2 {
                    return done.result.is_ok();
                }
            }
            self.lower.now += Nanos::new(10_000_000);
            if !self.lives() {
                return false;
            }
        }
        panic!("a flush ends");
    }

    fn version(&mut self, lba: u64) -> u64 {
        let (mut block, mut plan) = (vec![0; BLOCK], ReadPlan::default());
        let range = Range { lba: Lba::new(lba), blocks: 1 };
        // A part of the map may have to be read first.
        while let Err(refusal) = self.volume.read(range, Some(&mut block), &mut plan) {
            assert_eq!(refusal, Refusal::Busy);
            self.drive();
            self.lower.now += Nanos::new(10_000_000);
        }
        for run in plan.runs().to_vec() {
            let at = run.at.raw().into();
            onefold_volume::Backing::read(&mut self.lower, at, &mut block).expect("it can be read");
        }
        assert!(plan.complete(&mut block).is_empty(), "block {lba} is damaged");
        self.volume.end_read(&plan);
        version_of(&block, lba)
    }
}

fn stamp(lba: u64, version: u64) -> Vec<u8> {
    [lba, version].map(u64::to_le_bytes).concat().repeat(BLOCK / 16)
}

fn version_of(block: &[u8], lba: u64) -> u64 {
    if block.iter().all(|byte| *byte == 0) {
        return 0;
    }
    let version = u64::from_le_bytes(block[8..16].try_into().expect("eight bytes"));
    assert_eq!(block, stamp(lba, version), "block {lba} holds something else");
    version
}

/// What blocks may hold: the version of the last flush, and those since.
type Model = BTreeMap<u64, Vec<u64>>;

/// Writes and flushes until power fails or enough was done.
fn work(stack: &mut Stack, model: &mut Model, (rng, version): (&mut Rng, &mut u64)) {
    // A part of the volume, so that it is overwritten and cleaned.
    let blocks = stack.volume.logical_blocks() * 3 / 4;
    for _ in 0..2_000 {
        if rng.below(40) == 0 {
            if stack.flush() {
                for versions in model.values_mut() {
                    versions.drain(..versions.len() - 1);
                }
            }
        } else {
            let count = 1 + rng.below(16);
            let lba = rng.below(blocks - count);
            *version += 1;
            let data: Vec<u8> = (lba..lba + count).flat_map(|lba| stamp(lba, *version)).collect();
            for lba in lba..lba + count {
                model.entry(lba).or_insert_with(|| vec![0]).push(*version);
            }
            stack.write(Range { lba: Lba::new(lba), blocks: count }, &data);
        }
        if !stack.lives() {
            return;
        }
    }
}

#[test]
fn what_a_volume_on_a_zoned_volume_promised_survives_power_cuts() {
    let (mut seeds, mut cleaned, mut reclaims) = (0, 0, 0);
    let name = ("onefold-device", "device", "what_a_volume_on_a_zoned_volume_promised");
    for_each_seed(name, 20, |seed| {
        seeds += 1;
        let mut rng = Rng::new(seed);
        let (mut disks, blocks) = format();
        let (mut model, mut version) = (Model::new(), 0);
        for _ in 0..4 {
            let fuse = 20 + rng.below(6_000);
            let mut stack = match Stack::open(disks, fuse, blocks) {
                Ok(stack) => stack,
                Err(cut) => {
                    disks = cut.cut(&mut rng);
                    continue;
                }
            };
            work(&mut stack, &mut model, (&mut rng, &mut version));
            cleaned += stack.volume.stats().cleaned_segments;
            let stats = stack.lower.zoned.stats();
            reclaims +=
                Action::ALL.map(|action| stats.reclaims(action).completed).iter().sum::<u64>();
            disks = stack.lower.devices.disks.cut(&mut rng);
            let Ok(mut stack) = Stack::open(disks, u64::MAX, blocks) else {
                panic!("it opens where power is there")
            };
            for (lba, versions) in &mut model {
                let found = stack.version(*lba);
                assert!(versions.contains(&found), "block {lba}: {found}, expected {versions:?}");
                *versions = vec![found];
            }
            assert!(stack.flush(), "it goes on");
            disks = stack.lower.devices.disks;
        }
    });
    // One seed may meet power too early for that.
    assert!(seeds < 10 || (cleaned > 0 && reclaims > 0), "both layers clean");
}
