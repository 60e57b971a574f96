//! What is not as it should be.

use onefold_format::volume::{MetaKind, VolumeLabel};
use onefold_units::{Lba, Location, LogSegmentId, ZoneId};

use crate::recovery::Recovery;
use crate::segments::Faulty;
use crate::snapshots::{MemberId, MemberInfo};

/// A log segment whose count of live blocks is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miscount {
    /// Which.
    pub segment: LogSegmentId,
    /// What something points at, in quarters of blocks.
    pub found: u32,
    /// The same by its count.
    pub counted: u32,
}

/// Something that is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A copy of the label cannot be used; another one can.
    Label {
        /// Its block.
        at: u64,
    },
    /// A slot of the root that was written holds damage. The newest root is whole, or there is no telling.
    Root {
        /// Its block.
        at: u64,
    },
    /// The newest root was overwritten by something else: an older one would be taken.
    NewestRoot {
        /// Its block.
        at: u64,
    },
    /// A header of the log is none: neither the cleaner nor `crate::volume::recovery::rebuild` finds what it lists, which can still be read by the map.
    Header {
        /// Where it lies.
        at: Location,
    },
    /// A block of a checkpoint is not what was written.
    Meta {
        /// Where it lies.
        at: Location,
        /// What it is.
        kind: MetaKind,
    },
    /// Batches that were durable are missing.
    Lost {
        /// The last batch that is there.
        last: u64,
        /// The last batch that was durable.
        durable: u64,
    },
    /// The map of 4 MiB cannot be read.
    Page {
        /// The member whose map it is.
        member: MemberId,
        /// First block of them.
        lba: Lba,
    },
    /// A block is mapped to where no data can be.
    Outside {
        /// A member that has it.
        member: MemberId,
        /// The block.
        lba: Lba,
        /// Where the map says it lies.
        at: Location,
    },
    /// Two blocks are mapped to one place.
    Shared {
        /// A member that has the second one.
        member: MemberId,
        /// The second one.
        lba: Lba,
        /// Where both lie.
        at: Location,
    },
    /// A zone is offline, and blocks are mapped to it: reading them is an error until they are written again.
    Offline {
        /// Which.
        zone: ZoneId,
        /// How many.
        blocks: u64,
    },
    /// A count of live blocks is wrong.
    Miscount(Miscount),
    /// A block cannot be read, or is not what was written.
    Data {
        /// A member that has it.
        member: MemberId,
        /// The block.
        lba: Lba,
        /// Where it lies.
        at: Location,
    },
}

impl Finding {
    /// Whether opening the volume puts it right, or it does no harm.
    #[must_use]
    pub const fn is_repairable(&self) -> bool {
        matches!(self, Self::Label { .. } | Self::Root { .. })
    }
}

/// What was found.
#[derive(Debug)]
pub struct Inspection {
    /// The label.
    pub label: VolumeLabel,
    /// What a recovery would do.
    pub recovery: Recovery,
    /// The members, the device first.
    pub members: Vec<MemberInfo>,
    /// Blocks of data that some member maps.
    pub mapped: u64,
    /// Blocks that are known to be lost: reading them is an error until they are written again.
    pub lost: u64,
    /// Log segments in which the backing failed before.
    pub faulty: Faulty,
    /// Blocks of data that were checked.
    pub checked: u64,
    /// What is not as it should be, the first [`FINDINGS_MAX`] of it.
    pub findings: Vec<Finding>,
    /// How much there is of it.
    pub found: u64,
}

/// Most findings that are listed.
pub const FINDINGS_MAX: usize = 1000;

/// Findings so far.
#[derive(Debug, Default)]
pub struct Findings {
    findings: Vec<Finding>,
    found: u64,
}

impl Findings {
    /// What was found in a volume without snapshots, in which nothing is known to be lost.
    #[must_use]
    pub fn into_inspection(
        self,
        label: VolumeLabel,
        recovery: Recovery,
        mapped: u64,
        checked: u64,
    ) -> Inspection {
        let Self { findings, found } = self;
        let members = Vec::new();
        let faulty = Faulty::default();
        Inspection { label, recovery, members, mapped, lost: 0, faulty, checked, findings, found }
    }

    pub(crate) const fn len(&self) -> u64 {
        self.found
    }

    /// Adds one. Those beyond [`FINDINGS_MAX`] are only counted.
    pub fn push(&mut self, finding: Finding) {
        self.found += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}
