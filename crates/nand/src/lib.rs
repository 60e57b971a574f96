//! The flash array: geometry, rules, timing, faults, the Media trait.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]
