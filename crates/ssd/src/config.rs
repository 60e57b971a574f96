//! Everything that defines a modelled SSD.

use onefold_buffer::BufferConfig;
use onefold_ftl::FtlConfig;
use onefold_nand::{FaultSpec, Geometry, TimingSpec};
use onefold_units::Nanos;

use crate::{ClassifierSpec, HOST, HashKind};

/// A modelled SSD. Whether the parts fit together is judged by the device when it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SsdConfig {
    /// The flash array.
    pub geometry: Geometry,
    /// Latencies and rates.
    pub timing: TimingSpec,
    /// Mapping, collection, metadata.
    pub ftl: FtlConfig,
    /// Fingerprints of deduplication.
    pub dedup: DedupConfig,
    /// DRAM buffer.
    pub buffer: BufferConfig,
    /// How its victims get to flash.
    pub writeback: Writeback,
    /// Programs of append-only data go to the last of [`FtlConfig::streams`], if there are several.
    pub separate_streams: bool,
    /// Units of zeroes are unmapped instead of programmed.
    pub unmap_zeroes: bool,
    /// Which of [`FtlConfig::streams`] a unit goes to.
    pub classifier: ClassifierSpec,
    /// Injected faults.
    pub faults: FaultSpec,
}

/// How contents are fingerprinted for deduplication inside the device, which takes place if
/// [`onefold_ftl::FtlConfig::fingerprints`] is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupConfig {
    /// The hash; `None`: contents are not looked at, and nothing is deduplicated.
    pub hash: Option<HashKind>,
    /// Time to hash 4 KiB.
    pub hash_time: Nanos,
    /// Units that hash side by side, first come, first served; 0 = as many as there are pages.
    pub hash_units: u32,
    /// Key of the fingerprints. The index is volatile, so it may be another one each time.
    pub key: [u8; 32],
}

impl DedupConfig {
    /// BLAKE3 in one unit at the paper's 32 us per page (Wu 2022, section V-B).
    pub const DEFAULT: Self = Self {
        hash: Some(HashKind::Blake3),
        hash_time: Nanos::new(32_000),
        hash_units: 1,
        key: [0; 32],
    };
}

impl SsdConfig {
    /// Bytes of the smallest flushed write that leaves nothing unused: what one program takes, as a flush programs what was begun, or
    /// the mapping unit where a protected buffer gathers what is flushed.
    #[must_use]
    pub fn write_unit_bytes(geometry: &Geometry, buffer: &BufferConfig) -> u32 {
        let protected = buffer.bytes > 0 && !buffer.volatile;
        let program =
            if protected { 0 } else { geometry.slots_per_program() * geometry.unit_bytes() };
        program.max(geometry.unit_bytes())
    }
}

/// How victims of the buffer get to flash (buffer.md section 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writeback {
    /// A request that needs the place of a victim waits for its program.
    #[default]
    Sync,
    /// It waits only while the programs of `slots` victims are under way. Until its program ends, a
    /// victim serves reads.
    Async {
        /// Victims under way at most, in entries of the buffer.
        slots: u32,
    },
}

impl Writeback {
    /// Names in configuration.
    pub const NAMES: [&str; 2] = ["sync", "async"];
}

/// A small device for documentation and tests: 2 channels x 2 dies, 64 blocks of 64 pages of 4 KiB,
/// timings of preset `s1`, three quarters of it visible, no buffer.
#[must_use]
pub fn example_config() -> SsdConfig {
    use onefold_buffer::{Charge, LRU, PolicySpec};
    use onefold_nand::{GeometrySpec, Span};

    let geometry = Geometry::new(GeometrySpec {
        channels: 2,
        ways: 2,
        planes: 1,
        blocks: 64,
        pages: 64,
        page_bytes: 4096,
        unit_bytes: 4096,
        span: Span::Device,
    });
    let Ok(geometry) = geometry else { unreachable!("fixed numbers") };
    SsdConfig {
        geometry,
        timing: TimingSpec::EXAMPLE,
        ftl: FtlConfig::plain(geometry.total_slots() * 3 / 4),
        dedup: DedupConfig::DEFAULT,
        buffer: BufferConfig {
            policy: PolicySpec::new(&LRU),
            bytes: 0,
            charge: Charge::Paper,
            volatile: true,
        },
        writeback: Writeback::Sync,
        separate_streams: true,
        unmap_zeroes: false,
        classifier: ClassifierSpec::new(&HOST),
        faults: FaultSpec::default(),
    }
}
