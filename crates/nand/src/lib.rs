//! The flash array: geometry, rules, timing, faults, and the trait through which bytes reach a
//! medium.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod fault;
mod geometry;
mod timing;

pub use fault::FaultSpec;
pub use geometry::{Geometry, GeometryError, GeometrySpec, PageLocation, Span};
pub use timing::{CellTimes, TimingSpec};
