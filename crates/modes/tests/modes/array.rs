//! The modes `sung` and `han` against a plain array of blocks.

use onefold_format::volume::{DeviceRole, VolumeDevice, VolumeLabel, VolumeMode, VolumeName};
use onefold_modes::{Areas, PartitionInfo, PartitionedVolume, format, inspect, open};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    Backing, Engine, GeometryError, IoFailed, MountError, Options, Range, ReadPlan, Refusal, Sent,
    drive, settle,
};

const BLOCK: usize = 4096;

/// A backing that counts what it gets.
struct Memory {
    bytes: Vec<u8>,
    written: u64,
    flushes: u64,
    reads: u64,
}

fn offset(at: u64) -> usize {
    usize::try_from(at).unwrap() * BLOCK
}

impl Backing for Memory {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.reads += 1;
        bytes.copy_from_slice(&self.bytes[offset(at)..offset(at) + bytes.len()]);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        self.written += (bytes.len() / BLOCK) as u64;
        self.bytes[offset(at)..offset(at) + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        self.flushes += 1;
        Ok(())
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        self.bytes[offset(at)..offset(at + blocks)].fill(0xDD);
        Ok(())
    }
}

fn label(mode: VolumeMode, blocks: u64, logical_blocks: u64) -> VolumeLabel {
    let partition = Areas::default_partition(mode, blocks);
    VolumeLabel {
        uuid: [7; 16],
        generation: 1,
        name: VolumeName::default(),
        mode,
        compat: 0,
        ro_compat: 0,
        incompat: 0,
        unit_blocks: 1,
        segment_blocks: if mode == VolumeMode::Sung { 2500 } else { partition },
        logical_blocks,
        op_basis_points: 2000,
        devices: vec![VolumeDevice {
            uuid: [8; 16],
            role: DeviceRole::Data,
            blocks,
            zone_blocks: 0,
        }],
    }
}

const MODES: [VolumeMode; 2] = [VolumeMode::Sung, VolumeMode::Han];
const BLOCKS: u64 = 10_240;

struct Rig {
    volume: Box<dyn Engine>,
    memory: Memory,
    model: Vec<u64>,
    now: Nanos,
    version: u64,
    options: Options,
}

fn stamp(lba: u64, version: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    if version > 0 {
        for (at, word) in block.chunks_mut(8).enumerate() {
            let value = lba ^ (version << 20) ^ ((at as u64) << 50);
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    block
}

impl Rig {
    fn new(mode: VolumeMode, logical: u64) -> Self {
        Self::with(mode, logical, Options::default())
    }

    fn with(mode: VolumeMode, logical: u64, options: Options) -> Self {
        let bytes = vec![0xEE; offset(BLOCKS)];
        let mut memory = Memory { bytes, written: 0, flushes: 0, reads: 0 };
        format(&mut memory, &label(mode, BLOCKS, logical)).unwrap();
        let (volume, recovery) = open(&mut memory, BLOCKS, options).unwrap();
        assert!(recovery.clean && recovery.batches == 0, "{recovery:?}");
        let model = vec![0; usize::try_from(logical).unwrap()];
        (memory.written, memory.flushes) = (0, 0);
        Self { volume, memory, model, now: Nanos::ZERO, version: 0, options }
    }

    fn step(&mut self) {
        self.now += Nanos::new(2_000_000);
        drive(&mut *self.volume, &mut self.memory, self.now);
        while let Some(done) = self.volume.poll_done() {
            assert!(done.result.is_ok(), "{done:?}");
        }
    }

    fn retry<T>(&mut self, mut what: impl FnMut(&mut dyn Engine) -> Result<T, Refusal>) -> T {
        for _ in 0..1000 {
            match what(&mut *self.volume) {
                Ok(done) => return done,
                Err(Refusal::Busy) => self.step(),
                Err(other) => panic!("{other:?}"),
            }
        }
        panic!("busy for ever: {:?} free {}", self.volume.stats(), self.volume.free_blocks());
    }

    fn write(&mut self, lba: u64, blocks: u64) {
        self.version += 1;
        let version = self.version;
        let data: Vec<u8> = (lba..lba + blocks).flat_map(|lba| stamp(lba, version)).collect();
        self.retry(|volume| {
            volume.write(1, Range { lba: Lba::new(lba), blocks }, Some(&data), false)
        });
        self.model[usize::try_from(lba).unwrap()..usize::try_from(lba + blocks).unwrap()]
            .fill(version);
    }

    fn trim(&mut self, lba: u64, blocks: u64) {
        let mut at = lba;
        while at < lba + blocks {
            let range = Range { lba: Lba::new(at), blocks: lba + blocks - at };
            at += self.retry(|volume| volume.trim(2, range));
        }
        self.model[usize::try_from(lba).unwrap()..usize::try_from(lba + blocks).unwrap()].fill(0);
    }

    fn read(&mut self, lba: u64, blocks: u64) {
        let mut buffer = vec![0xAA; offset(blocks)];
        let mut plan = ReadPlan::default();
        let range = Range { lba: Lba::new(lba), blocks };
        self.retry(|volume| volume.read(range, Some(&mut buffer), &mut plan));
        // Things go on while the host reads.
        self.step();
        for run in plan.runs() {
            let at = offset(run.block.into())..offset((run.block + run.blocks).into());
            self.memory.read(run.at.raw().into(), &mut buffer[at]).unwrap();
        }
        self.volume.end_read(&plan);
        for (lba, block) in (lba..lba + blocks).zip(buffer.chunks(BLOCK)) {
            let version = self.model[usize::try_from(lba).unwrap()];
            let found = (u64::from_le_bytes(block[..8].try_into().unwrap()) ^ lba) >> 20;
            assert!(
                block == stamp(lba, version),
                "block {lba} has version {found} instead of {version} of {}; {:?}",
                self.version,
                self.volume.stats()
            );
        }
    }

    fn read_all(&mut self) {
        let blocks = self.model.len() as u64;
        for lba in (0..blocks).step_by(200) {
            self.read(lba, 200.min(blocks - lba));
        }
        let mut at = 0;
        while at < blocks {
            let range = Range { lba: Lba::new(at), blocks: blocks - at };
            let (mapped, alike) = self.retry(|volume| volume.mapped(range));
            for lba in at..at + alike {
                assert_eq!(self.model[usize::try_from(lba).unwrap()] > 0, mapped, "block {lba}");
            }
            at += alike;
        }
    }

    fn reopen(&mut self, close: bool) {
        if close {
            self.volume.close();
            settle(&mut *self.volume, &mut self.memory, self.now);
            assert!(self.volume.is_idle());
        } else {
            self.volume.flush(3).unwrap();
            self.step();
        }
        assert_eq!(
            self.memory.written,
            self.volume.stats().sent_total(),
            "every block has a cause"
        );
        assert_eq!(self.memory.flushes, self.volume.stats().flushes_sent);
        let inspection = inspect(&mut self.memory, BLOCKS, true).unwrap();
        assert!(inspection.findings.is_empty(), "{:?}", inspection.findings);
        let mapped = self.model.iter().filter(|version| **version > 0).count() as u64;
        assert_eq!((inspection.mapped, inspection.checked), (mapped, mapped));
        self.memory.reads = 0;
        let (volume, recovery) = open(&mut self.memory, BLOCKS, self.options).unwrap();
        assert_eq!(recovery, inspection.recovery);
        assert_eq!(recovery.clean, close, "{recovery:?}");
        (self.memory.written, self.memory.flushes) = (0, 0);
        self.volume = volume;
        assert_eq!(self.volume.memory().valid_entries, mapped);
    }

    fn work(&mut self, rng: &mut Rng, steps: u32) {
        let blocks = self.model.len() as u64;
        for _ in 0..steps {
            let lba = rng.below(blocks);
            let most = |most: u64| most.min(blocks - lba);
            match rng.below(60) {
                0 => self.trim(lba, most(1500)),
                1..3 => self.trim(lba, most(20)),
                3..14 => self.read(lba, most(1 + rng.below(60))),
                14 => self.step(),
                15 => self.retry(|volume| volume.flush(4)),
                16 => self.volume.want_cleaning(),
                17 => self.write(lba, most(255)),
                _ => self.write(lba, most(1 + rng.below(40))),
            }
        }
    }
}

#[test]
fn random_work_with_cleaning_and_reopening() {
    for mode in MODES {
        let mut cleaned = 0;
        for seed in 0..3 {
            let mut rng = Rng::new(seed);
            let mut rig = Rig::new(mode, [7800, 5000, 1500][usize::try_from(seed).unwrap() % 3]);
            for round in 0..4 {
                rig.work(&mut rng, 500);
                rig.read_all();
                cleaned += rig.volume.stats().sent(Sent::Cleaning);
                rig.reopen(round % 2 == 0);
                rig.read_all();
            }
        }
        assert!(cleaned > 3000, "{mode:?}: {cleaned} blocks were moved");
    }
}

/// Under a cap tables leave memory and come back, and everything is as without.
#[test]
fn random_work_with_tables_that_leave_memory() {
    let mut faults = 0;
    for seed in 0..2 {
        let mut rng = Rng::new(seed);
        let options = Options { table_bytes: 80_000, ..Options::default() };
        let mut rig = Rig::with(VolumeMode::Sung, 7800, options);
        for round in 0..4 {
            rig.work(&mut rng, 300);
            rig.read_all();
            for _ in 0..5 {
                rig.step();
            }
            let memory = rig.volume.memory();
            // Two of four tables stay, whatever the cap.
            assert!(memory.real_bytes < 160_000, "{memory:?}");
            faults += rig.volume.stats().table_faults;
            rig.reopen(round % 2 == 0);
        }
    }
    assert!(faults > 50, "{faults} tables were read");
}

/// The example of Sung 2022, figures 4 to 6: three writes get blocks side by side, and overwriting
/// them the next ones.
#[test]
fn writes_are_placed_one_behind_the_other() {
    for mode in MODES {
        let mut rig = Rig::new(mode, 5000);
        let mut places = Vec::new();
        for (lba, blocks) in [(818, 1), (892, 2), (716, 1), (818, 1), (892, 2), (716, 1)] {
            rig.write(lba, blocks);
            rig.retry(|volume| volume.flush(1));
            rig.step();
            let volume = rig.volume.downcast_mut::<PartitionedVolume>().unwrap();
            places.push(volume.look_up(u32::try_from(lba).unwrap()).unwrap().raw());
        }
        assert_eq!(places, [64, 65, 67, 68, 69, 71], "{mode:?}");
        let memory = rig.volume.memory();
        assert_eq!((memory.valid_entries, memory.invalid_entries), (4, 4));
        assert_eq!(memory.paper_bytes, 8 * 12);
        // Each: data, FLUSH, log block, FLUSH.
        let stats = *rig.volume.stats();
        assert_eq!((stats.batches, stats.flushes_sent), (6, 12));
        assert_eq!((stats.sent(Sent::User), stats.sent(Sent::Header)), (8, 6));
    }
}

impl Rig {
    /// Where a block lies, once everything is committed.
    fn place(&mut self, lba: u32) -> u32 {
        let volume = self.volume.downcast_mut::<PartitionedVolume>().unwrap();
        volume.look_up(lba).unwrap().raw()
    }

    fn commit(&mut self) {
        self.retry(|volume| volume.flush(1));
        self.step();
    }

    /// The first partition.
    fn first(&self) -> PartitionInfo {
        let volume = self.volume.downcast_ref::<PartitionedVolume>().unwrap();
        volume.partition_infos().next().unwrap()
    }
}

/// The example of Han 2021, figure 4 (a): sectors 65536 (4 KiB) and 98304 (8 KiB) are written, the second is read, and the first
/// is written again: to the address after the last one, 12288 behind the start.
#[test]
fn the_table_of_han_follows_writes_and_overwrites() {
    let mut rig = Rig::new(VolumeMode::Han, 5000);
    rig.write(16, 1);
    rig.write(24, 2);
    rig.read(24, 2);
    rig.commit();
    let start = rig.place(16);
    assert_eq!((rig.place(24), rig.place(25)), (start + 1, start + 2));
    rig.write(16, 1);
    rig.commit();
    assert_eq!(rig.place(16), start + 3);
    assert_eq!((rig.first().valid, rig.first().invalid), (3, 1));
    rig.read_all();
}

/// The example of Han 2021, figure 5: of five blocks side by side the first and the third are invalid. The last one goes into the
/// first hole and the one before it into the second, and behind the third block everything is free.
#[test]
fn holes_of_han_are_plugged_from_the_tail() {
    let mut rig = Rig::new(VolumeMode::Han, 5000);
    for lba in [16, 2, 3, 24, 1] {
        rig.write(lba, 1);
    }
    rig.commit();
    let start = rig.place(16);
    let places = [2, 3, 24, 1].map(|lba| rig.place(lba) - start);
    assert_eq!(places, [1, 2, 3, 4]);
    // The rest of the partition was written and is invalid.
    let rest = u64::from(rig.first().blocks.end - start - 5);
    for at in (0..rest).step_by(200) {
        rig.write(1000 + at, 200.min(rest - at));
    }
    for (lba, blocks) in [(1000, rest), (16, 1), (3, 1)] {
        rig.trim(lba, blocks);
    }
    rig.commit();
    assert_eq!(rig.first().valid, 3);
    // The next write goes to the next partition.
    rig.write(30, 1);
    rig.commit();
    for _ in 0..10 {
        rig.step();
        rig.read(1, 1);
    }
    rig.commit();
    assert_eq!(rig.volume.stats().cleaned_segments, 1);
    assert_eq!([1, 2, 24].map(|lba| rig.place(lba) - start), [0, 1, 2]);
    assert_eq!((rig.first().valid, rig.first().invalid), (3, 0));
    rig.read_all();
}

/// Three commit triggers: 506 pairs, 5 s, FLUSH or FUA.
#[test]
fn transactions_are_committed_when_full_or_old_or_asked_for() {
    let mut rig = Rig::new(VolumeMode::Sung, 5000);
    rig.write(0, 253);
    rig.write(300, 252);
    rig.step();
    assert_eq!(rig.volume.stats().batches, 0);
    rig.write(700, 1);
    rig.step();
    assert_eq!(rig.volume.stats().batches, 1);
    rig.write(800, 1);
    let due = rig.volume.poll_timeout().unwrap();
    assert_eq!(due, rig.now + Nanos::new(5_000_000_000));
    rig.now = due;
    rig.step();
    assert_eq!(rig.volume.stats().batches, 2);
    let range = Range { lba: Lba::new(9), blocks: 1 };
    rig.retry(|volume| volume.write(1, range, Some(&[1; BLOCK]), true));
    rig.step();
    assert_eq!(rig.volume.stats().batches, 3);
}

/// While a partition of `han` is cleaned a second table serves reads, and all of it counts as
/// memory.
#[test]
fn the_temporary_table_counts() {
    for mode in MODES {
        let mut rig = Rig::new(mode, 2000);
        for round in 0..12 {
            for lba in (0..2000).step_by(100) {
                rig.write(lba, 100);
            }
            rig.write(round, 1);
            rig.step();
        }
        let memory = rig.volume.memory();
        assert!(memory.peak_real_bytes >= memory.peak_paper_bytes, "{memory:?}");
        let blocks = rig.volume.downcast_ref::<PartitionedVolume>().unwrap().areas().data_blocks();
        let doubled = memory.peak_paper_bytes > blocks * 12;
        assert_eq!(doubled, mode == VolumeMode::Han, "{memory:?}");
    }
}

/// The peak of memory has the two arrays of the cleaner, 8 B for each block of a partition, and the
/// overlay of changes that are not committed.
#[test]
fn arrays_of_the_cleaner_and_the_overlay_count() {
    let mut rig = Rig::new(VolumeMode::Sung, 2000);
    let commit = |rig: &mut Rig| {
        rig.retry(|volume| volume.flush(1));
        rig.step();
        rig.volume.memory().peak_real_bytes
    };
    let mut before = 0;
    for lba in (0..2000).step_by(50).chain((0..300).step_by(50)) {
        rig.write(lba, 50);
        before = commit(&mut rig);
    }
    rig.volume.want_cleaning();
    for _ in 0..10 {
        rig.step();
    }
    assert!(rig.volume.stats().cleaned_segments > 0);
    let cleaned = commit(&mut rig);
    assert!(cleaned >= before + 2 * 8 * 2500, "{before}, {cleaned}");
    let mut rig = Rig::new(VolumeMode::Sung, 2000);
    rig.write(0, 250);
    rig.write(250, 250);
    let peak = commit(&mut rig);
    let tables = rig.volume.memory().real_bytes;
    assert!(peak >= tables + 500 * 28, "{peak} with an overlay of 500 blocks, {tables} without");
}

/// Han 2021, sec. III-A: a partition with too much invalid data is cleaned, also long after writes left
/// it.
#[test]
fn partitions_of_han_with_too_many_holes_are_cleaned() {
    let cleaned = |clean_share| {
        let options = Options { clean_share, ..Options::default() };
        let mut rig = Rig::with(VolumeMode::Han, 5000, options);
        // One partition is full and has no hole when writes leave it.
        for lba in (0..2600).step_by(100) {
            rig.write(lba, 100);
        }
        for lba in (0..1500).step_by(100) {
            rig.write(lba, 100);
        }
        rig.retry(|volume| volume.flush(1));
        for _ in 0..10 {
            rig.step();
        }
        rig.read_all();
        rig.volume.stats().cleaned_segments
    };
    assert_eq!((cleaned(1.0), cleaned(0.7), cleaned(0.5)), (0, 0, 1));
}

/// What a replay makes of the log is what the volume had: places, holes, and the order of tables.
/// Log blocks are read many at a time.
#[test]
fn a_replay_gives_the_tables_that_were_lost() {
    for mode in MODES {
        let mut rng = Rng::new(5);
        let mut rig = Rig::new(mode, 5000);
        rig.write(0, 250);
        rig.reopen(true);
        // A partition that `han` leaves is cleaned, which ends with a checkpoint.
        let rounds = if mode == VolumeMode::Han { 12 } else { 32 };
        for round in 0..rounds {
            let lba = rng.below(3000);
            rig.write(lba, 1 + rng.below(250));
            if round % 4 == 0 {
                rig.trim(lba, 30);
                rig.retry(|volume| volume.flush(1));
                rig.step();
            }
        }
        rig.retry(|volume| volume.flush(1));
        rig.step();
        assert_eq!(rig.volume.stats().checkpoints, 0, "all is in the log");
        let tables = |rig: &mut Rig| {
            let volume = rig.volume.downcast_mut::<PartitionedVolume>().unwrap();
            let of = |lba: u64| {
                let range = Range { lba: Lba::new(lba), blocks: 1 };
                (volume.look_up(u32::try_from(lba).unwrap()), volume.searches(range))
            };
            let blocks: Vec<_> = (0..5000).map(of).collect();
            (blocks, volume.memory().valid_entries, volume.memory().invalid_entries)
        };
        let before = tables(&mut rig);
        assert!(before.2 > 300, "{} holes", before.2);
        rig.reopen(false);
        assert_eq!(tables(&mut rig), before, "{mode:?}");
        let reads = rig.memory.reads;
        assert!(reads < 20, "{mode:?}: {reads} reads");
    }
}

#[test]
fn tables_are_probed_newest_first() {
    let mut rig = Rig::new(VolumeMode::Sung, 7000);
    for lba in (0..7000).step_by(100) {
        rig.write(lba, 100);
    }
    rig.retry(|volume| volume.flush(1));
    rig.step();
    let mut probes = |lba| {
        rig.volume.pump(rig.now);
        let before = rig.volume.stats().map_probes;
        rig.read(lba, 1);
        rig.volume.stats().map_probes - before
    };
    assert_eq!((probes(6990), probes(10)), (1, 3), "three partitions of 2500 blocks are written");
}

#[test]
fn geometries_that_cannot_work_are_refused() {
    let refused = |mode, blocks, partition, logical| {
        let mut label = label(mode, blocks, logical);
        label.segment_blocks = partition;
        let mut memory =
            Memory { bytes: vec![0; offset(blocks)], written: 0, flushes: 0, reads: 0 };
        match format(&mut memory, &label).unwrap_err() {
            MountError::Geometry(error) => error,
            other => panic!("{other}"),
        }
    };
    for mode in MODES {
        let partition = Areas::default_partition(mode, BLOCKS);
        let error = refused(mode, BLOCKS, partition, BLOCKS);
        assert!(matches!(error, GeometryError::Logical { .. }), "{error}");
        let error = refused(mode, 1000, 200, 100);
        assert!(matches!(error, GeometryError::Partition { .. }), "{error}");
    }
    let error = refused(VolumeMode::Han, BLOCKS, 5000, 100);
    assert!(matches!(error, GeometryError::Partition { .. }), "{error}");
}
