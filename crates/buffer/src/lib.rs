//! DRAM buffer policies behind one request-level interface.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod config;

pub use config::{BufferConfig, PolicyKind};
