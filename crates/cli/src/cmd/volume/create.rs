//! `onefold volume create`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use onefold_device::{DmzError, HostRoom, VolumeBacking, VolumeDevice, VolumeSpec};
use onefold_format::volume::{VolumeLabel, VolumeMode, VolumeName};
use onefold_units::PAGE_BYTES;
use onefold_volume::{Backing, Codec, Geometry};
use serde_json::json;

use super::{Below, dmz};
use crate::cmd::ssd::{render, room};
use crate::error::{CliError, Exit};
use crate::output::{Format, Global};

/// Share of the log space that stays free unless another one is asked for.
const OP: f64 = 0.2;

/// Options of `onefold volume create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What the volume lies on: a block device, a file, or an image made by `onefold ssd create`. Without --force PATH has to read
    /// as zeroes: all of it if it has up to 4 GiB of data (holes of files are none), else its ends, a thousand samples between
    /// them, and what is written at once
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Make PATH first, a file of this size; one that exists is never touched
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size, conflicts_with = "zoned")]
    backing_size: Option<u64>,
    /// Capacity of the volume, such as 8GiB [default: what --op leaves]
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    size: Option<u64>,
    /// Let --size be more than the log can hold (thin provisioning): writes fail with "no space" when it is full
    #[arg(long, requires = "size")]
    thin: bool,
    /// How the volume places and cleans
    #[arg(long, value_enum, default_value = "log", value_name = "MODE")]
    mode: Mode,
    /// Share of the log space that stays free for cleaning
    #[arg(long, value_name = "SHARE", default_value_t = OP, value_parser = parse_share)]
    op: f64,
    /// Size of a log segment, a multiple of the superblock or zone of the device [default: 1/512 of the backing, 4MiB to 1GiB, in
    /// whole superblocks of an emulated SSD, found as for --unit, if 160 or more fit]; with --mode sung of a partition
    /// [default: 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    segment: Option<u64>,
    /// The smallest write that the device does not pad [default: what an emulated SSD programs at once or maps as one, given as
    /// image, as file of `ssd serve --fuse`, or as loop device on that; what a block device tells; else 4KiB]
    #[arg(long, value_name = "SIZE", value_parser = render::parse_size)]
    unit: Option<u64>,
    /// Compress blocks that get smaller by it, and put them together
    #[arg(long, value_enum, default_value = "off", value_name = "HOW")]
    compress: Compress,
    /// Name of the volume, at most 32 bytes
    #[arg(long, default_value = "", value_name = "NAME")]
    name: String,
    /// A volume on zones: log, log segments that are zones (the default there), or dmz, which places as the Linux target
    /// dm-zoned does and needs conventional zones or a regular device beside PATH
    #[arg(long, value_enum, value_name = "POLICY", num_args = 0..=1, default_missing_value = "log")]
    zoned: Option<Policy>,
    #[command(flatten)]
    cache: dmz::CacheToMake,
    /// Say what would be made, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// How a volume works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Log segments that are cleaned as a whole
    Log,
    /// The layer of Sung 2022, to compare with: one log of transactions, holes are plugged
    Sung,
    /// The layer of Han 2021, to compare with: four partitions with a map file each
    Han,
}

/// Whether blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compress {
    /// They are stored as they are
    Off,
    /// LZ4: 2 to 5 us of CPU for each block that is written
    Lz4,
    /// Zstandard: 10 us, and tables and text get smaller than by LZ4
    Zstd,
}

/// Who places on zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Log segments that are zones
    Log,
    /// Chunks of a zone's size, a cache, and reclaim, as dm-zoned has them
    Dmz,
}

/// A volume as it was made, or would be.
struct Made {
    label: VolumeLabel,
    /// What the drive below erases together, if it tells and the log segments follow it.
    superblock_bytes: Option<u64>,
    /// Write streams of the drive below that the volume can use.
    streams: u16,
}

impl Made {
    fn on(backing: &Below, label: VolumeLabel) -> Self {
        let follows = label.mode == VolumeMode::Log;
        let superblock_bytes = backing.superblock_bytes().filter(|bytes| follows && *bytes > 0);
        Self { label, superblock_bytes, streams: backing.streams() }
    }
}

impl Compress {
    const fn codec(self) -> Option<Codec> {
        match self {
            Self::Off => None,
            Self::Lz4 => Some(Codec::Lz4),
            Self::Zstd => Some(Codec::Zstd),
        }
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    render::parse_share(text, 0.02..=0.95)
}

impl Create {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, CliError> {
        let name = VolumeName::new(&self.name)
            .map_err(|error| CliError::new(Exit::Usage, "volume::name", error))?;
        if self.zoned == Some(Policy::Dmz) {
            self.expect_dmz()?;
            let how =
                dmz::Making { name: name.as_str(), force: global.force, dry_run: self.dry_run };
            return dmz::create(&self.path, &self.cache, &how, global);
        }
        self.cache.expect_none()?;
        let spec = VolumeSpec {
            name,
            mode: match self.mode {
                Mode::Log => VolumeMode::Log,
                Mode::Sung => VolumeMode::Sung,
                Mode::Han => VolumeMode::Han,
            },
            bytes: self.size,
            op: self.op,
            thin: self.thin,
            segment_bytes: self.segment,
            unit_bytes: self.unit,
            superblock_bytes: None,
            compress: self.compress.codec(),
        };
        let made = if self.dry_run {
            if let Some(bytes) = self.backing_size {
                Made { label: spec.label(bytes / PAGE_BYTES)?, superblock_bytes: None, streams: 1 }
            } else {
                let below = self.open(false, global)?;
                Made::on(&below, spec.label_on(&below)?)
            }
        } else {
            self.make(&spec, global)?
        };
        global.emit(&self.text(&made, global))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses what policy dmz does not have.
    fn expect_dmz(&self) -> Result<(), CliError> {
        let given = [
            ("--size", self.size.is_some()),
            ("--segment", self.segment.is_some()),
            ("--mode", self.mode != Mode::Log),
            ("--op", (self.op - OP).abs() > f64::EPSILON),
            ("--unit", self.unit.is_some()),
            ("--compress", self.compress != Compress::Off),
        ];
        let Some((option, _)) = given.into_iter().find(|(_, given)| *given) else { return Ok(()) };
        let text = format!("{option} is not for volumes of policy dmz, which take all zones");
        Err(CliError::new(Exit::Usage, "volume::dmz", text).help("leave it out"))
    }

    fn open(&self, write: bool, global: &Global) -> Result<Below, CliError> {
        let backing = super::open_device(&self.path, write, global)?;
        if self.zoned.is_some() && !matches!(backing.clone().zones(), Ok(Some(_))) {
            return Err(DmzError::NotZoned.into());
        }
        Ok(backing)
    }

    fn make(&self, spec: &VolumeSpec, global: &Global) -> Result<Made, CliError> {
        let Some(bytes) = self.backing_size else {
            let backing = self.open(true, global)?;
            let made = VolumeDevice::format(&backing, spec, global.force);
            let made = made.map(|label| Made::on(&backing, label));
            let closed = backing.close();
            // What kept the volume from being made matters more than how the device was closed after it.
            let made = made?;
            closed?;
            return Ok(made);
        };
        // Tells what does not fit before there is a file.
        spec.label(bytes / PAGE_BYTES)?;
        let backing = VolumeBacking::create(&self.path, bytes)?;
        let _unfinished = global.interrupt.unfinished(&self.path);
        let made = VolumeDevice::format(&backing, spec, false);
        if let (true, Some(room)) = (made.is_ok(), HostRoom::at(&self.path)) {
            room::warn(global, &self.path, &room);
        }
        if made.is_err() {
            // Only what was made here goes; the first error is what counts.
            let _ = std::fs::remove_file(&self.path);
        }
        Ok(Made { label: made?, superblock_bytes: None, streams: 1 })
    }

    /// The unit, for people, and who chose it; nothing of one of 4 KiB, which everything has.
    fn unit(&self, bytes: u64) -> String {
        let size = render::size(bytes);
        match self.unit {
            _ if bytes == PAGE_BYTES => String::new(),
            Some(_) => format!(", unit {size}"),
            None => format!(", unit {size} as the drive has it"),
        }
    }

    /// How the log segments fit the superblocks of the drive, for people.
    fn superblocks(&self, segment: u64, superblock: Option<u64>) -> String {
        let Some(superblock) = superblock.filter(|_| self.segment.is_none()) else {
            return String::new();
        };
        match segment / superblock {
            _ if !segment.is_multiple_of(superblock) => String::new(),
            1 => " (a superblock of the drive)".to_owned(),
            whole => format!(" ({whole} superblocks of the drive)"),
        }
    }

    fn text(&self, made: &Made, global: &Global) -> String {
        let Made { label, superblock_bytes, streams } = made;
        let bytes = |blocks: u64| blocks * PAGE_BYTES;
        let backing = Geometry::of(label).writable_blocks();
        match global.format() {
            Format::Json => {
                let value = json!({
                    "schema": "onefold.volume.create/1",
                    "path": self.path.display().to_string(),
                    "dry_run": self.dry_run,
                    "uuid": render::uuid(&label.uuid),
                    "name": label.name.as_str(),
                    "mode": label.mode.name(),
                    "logical_bytes": bytes(label.logical_blocks),
                    "backing_bytes": bytes(backing),
                    "segment_bytes": bytes(label.segment_blocks.into()),
                    "unit_bytes": bytes(label.unit_blocks.into()),
                    "superblock_bytes": superblock_bytes,
                    "streams": streams,
                    "compress": self.compress.codec().map_or("off", Codec::name),
                });
                format!("{value:#}\n")
            }
            Format::Table => format!(
                "{}: {} of {} in {} of {}{}{}{}, volume {}\n",
                self.path.display(),
                render::size(bytes(label.logical_blocks)),
                render::size(bytes(backing)),
                if label.mode == VolumeMode::Log { "log segments" } else { "partitions" },
                render::size(bytes(label.segment_blocks.into())),
                self.superblocks(bytes(label.segment_blocks.into()), *superblock_bytes),
                self.unit(bytes(label.unit_blocks.into())),
                if *streams > 1 { format!(", {streams} write streams") } else { String::new() },
                render::uuid(&label.uuid),
            ),
        }
    }
}
