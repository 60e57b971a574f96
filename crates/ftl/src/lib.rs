//! Page mapping, garbage collection and power-off recovery.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod config;

pub use config::{FtlConfig, VictimKind};
