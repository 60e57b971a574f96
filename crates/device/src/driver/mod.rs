//! What the drivers of volumes share: [`crate::volume`], and [`crate::dmz`] for zoned volumes of policy `dmz`.
//!
//! Each has a state behind a lock ([`Guarded`]), threads that do what it asks for ([`Jobs`], [`Threads`]), and callers that wait
//! for its answers ([`Answer`]). A panic of any of them ends it for all.

mod answer;
mod guarded;
mod jobs;
mod threads;
mod unaligned;

pub(crate) use answer::{Answer, Waiting};
pub(crate) use guarded::{Fallible, Guarded, wait_for};
pub(crate) use jobs::Jobs;
pub(crate) use threads::{Driven, Fuse, Threads, work};
pub(crate) use unaligned::WholeBlocks;
