//! The zoned volume that a configuration puts between the load and a zoned namespace with conventional zones, or two devices (`[zoned]`; zoned.md, section 3).

use onefold_units::convert;
use onefold_zoned::{DeviceZones, Geometry, JournalMode, Layout, Options};

use crate::config::Config;
use crate::error::ConfigError;
use crate::load::Sources;

const BLOCK: u64 = 4096;

/// A zoned volume over a zoned namespace with conventional zones, or over one without and a regular device.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonedVolume {
    /// The zones of all devices; those of the regular one are pieces of it.
    pub geometry: Geometry,
    /// How it is run: blocks carry no bytes.
    pub options: Options,
    /// The regular device, if there is one; it comes first then.
    pub regular: Option<Box<Config>>,
    /// Bytes that the volume exports.
    pub logical_bytes: u64,
}

impl Config {
    pub(crate) fn has_zoned_volume(&self) -> bool {
        self.word("zoned.policy") != "none"
    }

    /// The zoned volume, if there is one.
    ///
    /// # Errors
    /// Names the key that is missing, or the zones that are too few.
    pub fn zoned_volume(&self) -> Result<Option<ZonedVolume>, ConfigError> {
        if !self.has_zoned_volume() {
            return Ok(None);
        }
        let needs = |what| Err(ConfigError::ZonedVolume { what });
        let Some(zns) = self.zns(0)? else { return needs("namespace.type = \"zoned\"") };
        if zns.capacity_blocks != zns.zone_blocks {
            return needs(
                "zones that can be written to their end: leave namespace.zone_capacity out",
            );
        }
        let zone_blocks = zns.zone_blocks;
        let conventional = zns.conventional_zones();
        let regular = self.regular_device(conventional)?;
        let mut devices = vec![DeviceZones { conventional, sequential: zns.zones }];
        if let Some(regular) = &regular {
            let pieces = regular.logical_bytes()? / BLOCK / u64::from(zone_blocks);
            let pieces = DeviceZones { conventional: convert::narrow(pieces), sequential: 0 };
            devices.insert(0, pieces);
        }
        let geometry = Geometry::new(zone_blocks, devices)
            .map_err(|source| ConfigError::ZonedGeometry { source })?;
        let layout = Layout::new(&geometry, geometry.zones())
            .map_err(|source| ConfigError::ZonedLayout { source })?;
        let logical_bytes = layout.blocks(&geometry) * BLOCK;
        let options = self.zoned_options(logical_bytes)?;
        Ok(Some(ZonedVolume { geometry, options, regular, logical_bytes }))
    }

    /// The device beside zones of which none are conventional.
    fn regular_device(&self, conventional: u32) -> Result<Option<Box<Self>>, ConfigError> {
        let needs = |what| Err(ConfigError::ZonedVolume { what });
        let name = self.text("zoned.regular");
        match (name.is_empty(), conventional > 0) {
            (true, true) => return Ok(None),
            (true, false) => {
                return needs(
                    "namespace.conventional, or zoned.regular, the preset of a device for random writes",
                );
            }
            (false, true) => {
                return needs("either namespace.conventional or zoned.regular, not both");
            }
            (false, false) => {}
        }
        let regular = Self::load(&Sources { preset: Some(name), ..Sources::default() })?;
        if regular.is_zoned() || regular.volume()?.is_some() {
            return needs("a zoned.regular without zones and volume");
        }
        Ok(Some(Box::new(regular)))
    }

    fn zoned_options(&self, logical_bytes: u64) -> Result<Options, ConfigError> {
        let first = self.quantity("zoned.journal_offset");
        let size = self.quantity("zoned.journal_size");
        let word = self.word("zoned.journal");
        let mode = JournalMode::ALL.into_iter().find(|mode| mode.name() == word);
        let journal = mode.unwrap_or_default();
        if journal != JournalMode::Off && size == 0 {
            return Err(ConfigError::ZonedVolume {
                what: "zoned.journal_size, for zoned.journal to know the journal",
            });
        }
        if first.saturating_add(size) > logical_bytes {
            return Err(ConfigError::ZonedVolume { what: "a journal inside the volume" });
        }
        let range = first / BLOCK..(first + size).div_ceil(BLOCK);
        // The journal of ext4 begins with its header.
        let header = range.start..range.start + 1;
        Ok(Options {
            kernel_flush: self.flag("zoned.kernel_flush"),
            journal,
            journal_ranges: (size > 0).then_some(range).into_iter().collect(),
            journal_hot: (size > 0).then_some(header).into_iter().collect(),
            copy_blocks: convert::narrow(self.quantity("zoned.copy") / BLOCK),
            bytes: false,
            give_up_lost: false,
        })
    }
}
