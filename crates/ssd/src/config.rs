//! Everything that defines a modelled SSD.

use onefold_buffer::BufferConfig;
use onefold_ftl::FtlConfig;
use onefold_nand::{FaultSpec, Geometry, TimingSpec};

/// A modelled SSD. Whether the parts fit together is judged by the device when it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SsdConfig {
    /// The flash array.
    pub geometry: Geometry,
    /// Latencies and rates.
    pub timing: TimingSpec,
    /// Mapping, collection, metadata.
    pub ftl: FtlConfig,
    /// DRAM buffer.
    pub buffer: BufferConfig,
    /// Injected faults.
    pub faults: FaultSpec,
}
