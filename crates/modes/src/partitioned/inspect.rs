//! Looking at a volume of mode `sung` or `han` without changing it.

use std::collections::BTreeSet;
use std::ops::Range;

use onefold_format::volume::{BLOCK_BYTES, VolumeLabel};
use onefold_units::{Lba, Location};
use onefold_volume::parts::{Findings, check_copies};
use onefold_volume::{Backing, Finding, Inspection, MemberId, MountError, Options};

use super::PartitionedVolume;
use super::area::Areas;
use super::open::mount_read_only;

/// See [`crate::inspect`].
pub(crate) fn inspect(
    backing: &mut dyn Backing,
    blocks: u64,
    label: VolumeLabel,
    data: bool,
) -> Result<Inspection, MountError> {
    let areas = Areas::of(&label)?;
    let mut list = Findings::default();
    check_copies(backing, areas.labels(), areas.roots(), &label.uuid, &mut list);
    let (volume, recovery, durable) = mount_read_only(backing, blocks, &label, Options::default())?;
    if recovery.seq < durable {
        list.push(Finding::Lost { last: recovery.seq, durable });
    }
    let mapped = volume.check_tables(&mut list);
    let checked = if data { volume.check_data(backing, &mut list) } else { 0 };
    Ok(list.into_inspection(label, recovery, mapped, checked))
}

/// A partition as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Which.
    pub number: usize,
    /// Its blocks on the backing, those around the second label included.
    pub blocks: Range<u32>,
    /// Entries of its table that are searched.
    pub valid: u32,
    /// Entries that wait for the cleaner.
    pub invalid: u32,
    /// The first block of the last image of its table.
    pub table_at: Option<u32>,
}

impl PartitionedVolume {
    /// All partitions.
    pub fn partition_infos(&self) -> impl Iterator<Item = PartitionInfo> + '_ {
        self.tables.list.iter().enumerate().map(|(number, partition)| PartitionInfo {
            number,
            blocks: self.areas.partition(number),
            valid: partition.table.valid_count(),
            invalid: partition.table.invalid_count(),
            table_at: match partition.place.slot {
                0 => None,
                slot => Some(self.areas.slot_at(number, slot)),
            },
        })
    }

    /// No two blocks lie in one place, none lies in two, and none in free space.
    fn check_tables(&self, list: &mut Findings) -> u64 {
        let (mut places, mut blocks, mut mapped) = (BTreeSet::new(), BTreeSet::new(), 0);
        for entry in self.tables.valid_entries() {
            mapped += 1;
            let (lba, at) = (Lba::new(entry.lba.into()), entry.to);
            if self.regions.pieces().any(|free| free.contains(&at.raw())) {
                list.push(Finding::Outside { member: MemberId::DEVICE, lba, at });
            }
            if !places.insert(at) || !blocks.insert(entry.lba) {
                list.push(Finding::Shared { member: MemberId::DEVICE, lba, at });
            }
        }
        mapped
    }

    /// Reads every block that is mapped. These modes have no checksums of data (volume.md, section
    /// 3, V15).
    fn check_data(&self, backing: &mut dyn Backing, list: &mut Findings) -> u64 {
        let (mut checked, mut block) = (0, [0; BLOCK_BYTES]);
        for entry in self.tables.valid_entries() {
            checked += 1;
            if backing.read(entry.to.raw().into(), &mut block).is_err() {
                let at = Location::new(entry.to.raw());
                list.push(Finding::Data {
                    member: MemberId::DEVICE,
                    lba: Lba::new(entry.lba.into()),
                    at,
                });
            }
        }
        checked
    }
}
