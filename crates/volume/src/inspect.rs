//! Looking at a volume without changing it: every copy of what there are several of, what the newest root points to, each
//! entry of the map, and the data if asked for.

use onefold_format::checksum;
use onefold_format::volume::{Root, SegmentState, VolumeLabel, VolumeMode};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Location, Nanos};

use crate::backing::{Backing, drive, read_block};
use crate::check::Miscount;
use crate::config::Options;
use crate::host::Range;
use crate::log::BLOCK;
use crate::map::{PAGE_ENTRIES_U64, Ready};
use crate::mount::{MountError, Recovery, layout_of, mount_read_only, read_label};
use crate::volume::Volume;

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
    /// Batches that were durable are missing.
    Lost {
        /// The last batch that is there.
        last: u64,
        /// The last batch that was durable.
        durable: u64,
    },
    /// The map of 4 MiB cannot be read.
    Page {
        /// First block of them.
        lba: Lba,
    },
    /// A block is mapped to where no data can be.
    Outside {
        /// The block.
        lba: Lba,
        /// Where the map says it lies.
        at: Location,
    },
    /// Two blocks are mapped to one place.
    Shared {
        /// The second one.
        lba: Lba,
        /// Where both lie.
        at: Location,
    },
    /// A count of live blocks is wrong.
    Miscount(Miscount),
    /// A block cannot be read, or is not what was written.
    Data {
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
    /// Blocks that are mapped.
    pub mapped: u64,
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
#[derive(Default)]
pub(crate) struct List {
    findings: Vec<Finding>,
    found: u64,
}

impl List {
    pub(crate) fn into_inspection(
        self,
        label: VolumeLabel,
        recovery: Recovery,
        mapped: u64,
        checked: u64,
    ) -> Inspection {
        let Self { findings, found } = self;
        Inspection { label, recovery, mapped, checked, findings, found }
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.found += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

/// Looks at the volume on a backing of so many blocks; at all its data with `data`.
///
/// # Errors
/// There is no volume that could be opened.
pub fn inspect<B: Backing>(
    backing: &mut B,
    blocks: u64,
    data: bool,
) -> Result<Inspection, MountError> {
    let label = read_label(backing, blocks)?;
    if label.mode != VolumeMode::Log {
        return crate::faithful::inspect(backing, blocks, label, data);
    }
    let layout = layout_of(&label)?;
    let mut list = List::default();
    check_copies(backing, layout.labels(), layout.roots(), &label.uuid, &mut list);
    let (mut volume, recovery, durable) = mount_read_only(backing, blocks, Options::default())?;
    if recovery.seq < durable {
        list.push(Finding::Lost { last: recovery.seq, durable });
    }
    volume.load_all(backing, &mut list);
    let mapped = volume.check_entries(&mut list);
    for wrong in volume.recount().unwrap_or_default() {
        list.push(Finding::Miscount(wrong));
    }
    let checked = if data { volume.check_data(backing, &mut list) } else { 0 };
    Ok(list.into_inspection(label, recovery, mapped, checked))
}

/// Looks at every copy of label and root.
pub(crate) fn check_copies<B: Backing>(
    backing: &mut B,
    labels: &[u64],
    roots: &[u64],
    uuid: &[u8; 16],
    list: &mut List,
) {
    for at in labels {
        let whole = read_block(backing, *at)
            .is_ok_and(|block| VolumeLabel::decode(&block[..], *at).is_ok());
        if !whole {
            list.push(Finding::Label { at: *at });
        }
    }
    for at in roots {
        let block = read_block(backing, *at).ok();
        let blank = block.as_ref().is_some_and(|block| block.iter().all(|byte| *byte == 0));
        if !blank && block.is_none_or(|block| Root::decode(&block[..], uuid, *at).is_err()) {
            list.push(Finding::Root { at: *at });
        }
    }
}

impl Volume {
    fn load_all<B: Backing>(&mut self, backing: &mut B, list: &mut List) {
        for page in 0..self.map.len() {
            if self.map.ready(page) == Ready::Missing {
                self.load_page(page);
                drive(self, backing, Nanos::ZERO);
            }
            if self.map.ready(page) == Ready::Damaged {
                list.push(Finding::Page { lba: Lba::new(u64_from(page) * PAGE_ENTRIES_U64) });
            }
        }
        self.all_counted();
    }

    /// Every mapped block lies in a log segment that holds data, and nothing else lies there.
    fn check_entries(&mut self, list: &mut List) -> u64 {
        let mut taken = vec![false; index64(self.layout.geometry().backing_blocks)];
        let mut mapped = 0;
        for lba in (0..self.layout.geometry().logical_blocks).map(Lba::new) {
            let at = self.map.get(lba).at;
            if !at.is_block() {
                continue;
            }
            mapped += 1;
            let segment = self.layout.segment_of(at);
            let data = segment.raw() < self.layout.segments()
                && !matches!(
                    self.segments.of(segment).state,
                    SegmentState::Free | SegmentState::Fixed
                );
            if !data {
                list.push(Finding::Outside { lba, at });
            } else if std::mem::replace(&mut taken[at.index()], true) {
                list.push(Finding::Shared { lba, at });
            }
        }
        mapped
    }

    fn check_data<B: Backing>(&mut self, backing: &mut B, list: &mut List) -> u64 {
        let mut checked = 0;
        let mut block = [0; BLOCK];
        for lba in (0..self.layout.geometry().logical_blocks).map(Lba::new) {
            let entry = self.map.get(lba);
            if !entry.at.is_block() {
                continue;
            }
            checked += 1;
            let read = backing.read(entry.at.raw().into(), &mut block);
            if read.is_err() || checksum(&block) != entry.crc {
                list.push(Finding::Data { lba, at: entry.at });
            }
        }
        checked
    }

    /// Where a block lies and its checksum, for those who look closely. The page is read if need be.
    pub fn look_up<B: Backing>(&mut self, backing: &mut B, lba: Lba) -> Option<(Location, u32)> {
        let range = Range { lba, blocks: 1 };
        for _ in 0..3 {
            match self.mapped(range) {
                Ok(_) => {
                    let entry = self.map.get(lba);
                    return Some((entry.at, entry.crc));
                }
                Err(_) => drive(self, backing, Nanos::ZERO),
            };
        }
        None
    }
}
