//! Z4: images for the kernel target and from it, in steps that `scripts/guest.sh check` calls: power is cut under a random load, the
//! volume is opened again, and what is on both devices then goes to files; a guest lays them on real devices and reads the volume
//! through the kernel target, which then writes to it; and what that left on the devices is opened here again.
//!
//! The files of seed N, in folder N: `regular`, `zoned` and `wp` (a line per sequential zone: its blocks before the write
//! pointer), then from the guest `read`, the whole volume as the kernel reads it; and the same four from the kernel in `back`.

use std::fs;
use std::path::{Path, PathBuf};

use onefold_units::Rng;
use onefold_zoned::{Action, DeviceZones, Geometry, Stats, WaitReason};

use crate::crash::{World, recover, small_copies};
use crate::disk::{BLOCK, Disks};
use crate::oracle::{Oracle, stamp};
use crate::rig::{Rig, formatted};

/// Zones of 1 MiB: the devices are small enough to be copied by an emulated processor.
const ZONE_BLOCKS: u32 = 256;

/// 8 MiB and 24 MiB: 6 cache zones and 23 free sequential ones, 7 of them reserved.
fn devices() -> Vec<DeviceZones> {
    vec![
        DeviceZones { conventional: 8, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 24 },
    ]
}

fn folder() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "not part of the core: the guest's folder")]
    let folder = std::env::var("ONEFOLD_IMAGES");
    PathBuf::from(folder.expect("ONEFOLD_IMAGES: the folder of the images"))
}

/// The seeds, each of which has a folder.
fn seeds(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
    let mut seeds: Vec<u64> = entries.filter_map(|entry| name(entry).ok()?.parse().ok()).collect();
    assert!(!seeds.is_empty(), "no folder has a seed as its name");
    seeds.sort_unstable();
    seeds
}

/// What a power cut under a random load leaves, opened again, and what the volume has to hold.
fn crashed(seed: u64) -> (Rig, Oracle, Stats) {
    let mut rng = Rng::new(seed);
    let (disks, geometry) = formatted(ZONE_BLOCKS, &devices());
    let (rig, _) = Rig::mount(disks, &geometry, small_copies());
    let oracle = Oracle::new(rig.blocks());
    let mut world = World::new(rig, oracle, Rng::fork(seed, 1));
    for _ in 0..1000 + rng.below(3000) {
        world.step();
    }
    let stats = world.rig.volume.stats().clone();
    let mut oracle = world.oracle;
    let disks = world.rig.disks.cut(&mut rng);
    let rig = recover(disks, &geometry, &small_copies(), &mut oracle).unwrap();
    (rig, oracle, stats)
}

#[test]
#[ignore = "a step of scripts/guest.sh check"]
fn images_are_written() {
    let folder = folder();
    let mut seen = Vec::new();
    for seed in seeds(&folder) {
        let (rig, _, stats) = crashed(seed);
        let folder = folder.join(seed.to_string());
        fs::write(folder.join("regular"), rig.disks.0[0].image()).unwrap();
        fs::write(folder.join("zoned"), rig.disks.0[1].image()).unwrap();
        let written: Vec<String> =
            (0..24).map(|zone| format!("{}\n", rig.disks.0[1].written(zone))).collect();
        fs::write(folder.join("wp"), written.concat()).unwrap();
        seen.push(stats);
    }
    let sum = |count: fn(&Stats) -> u64| seen.iter().map(count).sum::<u64>();
    assert!(sum(|stats| stats.reclaims(Action::RndData).completed) > 0);
    assert!(sum(|stats| stats.reclaims(Action::SeqData).completed) > 0);
    assert!(sum(|stats| stats.waits(WaitReason::Reclaim).count) > 0);
}

/// The kernel reads of our images what the model allows: what was flushed, or later operations.
#[test]
#[ignore = "a step of scripts/guest.sh check"]
fn the_kernel_read_what_was_flushed() {
    let folder = folder();
    for seed in seeds(&folder) {
        let (_, mut oracle, _) = crashed(seed);
        let read = fs::read(folder.join(seed.to_string()).join("read")).unwrap();
        assert_eq!(read.len() / BLOCK, usize::try_from(oracle.blocks()).unwrap(), "seed {seed}");
        for (lba, block) in (0..).zip(read.chunks(BLOCK)) {
            let found = oracle.recovered(lba, stamp(block, lba));
            assert_eq!(found, Ok(()), "seed {seed}");
        }
    }
}

/// We read of the kernel's images what the kernel read.
#[test]
#[ignore = "a step of scripts/guest.sh check"]
fn what_the_kernel_wrote_is_read() {
    let folder = folder();
    for seed in seeds(&folder) {
        let folder = folder.join(seed.to_string()).join("back");
        let geometry = Geometry::new(ZONE_BLOCKS, devices()).unwrap();
        let mut disks = Disks::new(ZONE_BLOCKS, &devices());
        disks.0[0].load(&fs::read(folder.join("regular")).unwrap(), Vec::new());
        let written = fs::read_to_string(folder.join("wp")).unwrap();
        let written = written.lines().map(|line| line.parse().unwrap()).collect();
        disks.0[1].load(&fs::read(folder.join("zoned")).unwrap(), written);
        let (mut rig, recovery) = Rig::mount(disks, &geometry, small_copies());
        assert_eq!(recovery.lost_blocks, 0, "seed {seed}: {recovery:?}");
        let read = fs::read(folder.join("read")).unwrap();
        assert_eq!(read.len() / BLOCK, usize::try_from(rig.blocks()).unwrap(), "seed {seed}");
        for (lba, block) in (0..).zip(read.chunks(BLOCK)) {
            assert!(rig.bytes_now(lba, 1) == block, "seed {seed}: block {lba} differs");
        }
    }
}
