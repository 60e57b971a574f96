//! A zoned namespace in an image file against a model: any commands, ends of the process, clean shutdowns, checks.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::common::{TEXT, with_conventional};
use onefold_device::{
    Access, DeviceError, Image, Latency, OpenOptions, Select, SsdDevice, ZnsConfig, ZnsError,
    ZoneAction, ZoneLimits, ZoneState, ZonedCheck, ZonedDevice, ZonedError, check_zoned,
    inspect_zoned,
};
use onefold_format::{FEATURE_CONVENTIONAL, FEATURE_ZONES};
use onefold_nand::{FaultSpec, Geometry, GeometrySpec, Span};
use onefold_ssd::example_config;
use onefold_testkit::{Model as Blocks, fill};
use onefold_units::convert::index64;
use onefold_units::{Rng, ZoneId};

const ZONES: u32 = 6;
/// Addresses and blocks of a zone.
const SIZE: u64 = 64;
const CAPACITY: u64 = 48;

/// Zones over two dies of flash pages of `page` blocks, and two spare sets.
fn config(page: u32) -> ZnsConfig {
    let spec = GeometrySpec {
        channels: 2,
        ways: 1,
        planes: 1,
        blocks: ZONES + 2,
        pages: 24 / page,
        page_bytes: page * 4096,
        unit_bytes: 4096,
        span: Span::Die,
    };
    ZnsConfig {
        geometry: Geometry::new(spec).unwrap(),
        timing: example_config().timing,
        zone_blocks: 64,
        capacity_blocks: 48,
        zones: ZONES,
        conventional: None,
        zone_dies: 2,
        limits: ZoneLimits { max_open: Some(3), max_active: Some(4) },
        append_blocks: None,
        read_across: false,
        cache_bytes: 0,
        cache_volatile: true,
        faults: FaultSpec::default(),
    }
}

struct Folder {
    folder: tempfile::TempDir,
    config: ZnsConfig,
}

impl Folder {
    fn new(config: &ZnsConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder, config: *config };
        drop(Image::create(&this.path(), config, TEXT.to_owned()).unwrap());
        this
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("zoned.img")
    }

    fn open(&self) -> (ZonedDevice, bool) {
        let image = Image::open(&self.path(), Access::Exclusive).unwrap();
        let opened = ZonedDevice::open(image, &self.config).unwrap();
        assert!(opened.made_volatile);
        assert_eq!(opened.recovery.read_only, 0);
        (opened.device, opened.was_clean)
    }

    fn check(&self) -> ZonedCheck {
        let before = fs::read(self.path()).unwrap();
        let image = Image::open(&self.path(), Access::ReadOnly).unwrap();
        let report = check_zoned(&image, &self.config, Some(&mut |_, _| {})).unwrap();
        assert!(before == fs::read(self.path()).unwrap(), "a check changes nothing");
        report
    }
}

fn stamp(versions: &[u64]) -> Vec<u8> {
    versions.iter().flat_map(|version| version.to_le_bytes().repeat(512)).collect()
}

/// One life of a zone, from a reset to the next.
#[derive(Clone, Debug, Default)]
struct Life {
    versions: Vec<u64>,
    /// Blocks that a cut must not take.
    promised: usize,
    finished: bool,
    finish_promised: bool,
}

/// What each zone may hold after a cut: its last life, or one before whose reset was not flushed.
struct Model {
    zones: Vec<Vec<Life>>,
    version: u64,
}

impl Model {
    fn new() -> Self {
        Self { zones: vec![vec![Life::default()]; index64(ZONES.into())], version: 0 }
    }

    fn flushed(&mut self) {
        for lives in &mut self.zones {
            let mut life = lives.pop().unwrap();
            (life.promised, life.finish_promised) = (life.versions.len(), life.finished);
            *lives = vec![life];
        }
    }

    /// The device holds what it may hold, and goes on from there.
    fn settle(&mut self, device: &ZonedDevice) {
        let report = device.report(ZoneId::new(0), None).unwrap();
        for info in report.zones {
            let mut bytes = vec![0xEE; index64(CAPACITY * 4096)];
            device.read(info.start, &mut bytes).unwrap();
            let found: Vec<u64> = bytes
                .chunks(8)
                .step_by(512)
                .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
                .collect();
            assert!(bytes == stamp(&found), "a block of {:?} is mixed", info.zone);
            let written = found.iter().take_while(|version| **version != 0).count();
            assert!(found[written..].iter().all(|version| *version == 0), "{found:?}");
            if let Some(pointer) = info.write_pointer {
                assert_eq!(pointer - info.start, written as u64);
            }
            let full = info.state == ZoneState::Full;
            let lives = &self.zones[info.zone.index()];
            let fits = |life: &&Life| {
                let prefix = life.versions.get(..written) == Some(&found[..written]);
                let ended = if full {
                    life.finished || written as u64 == CAPACITY
                } else {
                    !life.finish_promised && (written as u64) < CAPACITY
                };
                prefix && ended && written >= life.promised
            };
            assert!(
                lives.iter().rev().any(|life| fits(&life)),
                "{info:?} holds {found:?}: {lives:?}"
            );
            let versions = found[..written].to_vec();
            let life = Life { versions, promised: written, finished: full, finish_promised: full };
            self.zones[info.zone.index()] = vec![life];
        }
    }

    fn write(&mut self, device: &ZonedDevice, zone: usize, blocks: u64, fua: bool) {
        let life = self.zones[zone].last_mut().unwrap();
        // Past the capacity, but not past the last zone.
        let blocks = blocks.min(SIZE - life.versions.len() as u64);
        let versions: Vec<u64> = (self.version + 1..=self.version + blocks).collect();
        self.version += blocks;
        let lba = zone as u64 * SIZE + life.versions.len() as u64;
        match device.write(lba, &stamp(&versions), fua) {
            Ok(()) => {
                life.versions.extend(&versions);
                if fua {
                    life.promised = life.versions.len();
                }
            }
            Err(ZonedError::Zone(error)) => assert_eq!(error.status().0, 1, "{error}"),
            Err(error) => panic!("{error}"),
        }
    }

    fn act(&mut self, device: &ZonedDevice, zone: usize, action: ZoneAction) {
        let id = ZoneId::new(u32::try_from(zone).unwrap());
        let lives = &mut self.zones[zone];
        match device.manage(Select::One(id), action) {
            Ok(()) if action == ZoneAction::Reset => lives.push(Life::default()),
            Ok(()) => lives.last_mut().unwrap().finished = true,
            Err(error) => panic!("{action:?}: {error}"),
        }
    }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let folder = Folder::new(&config([1, 2, 4][index64(seed % 3)]));
    let mut model = Model::new();
    let (mut device, _) = folder.open();
    for _ in 0..4 {
        for _ in 0..20 + rng.below(60) {
            let zone = index64(rng.below(ZONES.into()));
            match rng.below(20) {
                0..13 => model.write(&device, zone, 1 + rng.below(17), rng.below(8) == 0),
                13..15 => model.act(&device, zone, ZoneAction::Reset),
                15 => model.act(&device, zone, ZoneAction::Finish),
                16..18 => {
                    device.flush().unwrap();
                    model.flushed();
                }
                _ => {}
            }
        }
        let clean = rng.below(3) == 0;
        if clean {
            device.close().unwrap();
            assert_eq!(device.flush(), Err(ZonedError::Poisoned));
            model.flushed();
        }
        drop(device);
        let report = folder.check();
        assert!(!report.is_damaged(), "{report:?}");
        let (again, was_clean) = folder.open();
        assert_eq!(was_clean, clean);
        model.settle(&again);
        device = again;
    }
}

#[test]
fn zones_hold_what_was_flushed_and_a_prefix_of_the_rest() {
    onefold_testkit::for_each_seed(
        ("onefold-device", "device", "zones_hold_what_was_flushed_and_a_prefix_of_the_rest"),
        20,
        run,
    );
}

#[test]
fn an_end_of_the_process_takes_what_was_not_flushed() {
    let folder = Folder::new(&config(4));
    let (device, _) = folder.open();
    device.write(0, &stamp(&[1, 2, 3, 4, 5, 6]), false).unwrap();
    device.flush().unwrap();
    device.write(6, &stamp(&[7]), false).unwrap();
    device.write(SIZE, &stamp(&[8]), true).unwrap();
    drop(device);
    let (device, was_clean) = folder.open();
    assert!(!was_clean);
    let ends: Vec<_> = device.report(ZoneId::new(0), Some(ZoneState::Closed)).unwrap().zones;
    let ends: Vec<_> = ends.iter().map(|zone| zone.write_pointer).collect();
    // A device that wrote everything at once would hold block 6, too.
    assert_eq!(ends, [Some(6), Some(SIZE + 1)]);
}

#[test]
fn an_image_of_zones_says_so_and_is_no_other_device() {
    let folder = Folder::new(&config(2));
    let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
    assert_eq!(image.label().features, FEATURE_ZONES);
    assert_eq!(image.label().logical_bytes, u64::from(ZONES) * CAPACITY * 4096);
    let options = OpenOptions::new(Latency::None);
    let error = SsdDevice::open(image, &crate::common::plain(), options).map(drop).unwrap_err();
    assert!(error.to_string().contains("the label says 1 zoned namespaces"), "{error}");
    let other = crate::common::Folder::new(&crate::common::plain());
    let image = Image::open(&other.path(), Access::Exclusive).unwrap();
    let error = ZonedDevice::open(image, &config(2)).map(drop).unwrap_err();
    assert!(error.to_string().contains("the label says 0 zoned namespaces"), "{error}");
}

#[test]
fn what_cannot_work_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zoned.img");
    let config = ZnsConfig { zones: 8, ..config(2) };
    let error = Image::create(&path, &config, TEXT.to_owned()).unwrap_err();
    assert!(error.is_infeasible() && error.to_string().contains("capacity.logical"), "{error}");
    assert!(!path.exists());
}

#[test]
fn damage_is_found_and_told() {
    let folder = Folder::new(&config(2));
    let (device, _) = folder.open();
    device.write(0, &stamp(&(1..=CAPACITY).collect::<Vec<_>>()), false).unwrap();
    device.close().unwrap();
    drop(device);
    assert_eq!(folder.check().verified_blocks, CAPACITY);
    let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    let bytes = fs::read(folder.path()).unwrap();
    let needle = stamp(&[5]);
    let at = bytes.windows(4096).position(|window| window == needle).unwrap();
    let file = fs::OpenOptions::new().write(true).open(folder.path()).unwrap();
    file.write_all_at(&[0xA5; 10], at as u64 + 100).unwrap();
    drop(image);
    let report = folder.check();
    assert!(report.is_damaged());
    assert_eq!((report.unreadable_blocks, report.unreadable), (1, vec![4]));
    assert_eq!(report.verified_blocks, CAPACITY - 1);
    // The record of set 0 is the first of NVRAM, behind the two labels.
    file.write_all_at(&[0xA5; 8], 131_072).unwrap();
    let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    let error = check_zoned(&image, &folder.config, None).map(drop).unwrap_err();
    assert!(matches!(error, DeviceError::Zones { .. }));
    assert!(error.to_string().contains("the record of set 0 in NVRAM is damaged"), "{error}");
}

#[test]
fn zones_that_fail_stay_failed() {
    let folder = Folder::new(&config(2));
    let (device, _) = folder.open();
    device.write(0, &stamp(&[1, 2, 3]), false).unwrap();
    device.write(SIZE, &stamp(&[4]), false).unwrap();
    device.fail_zone(ZoneId::new(0), false).unwrap();
    device.fail_zone(ZoneId::new(1), true).unwrap();
    let refused = device.write(3, &stamp(&[9]), false).unwrap_err();
    assert!(matches!(refused, ZonedError::Zone(ZnsError::ZoneIsReadOnly { .. })));
    device.close().unwrap();
    drop(device);
    let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    let (details, _, zones) = inspect_zoned(&image, &folder.config).unwrap();
    assert_eq!(details.in_state(ZoneState::ReadOnly), 1);
    assert_eq!(details.in_state(ZoneState::Offline), 1);
    assert_eq!(details.in_state(ZoneState::Empty), ZONES - 2);
    assert_eq!((details.written_bytes, details.bad_sets), (3 * 4096, 1));
    assert_eq!(zones[1].state, ZoneState::Offline);
    drop(image);
    let (device, _) = folder.open();
    let mut back = vec![0; 3 * 4096];
    device.read(0, &mut back).unwrap();
    assert_eq!(back, stamp(&[1, 2, 3]));
    let lost = device.read(SIZE, &mut back).unwrap_err();
    assert!(matches!(lost, ZonedError::Zone(ZnsError::ZoneIsOffline { .. })));
    assert_eq!(device.read(0, &mut back[..100]), Err(ZonedError::Length { bytes: 100 }));
}

/// A flush promises what was acknowledged before it began, whatever else goes on meanwhile.
#[test]
fn flushes_and_writes_go_on_side_by_side() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let folder = Folder::new(&config(4));
    for round in 0..8_u64 {
        let (device, _) = folder.open();
        let written = [const { AtomicU64::new(0) }; 3];
        let promised = std::thread::scope(|scope| {
            for (zone, count) in (0..).zip(&written) {
                let device = &device;
                scope.spawn(move || {
                    device.manage(Select::One(ZoneId::new(zone)), ZoneAction::Reset).unwrap();
                    for at in 0..CAPACITY {
                        let lba = u64::from(zone) * SIZE + at;
                        device.write(lba, &stamp(&[round << 32 | (lba + 1)]), false).unwrap();
                        count.store(at + 1, Ordering::SeqCst);
                    }
                });
            }
            let mut promised = [0; 3];
            while promised.iter().any(|count| *count < CAPACITY / 2) {
                promised = written.each_ref().map(|count| count.load(Ordering::SeqCst));
                device.flush().unwrap();
            }
            promised
        });
        drop(device);
        let (device, _) = folder.open();
        for (zone, least) in (0_u32..).zip(promised) {
            let mut bytes = vec![0; index64(CAPACITY * 4096)];
            device.read(u64::from(zone) * SIZE, &mut bytes).unwrap();
            let lba = |at: u64| u64::from(zone) * SIZE + at;
            let whole = |at: &u64| {
                let block = &bytes[index64(*at * 4096)..][..4096];
                block == stamp(&[round << 32 | (lba(*at) + 1)])
            };
            let found = (0..CAPACITY).take_while(whole).count() as u64;
            assert!(
                found >= least,
                "round {round}: zone {zone} holds {found}, {least} were flushed"
            );
        }
    }
}

/// Overwrites conventional zones, fills sequential ones, and ends without notice or in good order: each conventional block holds what
/// FLUSH or FUA covered, or something later, and a check finds nothing.
fn run_conventional(seed: u64) {
    const FRONT: u32 = 2 * 64;
    let mut rng = Rng::new(seed);
    let mut config = with_conventional(&config([1, 2, 4][index64(seed % 3)]), 2);
    config.conventional.as_mut().unwrap().buffer.bytes = [0, 64 << 10][index64(seed % 2)];
    let folder = Folder::new(&config);
    let mut blocks = Blocks::new(FRONT, false);
    let (mut device, _) = folder.open();
    assert_eq!((device.shape().zones, device.shape().conventional), (ZONES + 2, 2));
    for _ in 0..4 {
        for step in 0..200 + rng.below(300) {
            match rng.below(30) {
                0 => {
                    device.flush().unwrap();
                    blocks.flushed();
                }
                1 => {
                    let zone = u64::from(FRONT) + rng.below(ZONES.into()) * SIZE;
                    let found = device.report(ZoneId::new(0), None).unwrap().zones;
                    let info = found.iter().find(|info| info.start == zone).unwrap();
                    let done = match info.write_pointer {
                        Some(at) => device.write(at, &stamp(&[step]), false),
                        None => device.manage(Select::One(info.zone), ZoneAction::Reset),
                    };
                    assert!(matches!(done, Ok(()) | Err(ZonedError::Zone(_))), "{done:?}");
                }
                _ => {
                    let zone = u32::try_from(rng.below(2)).unwrap() * 64;
                    let (at, fua) = (u32::try_from(rng.below(60)).unwrap(), rng.below(20) == 0);
                    let count = 1 + u32::try_from(rng.below(4)).unwrap();
                    let mut bytes = vec![0; 4096 * index64(count.into())];
                    for (lpn, bytes) in (zone + at..).zip(bytes.chunks_mut(4096)) {
                        fill(lpn, blocks.write(lpn), bytes);
                    }
                    device.write(u64::from(zone + at), &bytes, fua).unwrap();
                    if fua {
                        blocks.durable(zone + at..zone + at + count);
                    }
                }
            }
        }
        if rng.below(3) == 0 {
            device.close().unwrap();
            blocks.flushed();
        }
        drop(device);
        let found = folder.check();
        assert!(!found.is_damaged(), "{found:?}");
        let conventional = found.details.conventional.clone().unwrap();
        assert_eq!((conventional.zones, conventional.out_of_service), (2, [0, 0]));
        assert!(found.verified_blocks * 4096 >= conventional.stored_bytes);
        device = folder.open().0;
        for lpn in 0..FRONT {
            let mut bytes = [0xEE; 4096];
            device.read(lpn.into(), &mut bytes).unwrap();
            blocks.settle(lpn, &bytes).unwrap();
        }
    }
}

#[test]
fn conventional_zones_survive_ends_of_the_process() {
    for seed in 0..9 {
        run_conventional(seed);
    }
}

#[test]
fn an_image_with_conventional_zones_says_so() {
    let folder = Folder::new(&with_conventional(&config(2), 2));
    let image = Image::open(&folder.path(), Access::ReadOnly).unwrap();
    assert_eq!(image.label().features, FEATURE_ZONES | FEATURE_CONVENTIONAL);
    assert_eq!(image.label().logical_bytes, (2 * 64 + 6 * 48) * 4096);
    drop(image);
    let (device, _) = folder.open();
    device.write(70, &stamp(&[7, 8]), true).unwrap();
    device.write(64 * 2, &stamp(&[9]), true).unwrap();
    let refused = device.manage(Select::One(ZoneId::new(1)), ZoneAction::Reset);
    assert!(matches!(refused, Err(ZonedError::Zone(ZnsError::InvalidField { .. }))));
    device.fail_zone(ZoneId::new(1), false).unwrap();
    device.close().unwrap();
    drop(device);
    let (details, _, zones) =
        inspect_zoned(&Image::open(&folder.path(), Access::ReadOnly).unwrap(), &folder.config)
            .unwrap();
    assert_eq!(details.conventional.unwrap().out_of_service, [1, 0]);
    assert_eq!((zones[0].state, zones[1].state), (ZoneState::NotWritePointer, ZoneState::ReadOnly));
    assert_eq!((zones[2].start, zones[2].write_pointer), (128, Some(129)));
    assert_eq!(folder.check().verified_blocks, 3);
    // What is damaged on flash is an error of its block, and of no other one.
    let bytes = fs::read(folder.path()).unwrap();
    let place = 4096 * bytes.chunks(4096).position(|block| block == stamp(&[8])).unwrap();
    let file = fs::OpenOptions::new().write(true).open(folder.path()).unwrap();
    file.write_all_at(&[1], place as u64).unwrap();
    let found = folder.check();
    assert_eq!((found.unreadable, found.verified_blocks), (vec![71], 2));
    // A namespace of the same size without them is another device.
    let other = ZnsConfig { conventional: None, ..folder.config };
    let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
    assert!(matches!(ZonedDevice::open(image, &other), Err(DeviceError::Mismatch { .. })));
}
