//! Page mapping, garbage collection and power-off recovery.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod candidates;
mod check;
mod checkpoint;
mod config;
mod error;
mod frontier;
mod ftl;
mod gc;
mod layout;
mod lifecycle;
mod map_cache;
mod pool;
mod read;
mod recovery;
mod staging;
mod stats;
mod superblock;
mod trim;
mod trim_log;
mod victim;
mod write;

pub use check::Violation;
pub use config::{FtlConfig, VictimKind};
pub use error::FtlError;
pub use ftl::Ftl;
pub use layout::{ConfigError, Layout};
pub use recovery::{RecoverError, RecoveryReport};
pub use stats::{FtlStats, SpaceMap, Wear};
