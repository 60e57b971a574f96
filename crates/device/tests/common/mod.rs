//! Small devices in temporary folders.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::{Path, PathBuf};

use onefold_device::{Access, Image, Latency, OpenOptions, Opened, SsdDevice};
use onefold_nand::{Geometry, GeometrySpec, Span};
use onefold_ssd::{SsdConfig, example_config};

/// What the label carries; the device crate does not look into it.
pub const TEXT: &str = "name = \"test\"\n";

/// A device of 2 MiB raw, 4 KiB pages, nothing but data on flash.
pub fn plain() -> SsdConfig {
    with(4096, |_| {})
}

/// A device of 2 MiB raw with everything: 16 KiB pages, head and tail pages, checkpoints, a buffer.
pub fn rich() -> SsdConfig {
    with(16_384, |config| {
        config.ftl.metadata_pages = true;
        config.ftl.checkpoint = 0.5;
        config.ftl.wear_threshold = 8;
        config.ftl.trim_log_bytes = 4096;
        config.buffer.bytes = 64 << 10;
    })
}

fn with(page_bytes: u32, change: impl FnOnce(&mut SsdConfig)) -> SsdConfig {
    let geometry = Geometry::new(GeometrySpec {
        channels: 2,
        ways: 1,
        planes: 1,
        blocks: 32,
        pages: 32 * 4096 / page_bytes * 4,
        page_bytes,
        unit_bytes: 4096,
        span: Span::Device,
    });
    let mut config = SsdConfig { geometry: geometry.unwrap(), ..example_config() };
    config.ftl.logical_units = config.geometry.total_slots() / 2;
    change(&mut config);
    config
}

/// An image in its own folder.
pub struct Folder {
    folder: tempfile::TempDir,
    config: SsdConfig,
}

impl Folder {
    /// A blank image of `config`.
    pub fn new(config: SsdConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder, config };
        drop(Image::create(&this.path(), &config, TEXT.to_owned()).unwrap());
        this
    }

    /// Where the image is.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    /// Opens the device.
    pub fn open(&self) -> Opened {
        open(&self.path(), &self.config)
    }

    /// Checks the image: `true` if there is no damage.
    pub fn is_whole(&self) -> bool {
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
pub fn open(path: &Path, config: &SsdConfig) -> Opened {
    let image = Image::open(path, Access::Exclusive).unwrap();
    SsdDevice::open(image, config, OpenOptions::new(Latency::None)).unwrap()
}
