//! What all metadata blocks have in common.

use super::coded::coded;

/// Bytes of a block of the volume, of data as of metadata.
pub const BLOCK_BYTES: usize = 4096;

/// Version of the format of a volume.
pub const BLOCK_VERSION: u16 = 1;

/// Where the checksum lies.
pub(super) const CRC_AT: usize = 8;

coded! {
    /// What a metadata block is.
    BlockKind {
        /// A label.
        Label = 1,
        /// A root.
        Root = 2,
        /// The header of a batch.
        Batch = 3,
        /// A block of a directory.
        Directory = 4,
        /// Records of a run.
        Run = 5,
        /// The index of a run.
        RunIndex = 6,
        /// A piece of the body of a checkpoint.
        Body = 7,
        /// Entries of a table of the modes `sung` and `han`.
        Table = 16,
    }
}

impl BlockKind {
    /// The kind in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Root => "root",
            Self::Batch => "batch header",
            Self::Directory => "directory block",
            Self::Run => "run block",
            Self::RunIndex => "run index",
            Self::Body => "body block",
            Self::Table => "table block",
        }
    }
}
