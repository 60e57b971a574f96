//! The volume that a configuration puts between the load and the device (`[volume]`; volume.md).

use std::ops::Range;

use onefold_modes::Areas;
use onefold_nand::Geometry as Flash;
use onefold_ssd::SsdConfig;
use onefold_ssd::zns::ZnsConfig;
use onefold_units::{Nanos, convert};
use onefold_volume::{
    Acknowledge, CleanMove, Geometry, GeometryError, JournalStreams, Layout, Options, PaperFlush,
    Trim, Victim, VolumeMode,
};

use crate::config::Config;
use crate::error::ConfigError;
use crate::value::Value;
use crate::zoned_volume::ZonedDevices;

const BLOCK: u64 = 4096;

/// Bytes of a map page in memory: 1,024 entries of a location and a checksum.
const MAP_PAGE_BYTES: u64 = 8192;

/// Log segments that a default size leaves at least: the fewest a volume may have, and some for labels and roots.
const SEGMENTS_WANTED: u64 = 160;

/// Largest log segment: 4 GiB.
const SEGMENT_BLOCKS_MAX: u64 = 1 << 20;

/// Streams of a drive from which on written, often written and moved blocks and checkpoints of a volume have one each.
const STREAMS_OF_ITS_OWN: u32 = 4;

/// What a volume lies on, as far as its sizes follow from it.
pub(crate) struct Below {
    /// Blocks of 4 KiB.
    pub(crate) blocks: u64,
    /// Bytes of what it writes at once.
    pub(crate) unit: u64,
    /// Blocks of which a log segment has about as many.
    pub(crate) segment: u64,
}

impl Below {
    /// A device that maps pages.
    pub(crate) fn device(flash: &Flash, unit: u64, blocks: u64) -> Self {
        // Where every die has superblocks of its own, those written side by side count as one.
        Self { blocks, unit, segment: flash.superblock_row_bytes() / BLOCK }
    }
}

/// A volume between the load and the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// How it places what is written.
    pub mode: VolumeMode,
    /// Sizes. They fit together, and onto the device behind `offset_blocks`. In the modes `sung` and `han` log segments
    /// are partitions.
    pub geometry: Geometry,
    /// How it is run: blocks carry no bytes and are not verified.
    pub options: Options,
    /// Blocks of the device before the volume.
    pub offset_blocks: u64,
    /// Host CPU time per request.
    pub cpu: Nanos,
    /// Host CPU time per table that is searched for a block.
    pub cpu_search: Nanos,
    /// Blocks of the journal of the load, if they are to have log segments of their own.
    pub journal: Option<Range<u64>>,
}

impl Volume {
    /// Bytes that the volume exports.
    #[must_use]
    pub const fn logical_bytes(&self) -> u64 {
        self.geometry.logical_blocks * BLOCK
    }
}

impl Config {
    /// The volume, if there is one.
    ///
    /// # Errors
    /// Names the inequality that its geometry or its options break.
    pub fn volume(&self) -> Result<Option<Volume>, ConfigError> {
        let mode = match (self.word("volume.mode"), self.word("zoned.policy")) {
            ("sung", _) => VolumeMode::Sung,
            ("han", _) => VolumeMode::Han,
            ("log", _) | (_, "log") => VolumeMode::Log,
            _ => return Ok(None),
        };
        if self.word("zoned.policy") == "log" && mode != VolumeMode::Log {
            return Err(ConfigError::ZonedVolume { what: "volume.mode = \"log\" or \"none\"" });
        }
        if self.fingerprints() > 0 {
            return Err(ConfigError::VolumeContents);
        }
        if self.word("volume.clean_move") == "remap" && self.word("ftl.remap") == "none" {
            return Err(ConfigError::VolumeRemap);
        }
        let offset_blocks = self.quantity("volume.offset") / BLOCK;
        // A device that cannot be built is judged before its volume.
        let device = self.logical_bytes().unwrap_or(0) / BLOCK;
        let blocks = device.saturating_sub(offset_blocks);
        let flash = self.geometry()?;
        let geometry = match mode {
            VolumeMode::Log if self.is_zoned() => self.log_zones()?,
            _ => {
                let unit = SsdConfig::write_unit_bytes(&flash, &self.buffer()).into();
                self.volume_geometry(mode, &Below::device(&flash, unit, blocks))?
            }
        };
        self.volume_at(mode, geometry, offset_blocks).map(Some)
    }

    /// Sizes of a volume that lies on no zones.
    pub(crate) fn volume_geometry(
        &self,
        mode: VolumeMode,
        below: &Below,
    ) -> Result<Result<Geometry, GeometryError>, ConfigError> {
        if mode == VolumeMode::Han && self.quantity("volume.partition") > 0 {
            return Err(ConfigError::VolumePartition);
        }
        Ok(match mode {
            VolumeMode::Log => self.log_segments(below),
            VolumeMode::Sung | VolumeMode::Han => self.partitions(mode, below.blocks),
        })
    }

    /// A volume of these sizes.
    pub(crate) fn volume_at(
        &self,
        mode: VolumeMode,
        geometry: Result<Geometry, GeometryError>,
        offset_blocks: u64,
    ) -> Result<Volume, ConfigError> {
        let geometry = geometry.map_err(|source| ConfigError::VolumeGeometry { source })?;
        self.volume_with(mode, geometry, offset_blocks)
    }

    fn volume_with(
        &self,
        mode: VolumeMode,
        geometry: Geometry,
        offset_blocks: u64,
    ) -> Result<Volume, ConfigError> {
        let journal = self.journal_of_log(mode, geometry.logical_blocks * BLOCK)?;
        let options = self.volume_options(journal.is_some());
        let checked = options.check(geometry.unit_blocks);
        checked.map_err(|source| ConfigError::VolumeOptions { source })?;
        Ok(Volume {
            mode,
            geometry,
            options,
            offset_blocks,
            cpu: self.time("volume.cpu"),
            cpu_search: self.time("volume.cpu_search"),
            journal,
        })
    }

    /// A volume that exists, run as this configuration says; and the configuration that describes it.
    ///
    /// # Errors
    /// It compresses, which needs the bytes of blocks, or the options do not fit it.
    pub fn with_volume(
        &self,
        mode: VolumeMode,
        geometry: Geometry,
    ) -> Result<(Self, Volume), ConfigError> {
        if geometry.compress.is_some() {
            return Err(ConfigError::VolumeCompresses);
        }
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK;
        let mut sets = vec![format!("volume.mode={}", mode.name())];
        match mode {
            VolumeMode::Log => sets.extend([
                format!("volume.log_segment={}B", bytes(geometry.segment_blocks)),
                format!("volume.unit={}B", bytes(geometry.unit_blocks)),
            ]),
            VolumeMode::Sung => {
                sets.push(format!("volume.partition={}B", bytes(geometry.segment_blocks)));
            }
            VolumeMode::Han => {}
        }
        let described = self.with_sets(&sets, &["volume"])?;
        let volume = described.volume_with(mode, geometry, 0)?;
        Ok((described, volume))
    }

    /// Where the journal is, if it is to have log segments of its own.
    fn journal_of_log(
        &self,
        mode: VolumeMode,
        logical_bytes: u64,
    ) -> Result<Option<Range<u64>>, ConfigError> {
        match (self.word("zoned.journal"), mode) {
            ("one", _) => {
                Err(ConfigError::ZonedVolume { what: "policy \"dmz\" for zoned.journal = \"one\"" })
            }
            ("set", VolumeMode::Log) => self.journal_blocks(logical_bytes),
            ("set", _) => Err(ConfigError::ZonedVolume {
                what: "volume.mode = \"log\" for zoned.journal = \"set\"",
            }),
            _ => Ok(None),
        }
    }

    /// Bytes that the load can address: those of the volume, or of the device without one.
    ///
    /// # Errors
    /// As [`Config::ssd`], [`Config::volume`] and [`Config::zoned_volume`].
    pub fn host_bytes(&self) -> Result<u64, ConfigError> {
        if let Some(stack) = self.stack(0)? {
            return Ok(stack.logical_bytes());
        }
        if let Some(zoned) = self.zoned_volume()? {
            return Ok(zoned.logical_bytes);
        }
        match self.volume()? {
            Some(volume) => Ok(volume.logical_bytes()),
            None => self.logical_bytes(),
        }
    }

    fn log_segments(&self, below: &Below) -> Result<Geometry, GeometryError> {
        let unit = match self.quantity("volume.unit") {
            0 => below.unit,
            given => given,
        };
        let (unit, blocks) = (unit / BLOCK, below.blocks);
        let segment = match self.quantity("volume.log_segment") / BLOCK {
            0 => segment_of(below).next_multiple_of(unit).min(SEGMENT_BLOCKS_MAX),
            given => given,
        };
        let geometry = Geometry {
            backing_blocks: blocks,
            segment_blocks: convert::narrow(segment),
            zone_blocks: 0,
            unit_blocks: convert::narrow(unit),
            logical_blocks: 1,
            compress: None,
        };
        let layout = Layout::new(geometry)?;
        let logical_blocks = self.exported(layout.log_blocks());
        let geometry = Geometry { logical_blocks, ..geometry };
        Layout::new(geometry)?.not_thin().map(|_| geometry)
    }

    /// Log segments that are zones.
    fn log_zones(&self) -> Result<Result<Geometry, GeometryError>, ConfigError> {
        let Some(zns) = self.zns(0)? else {
            return Err(ConfigError::ZonedVolume { what: "namespace.type = \"zoned\"" });
        };
        let devices = match self.word("zoned.policy") {
            "log" => self.zoned_devices()?,
            _ => None,
        };
        let zones = devices.as_ref().map_or(zns.zones, |devices| devices.geometry.zones());
        Ok(self.log_on_zones(&zns, zones, devices.as_ref()))
    }

    /// So many zones that are log segments.
    pub(crate) fn log_on_zones(
        &self,
        zns: &ZnsConfig,
        zones: u32,
        devices: Option<&ZonedDevices>,
    ) -> Result<Geometry, GeometryError> {
        let geometry = Geometry {
            backing_blocks: u64::from(zones) * u64::from(zns.zone_blocks),
            segment_blocks: zns.capacity_blocks,
            zone_blocks: zns.zone_blocks,
            unit_blocks: 1,
            logical_blocks: 1,
            compress: None,
        };
        let exported = |layout: Layout| {
            // With many zones dm-zoned keeps fewer of them back than a log needs.
            let as_dmz = |devices: &ZonedDevices| devices.dmz_blocks.min(layout.logical_max());
            let logical_blocks = devices.map_or_else(|| self.exported(layout.log_blocks()), as_dmz);
            let geometry = Geometry { logical_blocks, ..geometry };
            Layout::new(geometry)?.not_thin().map(|_| geometry)
        };
        Layout::new(geometry).and_then(exported)
    }

    /// The partitions of the modes `sung` and `han`. Both papers write blocks of 4 KiB, whatever the device maps.
    fn partitions(&self, mode: VolumeMode, blocks: u64) -> Result<Geometry, GeometryError> {
        let partition = match self.quantity("volume.partition") / BLOCK {
            0 => Areas::default_partition(mode, blocks),
            given => convert::narrow(given),
        };
        let largest = Areas::new(mode, blocks, partition, 1)?;
        let logical_blocks = self.exported(largest.data_blocks()).min(largest.logical_max());
        Areas::new(mode, blocks, partition, logical_blocks)?;
        Ok(Geometry {
            backing_blocks: blocks,
            segment_blocks: partition,
            zone_blocks: 0,
            unit_blocks: 1,
            logical_blocks,
            compress: None,
        })
    }

    /// Blocks that are exported of so many that hold data.
    fn exported(&self, space: u64) -> u64 {
        convert::floor_u64((1.0 - self.real("volume.op")) * convert::float(space) + 0.5)
    }

    /// Whether frequently written blocks have log segments of their own.
    fn parts_hot_from_cold(&self) -> bool {
        match self.word("volume.streams") {
            "hot-cold" => true,
            "device" => self.narrow("ftl.streams") >= STREAMS_OF_ITS_OWN,
            _ => false,
        }
    }

    fn volume_options(&self, journal: bool) -> Options {
        let batch = convert::narrow(self.quantity("volume.batch") / BLOCK);
        let map_memory = match self.setting("volume.map_memory").value {
            Value::MapCache(given) => given,
            ref other => panic!("volume.map_memory is a cache size, not {other:?}"),
        };
        Options {
            batch_blocks: batch,
            // As many bytes as the batches of the default size have.
            batches: convert::index(4096 / batch.max(1)).max(16),
            map_pages: map_memory
                .map_or(usize::MAX, |bytes| convert::index64(bytes / MAP_PAGE_BYTES)),
            table_bytes: map_memory.unwrap_or(u64::MAX),
            checkpoint_blocks: self.quantity("volume.checkpoint") / BLOCK,
            acknowledge: match self.word("volume.ack") {
                "buffer" => Acknowledge::Buffered,
                _ => Acknowledge::Complete,
            },
            hot_cold: self.parts_hot_from_cold(),
            journal: if journal { JournalStreams::Apart } else { JournalStreams::Off },
            victim: match self.word("volume.victim") {
                "greedy" => Victim::Greedy,
                _ => Victim::CostBenefit,
            },
            clean_move: match self.word("volume.clean_move") {
                "remap" => CleanMove::Remap,
                _ => CleanMove::Copy,
            },
            clean_below: match self.narrow("volume.clean_below") {
                0 => None,
                segments => Some(segments),
            },
            trim: if self.flag("volume.trim") { Trim::Always } else { Trim::Never },
            trim_pause: self.time("volume.trim_pause"),
            transaction_pairs: convert::index(self.narrow("volume.transaction")),
            commit_age: self.time("volume.commit_age"),
            free_share: self.real("volume.free_share"),
            merge: self.flag("volume.merge"),
            clean_share: self.real("volume.clean_share"),
            paper_flush: match self.word("volume.paper_flush") {
                "own" => PaperFlush::Own,
                "all" => PaperFlush::All,
                _ => PaperFlush::None,
            },
            verify: false,
            bytes: false,
            ..Options::default()
        }
    }
}

/// Blocks of a log segment of the size of a superblock, or less where that would leave too few of them (volume.md,
/// section 5.1).
fn segment_of(below: &Below) -> u64 {
    let mut segment = below.segment;
    while segment.is_multiple_of(2) && below.blocks / segment < SEGMENTS_WANTED {
        segment /= 2;
    }
    segment
}
