//! Volumes of any mode, and the modes of the papers.
//!
//! [`format()`], [`open`], [`open_read_only`] and [`inspect`] take the mode from the label. Mode
//! `log` is the crate `onefold-volume`. The modes `sung` and `han` are here: the layers of Sung
//! 2022 and Han 2021 as they are described, one engine, [`PartitionedVolume`], with two sets of
//! rules. Each is an [`Engine`](onefold_volume::Engine), without I/O of its own.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod any;
mod han;
mod partitioned;
mod sung;

pub use any::{format, inspect, open, open_read_only};
pub use partitioned::{Areas, PartitionInfo, PartitionedVolume};
