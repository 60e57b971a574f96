//! What can be wrong with a configuration.

use std::fmt;
use std::io;
use std::path::PathBuf;

use onefold_nand::GeometryError;

use crate::problem::Problem;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The key table.
    Default,
    /// A preset.
    Preset {
        /// Its name.
        name: String,
        /// Line in it.
        line: usize,
    },
    /// A file.
    File {
        /// Its path as given.
        path: PathBuf,
        /// Line in it.
        line: usize,
    },
    /// `--set`.
    Set,
    /// Another argument of the command.
    Arguments,
    /// A label or a result that carries its configuration.
    Stored {
        /// Line in it.
        line: usize,
    },
    /// `--size` of a served device.
    Size,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset { name, line } => write!(f, "preset {name}, line {line}"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Set => f.write_str("--set"),
            Self::Arguments => f.write_str("command line"),
            Self::Stored { line } => write!(f, "stored configuration, line {line}"),
            Self::Size => f.write_str("--size"),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such key.
    #[error("{origin}: `{key}` is not a configuration key")]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// What was found.
        key: String,
        /// The key that was probably meant.
        suggestion: Option<String>,
    },
    /// A value that its key does not accept.
    #[error("{origin}: {key} is {found}, {problem}")]
    Value {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// What was found.
        found: String,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// Two keys that exclude each other.
    #[error("{origin}: both {first} and {second} are given, expected at most one")]
    Exclusive {
        /// Where the later one stands.
        origin: Origin,
        /// One key.
        first: String,
        /// The other key.
        second: String,
    },
    /// No such preset.
    #[error("there is no preset `{name}`")]
    UnknownPreset {
        /// What was found.
        name: String,
        /// The preset that was probably meant.
        suggestion: Option<String>,
    },
    /// Something that a zoned volume does without.
    #[error("zoned.policy needs {what}")]
    ZonedVolume {
        /// What is missing.
        what: &'static str,
    },
    /// The zones of both devices cannot carry a zoned volume.
    #[error("the zoned volume cannot work: {source}")]
    ZonedGeometry {
        /// Why.
        source: onefold_zoned::GeometryError,
    },
    /// The zones of both devices are too few for a zoned volume.
    #[error("the zoned volume has no room: {source}")]
    ZonedLayout {
        /// Why.
        source: onefold_zoned::LayoutError,
    },
    /// Something that a zoned namespace does not have.
    #[error("{what} needs namespace.type = \"block\", and a zoned namespace is configured")]
    NeedsBlocks {
        /// The key, or what was asked for.
        what: &'static str,
    },
    /// The zones do not fit the flash array.
    #[error("the zoned namespace cannot work: {source}")]
    Namespace {
        /// Why.
        source: onefold_ssd::zns::ZnsConfigError,
    },
    /// No share of the flash array is large enough for the conventional zones.
    #[error(
        "namespace.conventional is {zones}, which with an over-provisioning of {op} needs more than the {blocks} flash blocks of \
         each plane: raise geometry.blocks, or use fewer conventional zones"
    )]
    ConventionalZones {
        /// Conventional zones.
        zones: u64,
        /// Their over-provisioning.
        op: f64,
        /// Flash blocks of a plane.
        blocks: u32,
    },
    /// The capacity of a zone is not one of blocks.
    #[error("namespace.zone_capacity is {bytes} B, expected a multiple of 4096 B")]
    ZoneCapacity {
        /// What was found.
        bytes: u64,
    },
    /// Not TOML.
    #[error("{origin}: not valid TOML: {message}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the parser says.
        message: String,
    },
    /// `--set` without `=`.
    #[error("--set is `{text}`, expected KEY=VALUE")]
    SetSyntax {
        /// What was found.
        text: String,
    },
    /// A file and a preset at once.
    #[error("both a configuration file ({}) and preset {preset} are given", file.display())]
    FileAndPreset {
        /// The file.
        file: PathBuf,
        /// The preset.
        preset: String,
    },
    /// A file cannot be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Files that extend each other.
    #[error("`extends` goes round in a circle: {}", chain.join(" -> "))]
    Cycle {
        /// The files and presets, the first one repeated at the end.
        chain: Vec<String>,
    },
    /// Too many files that extend each other.
    #[error("`extends` goes {depth} levels deep, expected at most {max}")]
    Depth {
        /// What was found.
        depth: usize,
        /// Largest accepted value.
        max: usize,
    },
    /// The numbers of the geometry do not fit together.
    #[error("the geometry of `{name}` cannot work: {source}")]
    Geometry {
        /// Name of the configuration.
        name: String,
        /// Why.
        source: GeometryError,
    },
    /// The logical capacity does not fit the flash.
    #[error(
        "{origin}: capacity.logical is {found}, expected at least one mapping unit of {unit} and \
         less than the raw capacity of {raw}"
    )]
    Capacity {
        /// Where it stands.
        origin: Origin,
        /// What was found.
        found: String,
        /// Mapping unit.
        unit: String,
        /// Raw capacity.
        raw: String,
    },
    /// A value exceeds another one that bounds it.
    #[error("{origin}: {key} is {found}, expected at most {limit_key}, which is {limit}")]
    Order {
        /// Where the value stands.
        origin: Origin,
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// The key that bounds it.
        limit_key: &'static str,
        /// The value of that key.
        limit: String,
    },
    /// A tenant that cannot run.
    #[error("tenant `{name}`: {problem}")]
    Tenant {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: TenantProblem,
    },
    /// A place of a stack that does not fit.
    #[error("stack: `{name}` {what}")]
    StackPlace {
        /// Its name.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A stack where a device is wanted.
    #[error(
        "a stack is configured with [[stack]], expected one device: only `onefold sim run` and studies take stacks"
    )]
    NeedsDevice,
    /// A key that the medium of an existing device depends on.
    #[error(
        "--set: {key} cannot change on a device that exists, expected {}",
        changeable.join(", ")
    )]
    Fixed {
        /// The key.
        key: String,
        /// Sections and keys that can.
        changeable: &'static [&'static str],
    },
    /// A key that does nothing where it was given.
    #[error("{origin}: {key} does nothing here: it is for `onefold sim run`")]
    ActsElsewhere {
        /// Where it was given.
        origin: Origin,
        /// The key.
        key: String,
    },
    /// The volume does not fit the device.
    #[error("the volume cannot work: {source}")]
    VolumeGeometry {
        /// Why.
        source: onefold_volume::GeometryError,
    },
    /// The volume cannot run like that.
    #[error("the volume cannot work: {source}")]
    VolumeOptions {
        /// Why.
        source: onefold_volume::OptionsError,
    },
    /// Mode `han` has four equal partitions.
    #[error(
        "volume.partition is given, expected 0: mode han has four equal partitions (Han 2021, section III-C)"
    )]
    VolumePartition,
    /// Contents do not get through a simulated volume.
    #[error(
        "volume.mode and dedup.fingerprints are given, expected one of them: a simulated volume carries no contents"
    )]
    VolumeContents,
    /// There are no bytes that could be compressed.
    #[error(
        "the volume compresses, expected one that does not: a simulation has no bytes to compress"
    )]
    VolumeCompresses,
    /// Nothing can be remapped.
    #[error(
        "volume.clean_move is \"remap\" and ftl.remap is \"none\", expected \"lh\", \"ln\", \"gf\", \"gn\" or \"opt\": the \
         device would copy"
    )]
    VolumeRemap,
    /// The wanted size is no whole number of mapping units, or of zones.
    #[error("the size is {found}, expected a multiple of {unit}")]
    SizeUnit {
        /// What was asked for.
        found: String,
        /// Mapping unit, or capacity of a zone.
        unit: String,
        /// The sizes below and above that are.
        near: Vec<String>,
    },
    /// No number of blocks gives the wanted size.
    #[error(
        "the size is {found}, for which geometry.blocks would be {blocks}, expected 1 to {max}"
    )]
    SizeBlocks {
        /// What was asked for.
        found: String,
        /// Blocks per plane it would need.
        blocks: u64,
        /// Largest accepted number.
        max: u64,
    },
}

/// What is wrong with a tenant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TenantProblem {
    /// Nothing to run.
    #[error("neither workload nor trace is given, expected one of them")]
    NoLoad,
    /// A name used twice.
    #[error("the name is used twice")]
    Duplicate,
    /// A range that is empty or leaves the device.
    #[error("range is {range}, expected a part of the {logical} of logical space")]
    Range {
        /// What was found.
        range: String,
        /// Logical capacity.
        logical: String,
    },
    /// A stream the device does not have.
    #[error("stream is {stream}, expected less than ftl.streams, which is {streams}")]
    Stream {
        /// What was found.
        stream: u64,
        /// Streams of the device.
        streams: u64,
    },
}

impl ConfigError {
    /// Stable code of the error, such as `config::unknown_key`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownKey { .. } => "config::unknown_key",
            Self::Value { .. } => "config::value",
            Self::Exclusive { .. } => "config::exclusive",
            Self::UnknownPreset { .. } => "config::unknown_preset",
            Self::ZonedVolume { .. } | Self::ZonedGeometry { .. } | Self::ZonedLayout { .. } => {
                "config::zoned"
            }
            Self::NeedsBlocks { .. }
            | Self::Namespace { .. }
            | Self::ConventionalZones { .. }
            | Self::ZoneCapacity { .. } => "config::namespace",
            Self::Syntax { .. } => "config::syntax",
            Self::SetSyntax { .. } => "usage::set",
            Self::FileAndPreset { .. } => "usage::file_and_preset",
            Self::Read { .. } => "usage::config_file",
            Self::Cycle { .. } | Self::Depth { .. } => "config::extends",
            Self::Geometry { .. } => "config::geometry",
            Self::Capacity { .. } => "config::capacity",
            Self::Order { .. } => "config::order",
            Self::Tenant { .. } => "config::tenant",
            Self::StackPlace { .. } | Self::NeedsDevice => "config::stack",
            Self::Fixed { .. } => "usage::fixed",
            Self::ActsElsewhere { .. } => "usage::key",
            Self::VolumeGeometry { .. }
            | Self::VolumeOptions { .. }
            | Self::VolumePartition
            | Self::VolumeContents
            | Self::VolumeCompresses
            | Self::VolumeRemap => "config::volume",
            Self::SizeUnit { .. } | Self::SizeBlocks { .. } => "config::size",
        }
    }

    /// Whether the command line is wrong, rather than the configuration it leads to.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::SetSyntax { .. }
                | Self::FileAndPreset { .. }
                | Self::Read { .. }
                | Self::Fixed { .. }
                | Self::ActsElsewhere { .. }
        )
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::UnknownKey { suggestion: Some(key), .. } => format!("did you mean `{key}`?"),
            Self::UnknownKey { key, .. } if key.starts_with("tenant") => {
                "tenants are [[tenant]] tables of a configuration file".to_owned()
            }
            Self::UnknownKey { .. } => "`onefold config explain` lists every key".to_owned(),
            Self::Value { problem, .. } => problem.help(),
            Self::Exclusive { first, second, .. } => format!("remove {first} or {second}"),
            Self::UnknownPreset { suggestion: Some(name), .. } => format!("did you mean `{name}`?"),
            Self::UnknownPreset { .. } => {
                "`onefold config presets` lists the presets of this version".to_owned()
            }
            Self::ZonedVolume { .. } => "begin with --preset choi2022".to_owned(),
            Self::ZonedGeometry { .. } | Self::ZonedLayout { .. } => {
                "change namespace.zone_size, or the preset of zoned.regular".to_owned()
            }
            Self::NeedsBlocks { .. } => {
                "leave that out, or choose --set namespace.type=block".to_owned()
            }
            Self::ConventionalZones { .. } => {
                "change namespace.conventional, namespace.conventional_op or geometry.blocks"
                    .to_owned()
            }
            Self::Namespace { .. } | Self::ZoneCapacity { .. } => {
                "change namespace.zone_size, namespace.zone_capacity, namespace.zone_dies or \
                 capacity.logical"
                    .to_owned()
            }
            Self::Syntax { .. } => "correct the file at that line".to_owned(),
            Self::SetSyntax { .. } => "write, for example, --set ftl.victim=fifo".to_owned(),
            Self::FileAndPreset { preset, .. } => {
                format!(
                    "write extends = \"preset:{preset}\" into the file and leave the preset out"
                )
            }
            Self::Read { .. } => "check the path and its permissions".to_owned(),
            Self::Cycle { .. } => "remove one of these `extends`".to_owned(),
            Self::Depth { .. } => "merge some of the files".to_owned(),
            Self::Geometry { .. } => "change the named key, for example with --set".to_owned(),
            Self::Capacity { .. } => "lower capacity.logical, or raise geometry.blocks".to_owned(),
            Self::Order { key, limit_key, .. } => format!("lower {key}, or raise {limit_key}"),
            Self::StackPlace { .. } => "docs/stacks.md has examples".to_owned(),
            Self::NeedsDevice => "name a preset, or a file without [[stack]]".to_owned(),
            Self::Tenant { problem, .. } => problem.help().to_owned(),
            Self::VolumeGeometry { .. } => {
                "change volume.log_segment, volume.partition or volume.op, or enlarge the device"
                    .to_owned()
            }
            Self::VolumeOptions { source: onefold_volume::OptionsError::RemapUnit { .. } } => {
                "set volume.clean_move to copy, or ftl.indirection to 4KiB".to_owned()
            }
            Self::VolumeOptions { .. } => "change volume.batch".to_owned(),
            Self::VolumeRemap => "set ftl.remap to lh, or volume.clean_move to copy".to_owned(),
            Self::VolumePartition => "remove volume.partition, or choose mode sung".to_owned(),
            Self::VolumeContents => "remove volume.mode or dedup.fingerprints".to_owned(),
            Self::VolumeCompresses => {
                "measure it served: `onefold volume serve` counts what it sends".to_owned()
            }
            Self::ActsElsewhere { key, .. } if key.starts_with("volume.") => {
                format!("leave {key} out; `onefold volume create IMAGE` makes a volume on it")
            }
            Self::ActsElsewhere { key, .. } => format!("leave {key} out"),
            Self::Fixed { .. } => "make another image with `onefold ssd create`".to_owned(),
            Self::SizeUnit { near, .. } => format!("choose {}", near.join(" or ")),
            Self::SizeBlocks { .. } => "choose another size, or another preset".to_owned(),
        }
    }
}

impl TenantProblem {
    /// What to do about it.
    const fn help(&self) -> &'static str {
        match self {
            Self::NoLoad => "give the tenant a workload or a trace",
            Self::Duplicate => "give each tenant a name of its own",
            Self::Range { .. } => "write, for example, range = \"0..50%\"",
            Self::Stream { .. } => "raise ftl.streams",
        }
    }
}
