//! How far a checkpoint is (`crate::checkpoint`).

use onefold_format::CheckpointLabel;
use onefold_units::SuperblockId;

/// State of checkpointing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checkpoints {
    /// The committed one.
    pub(crate) label: CheckpointLabel,
    /// Host writes since the last cut.
    pub(crate) written: u64,
    pub(crate) dump: Option<Dump>,
}

onefold_units::keep!(Checkpoints { label, written, dump });

/// A checkpoint being dumped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dump {
    /// What will be committed.
    pub(crate) label: CheckpointLabel,
    pub(crate) next_page: u32,
    pub(crate) superblock: Option<SuperblockId>,
    pub(crate) next_program: u32,
}

onefold_units::keep!(Dump { label, next_page, superblock, next_program });
