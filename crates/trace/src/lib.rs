//! Read, detect, convert and generate block traces.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]
