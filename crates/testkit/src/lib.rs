//! Reference models, closed forms and the crash driver (not published).
#![forbid(unsafe_code)]

mod borrowed;
mod buffers;
pub mod closed_forms;
mod cut_media;
mod golden;
mod host_journal;
mod model;
mod seeds;

pub use buffers::{small_policies, small_policy};
pub use cut_media::{Cut, CutMedia, Power};
pub use golden::Golden;
pub use model::{Model, Wrong, fill, stamp_of, version_of};
pub use seeds::{LIB, Reproduce, budget, chosen_seed, for_each_seed};
