//! Golden images: volumes that the code of the day left on a backing when they were made. Whatever
//! the code is like now, it has to find nothing wrong with them, open them, read what they hold,
//! and write to them.

use std::path::Path;

use onefold_format::volume::{VolumeLabel, VolumeName};
use onefold_testkit::Golden;
use onefold_units::convert::{index64, narrow, u64_from};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    Engine, MemberId, Options, Range, Refusal, SnapshotError, Volume, drive, read_label,
};

use super::disk::{Disk, Fate, Trimmed};
use super::image::{Image, block};
use super::rig::read_all;
use super::setup::Setup;
use super::stamp::{BLOCK, stamped};
use super::zones::{ZoneSetup, Zones};
use crate::engine::{inspect, open};

/// What a backing holds where nobody wrote.
const GARBAGE: [u8; BLOCK] = [0xEE; BLOCK];

/// What was written to a member: the operation that wrote each block, 0 for none.
type Held = Vec<u64>;

/// A volume that lives through some things.
pub(crate) struct Life {
    volume: Box<dyn Engine>,
    disk: Disk,
    now: u64,
    op: u64,
    pub(crate) members: Vec<(String, MemberId, Held)>,
}

impl Life {
    fn open(mut disk: Disk, setup: &Setup) -> Self {
        let (volume, _) = open(&mut disk, setup.file_blocks, setup.options).expect("it opens");
        let held = vec![0; index64(volume.logical_blocks())];
        let members = vec![("device".to_owned(), MemberId::DEVICE, held)];
        Self { volume, disk, now: 1, op: 0, members }
    }

    pub(crate) fn new(setup: &Setup) -> Self {
        let mut disk = setup.format();
        disk.trimmed = Trimmed::Zeroes;
        Self::open(disk, setup)
    }

    fn drive(&mut self) {
        self.now += 2_000_000;
        drive(&mut *self.volume, &mut self.disk, Nanos::new(self.now));
        while let Some(done) = self.volume.poll_done() {
            assert!(done.result.is_ok(), "{done:?}");
        }
    }

    fn retry<T>(&mut self, mut what: impl FnMut(&mut dyn Engine, u64) -> Option<T>) -> T {
        for _ in 0..1000 {
            if let Some(done) = what(&mut *self.volume, self.op) {
                return done;
            }
            self.drive();
        }
        panic!("busy for ever");
    }

    pub(crate) fn write(&mut self, member: usize, lba: u64, blocks: u64) {
        self.op += 1;
        let (id, data) = (self.members[member].1, stamped(self.op, lba, blocks));
        let range = Range { lba: Lba::new(lba), blocks };
        self.retry(|volume, op| {
            let taken = match volume.as_log_mut() {
                Some(volume) => volume.write_to(id, op, range, Some(&data), false),
                None => volume.write(op, range, Some(&data), false),
            };
            taken_or_busy(taken)
        });
        self.members[member].2[index64(lba)..index64(lba + blocks)].fill(self.op);
    }

    fn trim(&mut self, lba: u64, blocks: u64) {
        let mut at = lba;
        while at < lba + blocks {
            self.op += 1;
            let range = Range { lba: Lba::new(at), blocks: lba + blocks - at };
            at += self.retry(|volume, op| taken_or_busy(volume.trim(op, range)));
        }
        self.members[0].2[index64(lba)..index64(lba + blocks)].fill(0);
    }

    pub(crate) fn flush(&mut self) {
        self.op += 1;
        self.retry(|volume, op| taken_or_busy(volume.flush(op)));
        self.drive();
    }

    fn checkpoint(&mut self) {
        self.volume.want_checkpoint();
        self.drive();
    }

    /// A snapshot or clone of the device.
    pub(crate) fn make(
        &mut self,
        name: &str,
        how: fn(&mut Volume, u64, MemberId, &VolumeName) -> Result<(), SnapshotError>,
    ) {
        self.op += 1;
        let given = VolumeName::new(name).expect("a short name");
        self.retry(|volume, op| {
            let log = volume.as_log_mut().expect("a volume of mode log");
            match how(log, op, MemberId::DEVICE, &given) {
                Err(SnapshotError::Busy) => None,
                Ok(()) => Some(()),
                Err(error) => panic!("{name} cannot be made: {error}"),
            }
        });
        self.drive();
        let info = self.volume.as_log().and_then(|volume| volume.member(name));
        let held = self.members[0].2.clone();
        self.members.push((name.to_owned(), info.expect("it was made").id, held));
    }

    /// Some of everything, mostly in two map pages.
    pub(crate) fn use_it(&mut self) {
        let mut rng = Rng::new(self.op + 1);
        let last = self.volume.logical_blocks() - 8;
        for _ in 0..12 {
            let lba = [rng.below(40), rng.below(40), last - rng.below(40)][index64(rng.below(3))];
            self.write(0, lba, 1 + rng.below(5));
        }
        self.trim(3, 5);
        self.flush();
    }

    fn close(&mut self) {
        self.volume.close();
        self.drive();
        assert!(self.volume.frozen().is_some(), "it is closed");
    }

    /// What is on the backing now, and what the volume on it holds.
    pub(crate) fn golden(mut self, setup: &Setup) -> Golden {
        let image = self.disk.cut(&mut Rng::new(1), |_, _| Fate::Lost);
        // The model is right, or the image would be wrong for ever.
        let mut life = Self::open(Disk::new(image.clone()), setup);
        for (name, id, held) in &self.members {
            let found = life.read(*id);
            assert!(&found == held, "{name} does not hold what was written");
        }
        let mut golden = Golden::default();
        let mut fact =
            |name: &str, numbers: Vec<u64>| golden.facts.insert(name.to_owned(), numbers);
        fact("blocks", vec![image.blocks()]);
        for (name, _, held) in std::mem::take(&mut self.members) {
            fact(&format!("held.{name}"), held);
        }
        if let Some((setup, zones)) = setup.zones.zip(image.zones.as_ref()) {
            fact("zones", [setup.size, setup.capacity, setup.conventional].map(u64::from).to_vec());
            fact("written", zones.pointers().map(|(written, _)| written.into()).collect());
            fact("finished", zones.pointers().map(|(_, finished)| finished.into()).collect());
        }
        let differs = |at: &u64| image.get(*at)[..] != GARBAGE;
        golden.blocks = (0..image.blocks())
            .filter(differs)
            .map(|at| ((0, at), image.get(at).to_vec()))
            .collect();
        golden
    }

    fn read(&mut self, member: MemberId) -> Held {
        let all = 0..self.volume.logical_blocks();
        let found = read_all(&mut *self.volume, &mut self.disk, member, all).expect("readable");
        found.into_iter().map(|op| op.expect("it was looked at")).collect()
    }
}

fn taken_or_busy<T>(taken: Result<T, Refusal>) -> Option<T> {
    match taken {
        Err(Refusal::Busy) => None,
        taken => Some(taken.expect("there is room")),
    }
}

/// Used, checkpointed, used again and closed.
pub(crate) fn closed(setup: &Setup) -> Golden {
    let mut life = Life::new(setup);
    life.use_it();
    life.checkpoint();
    life.use_it();
    life.close();
    life.golden(setup)
}

/// The same, and power failed instead: a batch that was not flushed is there in part.
pub(crate) fn cut(setup: &Setup) -> Golden {
    let mut life = Life::new(setup);
    life.use_it();
    life.checkpoint();
    life.use_it();
    let before = life.members.clone();
    life.write(0, 50, 8);
    life.drive();
    life.members = before;
    let torn = life.disk.cut(&mut Rng::new(2), |n, _| if n == 0 { Fate::Torn } else { Fate::Lost });
    life.disk = Disk::new(torn);
    life.golden(setup)
}

/// The golden images of a test.
pub(crate) struct Images {
    /// Where they are.
    pub(crate) folder: &'static str,
    /// All of them.
    pub(crate) names: &'static [&'static str],
    /// How each is made.
    pub(crate) recipe: fn(&str) -> Golden,
}

impl Images {
    /// An image in the repository, as a backing.
    pub(crate) fn load(&self, name: &str) -> (Golden, Disk) {
        let golden = Golden::load(Path::new(self.folder), name, || (self.recipe)(name));
        let mut image = Image::new(golden.fact("blocks")[0]);
        for ((_, at), bytes) in &golden.blocks {
            image.set(*at, block(bytes));
        }
        if let Some(&[size, capacity, conventional]) = golden.facts.get("zones").map(Vec::as_slice)
        {
            let [size, capacity, conventional] = [size, capacity, conventional].map(narrow);
            let setup = ZoneSetup { size, capacity, limit: None, conventional };
            let written = golden.fact("written").iter().map(|written| narrow(*written));
            let finished = golden.fact("finished").iter().map(|finished| *finished > 0);
            image.zones = Some(Zones::with_pointers(setup, written.zip(finished)));
        }
        let mut disk = Disk::new(image);
        disk.trimmed = Trimmed::Zeroes;
        (golden, disk)
    }

    /// Nothing is wrong with them, they open, and they hold what was written.
    pub(crate) fn assert_clean(&self) {
        for name in self.names {
            let (golden, mut disk) = self.load(name);
            let blocks = golden.fact("blocks")[0];
            let looked =
                inspect(&mut disk, blocks, true).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(looked.findings, [], "{name}");
            assert_eq!(
                looked.recovery.clean,
                !name.ends_with("-cut") && *name != "log-family",
                "{name}"
            );
            let (mut volume, _) = open(&mut disk, blocks, Options::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut members = 0;
            for (member, held) in golden.facts_of("held") {
                let log = volume.as_log();
                let id = match log.and_then(|log| log.member(member)) {
                    Some(info) => info.id,
                    None if member == "device" => MemberId::DEVICE,
                    None => panic!("{name}: {member} is gone"),
                };
                let found = read_all(&mut *volume, &mut disk, id, 0..u64_from(held.len()))
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                let same = found.iter().map(|op| op.expect("looked at")).eq(held.iter().copied());
                assert!(same, "{name}: {member} holds something else");
                members += 1;
            }
            assert_eq!(members, if *name == "log-family" { 3 } else { 1 }, "{name}");
        }
    }

    /// They can be used on, and what comes of that is clean.
    pub(crate) fn assert_writable(&self) {
        for name in self.names {
            let (golden, disk) = self.load(name);
            let setup = Setup::of(golden.fact("blocks")[0], 1, Options::default());
            let mut life = Life::open(disk, &setup);
            life.members[0].2 = golden.fact("held.device").to_vec();
            life.op = 1000;
            life.use_it();
            life.close();
            let held = life.members[0].2.clone();
            let looked = inspect(&mut life.disk, setup.file_blocks, true).expect("a volume");
            assert!(
                looked.findings.is_empty() && looked.recovery.clean,
                "{name}: {:?}",
                looked.findings
            );
            let found = Life::open(life.disk, &setup).read(MemberId::DEVICE);
            assert!(found == held, "{name} holds something else");
        }
    }

    /// Their labels.
    pub(crate) fn labels(&self) -> Vec<VolumeLabel> {
        let label = |name: &&str| {
            let (golden, mut disk) = self.load(name);
            read_label(&mut disk, golden.fact("blocks")[0]).expect("a label")
        };
        self.names.iter().map(label).collect()
    }

    /// The folder holds these and no others.
    pub(crate) fn assert_all_known(&self) {
        let mut names = self.names.to_vec();
        names.sort_unstable();
        assert_eq!(Golden::names(Path::new(self.folder)), names);
    }
}
