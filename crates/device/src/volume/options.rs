//! How to run a volume.

use std::time::Duration;

use onefold_volume::{Acknowledge, Options};

use super::journals::Journals;

/// What becomes of a write or flush for which there is no space (volume.md, section 5.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// It fails.
    #[default]
    Error,
    /// It waits until trims, deleted snapshots or the host make room, or until nobody serves the volume
    /// any more.
    Block,
}

/// How requests of a volume are to get to its backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeIo {
    /// Through `io_uring` where the system allows it, else by threads.
    Auto,
    /// Through `io_uring`, or not at all.
    Uring,
    /// By threads that read and write.
    Threads,
}

/// How to run a volume.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VolumeOptions {
    /// What becomes of writes for which there is no space.
    pub on_full: OnFull,
    /// How requests get to the backing.
    pub io: VolumeIo,
    /// Whether they go around the page cache where the file system can do that.
    pub direct: bool,
    /// Whether the cleaner moves blocks by remap where the backing can: an emulated SSD with
    /// `ftl.remap`.
    pub remap: bool,
    /// Whether the backing is told which log segments hold nothing: drives of all, files of those
    /// that stay free.
    pub trim: bool,
    /// What becomes of the journals of file systems.
    pub journals: Journals,
    /// Time between the beginnings of two scrubs, the first of which begins with the opening;
    /// `None`: only those asked for. Mode `log` only.
    pub scrub: Option<Duration>,
    /// What the engine is run with, but for how the cleaner moves blocks, trims, and streams of
    /// journals.
    pub engine: Options,
}

/// Batches in memory, of 1 MiB: a drive that takes 5 ms for each of many writes wants that many
/// under way for its full bandwidth (docs/volume-numbers.md).
const BATCHES: usize = 32;

/// Requests at a time for what is read of the map in the background: a read of the host comes
/// behind no more than those.
const PRELOAD: u32 = 128;

impl Default for VolumeOptions {
    fn default() -> Self {
        Self {
            on_full: OnFull::Error,
            io: VolumeIo::Auto,
            direct: true,
            remap: true,
            trim: true,
            journals: Journals::default(),
            scrub: None,
            engine: Options {
                acknowledge: Acknowledge::Buffered,
                batches: BATCHES,
                preload: PRELOAD,
                ..Options::default()
            },
        }
    }
}
