//! Real-time driver: block devices backed by files, their statistics and their recording.
mod block;
pub mod edge;

pub use block::{BlockDevice, Due, Extent};
