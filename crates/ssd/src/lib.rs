//! The SSD controller: command to buffer to FTL to flash.
//!
//! ```
//! use onefold_nand::NullMedia;
//! use onefold_units::{Nanos, Op};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let config = onefold_ssd::example_config();
//! let mut ssd = onefold_ssd::Ssd::new(config, NullMedia)?;
//! let write = onefold_ssd::Command::new(Op::Write, 0, 4096);
//! let done = ssd.submit(Nanos::ZERO, &write, onefold_ssd::Payload::None)?;
//! assert_eq!(done.at, Nanos::new(10_240 + 200_000)); // channel, then program
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod actions;
mod buffered;
mod classifier;
mod command;
mod config;
mod decide;
mod dedup;
mod error;
mod fingerprint;
mod heard;
mod holes;
mod remap;
mod sectors;
mod snapshot_units;
mod span;
mod ssd;
mod stats;
mod stranded;
mod submit;
mod superblocks;
mod times;
mod unit;
mod unit_set;
mod write_back;
pub mod zns;

pub use classifier::{
    BuildClassifier, Classifier, ClassifierInfo, ClassifierPolicies, ClassifierSetup,
    ClassifierSpec, HOST, UnitWrite,
};
pub use command::{Command, Completion, Payload, SsdError};
pub use config::{DedupConfig, SsdConfig, Writeback, example_config};
pub use dedup::{DedupStats, ZEROES};
pub use error::BuildError;
pub use fingerprint::{HashKind, Hasher};
pub use ssd::Ssd;
pub use stats::HostStats;
