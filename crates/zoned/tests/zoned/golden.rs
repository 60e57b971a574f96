//! Golden images: volumes that the code of the day left on their devices when they were made, `golden/NAME.zst` beside this file. Whatever
//! the code is like now, it has to find nothing wrong with them, open them, read what they hold, and write to them.
//!
//! `ONEFOLD_BLESS=1 cargo test -p onefold-zoned --test zoned golden` makes those that are missing.

use std::path::Path;

use onefold_format::{DMZ_JOURNAL_MAP, DMZ_VERSION};
use onefold_testkit::Golden;
use onefold_units::Rng;
use onefold_units::convert::{index64, narrow, u64_from};
use onefold_zoned::{DeviceZones, Geometry, Options, inspect};

use crate::append;
use crate::disk::{BLOCK, Disks};
use crate::rig::{Rig, SECOND, ZONE, formatted, one_device, two_devices};
use crate::verify::verify;

/// A journal that does not fit the cache.
const JOURNAL: std::ops::Range<u64> = 16..80;

/// A volume that lives through some things, and the operation that wrote each block.
struct Life {
    rig: Rig,
    held: Vec<u64>,
    op: u64,
}

impl Life {
    fn new(devices: &[DeviceZones], options: Options) -> Self {
        let (disks, geometry) = formatted(ZONE, devices);
        let rig = Rig::mount(disks, &geometry, options).0;
        let held = vec![0; index64(rig.blocks())];
        Self { rig, held, op: 0 }
    }

    fn write(&mut self, lba: u64, blocks: u32) {
        self.op += 1;
        self.rig.write_now(lba, self.op, blocks);
        self.held[index64(lba)..index64(lba + u64::from(blocks))].fill(self.op);
    }

    /// Writes chunks from their start and here and there, trims, and waits for reclaim.
    fn use_it(&mut self) {
        let mut rng = Rng::new(self.op + 1);
        for _ in 0..10 {
            let blocks = 1 + rng.below(6);
            self.write(rng.below(self.rig.blocks() - blocks), narrow(blocks));
        }
        self.rig.discard_now(2, 3);
        self.held[2..5].fill(0);
        self.rig.advance(30 * SECOND);
        self.write(20, 4);
        self.rig.flush_now();
    }

    fn golden(self, devices: &[DeviceZones]) -> Golden {
        let geometry = self.rig.volume.geometry().clone();
        // One of those that a power cut leaves in which nothing is that was not flushed.
        let is_held = |disks: &Disks| {
            let mut rig = Rig::mount(disks.clone(), &geometry, Options::default()).0;
            rig.read_now(0, narrow(rig.blocks())) == self.held
        };
        let disks = (0..20).map(|seed| self.rig.disks.cut(&mut Rng::new(seed))).find(is_held);
        let disks = disks.expect("it holds what was written");
        let mut golden = Golden::default();
        golden.facts.insert("zone_blocks".to_owned(), vec![ZONE.into()]);
        golden.facts.insert("held".to_owned(), self.held);
        for ((n, zones), device) in (0..).zip(devices).zip(&disks.0) {
            let DeviceZones { conventional, sequential } = *zones;
            golden.facts.insert(format!("zones.{n}"), vec![conventional.into(), sequential.into()]);
            let written = (0..index64(sequential.into())).map(|zone| device.written(zone).into());
            golden.facts.insert(format!("written.{n}"), written.collect());
            let image = device.image();
            let blocks = (0..)
                .zip(image.chunks(BLOCK))
                .filter(|(_, block)| block.iter().any(|byte| *byte > 0));
            golden.blocks.extend(blocks.map(|(at, block)| ((n, at), block.to_vec())));
        }
        golden
    }
}

fn used(devices: &[DeviceZones], options: Options) -> Golden {
    let mut life = Life::new(devices, options);
    life.use_it();
    life.golden(devices)
}

/// Writes of no flush are under way when power fails.
fn cut(devices: &[DeviceZones]) -> Golden {
    let mut life = Life::new(devices, Options::default());
    life.use_it();
    life.rig.write(40, 1000, 4);
    life.golden(devices)
}

fn recipe(name: &str) -> Golden {
    match name {
        "dmz" => used(&two_devices(), Options::default()),
        "dmz-cut" => cut(&two_devices()),
        "dmz-one-device" => used(&one_device(), Options::default()),
        "dmz-journal-map" => {
            let mut life = Life::new(&two_devices(), append::options(&JOURNAL, 1));
            for _ in 0..2 {
                for lba in JOURNAL {
                    life.write(lba, 1);
                }
            }
            life.rig.flush_now();
            life.golden(&two_devices())
        }
        _ => panic!("{name}: nobody knows how it was made"),
    }
}

const NAMES: [&str; 4] = ["dmz", "dmz-cut", "dmz-journal-map", "dmz-one-device"];

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zoned/golden"))
}

fn load(name: &str) -> (Golden, Disks, Geometry) {
    let golden = Golden::load(folder(), name, || recipe(name));
    let zone_blocks = narrow(golden.fact("zone_blocks")[0]);
    let zones = |(_, numbers): (&str, &[u64])| DeviceZones {
        conventional: narrow(numbers[0]),
        sequential: narrow(numbers[1]),
    };
    let devices: Vec<_> = golden.facts_of("zones").map(zones).collect();
    let mut disks = Disks::new(zone_blocks, &devices);
    for ((n, device), zones) in (0..).zip(&mut disks.0).zip(&devices) {
        let blocks = u64::from(zones.conventional + zones.sequential) * u64::from(zone_blocks);
        let mut image = vec![0; index64(blocks) * BLOCK];
        for ((_, at), block) in golden.blocks.range((n, 0)..(n + 1, 0)) {
            image[index64(*at) * BLOCK..][..BLOCK].copy_from_slice(block);
        }
        let written = golden.fact(&format!("written.{n}"));
        device.load(&image, written.iter().map(|written| narrow(*written)).collect());
    }
    let geometry = Geometry::new(zone_blocks, devices).expect("a geometry");
    (golden, disks, geometry)
}

#[test]
fn golden_images_are_clean_and_hold_what_they_did() {
    for name in NAMES {
        let (golden, mut disks, geometry) = load(name);
        let looked =
            inspect(&mut disks, &geometry).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(looked.findings, [], "{name}");
        let held = golden.fact("held");
        let (mut rig, _) = Rig::mount(disks, &geometry, Options::default());
        assert_eq!(u64_from(held.len()), rig.blocks(), "{name}");
        assert!(rig.read_now(0, narrow(rig.blocks())) == held, "{name} holds something else");
        // It can be used on, and what comes of that is clean.
        let mut life = Life { rig, held: held.to_vec(), op: 2000 };
        life.use_it();
        verify(&mut life.rig.disks.clone(), &geometry)
            .unwrap_or_else(|what| panic!("{name}: {what}"));
        let found = life.rig.read_now(0, narrow(life.rig.blocks()));
        assert!(found == life.held, "{name} holds something else after it was written");
    }
}

/// Whoever adds a version or a flag of it adds an image.
#[test]
fn every_version_has_a_golden_image() {
    assert_eq!(Golden::names(folder()), NAMES);
    let version = |name: &str| {
        let (_, mut disks, _) = load(name);
        let mut root = [0; BLOCK];
        disks.0[0].read(0, &mut root);
        u32::from_le_bytes(root[4..8].try_into().expect("4 bytes"))
    };
    let mut versions: Vec<u32> = NAMES.map(version).to_vec();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions, [DMZ_VERSION, DMZ_VERSION | DMZ_JOURNAL_MAP]);
}
