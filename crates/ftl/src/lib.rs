//! Page mapping, garbage collection, power-off recovery.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]
