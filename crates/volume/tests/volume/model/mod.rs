//! A volume against plain arrays of blocks, one for each member of its family.

mod cleaning;
mod family;
mod full;
mod padding;
mod remap;
mod thin;

use std::collections::BTreeMap;

use onefold_format::volume::{DeviceRole, VolumeDevice, VolumeLabel, VolumeMode, VolumeName};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    Acknowledge, Backing, IoFailed, IoKind, MemberId, Options, Range, ReadPlan, Refusal,
    Relocation, Volume, drive, execute, format, inspect, mount, settle,
};

const BLOCK: usize = 4096;

struct Memory {
    bytes: Vec<u8>,
    /// It can remap blocks.
    remaps: bool,
}

impl Backing for Memory {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        let at = usize::try_from(at).unwrap() * BLOCK;
        bytes.copy_from_slice(&self.bytes[at..at + bytes.len()]);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let at = usize::try_from(at).unwrap() * BLOCK;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        Ok(())
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        let at = usize::try_from(at).unwrap() * BLOCK;
        self.bytes[at..at + usize::try_from(blocks).unwrap() * BLOCK].fill(0xDD);
        Ok(())
    }

    fn remap(&mut self, list: &[Relocation]) -> Result<(), IoFailed> {
        if !self.remaps {
            return Err(IoFailed::Error);
        }
        for Relocation { to, from, blocks } in list {
            let of = |at: u32| usize::try_from(at).unwrap() * BLOCK;
            let sources = of(from.raw())..of(from.raw() + blocks);
            self.bytes.copy_within(sources, of(to.raw()));
        }
        Ok(())
    }
}

fn label(blocks: u64, logical_blocks: u64, segment_blocks: u32, unit_blocks: u32) -> VolumeLabel {
    VolumeLabel {
        uuid: [7; 16],
        generation: 1,
        name: VolumeName::default(),
        mode: VolumeMode::Log,
        compat: 0,
        ro_compat: 0,
        incompat: 0,
        unit_blocks,
        segment_blocks,
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

/// The tag of changes of the family.
const CHANGE: u64 = 99;

struct Rig {
    volume: Volume,
    memory: Memory,
    models: BTreeMap<MemberId, Vec<u64>>,
    /// Changes of the family that were reported done.
    changes: u64,
    now: Nanos,
    options: Options,
    version: u64,
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
    fn new(blocks: u64, logical: u64, options: Options) -> Self {
        Self::of_segments(64, blocks, logical, options)
    }

    fn of_segments(segment: u32, blocks: u64, logical: u64, options: Options) -> Self {
        Self::of_units((segment, 1), blocks, logical, options)
    }

    fn of_units((segment, unit): (u32, u32), blocks: u64, logical: u64, options: Options) -> Self {
        let mut memory =
            Memory { bytes: vec![0xEE; usize::try_from(blocks).unwrap() * BLOCK], remaps: true };
        format(&mut memory, &label(blocks, logical, segment, unit)).unwrap();
        let (volume, recovery) = mount(&mut memory, blocks, options).unwrap();
        assert_eq!(recovery.batches, 1, "the first checkpoint, {recovery:?}");
        let model = vec![0; usize::try_from(logical).unwrap()];
        let models = BTreeMap::from([(MemberId::DEVICE, model)]);
        Self { volume, memory, models, changes: 0, now: Nanos::ZERO, options, version: 0 }
    }

    fn step(&mut self) {
        self.now += Nanos::new(2_000_000);
        drive(&mut self.volume, &mut self.memory, self.now);
        while let Some(done) = self.volume.poll_done() {
            assert!(done.result.is_ok(), "{done:?}");
            self.changes += u64::from(done.tag == CHANGE);
        }
    }

    /// Lets the volume go on once and carries out what it asks for then. Gives the number of reads.
    fn turn(&mut self) -> u64 {
        self.volume.pump(self.now);
        let requests: Vec<_> = std::iter::from_fn(|| self.volume.poll_io()).collect();
        for io in &requests {
            let result = execute(&mut self.volume, &mut self.memory, *io);
            self.volume.completed(self.now, io.id, result);
        }
        requests.iter().filter(|io| io.kind == IoKind::Read).count() as u64
    }

    fn retry(&mut self, what: impl FnMut(&mut Self) -> Result<(), Refusal>) {
        self.ask(what).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    }

    /// Asks again as long as the volume is busy.
    fn ask<T>(
        &mut self,
        mut what: impl FnMut(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        for _ in 0..1000 {
            match what(self) {
                Err(Refusal::Busy) => self.step(),
                other => return other,
            }
        }
        panic!("busy for ever: {:?} free {}", self.volume.stats(), self.volume.free_segments());
    }

    fn blocks(&self) -> u64 {
        self.models[&MemberId::DEVICE].len() as u64
    }

    /// What a member has to hold.
    fn set(&mut self, member: MemberId, lba: u64, blocks: u64, version: u64) {
        let (from, end) = (usize::try_from(lba).unwrap(), usize::try_from(lba + blocks).unwrap());
        self.models.get_mut(&member).unwrap()[from..end].fill(version);
    }

    fn write(&mut self, lba: u64, blocks: u64) {
        self.write_to(MemberId::DEVICE, lba, blocks);
    }

    fn write_to(&mut self, member: MemberId, lba: u64, blocks: u64) {
        self.try_write(member, lba, blocks).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    }

    /// Writes blocks if there is space, as many at once as the volume takes.
    fn try_write(&mut self, member: MemberId, lba: u64, blocks: u64) -> Result<(), Refusal> {
        let most = u64::from(self.volume.write_blocks_max());
        for at in (lba..lba + blocks).step_by(usize::try_from(most).unwrap()) {
            self.version += 1;
            let (version, blocks) = (self.version, most.min(lba + blocks - at));
            let data: Vec<u8> = (at..at + blocks).flat_map(|lba| stamp(lba, version)).collect();
            let range = Range { lba: Lba::new(at), blocks };
            self.ask(|rig| rig.volume.write_to(member, 1, range, Some(&data), false))?;
            self.set(member, at, blocks, version);
        }
        Ok(())
    }

    fn trim(&mut self, lba: u64, blocks: u64) {
        self.trim_of(MemberId::DEVICE, lba, blocks);
    }

    fn trim_of(&mut self, member: MemberId, lba: u64, blocks: u64) {
        let mut at = lba;
        while at < lba + blocks {
            let mut taken = 0;
            self.retry(|rig| {
                let range = Range { lba: Lba::new(at), blocks: lba + blocks - at };
                taken = rig.volume.trim_of(member, 2, range)?;
                Ok(())
            });
            at += taken;
        }
        self.set(member, lba, blocks, 0);
    }

    fn read(&mut self, lba: u64, blocks: u64) {
        self.read_from(MemberId::DEVICE, lba, blocks);
    }

    fn read_from(&mut self, member: MemberId, lba: u64, blocks: u64) {
        let mut buffer = vec![0xAA; usize::try_from(blocks).unwrap() * BLOCK];
        let mut plan = ReadPlan::default();
        let range = Range { lba: Lba::new(lba), blocks };
        self.retry(|rig| rig.volume.read_from(member, range, Some(&mut buffer), &mut plan));
        for run in plan.runs() {
            let at = run.block as usize * BLOCK;
            let end = at + run.blocks as usize * BLOCK;
            self.memory.read(run.at.raw().into(), &mut buffer[at..end]).unwrap();
        }
        assert_eq!(plan.complete(&mut buffer).len(), 0);
        self.volume.end_read(&plan);
        for (at, lba) in (lba..lba + blocks).enumerate() {
            let version = self.models[&member][usize::try_from(lba).unwrap()];
            let expected = stamp(lba, version);
            let found = u64::from_le_bytes(buffer[at * BLOCK..at * BLOCK + 8].try_into().unwrap());
            let found = (found ^ lba) >> 20;
            assert!(
                buffer[at * BLOCK..(at + 1) * BLOCK] == expected,
                "block {lba} of {member:?} has version {found} instead of {version} of {}; {:?}",
                self.version,
                self.volume.stats()
            );
        }
    }

    fn read_all(&mut self) {
        let blocks = self.blocks();
        for member in self.models.keys().copied().collect::<Vec<_>>() {
            for lba in (0..blocks).step_by(200) {
                self.read_from(member, lba, 200.min(blocks - lba));
            }
        }
    }

    fn reopen(&mut self, close: bool) {
        self.step();
        if close {
            self.volume.close();
            settle(&mut self.volume, &mut self.memory, self.now);
        } else {
            self.volume.flush(3).unwrap();
            self.step();
        }
        let blocks = (self.memory.bytes.len() / BLOCK) as u64;
        let inspection = inspect(&mut self.memory, blocks, true).unwrap();
        assert!(inspection.findings.is_empty(), "{:?}", inspection.findings);
        let (volume, recovery) = mount(&mut self.memory, blocks, self.options).unwrap();
        assert_eq!(recovery, inspection.recovery);
        assert_eq!(recovery.clean, close, "{recovery:?}");
        self.volume = volume;
    }
}

fn options() -> Options {
    Options { batch_blocks: 16, batches: 32, checkpoint_blocks: 1024, ..Options::default() }
}

fn random_work(rig: &mut Rig, rng: &mut Rng, steps: u32, big_trims: bool) {
    let blocks = rig.blocks();
    for _ in 0..steps {
        let lba = rng.below(blocks);
        let most = |most: u64| most.min(blocks - lba);
        match rng.below(40) {
            0 if big_trims => rig.trim(lba, most(3000)),
            0 | 1 => rig.trim(lba, most(20)),
            2..10 => rig.read(lba, most(1 + rng.below(60))),
            10 => rig.step(),
            11 => rig.retry(|rig| rig.volume.flush(4)),
            _ => rig.write(lba, most(1 + rng.below(40))),
        }
    }
}

#[test]
fn random_work_with_cleaning_and_reopening() {
    let (mut cleaned, mut recounted) = (0, 0);
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let map_pages = if seed % 2 == 0 { usize::MAX } else { 4 };
        let mut rig = Rig::new(64 * 160, 7600, Options { map_pages, ..options() });
        for round in 0..6 {
            random_work(&mut rig, &mut rng, 600, seed % 3 == 0);
            rig.read_all();
            if let Some(wrong) = rig.volume.recount() {
                assert!(wrong.is_empty(), "{wrong:?}");
                recounted += 1;
            }
            cleaned += rig.volume.stats().cleaned_segments;
            rig.reopen(round % 2 == 0);
            rig.read_all();
        }
    }
    assert!(recounted > 20, "{recounted} recounts");
    assert!(cleaned > 100, "{cleaned} log segments were cleaned");
}

/// Blocks that are found damaged when a bit of one that is read was changed.
fn found_damaged(verify: bool) -> usize {
    let mut rig = Rig::new(64 * 160, 6000, Options { verify, ..options() });
    rig.write(5, 1);
    rig.retry(|rig| rig.volume.flush(1));
    rig.step();
    let mut buffer = vec![0; BLOCK];
    let mut plan = ReadPlan::default();
    let range = Range { lba: Lba::new(5), blocks: 1 };
    rig.volume.read(range, Some(&mut buffer), &mut plan).unwrap();
    rig.memory.read(plan.runs()[0].at.raw().into(), &mut buffer).unwrap();
    buffer[100] ^= 1;
    rig.volume.end_read(&plan);
    plan.complete(&mut buffer).len()
}

#[test]
fn what_is_read_is_checked_unless_that_is_switched_off() {
    assert_eq!(found_damaged(true), 1);
    assert_eq!(found_damaged(false), 0);
}

#[test]
fn pages_that_make_room_are_counted() {
    let mut rig = Rig::new(64 * 160, 7600, Options { map_pages: 4, ..options() });
    for lba in (0..7600).step_by(100) {
        rig.write(lba, 60);
    }
    rig.read_all();
    let stats = rig.volume.stats();
    assert!(stats.map_evictions > 0 && stats.map_faults > 0, "{stats:?}");
}

/// An opened volume reads its map in long requests, after it is open and only if all of it may be in memory.
#[test]
fn an_opened_volume_reads_its_map() {
    const PAGES: usize = 12;
    for (map_pages, all) in [(usize::MAX, true), (PAGES - 1, false)] {
        let options = Options { preload: 128, map_pages, ..options() };
        let mut rig = Rig::new(64 * 260, 1024 * PAGES as u64, options);
        for round in 0..3 {
            for lba in (0..rig.blocks()).step_by(40) {
                rig.write(lba, 1 + round);
            }
        }
        rig.reopen(true);
        // Its checkpoint needed some.
        let before = rig.volume.resident_pages();
        assert!(before <= 4, "{before} pages were read by the opening");
        let requests = drive(&mut rig.volume, &mut rig.memory, rig.now);
        assert_eq!(rig.volume.resident_pages(), if all { PAGES } else { before });
        assert!(
            requests < 12,
            "{requests} requests for {PAGES} pages of two blocks and their runs"
        );
        let faults = rig.volume.stats().map_faults;
        rig.read_all();
        assert_eq!(rig.volume.stats().map_faults == faults, all);
    }
}

/// Few requests of what is read in the background are under way at a time.
#[test]
fn what_is_read_in_the_background_leaves_room_for_others() {
    const PAGES: u64 = 12;
    let options = Options { preload: 2, ..options() };
    let mut rig = Rig::new(64 * 260, 1024 * PAGES, options);
    // Each opening ends without being closed, so images and runs lie here and there.
    for round in 0..4 {
        for page in 0..PAGES {
            rig.write(page * 1024 + round, 100);
        }
        rig.reopen(false);
    }
    let reads: Vec<u64> = (0..100).map(|_| rig.turn()).collect();
    let (most, all) = (reads.iter().max(), reads.iter().sum::<u64>());
    assert_eq!(rig.volume.resident_pages(), 12, "all of the map is read");
    assert!(most == Some(&2) && all > 2, "{most:?} of {all} reads were under way at once");
}

/// A volume that is closed leaves no runs, and all pages side by side.
#[test]
fn closing_writes_all_of_the_map() {
    const PAGES: u64 = 12;
    // Three checkpoints sweep over all pages, so there are two runs at least.
    let options = Options { preload: 128, checkpoint_blocks: 40, ..options() };
    let mut rig = Rig::new(64 * 260, 1024 * PAGES, options);
    for round in 0..40 {
        for page in 0..PAGES {
            rig.write(page * 1024 + round * 20, 20);
        }
    }
    // Opened and closed without having been read, it stays as it was.
    for _ in 0..2 {
        rig.reopen(true);
    }
    let reads: u64 = (0..10).map(|_| rig.turn()).sum();
    assert!(reads <= 2, "{reads} reads for two blocks of each page, all side by side");
    assert_eq!(rig.volume.resident_pages(), 12);
    rig.read_all();
}

/// What a power cut left to be counted is counted after the opening, or a large volume would not answer for long.
#[test]
fn an_opening_does_not_wait_until_all_is_counted() {
    let mut rig = Rig::new(64 * 260, 12_288, options());
    rig.reopen(true);
    for lba in (0..12_288).step_by(40) {
        rig.write(lba, 1);
    }
    rig.reopen(false);
    let opened = rig.volume.resident_pages();
    assert!(opened <= 4, "{opened} of 12 pages were read by the opening");
    drive(&mut rig.volume, &mut rig.memory, rig.now);
    assert_eq!(rig.volume.resident_pages(), 12);
    assert!(rig.volume.recount().is_some_and(|wrong| wrong.is_empty()));
}

/// Blocks whose batch nobody waits for are sent together: when their time has come, a flush asks for them, or they are many and the
/// backing has nothing to do.
#[test]
fn batches_that_nobody_waits_for_wait_for_more() {
    let options = Options { acknowledge: Acknowledge::Buffered, ..Options::default() };
    let mut rig = Rig::of_segments(128, 128 * 150, 5000, options);
    let sent = |rig: &Rig| rig.volume.stats().batches;
    let before = sent(&rig);
    // Nobody looked at the volume for longer than a batch waits.
    rig.now += options.batch_age + options.batch_age;
    for lba in 0..10 {
        rig.write(lba, 1);
        drive(&mut rig.volume, &mut rig.memory, rig.now);
    }
    rig.step();
    assert_eq!(sent(&rig), before);
    rig.now += options.batch_age;
    rig.step();
    assert_eq!(sent(&rig), before + 1, "after a second");
    rig.write(20, 1);
    rig.volume.flush(9).unwrap();
    assert_eq!(sent(&rig), before + 2, "at a flush");
    rig.step();
    for lba in 100..162 {
        rig.write(lba, 1);
        drive(&mut rig.volume, &mut rig.memory, rig.now);
    }
    let waits = sent(&rig);
    rig.write(162, 1);
    drive(&mut rig.volume, &mut rig.memory, rig.now);
    assert_eq!(sent(&rig), waits + 1, "many of them");
}
