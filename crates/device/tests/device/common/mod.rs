//! Small devices in temporary folders.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod versions;

use std::path::{Path, PathBuf};

use onefold_buffer::{Charge, PolicySpec};
use onefold_device::{
    Access, Image, Latency, OpenOptions, Opened, SsdDevice, ZnsConfig, ZoneLimits,
};
use onefold_ftl::{RemapConfig, RemapScheme};
use onefold_nand::{FaultSpec, Geometry, GeometrySpec, Span};
use onefold_ssd::{SsdConfig, Writeback, example_config};

/// What the label carries; the device crate does not look into it.
pub(crate) const TEXT: &str = "name = \"test\"\n";

/// A namespace of zones of 1 MiB, of which `capacity` blocks can be written, with four spare sets. Five zones may be open.
pub(crate) fn zones(zones: u32, capacity: u32) -> ZnsConfig {
    let spec = GeometrySpec {
        channels: 2,
        ways: 1,
        planes: 1,
        blocks: zones + 4,
        pages: capacity / 8,
        page_bytes: 16_384,
        unit_bytes: 4096,
        span: Span::Die,
    };
    ZnsConfig {
        geometry: Geometry::new(spec).unwrap(),
        timing: example_config().timing,
        zone_blocks: 256,
        capacity_blocks: capacity,
        zones,
        conventional: None,
        zone_dies: 2,
        limits: ZoneLimits { max_open: Some(5), max_active: None },
        append_blocks: None,
        read_across: false,
        cache_bytes: 0,
        cache_volatile: true,
        faults: FaultSpec::default(),
    }
}

/// The same namespace with conventional zones in front, on flash blocks of their own.
pub(crate) fn with_conventional(config: &ZnsConfig, zones: u32) -> ZnsConfig {
    let spec = *config.geometry.spec();
    let geometry = |blocks| Geometry::new(GeometrySpec { blocks, ..spec }).unwrap();
    let units = u64::from(zones * config.zone_blocks);
    // Half as much again, and what collection keeps free.
    let per_block = geometry(1).total_slots();
    let blocks = u32::try_from(units.div_ceil(per_block) * 3 / 2).unwrap() + 8;
    let mut device = SsdConfig { geometry: geometry(blocks), ..example_config() };
    device.ftl.logical_units = units;
    device.ftl.trim_log_bytes = 4096;
    ZnsConfig { geometry: geometry(spec.blocks + blocks), conventional: Some(device), ..*config }
}

/// A device of 5 MiB raw: 4 KiB pages, nothing but data on flash.
pub(crate) fn plain() -> SsdConfig {
    SsdConfig { geometry: geometry(4096, 40, 16), ..small() }
}

/// A device of 6 MiB raw with everything: 16 KiB pages, head and tail pages, checkpoints, a buffer.
pub(crate) fn rich() -> SsdConfig {
    let mut config = SsdConfig { geometry: geometry(16_384, 24, 8), ..small() };
    config.ftl.metadata_pages = true;
    config.ftl.checkpoint = 0.5;
    config.ftl.wear_threshold = 8;
    config.ftl.trim_log_bytes = 4096;
    config.buffer.bytes = 64 << 10;
    config
}

/// The same with another policy, two streams, and victims that go to flash in the background.
pub(crate) fn buffered(policy: PolicySpec) -> SsdConfig {
    let mut config = rich();
    config.ftl.streams = 2;
    config.buffer.policy = policy;
    config.buffer.charge = Charge::None;
    config.buffer.bytes = 256 << 10;
    config.writeback = Writeback::Async { slots: 6 };
    config
}

/// Units of the host, and of snapshots, of a device that shares pages.
pub(crate) const HOST: u64 = 400;
pub(crate) const SNAPSHOTS: u64 = 200;

/// The same device with the log of remaps in NVRAM and on flash, and room for snapshots.
pub(crate) fn shares(mut config: SsdConfig) -> SsdConfig {
    config.ftl.logical_units = HOST;
    config.ftl.snapshot_units = SNAPSHOTS + 1;
    let log_bytes = 32 << 10;
    config.ftl.remap = RemapConfig { scheme: RemapScheme::Lh, log_bytes, ..RemapConfig::OFF };
    config
}

/// Three MiB of capacity, so that collection has work after a few MiB of writes.
fn small() -> SsdConfig {
    let mut config = example_config();
    config.ftl.logical_units = 768;
    config
}

pub(crate) fn geometry(page_bytes: u32, blocks: u32, pages: u32) -> Geometry {
    let spec = GeometrySpec {
        channels: 2,
        ways: 1,
        planes: 1,
        blocks,
        pages,
        page_bytes,
        unit_bytes: 4096,
        span: Span::Device,
    };
    Geometry::new(spec).unwrap()
}

/// An image in its own folder.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    config: SsdConfig,
}

impl Folder {
    /// A blank image of `config`.
    pub(crate) fn new(config: &SsdConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder, config: *config };
        drop(Image::create(&this.path(), config, TEXT.to_owned()).unwrap());
        this
    }

    /// Where the image is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    /// Opens the device.
    pub(crate) fn open(&self) -> Opened {
        open(&self.path(), &self.config)
    }

    /// Checks the image: `true` if there is no damage.
    pub(crate) fn is_whole(&self) -> bool {
        let image = Image::open(&self.path(), Access::ReadOnly).unwrap();
        let before = std::fs::read(self.path()).unwrap();
        let report = onefold_device::check(&image, &self.config, Some(&mut |_, _| {})).unwrap();
        assert!(before == std::fs::read(self.path()).unwrap(), "a check changes nothing");
        if report.is_damaged() {
            eprintln!("{report:?}");
        }
        !report.is_damaged()
    }
}

/// Opens the device of an image without modelled latency.
pub(crate) fn open(path: &Path, config: &SsdConfig) -> Opened {
    let image = Image::open(path, Access::Exclusive).unwrap();
    SsdDevice::open(image, config, OpenOptions::new(Latency::None)).unwrap()
}

/// A device of 40 MiB, 36 of them for the host: room for a volume.
pub(crate) fn roomy(scheme: RemapScheme) -> SsdConfig {
    let mut config = SsdConfig { geometry: geometry(4096, 160, 32), ..small() };
    config.ftl.logical_units = 9216;
    let log_bytes = 256 << 10;
    config.ftl.remap = RemapConfig { scheme, log_bytes, ..RemapConfig::OFF };
    config
}
