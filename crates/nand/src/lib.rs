//! The flash array: geometry, rules, timing, faults, and the trait through which bytes reach a
//! medium.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod array;
mod channel;
mod fault;
mod geometry;
mod media;
mod timelines;
mod timing;

pub use array::{At, Nand, SlowCounts};
pub use fault::FaultSpec;
pub use geometry::{Geometry, GeometryError, GeometrySpec, PageLocation, Span};
pub use media::{
    ERASED_HEAD, ERASED_SPARE, HEAD_BYTES, Head, Media, MediaError, MemoryMedia, NullMedia,
    SPARE_BYTES, Spare, zero,
};
pub use timelines::{Delay, Grant, Timelines, Work, channel_time};
pub use timing::{CellTimes, TimingSpec};
