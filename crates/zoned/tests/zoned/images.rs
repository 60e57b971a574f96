//! Z4: images for the kernel target and from it, in steps that `scripts/guest.sh images` calls: power is cut under a random load, and
//! what is on both devices then goes to files, as it is or after the volume was opened again; a guest lays them on real devices
//! and reads the volume through the kernel target, which then writes to it; and what that left on the devices is opened here again.
//!
//! The files of seed N, in folder KIND-N: `regular`, `zoned` and `wp` (a line per sequential zone: its blocks before the write
//! pointer), then from the guest `read`, the whole volume as the kernel reads it; and the same four from the kernel in `back`.

use std::fs;
use std::path::PathBuf;

use onefold_units::Rng;
use onefold_zoned::{Action, DeviceZones, Geometry, JournalMode, Options, Sent, Stats, WaitReason};

use crate::crash::{World, recover, small_copies};
use crate::disk::{BLOCK, Disks};
use crate::oracle::{Oracle, stamp};
use crate::rig::{Rig, SECOND, formatted};

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

/// What of a volume the guest gets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// After a power cut it was opened again.
    Opened,
    /// As the power cut left it.
    Raw,
    /// It has a journal block map, and was opened again: the kernel has to refuse it.
    Map,
    /// It had one; then it was opened without a journal zone set, and closed.
    Returned,
}

/// An image: its folder, what is in it, and the seed that it is made of.
struct Image {
    folder: PathBuf,
    kind: Kind,
    seed: u64,
}

/// The images whose folders are there, of such kinds.
fn images(kinds: &[Kind]) -> Vec<Image> {
    let image = |folder: PathBuf| {
        let (kind, seed) = folder.file_name()?.to_str()?.split_once('-')?;
        let kind = match kind {
            "opened" => Kind::Opened,
            "raw" => Kind::Raw,
            "map" => Kind::Map,
            "returned" => Kind::Returned,
            _ => return None,
        };
        let seed = seed.parse().ok()?;
        Some(Image { folder, kind, seed })
    };
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut images: Vec<Image> = entries.filter_map(image).collect();
    assert!(!images.is_empty(), "no folder is called KIND-SEED");
    images.retain(|image| kinds.contains(&image.kind));
    images.sort_by_key(|image| image.seed);
    images
}

/// Part of each of four chunks is a journal: too many for half of six cache zones.
fn appended() -> Options {
    Options {
        journal: JournalMode::Set,
        journal_ranges: (0..4).map(|chunk| 256 * chunk + 100..256 * chunk + 164).collect(),
        journal_hot: std::iter::once(100..101).collect(),
        ..small_copies()
    }
}

/// The devices of an image, and what the volume on them has to hold.
fn crashed(kind: Kind, seed: u64) -> (Disks, Oracle, Stats) {
    let has_map = matches!(kind, Kind::Map | Kind::Returned);
    let options = if has_map { appended() } else { small_copies() };
    let mut rng = Rng::new(seed);
    let (disks, geometry) = formatted(ZONE_BLOCKS, &devices());
    let (rig, _) = Rig::mount(disks, &geometry, options.clone());
    let oracle = Oracle::new(rig.blocks());
    let mut world = World::new(rig, oracle, Rng::fork(seed, 1));
    world.journal_moves = false;
    for _ in 0..1000 + rng.below(3000) {
        world.step();
    }
    let stats = world.rig.volume.stats().clone();
    let mut oracle = world.oracle;
    let disks = world.rig.disks.cut(&mut rng);
    if kind == Kind::Raw {
        return (disks, oracle, stats);
    }
    let options = if kind == Kind::Returned { small_copies() } else { options };
    let mut rig = recover(disks, &geometry, &options, &mut oracle).unwrap();
    if kind == Kind::Returned {
        rig.advance(SECOND);
        rig.volume.close(rig.now);
        rig.settle();
        assert!(rig.volume.is_closed());
    }
    assert_eq!(rig.volume.appended_blocks() > 0, kind == Kind::Map, "seed {seed}");
    (rig.disks, oracle, stats)
}

#[test]
#[ignore = "a step of scripts/guest.sh images"]
fn images_are_written() {
    let mut seen = Vec::new();
    for Image { folder, kind, seed } in
        images(&[Kind::Opened, Kind::Raw, Kind::Map, Kind::Returned])
    {
        let (disks, _, stats) = crashed(kind, seed);
        fs::write(folder.join("regular"), disks.0[0].image()).unwrap();
        fs::write(folder.join("zoned"), disks.0[1].image()).unwrap();
        let written: Vec<String> =
            (0..24).map(|zone| format!("{}\n", disks.0[1].written(zone))).collect();
        fs::write(folder.join("wp"), written.concat()).unwrap();
        let appended = stats.sent(Sent::JournalAppended) > 0;
        assert_eq!(appended, matches!(kind, Kind::Map | Kind::Returned), "{kind:?}-{seed}");
        seen.push(stats);
    }
    let sum = |count: fn(&Stats) -> u64| seen.iter().map(count).sum::<u64>();
    assert!(sum(|stats| stats.reclaims(Action::RndData).completed) > 0);
    assert!(sum(|stats| stats.reclaims(Action::SeqData).completed) > 0);
    assert!(sum(|stats| stats.waits(WaitReason::Reclaim).count) > 0);
}

/// The kernel reads of our images what the model allows: what was flushed, or later operations.
#[test]
#[ignore = "a step of scripts/guest.sh images"]
fn the_kernel_read_what_was_flushed() {
    for Image { folder, kind, seed } in images(&[Kind::Opened, Kind::Raw, Kind::Returned]) {
        let (_, mut oracle, _) = crashed(kind, seed);
        let read = fs::read(folder.join("read")).unwrap();
        assert_eq!(
            read.len() / BLOCK,
            usize::try_from(oracle.blocks()).unwrap(),
            "{kind:?}-{seed}"
        );
        for (lba, block) in (0..).zip(read.chunks(BLOCK)) {
            let found = oracle.recovered(lba, stamp(block, lba));
            assert_eq!(found, Ok(()), "{kind:?}-{seed}");
        }
    }
}

/// We read of the kernel's images what the kernel read.
#[test]
#[ignore = "a step of scripts/guest.sh images"]
fn what_the_kernel_wrote_is_read() {
    for Image { folder, kind, seed } in images(&[Kind::Opened, Kind::Raw, Kind::Returned]) {
        let folder = folder.join("back");
        let geometry = Geometry::new(ZONE_BLOCKS, devices()).unwrap();
        let mut disks = Disks::new(ZONE_BLOCKS, &devices());
        disks.0[0].load(&fs::read(folder.join("regular")).unwrap(), Vec::new());
        let written = fs::read_to_string(folder.join("wp")).unwrap();
        let written = written.lines().map(|line| line.parse().unwrap()).collect();
        disks.0[1].load(&fs::read(folder.join("zoned")).unwrap(), written);
        let (mut rig, recovery) = Rig::mount(disks, &geometry, small_copies());
        assert_eq!(recovery.lost_blocks, 0, "{kind:?}-{seed}: {recovery:?}");
        let read = fs::read(folder.join("read")).unwrap();
        assert_eq!(read.len() / BLOCK, usize::try_from(rig.blocks()).unwrap(), "{kind:?}-{seed}");
        for (lba, block) in (0..).zip(read.chunks(BLOCK)) {
            assert!(rig.bytes_now(lba, 1) == block, "{kind:?}-{seed}: block {lba} differs");
        }
    }
}
