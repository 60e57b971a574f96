//! The zoned volume that a configuration puts between the load and a zoned namespace, with conventional zones or beside a regular device
//! (`[zoned]`; zoned.md, sections 1 and 3).

use std::ops::Range;

use onefold_ssd::zns::ZnsConfig;
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
    /// Requests at once to it; `None` if there is no limit.
    pub regular_depth: Option<u64>,
    /// Bytes that the volume exports.
    pub logical_bytes: u64,
}

/// The devices of a zoned volume.
pub(crate) struct ZonedDevices {
    /// Their zones; those of the regular one are pieces of it.
    pub(crate) geometry: Geometry,
    /// What a volume of policy `dmz` exports on them, in blocks.
    pub(crate) dmz_blocks: u64,
    regular: Option<Box<Config>>,
}

/// The zones of a volume of policy `dmz`, those of a place for random writes first, and the blocks
/// that it exports.
fn dmz_geometry(regular: Option<u64>, zns: &ZnsConfig) -> Result<(Geometry, u64), ConfigError> {
    let zone_blocks = zns.zone_blocks;
    let zones = DeviceZones { conventional: zns.conventional_zones(), sequential: zns.zones };
    let pieces = regular.map(|blocks| {
        let pieces = convert::narrow(blocks / u64::from(zone_blocks));
        DeviceZones { conventional: pieces, sequential: 0 }
    });
    let devices = pieces.into_iter().chain([zones]).collect();
    let geometry = Geometry::new(zone_blocks, devices)
        .map_err(|source| ConfigError::ZonedGeometry { source })?;
    let layout = Layout::new(&geometry, geometry.zones())
        .map_err(|source| ConfigError::ZonedLayout { source })?;
    let blocks = layout.blocks(&geometry);
    Ok((geometry, blocks))
}

impl Config {
    /// The zoned volume of policy `dmz`, if there is one.
    ///
    /// # Errors
    /// Names the key that is missing, or the zones that are too few.
    pub fn zoned_volume(&self) -> Result<Option<ZonedVolume>, ConfigError> {
        if self.word("zoned.policy") != "dmz" {
            return Ok(None);
        }
        let Some(devices) = self.zoned_devices()? else {
            return Err(ConfigError::ZonedVolume {
                what: "namespace.conventional, or zoned.regular, the preset of a device for random writes",
            });
        };
        let ZonedDevices { geometry, dmz_blocks, regular } = devices;
        let logical_bytes = dmz_blocks * BLOCK;
        let options = self.zoned_options(logical_bytes)?;
        let regular_depth = Some(self.count("zoned.regular_depth")).filter(|depth| *depth > 0);
        if regular_depth.is_some() && regular.is_none() {
            return Err(ConfigError::ZonedVolume {
                what: "zoned.regular, to which zoned.regular_depth limits requests",
            });
        }
        Ok(Some(ZonedVolume { geometry, options, regular, regular_depth, logical_bytes }))
    }

    /// The regular device below a volume of policy `log`, if there is one beside the zones.
    ///
    /// # Errors
    /// As [`Config::zoned_volume`].
    pub fn regular_of_log(&self) -> Result<Option<Self>, ConfigError> {
        if self.word("zoned.policy") != "log" {
            return Ok(None);
        }
        Ok(self.zoned_devices()?.and_then(|devices| devices.regular).map(|regular| *regular))
    }

    /// The devices of a zoned volume, if there are zones for random writes or a regular device beside the zones.
    pub(crate) fn zoned_devices(&self) -> Result<Option<ZonedDevices>, ConfigError> {
        let needs = |what| Err(ConfigError::ZonedVolume { what });
        let Some(zns) = self.zns(0)? else { return needs("namespace.type = \"zoned\"") };
        let conventional = zns.conventional_zones();
        let regular = self.regular_device(conventional)?;
        if regular.is_none() && conventional == 0 {
            return Ok(None);
        }
        if zns.capacity_blocks != zns.zone_blocks {
            return needs(
                "zones that can be written to their end: leave namespace.zone_capacity out",
            );
        }
        let blocks = match &regular {
            Some(regular) => Some(regular.logical_bytes()? / BLOCK),
            None => None,
        };
        let (geometry, dmz_blocks) = dmz_geometry(blocks, &zns)?;
        Ok(Some(ZonedDevices { geometry, dmz_blocks, regular }))
    }

    /// A volume of policy `dmz` on zones, with a place of so many blocks for random writes.
    pub(crate) fn dmz_on(
        &self,
        regular: Option<u64>,
        zns: &ZnsConfig,
    ) -> Result<ZonedVolume, ConfigError> {
        let needs = |what| Err(ConfigError::ZonedVolume { what });
        if regular.is_none() && zns.conventional_zones() == 0 {
            return needs("conventional zones, or a place for random writes beside the zones");
        }
        if zns.capacity_blocks != zns.zone_blocks {
            return needs(
                "zones that can be written to their end: leave namespace.zone_capacity out",
            );
        }
        let (geometry, blocks) = dmz_geometry(regular, zns)?;
        let logical_bytes = blocks * BLOCK;
        let options = self.zoned_options(logical_bytes)?;
        Ok(ZonedVolume { geometry, options, regular: None, regular_depth: None, logical_bytes })
    }

    /// The device beside zones of which none are conventional, if there is one.
    fn regular_device(&self, conventional: u32) -> Result<Option<Box<Self>>, ConfigError> {
        let needs = |what| Err(ConfigError::ZonedVolume { what });
        let name = self.text("zoned.regular");
        if name.is_empty() {
            return Ok(None);
        }
        if conventional > 0 {
            return needs("either namespace.conventional or zoned.regular, not both");
        }
        let regular = Self::load(&Sources { preset: Some(name), ..Sources::default() })?;
        if regular.is_zoned() || regular.volume()?.is_some() {
            return needs("a zoned.regular without zones and volume");
        }
        Ok(Some(Box::new(regular)))
    }

    /// The blocks of the journal of the load on a volume of so many bytes, if its range is given.
    pub(crate) fn journal_blocks(
        &self,
        logical_bytes: u64,
    ) -> Result<Option<Range<u64>>, ConfigError> {
        let (first, size) =
            (self.quantity("zoned.journal_offset"), self.quantity("zoned.journal_size"));
        if size == 0 && self.word("zoned.journal") != "off" {
            return Err(ConfigError::ZonedVolume {
                what: "zoned.journal_size, for zoned.journal to know the journal",
            });
        }
        if first.saturating_add(size) > logical_bytes {
            return Err(ConfigError::ZonedVolume { what: "a journal inside the volume" });
        }
        Ok((size > 0).then(|| first / BLOCK..(first + size).div_ceil(BLOCK)))
    }

    fn zoned_options(&self, logical_bytes: u64) -> Result<Options, ConfigError> {
        let word = self.word("zoned.journal");
        let mode = JournalMode::ALL.into_iter().find(|mode| mode.name() == word);
        let journal = self.journal_blocks(logical_bytes)?;
        // The journal of ext4 begins with its header.
        let header = journal.as_ref().map(|range| range.start..range.start + 1);
        Ok(Options {
            kernel_flush: self.flag("zoned.kernel_flush"),
            journal: mode.unwrap_or_default(),
            journal_ranges: journal.into_iter().collect(),
            journal_hot: header.into_iter().collect(),
            copy_blocks: convert::narrow(self.quantity("zoned.copy") / BLOCK),
            bytes: false,
            give_up_lost: false,
        })
    }
}
