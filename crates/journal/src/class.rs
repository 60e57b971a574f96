//! What is said about blocks, and why.

use std::fmt;

use onefold_units::{Lba, PAGE_BYTES};

use crate::ring::Extent;

/// What kind of writes a block gets. Data is what has no class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Metadata that is rewritten in place all the time (F2FS: CP, SIT, NAT; headers of btrfs).
    MetaHot,
    /// The ring of a journal: rewritten from start to end, lap by lap.
    JournalLog,
    /// Journal header and fast-commit area: rewritten at any time.
    JournalHot,
}

impl Class {
    /// Stable name for results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MetaHot => "meta_hot",
            Self::JournalLog => "jlog",
            Self::JournalHot => "jhot",
        }
    }
}

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Blocks are written like a journal.
    Low,
    /// Blocks look like a journal, or several file systems claim to be here.
    Medium,
    /// The records of a file system say so and agree with each other.
    High,
    /// The user says so.
    User,
}

impl Confidence {
    /// Stable name for results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::User => "user",
        }
    }
}

/// Who writes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum System {
    /// ext3 or ext4 (or ext2, which has no journal).
    Ext4,
    /// A device that is the journal of an ext3 or ext4.
    Jbd2,
    /// XFS.
    Xfs,
    /// A device that is the log of an XFS.
    XfsLog,
    /// F2FS.
    F2fs,
    /// btrfs.
    Btrfs,
    /// A GPT.
    Gpt,
    /// An MBR.
    Mbr,
    /// LVM, LUKS or RAID: what is in it is not where it seems.
    Hidden,
    /// Not known: it is told by its writes.
    Unknown,
    /// Named by the user.
    User,
}

impl System {
    /// Stable name for results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Jbd2 => "jbd2",
            Self::Xfs => "xfs",
            Self::XfsLog => "xfs-log",
            Self::F2fs => "f2fs",
            Self::Btrfs => "btrfs",
            Self::Gpt => "gpt",
            Self::Mbr => "mbr",
            Self::Hidden => "hidden",
            Self::Unknown => "unknown",
            Self::User => "user",
        }
    }
}

/// Where something is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What was found.
    pub system: System,
    /// Byte of the device where it begins.
    pub at: u64,
    /// What of it lies there and how it was found, in words.
    pub why: &'static str,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.system.name(), self.at, self.why)
    }
}

/// Something that was found and gives no range, in words.
pub type Remark = Origin;

/// Blocks of 4 KiB in a row that have a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First block.
    pub first: Lba,
    /// First block behind it.
    pub end: Lba,
    /// What is written there.
    pub class: Class,
    /// How sure that is.
    pub confidence: Confidence,
    /// Why.
    pub origin: Origin,
}

impl Range {
    /// The blocks that hold the extent, rounded outwards and cut at the end of a device of `blocks`.
    pub(crate) fn around(
        extent: Extent,
        blocks: u64,
        class: Class,
        confidence: Confidence,
        origin: Origin,
    ) -> Option<Self> {
        let first = extent.at / PAGE_BYTES;
        let end = extent.end().div_ceil(PAGE_BYTES).min(blocks);
        (first < end).then(|| Self {
            first: Lba::new(first),
            end: Lba::new(end),
            class,
            confidence,
            origin,
        })
    }

    /// Whether the block is in it.
    #[must_use]
    pub fn contains(&self, lba: Lba) -> bool {
        (self.first..self.end).contains(&lba)
    }

    /// Its length in blocks.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.end.raw() - self.first.raw()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} blocks {} to {} ({} KiB), confidence {}: {}",
            self.class.name(),
            self.first.raw(),
            self.end.raw() - 1,
            self.blocks() * PAGE_BYTES / 1024,
            self.confidence.name(),
            self.origin
        )
    }
}
