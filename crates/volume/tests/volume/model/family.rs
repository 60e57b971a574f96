//! Snapshots and clones: each holds what it held when it was made, and what was written to it since.

use onefold_format::volume::VolumeName;
use onefold_units::{Lba, Rng};
use onefold_volume::{MemberId, Options, Range, Refusal, SnapshotError};

use super::{BLOCK, CHANGE, Rig, options, random_work};

fn name(text: &str) -> VolumeName {
    VolumeName::new(text).unwrap()
}

impl Rig {
    /// Waits for a change of the family if it is taken.
    fn change(
        &mut self,
        mut what: impl FnMut(&mut Self) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        let before = self.changes;
        for _ in 0..1000 {
            match what(self) {
                Err(SnapshotError::Busy) => self.step(),
                other => {
                    other?;
                    for _ in 0..1000 {
                        if self.changes > before {
                            return Ok(());
                        }
                        self.step();
                    }
                    panic!("never done");
                }
            }
        }
        panic!("busy for ever");
    }

    pub(crate) fn make(&mut self, of: MemberId, text: &str, writable: bool) -> MemberId {
        self.try_make(of, text, writable).unwrap()
    }

    pub(crate) fn try_make(
        &mut self,
        of: MemberId,
        text: &str,
        writable: bool,
    ) -> Result<MemberId, SnapshotError> {
        self.change(|rig| {
            let make = if writable {
                onefold_volume::Volume::make_clone
            } else {
                onefold_volume::Volume::make_snapshot
            };
            make(&mut rig.volume, CHANGE, of, &name(text))
        })?;
        let info = self.volume.member(text).unwrap();
        assert_eq!(info.writable, writable);
        let model = self.models[&of].clone();
        self.models.insert(info.id, model);
        Ok(info.id)
    }

    pub(crate) fn delete(&mut self, member: MemberId) {
        self.change(|rig| rig.volume.delete_member(CHANGE, member)).unwrap();
        self.models.remove(&member);
    }

    /// Waits until what deleted members had is free.
    pub(crate) fn free(&mut self) {
        for _ in 0..10_000 {
            if !self.volume.is_freeing() {
                return;
            }
            self.step();
        }
        panic!("never free");
    }

    pub(crate) fn assert_counts(&mut self) -> bool {
        self.read_all();
        let wrong = self.volume.recount();
        assert!(wrong.as_ref().is_none_or(Vec::is_empty), "{wrong:?}");
        wrong.is_some()
    }

    fn pick(&self, rng: &mut Rng, writable: bool) -> MemberId {
        let can = |id: &MemberId| {
            !writable || self.volume.members().any(|info| info.id == *id && info.writable)
        };
        let all: Vec<MemberId> = self.models.keys().copied().filter(can).collect();
        all[usize::try_from(rng.below(all.len() as u64)).unwrap()]
    }
}

/// Random work on all members, some of which come and go.
fn family_work(rig: &mut Rig, rng: &mut Rng, steps: u32) {
    let blocks = rig.blocks();
    for step in 0..steps {
        let lba = rng.below(blocks);
        let most = |most: u64| most.min(blocks - lba);
        match rng.below(100) {
            0 if rig.models.len() < 7 => {
                let (of, writable) = (rig.pick(rng, false), rng.below(3) == 0);
                rig.make(of, &format!("{}-{step}", rig.version), writable);
            }
            1 if rig.models.len() > 1 => {
                let member = rig.pick(rng, false);
                if member != MemberId::DEVICE {
                    rig.delete(member);
                }
            }
            2..6 => {
                let member = rig.pick(rng, true);
                rig.trim_of(member, lba, most(1 + rng.below(300)));
            }
            6..30 => {
                let member = rig.pick(rng, false);
                rig.read_from(member, lba, most(1 + rng.below(60)));
            }
            30..34 => rig.step(),
            34..37 => rig.retry(|rig| rig.volume.flush(4)),
            _ => {
                let member = rig.pick(rng, true);
                rig.write_to(member, lba, most(1 + rng.below(40)));
            }
        }
    }
}

#[test]
fn random_families() {
    let (mut recounted, mut cleaned, mut most, mut freed) = (0, 0, 0, 0);
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let map_pages = if seed % 2 == 0 { usize::MAX } else { 32 };
        let options = Options { map_pages, clean_below: Some(70), ..options() };
        let mut rig = Rig::new(64 * 230, 2500, options);
        for round in 0..4 {
            family_work(&mut rig, &mut rng, 350);
            most = most.max(rig.models.len());
            recounted += u32::from(rig.assert_counts());
            cleaned += rig.volume.stats().cleaned_segments;
            rig.reopen(round % 2 == 0);
            recounted += u32::from(rig.assert_counts());
        }
        for member in rig.models.keys().copied().skip(1).collect::<Vec<_>>() {
            rig.delete(member);
        }
        rig.free();
        recounted += u32::from(rig.assert_counts());
        let held = rig.models[&MemberId::DEVICE].iter().filter(|version| **version > 0).count();
        assert_eq!(rig.volume.usage().data_blocks, held as u64, "nothing of the others is left");
        assert_eq!(rig.volume.members().count(), 1);
        freed += 1;
        // Alone again, it can be overwritten for ever.
        random_work(&mut rig, &mut rng, 300, true);
        rig.reopen(true);
        rig.read_all();
    }
    assert!(
        recounted > 20 && cleaned > 100 && most > 5 && freed == 4,
        "{recounted} {cleaned} {most}"
    );
}

#[test]
fn a_snapshot_costs_nothing_until_something_changes() {
    let mut rig = Rig::new(64 * 160, 6000, options());
    for lba in (0..6000).step_by(200) {
        rig.write(lba, 200);
    }
    rig.make(MemberId::DEVICE, "first", false);
    rig.step();
    let before = rig.volume.usage().data_blocks;
    let twin = rig.make(MemberId::DEVICE, "daily", false);
    assert_eq!(rig.volume.usage().data_blocks, before);
    rig.write(100, 50);
    assert_eq!(rig.volume.usage().data_blocks, before + 50);
    rig.write(100, 50);
    assert_eq!(rig.volume.usage().data_blocks, before + 50, "what came later is not shared");
    rig.read_from(twin, 90, 70);
    rig.read(90, 70);
}

#[test]
fn a_volume_full_of_snapshots_refuses_writes_and_nothing_else() {
    for map_pages in [usize::MAX, 16] {
        let mut rig = Rig::new(64 * 160, 4000, Options { map_pages, ..options() });
        let mut made = Vec::new();
        let mut rng = Rng::new(3);
        let full = 'fill: loop {
            if made.len() < 3 || map_pages == usize::MAX {
                made.push(rig.make(MemberId::DEVICE, &format!("s{}", made.len()), false));
            }
            for _ in 0..80 {
                let lba = rng.below(3900);
                rig.version += 1;
                let data: Vec<u8> =
                    (lba..lba + 50).flat_map(|lba| super::stamp(lba, rig.version)).collect();
                let range = Range { lba: Lba::new(lba), blocks: 50 };
                for patience in 0.. {
                    assert!(patience < 1000, "busy for ever");
                    match rig.volume.write(1, range, Some(&data), false) {
                        Ok(()) => break,
                        Err(Refusal::Busy) => rig.step(),
                        Err(refusal) => break 'fill refusal,
                    }
                }
                let version = rig.version;
                rig.set(MemberId::DEVICE, lba, 50, version);
            }
        };
        assert_eq!(full, Refusal::NoSpace);
        let usage = rig.volume.usage();
        assert!(usage.data_blocks + 50 > usage.capacity_blocks, "{usage:?}");
        rig.read_all();
        rig.retry(|rig| rig.volume.flush(4));
        // Trims of what the device has alone make room, and so do deleted snapshots; both survive.
        rig.trim(0, 1000);
        rig.reopen(false);
        rig.read_all();
        for member in made {
            rig.delete(member);
        }
        rig.free();
        for lba in (0..3900).step_by(50) {
            rig.write(lba, 50);
        }
        assert!(rig.assert_counts() || map_pages == 16);
    }
}

/// A checkpoint of many members takes several short log segments.
#[test]
fn many_members_have_room_for_their_checkpoints() {
    for seed in 0..3 {
        let rng = &mut Rng::new(seed);
        let mut rig = Rig::new(64 * 300, 4096, options());
        for at in 0..63 {
            rig.make(MemberId::DEVICE, &format!("c{at}"), true);
        }
        for round in 0..40 {
            let mut refused = 0;
            while refused < 5 {
                let (member, lba) = (rig.pick(rng, true), rng.below(4090));
                refused += u32::from(rig.try_write(member, lba, 1 + rng.below(6)).is_err());
            }
            for _ in 0..100 {
                let (member, lba) = (rig.pick(rng, true), rng.below(4000));
                rig.trim_of(member, lba, 1 + rng.below(90));
            }
            if round % 10 == 9 {
                rig.reopen(round % 20 == 9);
            }
        }
        assert!(rig.assert_counts());
    }
}

#[test]
fn what_a_family_refuses() {
    let mut rig = Rig::new(64 * 160, 4000, Options { map_pages: 12, ..options() });
    rig.write(0, 10);
    let device = MemberId::DEVICE;
    let snapshot = rig.make(device, "daily", false);
    let make = |rig: &mut Rig, of, text| rig.volume.make_snapshot(1, of, &name(text));
    assert_eq!(make(&mut rig, device, ""), Err(SnapshotError::Nameless));
    assert_eq!(make(&mut rig, device, "daily"), Err(SnapshotError::Exists));
    assert_eq!(rig.volume.delete_member(1, device), Err(SnapshotError::Device));
    let range = Range { lba: Lba::new(0), blocks: 1 };
    let data = [0; BLOCK];
    let written = rig.volume.write_to(snapshot, 1, range, Some(&data), false);
    assert_eq!(written, Err(Refusal::WriteProtected));
    assert_eq!(rig.volume.trim_of(snapshot, 1, range), Err(Refusal::WriteProtected));
    rig.make(snapshot, "copy", true);
    assert_eq!(make(&mut rig, device, "more"), Err(SnapshotError::TooMany { found: 3, max: 3 }));
    rig.delete(snapshot);
    assert_eq!(rig.volume.write_to(snapshot, 1, range, Some(&data), false), Err(Refusal::NoMember));
    assert_eq!(make(&mut rig, snapshot, "more"), Err(SnapshotError::Missing));
    rig.reopen(false);
    rig.free();
    // The name is free again, the number is not.
    assert!(rig.make(device, "daily", false) > snapshot);
    let few =
        onefold_volume::mount(&mut rig.memory, 64 * 160, Options { map_pages: 8, ..options() });
    assert!(few.unwrap_err().to_string().contains("3 members"));
}

/// The sweep takes four pages per checkpoint here, so most of what a snapshot has is in runs alone.
#[test]
fn a_snapshot_has_the_runs_of_its_parent() {
    let mut rig = Rig::new(64 * 320, 14_000, options());
    let write_all = |rig: &mut Rig, at: u64| {
        (0..13).for_each(|page| rig.write(page * 1024 + at, 3));
    };
    write_all(&mut rig, 5);
    rig.volume.want_checkpoint();
    rig.step();
    write_all(&mut rig, 500);
    rig.make(MemberId::DEVICE, "daily", false);
    rig.reopen(true);
    rig.read_all();
}
