//! The SSD controller: command to buffer to FTL to flash.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod config;

pub use config::SsdConfig;
