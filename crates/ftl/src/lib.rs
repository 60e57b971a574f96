//! Page mapping, garbage collection, remapping and power-off recovery.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod aside;
mod candidates;
mod check;
mod checkpoint;
mod config;
mod config_error;
mod dump;
mod error;
mod fingerprints;
mod frontier;
mod ftl;
mod gc;
mod layout;
mod lifecycle;
mod map_cache;
mod pool;
mod read;
mod recovery;
mod recovery_cost;
mod recovery_report;
mod relocate;
mod remap;
mod staging;
mod stats;
mod superblock;
mod trim;
mod trim_log;
mod unit;
mod victim;
mod write;

pub use check::Violation;
pub use config::{FtlConfig, VictimKind};
pub use config_error::ConfigError;
pub use error::FtlError;
pub use fingerprints::{Fingerprint, FingerprintIndex};
pub use ftl::Ftl;
pub use layout::Layout;
pub use recovery_cost::RecoveryCost;
pub use recovery_report::{LogDamage, OnLogDamage, RecoverError, RecoveryReport};
pub use remap::{
    Deduplicated, Maintenance, RemapCaps, RemapConfig, RemapDone, RemapError, RemapOptions,
    RemapOutcome, RemapRange, RemapScheme, RemapStats,
};
pub use stats::{FtlStats, SpaceMap, Wear};
