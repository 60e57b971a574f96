//! What the drivers of volumes share: [`crate::volume`], and [`crate::dmz`] for zoned volumes of policy `dmz`.

mod fuse;
mod jobs;
mod unaligned;

pub(crate) use fuse::{Falls, Fuse};
pub(crate) use jobs::{Jobs, Next};
pub(crate) use unaligned::WholeBlocks;
